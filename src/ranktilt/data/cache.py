"""The cache: vectors by the hash of their content, on disk, safe to share and to interrupt."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import platformdirs

from ranktilt.data.files import cannot_write, lock, write_bytes
from ranktilt.errors import UserError, unknown

Vectors = npt.NDArray[np.float32]
Keys = npt.NDArray[np.void]

ABOUT = "about.json"
KEY_BYTES = 16
STORES = {"float32": "<f4", "float16": "<f2"}
_VECTORS, _KEYS = ".vectors", ".keys"
"""Endings of a cache's two files, which are called by the length of its vectors."""
_KEY = np.dtype([("high", ">u8"), ("low", ">u8")])


def cache_folder() -> Path:
    """Return where expensive results are kept: ``RANKTILT_CACHE``, or the platform's user cache."""
    named = os.environ.get("RANKTILT_CACHE")
    return Path(named).expanduser() if named else platformdirs.user_cache_path("ranktilt")


def content_keys(texts: Iterable[str], *, prefix: str = "") -> Keys:
    """Hash texts, and what else a cached value depends on, to 16 bytes each."""
    start = hashlib.blake2b(prefix.encode() + b"\0", digest_size=KEY_BYTES)
    digests = []
    for text in texts:
        one = start.copy()
        one.update(text.encode())
        digests.append(one.digest())
    return np.frombuffer(b"".join(digests), dtype=f"V{KEY_BYTES}")


class Stored:
    """Vectors that lie in a file, by row (−1: not found), in the order in which keys were looked up."""

    def __init__(self, vectors: npt.NDArray[np.floating[Any]], rows: npt.NDArray[np.int64]) -> None:
        self._vectors = vectors
        self._rows = rows

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and length of a vector; the length is 0 where nothing is known."""
        return len(self._rows), self._vectors.shape[1]

    def __len__(self) -> int:
        return len(self._rows)

    def read(self, start: int, stop: int) -> Vectors:
        """Read rows `start` to `stop`, as of a slice; zeros where one was not found."""
        return self._gather(self._rows[start:stop])

    def take(self, rows: npt.ArrayLike) -> Vectors:
        """Read any rows, repeats allowed; zeros where one was not found."""
        return self._gather(self._rows[np.asarray(rows, dtype=np.int64)])

    def _gather(self, rows: npt.NDArray[np.int64]) -> Vectors:
        there = rows >= 0
        if there.all():
            return self._vectors[rows].astype(np.float32, copy=False)
        made = np.zeros((len(rows), self.shape[1]), dtype=np.float32)
        made[there] = self._vectors[rows[there]]
        return made


class VectorCache:
    """Vectors of one length and their content keys, in files that are appended to: a vector is there if its key is."""

    def __init__(
        self, folder: Path, *, dtype: str = "float32", about: Mapping[str, Any] | None = None
    ) -> None:
        if dtype not in STORES:
            raise unknown("store of vectors", dtype, STORES)
        self.folder = folder
        self._dtype = STORES[dtype]
        self._about = about

    def get(self, keys: Keys) -> tuple[npt.NDArray[np.bool_], Stored]:
        """Look up keys, repeats allowed: which are there, and their vectors, to be read."""
        rows = np.full(len(keys), -1, dtype=np.int64)
        file = next(_files(self.folder), None)
        count = 0 if file is None else self._count(file)
        if file is None or not count:
            return rows >= 0, Stored(np.empty((0, 0), dtype=self._dtype), rows)
        kept, wanted = file.with_suffix(_KEYS), keys.view(_KEY)
        order, high = _index(kept, count, kept.stat().st_mtime_ns)
        place = np.minimum(np.searchsorted(high, wanted["high"].astype(np.uint64)), count - 1)
        low = np.asarray(np.memmap(kept, dtype=_KEY, mode="r", shape=(count,)))["low"]
        found = (high[place] == wanted["high"]) & (low[order[place]] == wanted["low"])
        rows[found] = order[place[found]]
        if found.any():
            with suppress(
                OSError
            ):  # says when it was last of use; a folder of someone else's need not
                os.utime(self.folder / ABOUT)
        vectors = np.memmap(file, dtype=self._dtype, mode="r", shape=(count, int(file.stem)))
        return found, Stored(np.asarray(vectors), rows)

    def put(self, keys: Keys, vectors: Vectors) -> None:
        """Store vectors under keys, each once; what is stored survives an interruption at any later moment."""
        if not vectors.size:
            return
        with np.errstate(over="ignore"):
            made = np.ascontiguousarray(vectors, dtype=self._dtype)
        if made.dtype != vectors.dtype and np.isinf(made).any():
            raise UserError(
                f"{self.folder}: float16 cannot hold numbers beyond 65,504; choose store=float32"
            )
        try:
            self._append(made, np.ascontiguousarray(keys))
        except OSError as error:
            raise self._cannot_write(error) from error

    def require_writable(self) -> None:
        """Find out before hours of work whether the cache can be written; `UserError` if not."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                pass
        except OSError as error:
            raise self._cannot_write(error) from error

    def _cannot_write(self, error: OSError) -> UserError:
        return UserError(
            f"{cannot_write(self.folder, error)} (RANKTILT_CACHE names the cache's folder)"
        )

    def _append(self, made: npt.NDArray[np.floating[Any]], keys: Keys) -> None:
        """Write vectors, then the keys that make them count, behind the last whole ones."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / ABOUT).exists():
            text = json.dumps(
                {"what": self.folder.parent.name, **(self._about or {})}, ensure_ascii=False
            )
            write_bytes(self.folder / ABOUT, text.encode())
        file = next(_files(self.folder), None) or self.folder / f"{made.shape[1]}{_VECTORS}"
        if file.stem != str(made.shape[1]):
            raise UserError(
                f"{self.folder}: holds vectors of {file.stem} numbers, not {made.shape[1]}; remove it"
            )
        with file.with_suffix(_KEYS).open("ab") as names, file.open("ab") as vectors:
            lock(names, wait=True)
            whole = self._count(file)
            for stream, data in ((vectors, made), (names, keys)):
                stream.truncate(
                    whole * data[0].nbytes
                )  # what a kill or a full disk left half written
                stream.write(data.view(np.uint8).data)
                stream.flush()
                os.fsync(stream.fileno())

    def _count(self, file: Path) -> int:
        """How many vectors have their key, and are whole."""
        row = int(file.stem) * np.dtype(self._dtype).itemsize
        keys = file.with_suffix(_KEYS)
        return (
            min(file.stat().st_size // row, keys.stat().st_size // KEY_BYTES)
            if keys.exists()
            else 0
        )


@lru_cache(maxsize=4)
def _index(
    keys: Path, count: int, changed: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """Where keys lie by their first halves, and these; made once while a file stays as it is."""
    high = np.memmap(keys, dtype=_KEY, mode="r", shape=(count,))["high"].astype(np.uint64)
    order = np.argsort(high, kind="stable")
    return order, high[order]


def _files(folder: Path) -> Iterator[Path]:
    return (file for file in folder.glob(f"*{_VECTORS}") if file.stem.isdecimal())
