"""Cache vectors of numbers on disk, such as embeddings, by the hashes of their texts.

Several processes may use a cache together, and any of them may be killed at any time: a vector that
was stored is never lost, and one that was half written does not count.
"""

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
from ranktilt.errors import UserError, unknown_name

Vectors = npt.NDArray[np.float32]
"""Vectors, a row for each key."""
Keys = npt.NDArray[np.void]
"""Hashes of the texts that vectors belong to (`content_keys`)."""

ABOUT = "about.json"
"""Name of the file that says what a folder of the cache belongs to."""
KEY_BYTES = 16
"""Number of bytes of a key; with 128 bits, no two of billions of texts share one by chance."""
STORES = {"float32": "<f4", "float16": "<f2"}
"""Types of stored numbers: name, and little-endian type in the file."""
_VECTORS = ".vectors"
"""Ending of the file with the vectors, such as ``384.vectors``; 384 is the length of a vector."""
_KEYS = ".keys"
"""Ending of the file with the key of each vector."""
_KEY = np.dtype([("high", ">u8"), ("low", ">u8")])
"""A key as two numbers, its first and its second half, so that keys can be sorted and searched."""


def cache_folder() -> Path:
    """Return the folder of expensive results: ``RANKTILT_CACHE``, or the platform's user cache."""
    configured = os.environ.get("RANKTILT_CACHE")
    if configured:
        return Path(configured).expanduser()
    return platformdirs.user_cache_path("ranktilt")


def cannot_write_cache(folder: Path, error: OSError) -> UserError:
    """Make the one-line error for a folder of the cache that cannot be written."""
    return UserError(f"{cannot_write(folder, error)} (RANKTILT_CACHE sets the cache folder)")


def content_keys(texts: Iterable[str], *, prefix: str = "") -> Keys:
    """Hash each text to a key of `KEY_BYTES` bytes.

    The `prefix` names everything else that the cached value depends on.
    """
    start = hashlib.blake2b(prefix.encode() + b"\0", digest_size=KEY_BYTES)
    digests = []
    for text in texts:
        digest = start.copy()
        digest.update(text.encode())
        digests.append(digest.digest())
    return np.frombuffer(b"".join(digests), dtype=f"V{KEY_BYTES}")


class StoredVectors:
    """The vectors of the keys that were looked up, in their order; read from the file when needed.

    Parameters
    ----------
    vectors : array of float, shape (n_stored, length)
        All vectors in the file.
    rows : array of int, shape (n_keys,)
        Row in `vectors` of each key that was looked up; −1 for a key that is not stored.
    """

    def __init__(self, vectors: npt.NDArray[np.floating[Any]], rows: npt.NDArray[np.int64]) -> None:
        self._vectors = vectors
        self._rows = rows

    @property
    def shape(self) -> tuple[int, int]:
        """Number of keys, and length of a vector; the length is 0 if the cache is empty."""
        return len(self._rows), self._vectors.shape[1]

    def __len__(self) -> int:
        return len(self._rows)

    def read(self, start: int, stop: int) -> Vectors:
        """Read the rows from `start` up to `stop`; zeros for missing ones."""
        return self._gather(self._rows[start:stop])

    def take(self, rows: npt.ArrayLike) -> Vectors:
        """Read any rows, repeats allowed; zeros for missing ones."""
        return self._gather(self._rows[np.asarray(rows, dtype=np.int64)])

    def _gather(self, rows: npt.NDArray[np.int64]) -> Vectors:
        """Read vectors by their rows in the file; zeros for missing ones."""
        is_stored = rows >= 0
        if is_stored.all():
            return self._vectors[rows].astype(np.float32, copy=False)
        vectors = np.zeros((len(rows), self.shape[1]), dtype=np.float32)
        vectors[is_stored] = self._vectors[rows[is_stored]]
        return vectors


class VectorCache:
    """Vectors of one length and their keys, in two files that only grow.

    A vector is written before its key, and counts as soon as its key is there.

    Parameters
    ----------
    folder : Path
        Folder of the files.
    dtype : str, optional
        Type of the stored numbers, one of `STORES`.
    about : mapping, optional
        Facts about the vectors, such as their model, for the file `ABOUT` of the folder.
    """

    def __init__(
        self, folder: Path, *, dtype: str = "float32", about: Mapping[str, Any] | None = None
    ) -> None:
        if dtype not in STORES:
            raise unknown_name("store of vectors", dtype, STORES)
        self.folder = folder
        self._dtype = STORES[dtype]
        self._about = about

    def get(self, keys: Keys) -> tuple[npt.NDArray[np.bool_], StoredVectors]:
        """Return which keys are stored, and the vectors of all keys; missing ones are zeros.

        Keys may repeat.
        """
        rows = np.full(len(keys), -1, dtype=np.int64)
        file = next(_files(self.folder), None)
        count = 0 if file is None else self._count(file)
        if file is None or not count:
            return rows >= 0, StoredVectors(np.empty((0, 0), dtype=self._dtype), rows)
        key_file, sought = file.with_suffix(_KEYS), keys.view(_KEY)
        order, high = _index(key_file, count, key_file.stat().st_mtime_ns)
        # The index is sorted by the first halves of the keys, which no two stored keys share by
        # chance. If the second half of a candidate differs, the sought key is not stored.
        position = np.searchsorted(high, sought["high"].astype(np.uint64))
        position = np.minimum(position, count - 1)
        low = np.asarray(np.memmap(key_file, dtype=_KEY, mode="r", shape=(count,)))["low"]
        is_stored = (high[position] == sought["high"]) & (low[order[position]] == sought["low"])
        rows[is_stored] = order[position[is_stored]]
        if is_stored.any():
            # The time tells `ranktilt cache` the last use. Someone else's folder may be read-only.
            with suppress(OSError):
                os.utime(self.folder / ABOUT)
        vectors = np.memmap(file, dtype=self._dtype, mode="r", shape=(count, int(file.stem)))
        return is_stored, StoredVectors(np.asarray(vectors), rows)

    def put(self, keys: Keys, vectors: Vectors) -> None:
        """Store vectors under their keys, which must not be stored yet.

        When this returns, they are on disk, and no later interruption can lose them.
        """
        if not vectors.size:
            return
        with np.errstate(over="ignore"):
            converted = np.ascontiguousarray(vectors, dtype=self._dtype)
        if converted.dtype != vectors.dtype and np.isinf(converted).any():
            raise UserError(
                f"{self.folder}: float16 cannot hold numbers above 65,504; choose store=float32"
            )
        try:
            self._append(converted, np.ascontiguousarray(keys))
        except OSError as error:
            raise cannot_write_cache(self.folder, error) from error

    def require_writable(self) -> None:
        """Check that the cache can be written, before hours of work; `UserError` if it cannot."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                pass
        except OSError as error:
            raise cannot_write_cache(self.folder, error) from error

    def _append(self, vectors: npt.NDArray[np.floating[Any]], keys: Keys) -> None:
        """Write vectors after the last complete one, then the keys that make them count."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / ABOUT).exists():
            about = {"kind": self.folder.parent.name, **(self._about or {})}
            text = json.dumps(about, ensure_ascii=False)
            write_bytes(self.folder / ABOUT, text.encode())
        length = vectors.shape[1]
        file = next(_files(self.folder), None) or self.folder / f"{length}{_VECTORS}"
        if file.stem != str(length):
            raise UserError(
                f"{self.folder}: holds vectors with {file.stem} numbers, not {length}; remove it"
            )
        with file.with_suffix(_KEYS).open("ab") as key_stream, file.open("ab") as vector_stream:
            lock(key_stream, wait=True)
            count = self._count(file)
            for stream, rows in ((vector_stream, vectors), (key_stream, keys)):
                # A kill or a full disk may have left an incomplete row.
                stream.truncate(count * rows[0].nbytes)
                stream.write(rows.view(np.uint8).data)
                stream.flush()
                os.fsync(stream.fileno())

    def _count(self, file: Path) -> int:
        """Count the vectors that are complete and have their key."""
        keys = file.with_suffix(_KEYS)
        if not keys.exists():
            return 0
        row_size = int(file.stem) * np.dtype(self._dtype).itemsize
        return min(file.stat().st_size // row_size, keys.stat().st_size // KEY_BYTES)


@lru_cache(maxsize=4)
def _index(
    key_file: Path, count: int, changed_ns: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """Return an index of stored keys: the rows that sort their first halves, and these halves.

    The index is remembered as long as the file has this `count` of keys and was last changed at
    `changed_ns`, in nanoseconds.
    """
    high = np.memmap(key_file, dtype=_KEY, mode="r", shape=(count,))["high"].astype(np.uint64)
    order = np.argsort(high, kind="stable")
    return order, high[order]


def _files(folder: Path) -> Iterator[Path]:
    """List the files of vectors in a folder."""
    return (file for file in folder.glob(f"*{_VECTORS}") if file.stem.isdecimal())
