"""Texts in mapped files, which Polars reads where they are (Arrow's C data interface): memory holds only their ends."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ranktilt.errors import UserError
from ranktilt.io.cache import cache_folder
from ranktilt.io.files import cannot_write

AT_ONCE = 8_192
"""Documents whose texts are held at once."""
LARGE = 32 << 20
"""Bytes from which texts are worth a file."""
_BYTES, _ENDS = ".bytes", ".ends"

Parts = Iterable[Mapping[str, pl.Series]]


def aside(make: Callable[[], Parts]) -> dict[str, pl.Series]:
    """Put columns of texts into files that go with this process; `make` gives them a few rows at a time."""
    folder = cache_folder() / "texts"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            dir=folder, suffix=".tmp", ignore_cleanup_errors=True
        ) as temporary:
            _write(Path(temporary), make())
            ends = sorted(Path(temporary).glob(f"*{_ENDS}"))
            return {path.stem: _column(path.with_suffix("")) for path in ends}
    except OSError as error:
        raise UserError(
            f"{cannot_write(folder, error)} (RANKTILT_CACHE names the cache's folder)"
        ) from error


def _write(folder: Path, parts: Parts) -> None:
    """Write each column as its bytes and where each text ends."""
    ends = dict[str, int]()
    with ExitStack() as stack:
        files = dict[str, Any]()
        for part in parts:
            for name, texts in part.items():
                if name not in ends:
                    ends[name] = 0
                    for end in (_BYTES, _ENDS):
                        files[name + end] = stack.enter_context(
                            (folder / f"{name}{end}").open("wb")
                        )
                    files[name + _ENDS].write(bytes(8))
                lengths = ends[name] + np.cumsum(texts.str.len_bytes().to_numpy(), dtype=np.int64)
                files[name + _BYTES].write(texts.str.join("").cast(pl.Binary).item())
                files[name + _ENDS].write(lengths.data)
                ends[name] = int(lengths[-1]) if len(lengths) else ends[name]


def _column(path: Path) -> pl.Series:
    ends = np.memmap(path.with_suffix(_ENDS), dtype=np.int64, mode="r")
    data = (
        np.memmap(path.with_suffix(_BYTES), dtype=np.uint8, mode="r")
        if ends[-1]
        else np.empty(0, dtype=np.uint8)
    )
    return pl.Series(path.name, pl.Series(_Strings(ends, data), dtype=pl.String))


class _Schema(ctypes.Structure):
    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_char_p),
        ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


class _Array(ctypes.Structure):
    _fields_ = (
        ("length", ctypes.c_int64),
        ("null_count", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("n_buffers", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("buffers", ctypes.c_void_p),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


_held: list[object] = []
"""What Polars has addresses of: never given back, for nobody tells when the last table that shares it is gone."""


class _Strings:
    """Strings by Arrow's C data interface (format ``U``): the ends of texts, and their bytes."""

    def __init__(self, ends: np.ndarray[Any, Any], data: np.ndarray[Any, Any]) -> None:
        self.ends, self.data = ends, data

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        # Whoever takes an array calls its `release`, from whatever thread. One written in Python
        # would wait there for a lock that the caller may hold; this one does nothing, needs no
        # lock, and is there for as long as Python is.
        release = ctypes.cast(ctypes.pythonapi.Py_IsInitialized, ctypes.c_void_p).value
        buffers = (ctypes.c_void_p * 3)(None, self.ends.ctypes.data, self.data.ctypes.data)
        schema = _Schema(b"U", b"", None, 0, 0, None, None, release, None)
        array = _Array(
            len(self.ends) - 1,
            0,
            0,
            3,
            0,
            ctypes.cast(buffers, ctypes.c_void_p),
            None,
            None,
            release,
            None,
        )
        _held.append((schema, array, buffers, self))
        capsule = ctypes.pythonapi.PyCapsule_New
        capsule.restype, capsule.argtypes = (
            ctypes.py_object,
            [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
        )
        return tuple(
            capsule(ctypes.addressof(one), name, None)
            for one, name in ((schema, _SCHEMA), (array, _ARRAY))
        )


_SCHEMA, _ARRAY = b"arrow_schema", b"arrow_array"
"""Names of capsules, of which Python keeps the address only."""
