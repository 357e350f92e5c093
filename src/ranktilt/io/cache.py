"""The cache: vectors by the hash of their content, on disk, safe to share and to interrupt."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import platformdirs

from ranktilt.errors import DataWarning, UserError, unknown
from ranktilt.io.files import cannot_write, lock, write_bytes

Vectors = npt.NDArray[np.float32]
Keys = npt.NDArray[np.void]
_Index = tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]

ABOUT = "about.json"
KEY_BYTES = 16
STORES = {"float32": "<f4", "float16": "<f2"}
_VECTORS, _KEYS = ".vectors", ".keys"
"""Endings of a cache's two files, which are called by the length of its vectors."""
_KEY = np.dtype([("high", ">u8"), ("low", ">u8")])
_RECORD = np.dtype([*_KEY.descr, ("sum", "<u4")])
"""What is kept of each vector beside it: its key and its checksum."""
_SUMMED = 1 << 24
"""Bytes of vectors that are checked at a time."""


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
    """Vectors that lie in files, by part (−1: not found) and row, in the order in which keys were looked up."""

    def __init__(
        self, vectors: Sequence[npt.NDArray[np.floating[Any]]], part: npt.NDArray[np.int32], row: npt.NDArray[np.int64]
    ) -> None:
        self._vectors = vectors
        self._part = part
        self._row = row

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and length of a vector; the length is 0 where nothing is known."""
        return len(self._row), self._vectors[0].shape[1] if self._vectors else 0

    def __len__(self) -> int:
        """Rows."""
        return len(self._row)

    def read(self, start: int, stop: int) -> Vectors:
        """Read rows `start` to `stop`, as of a slice; zeros where one was not found."""
        return self._gather(self._part[start:stop], self._row[start:stop])

    def take(self, rows: npt.ArrayLike) -> Vectors:
        """Read any rows, repeats allowed; zeros where one was not found."""
        which = np.asarray(rows, dtype=np.int64)
        return self._gather(self._part[which], self._row[which])

    def _gather(self, part: npt.NDArray[np.int32], row: npt.NDArray[np.int64]) -> Vectors:
        if len(self._vectors) == 1 and (part == 0).all():
            return self._vectors[0][row].astype(np.float32, copy=False)
        made = np.zeros((len(row), self.shape[1]), dtype=np.float32)
        for number in np.unique(part[part >= 0]):
            here = part == number
            made[here] = self._vectors[number][row[here]]
        return made


class VectorCache:
    """Vectors of one length under content keys: one file of vectors, one of keys and checksums, both appended to.

    Several processes may use one folder at the same time, and each may be killed at any moment: a vector is there when
    its key is. `about` says for ``ranktilt cache`` what is kept here.
    """

    def __init__(self, folder: Path, *, dtype: str = "float32", about: Mapping[str, Any] | None = None) -> None:
        if dtype not in STORES:
            raise unknown("store of vectors", dtype, STORES)
        self.folder = folder
        self._dtype = STORES[dtype]
        self._about = about

    def get(self, keys: Keys) -> tuple[npt.NDArray[np.bool_], Stored]:
        """Look up keys, repeats allowed: which are there, and their vectors, to be read."""
        records, vectors, order, high = self._open()
        wanted = keys.view(_KEY)
        rows = np.full(len(keys), -1, dtype=np.int64)
        at = np.searchsorted(high, wanted["high"].astype(np.uint64))
        left, damaged = np.arange(len(keys)), 0
        while len(left := left[at[left] < len(high)]):  # all records of this half of a key, mostly one
            left = left[high[at[left]] == wanted["high"][left]]
            found = order[at[left]]
            same = records["low"][found] == wanted["low"][left]
            sound = np.array(same)
            sound[same] = _sums(vectors, found[same]) == records["sum"][found[same]]
            damaged += int((same & ~sound).sum())
            rows[left[sound]] = found[sound]
            left = left[~sound]
            at[left] += 1
        there = rows >= 0
        if damaged and not there.all():
            message = f"{self.folder}: damaged vectors of the cache are passed over, and made again"
            warnings.warn(message, DataWarning, stacklevel=2)
        if there.any():
            with suppress(OSError):  # says when it was last of use; a folder of someone else's need not
                os.utime(self.folder / ABOUT)
        return there, Stored([vectors] if len(vectors) else [], np.where(there, 0, -1).astype(np.int32), rows)

    def put(self, keys: Keys, vectors: Vectors) -> None:
        """Store vectors under keys, each once; what is stored survives an interruption at any later moment."""
        if not vectors.size:
            return
        with np.errstate(over="ignore"):
            made = np.ascontiguousarray(vectors, dtype=self._dtype)
        if made.dtype != vectors.dtype and np.isinf(made).any():
            raise UserError(f"{self.folder}: float16 cannot hold numbers beyond 65,504; choose store=float32")
        records = np.empty(len(keys), dtype=_RECORD)
        for name in _KEY.names or ():
            records[name] = keys.view(_KEY)[name]
        records["sum"] = _sums(made, np.arange(len(made)))
        try:
            self._append(made, records)
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
        return UserError(f"{cannot_write(self.folder, error)} (RANKTILT_CACHE names the cache's folder)")

    def _append(self, made: npt.NDArray[np.floating[Any]], records: npt.NDArray[np.void]) -> None:
        """Write vectors, then the records that make them count, behind the last whole ones."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / ABOUT).exists():
            text = json.dumps({"what": self.folder.parent.name, **(self._about or {})}, ensure_ascii=False)
            write_bytes(self.folder / ABOUT, text.encode())
        file = self._file() or self.folder / f"{made.shape[1]}{_VECTORS}"
        if file.stem != str(made.shape[1]):
            raise UserError(f"{self.folder}: holds vectors of {file.stem} numbers, not {made.shape[1]}; remove it")
        with file.with_suffix(_KEYS).open("ab") as keys, file.open("ab") as vectors:
            lock(keys, wait=True)
            whole = self._count(file)
            for stream, data in ((vectors, made), (keys, records)):
                stream.truncate(whole * data[0].nbytes)  # what a kill or a full disk left half written
                stream.write(data.data)
                stream.flush()
                os.fsync(stream.fileno())

    def _file(self) -> Path | None:
        return next(_files(self.folder), None)

    def _count(self, file: Path) -> int:
        """How many vectors have their record, and are whole."""
        row = int(file.stem) * np.dtype(self._dtype).itemsize
        return min(file.stat().st_size // row, _records(file))

    def _open(self) -> tuple[npt.NDArray[Any], npt.NDArray[np.floating[Any]], *_Index]:
        """Map the records and the vectors, and order the former."""
        file = self._file()
        count = 0 if file is None else self._count(file)
        if file is None or not count:
            none = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint64)
            return np.empty(0, dtype=_RECORD), np.empty((0, 0), dtype=self._dtype), *none
        keys = file.with_suffix(_KEYS)
        records = np.memmap(keys, dtype=_RECORD, mode="r", shape=(count,))
        vectors = np.memmap(file, dtype=self._dtype, mode="r", shape=(count, int(file.stem)))
        return np.asarray(records), np.asarray(vectors), *_index(keys, count, keys.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _index(keys: Path, count: int, changed: int) -> _Index:
    """Where records lie by the first half of their keys, and these; made once while a file stays as it is."""
    high = np.memmap(keys, dtype=_RECORD, mode="r", shape=(count,))["high"].astype(np.uint64)
    order = np.argsort(high, kind="stable")
    return order, high[order]


def count_vectors(folder: Path) -> int:
    """How many vectors a folder of the cache holds."""
    return sum(map(_records, _files(folder)))


def _files(folder: Path) -> Iterator[Path]:
    return (file for file in folder.glob(f"*{_VECTORS}") if file.stem.isdecimal())


def _records(file: Path) -> int:
    keys = file.with_suffix(_KEYS)
    return keys.stat().st_size // _RECORD.itemsize if keys.exists() else 0


def _sums(vectors: npt.NDArray[np.floating[Any]], rows: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    """Checksums of some vectors: all words of one, combined by exclusive or; read in the file's order."""
    words, sums = vectors.view(f"<u{vectors.itemsize}"), np.empty(len(rows), dtype=np.uint32)
    order, step = np.argsort(rows), max(_SUMMED // max(vectors.shape[1] * vectors.itemsize, 1), 1)
    for start in range(0, len(rows), step):
        part = order[start : start + step]
        sums[part] = np.bitwise_xor.reduce(words[rows[part]], axis=1)
    return sums
