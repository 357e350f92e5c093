"""Texts of large collections in memory-mapped files, so that only what is read takes up memory."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ranktilt.data.cache import cache_folder
from ranktilt.data.files import cannot_write
from ranktilt.errors import UserError

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
            return {path.stem: _column(Path(temporary) / path.stem) for path in ends}
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
    # Only large collections need it.
    from nanoarrow import c_array_from_buffers, large_string

    ends = np.memmap(f"{path}{_ENDS}", dtype=np.int64, mode="r")
    data = (
        np.memmap(f"{path}{_BYTES}", dtype=np.uint8, mode="r")
        if ends[-1]
        else np.empty(0, dtype=np.uint8)
    )
    # Arrow's strings are the places where texts end, and their bytes. The files are given back with
    # the last table that holds a part of the column.
    buffers = [None, ends, data]
    array = c_array_from_buffers(large_string(), len(ends) - 1, buffers, null_count=0)
    return pl.Series(array).alias(path.name)
