"""The cache: vectors by the hash of their content, on disk, safe to share and to interrupt."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import uuid
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import platformdirs

from ranktilt.errors import DataWarning, UserError, unknown
from ranktilt.files import cannot_write

KEY_BYTES = 16
Keys = npt.NDArray[np.void]
Vectors = npt.NDArray[np.float32]

ABOUT = "about.json"
SUFFIX, TEMPORARY = ".vectors", ".tmp"
STORES = {"float32": "<f4", "float16": "<f2"}
MOST_FILES, MERGED = 64, 48
_MAGIC, _VERSION, _KINDS = b"RANKTILT", 1, {name.encode().ljust(4, b"\0") for name in STORES.values()}
_HEADER = struct.Struct("<8sI4sIQ")
_HEADER_BYTES = 64
_BLOCK = 32 << 20
_PATIENCE = 100


def cache_folder() -> Path:
    """Return where RankTilt keeps what is expensive to make again.

    Returns
    -------
    Path
        The environment's ``RANKTILT_CACHE``, or the platform's user cache.
    """
    named = os.environ.get("RANKTILT_CACHE")
    return Path(named).expanduser() if named else platformdirs.user_cache_path("ranktilt")


def content_keys(texts: Iterable[str], *, prefix: str = "") -> Keys:
    """Hash texts.

    Parameters
    ----------
    texts : iterable of str
        The content.
    prefix : str, optional
        What else the cached value depends on.

    Returns
    -------
    ndarray of 16-byte records
        Equal for equal content, and for no other.
    """
    start = hashlib.blake2b(prefix.encode() + b"\0", digest_size=KEY_BYTES)
    digests = []
    for text in texts:
        one = start.copy()
        one.update(text.encode())
        digests.append(one.digest())
    return np.frombuffer(b"".join(digests), dtype=f"V{KEY_BYTES}")


class Stored:
    """Vectors that lie in files, in the order in which their keys were looked up; nothing is held until it is read.

    Parameters
    ----------
    vectors : sequence of ndarray, each of shape (m, d)
        Memory-mapped parts.
    part : ndarray of int32, shape (n,)
        Part that holds each row; -1 where a row was not found.
    row : ndarray of int64, shape (n,)
        Row within the part.
    """

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
        """Read rows that follow each other.

        Parameters
        ----------
        start, stop : int
            As of a slice: from `start`, `stop` not included.

        Returns
        -------
        ndarray of float32, shape (stop - start, d)
            C-contiguous; zeros where a row was not found.
        """
        return self._gather(self._part[start:stop], self._row[start:stop])

    def take(self, rows: npt.ArrayLike) -> Vectors:
        """Read any rows.

        Parameters
        ----------
        rows : array of int, shape (m,)
            Their numbers, repeats allowed.

        Returns
        -------
        ndarray of float32, shape (m, d)
            C-contiguous; zeros where a row was not found.
        """
        which = np.asarray(rows, dtype=np.int64)
        return self._gather(self._part[which], self._row[which])

    def _gather(self, part: npt.NDArray[np.int32], row: npt.NDArray[np.int64]) -> Vectors:
        made = np.zeros((len(row), self.shape[1]), dtype=np.float32)
        for number in np.unique(part[part >= 0]):
            here = part == number
            made[here] = self._vectors[number][row[here]]
        return made


class VectorCache:
    """Vectors of one length under content keys, in files that are written whole and never changed.

    Several processes may use one folder at the same time, and each may be killed at any moment: a file is either
    there, whole, or it is not.

    Parameters
    ----------
    folder : Path
        Made when something is stored.
    dtype : {"float32", "float16"}, optional
        As which vectors are stored; they are read as float32.
    about : mapping, optional
        What is kept here and what made it, for ``ranktilt cache``; written beside the vectors.
    """

    def __init__(self, folder: Path, *, dtype: str = "float32", about: Mapping[str, Any] | None = None) -> None:
        if dtype not in STORES:
            raise unknown("store of vectors", dtype, STORES)
        self.folder = folder
        self._dtype = STORES[dtype]
        self._about = about

    def get(self, keys: Keys) -> tuple[npt.NDArray[np.bool_], Stored]:
        """Look up keys.

        Parameters
        ----------
        keys : ndarray of 16-byte records, shape (n,)
            As `content_keys` makes them, repeats allowed.

        Returns
        -------
        found : ndarray of bool, shape (n,)
            Which keys are there.
        stored : Stored, shape (n, d)
            Their vectors, to be read.
        """
        part = np.full(len(keys), -1, dtype=np.int32)
        row = np.zeros(len(keys), dtype=np.int64)
        shards = self._shards()
        for number, shard in enumerate(shards):
            missing = np.flatnonzero(part < 0)
            at = np.minimum(np.searchsorted(shard.keys, keys[missing]), len(shard.keys) - 1)
            hit = shard.keys[at] == keys[missing]
            part[missing[hit]], row[missing[hit]] = number, at[hit]
        found = part >= 0
        if found.any():
            with suppress(OSError):  # says when it was last of use; a folder of someone else's need not
                os.utime(self.folder / ABOUT)
        return found, Stored([shard.vectors for shard in shards], part, row)

    def put(self, keys: Keys, vectors: Vectors) -> None:
        """Store vectors; what is stored survives an interruption at any later moment.

        Parameters
        ----------
        keys : ndarray of 16-byte records, shape (n,)
            Each once.
        vectors : ndarray of float32, shape (n, d)
            Their vectors.

        Raises
        ------
        UserError
            If the folder cannot be written, or float16 cannot hold a number.
        """
        if not vectors.size:
            return
        with np.errstate(over="ignore"):
            made = vectors.astype(self._dtype)
        if made.dtype != vectors.dtype and np.isinf(made).any():
            raise UserError(f"{self.folder}: float16 cannot hold numbers beyond 65,504; choose store=float32")
        order = np.argsort(keys)
        try:
            for _ in range(_PATIENCE):
                with suppress(FileNotFoundError, FileExistsError):  # another process prunes at this very moment
                    self._store(keys[order], made[order])
                    break
            else:
                self._store(keys[order], made[order])
        except OSError as error:
            raise self._cannot_write(error) from error
        with suppress(OSError):
            if len(self._paths()) > MOST_FILES:
                with _alone(self.folder):
                    self._merge()

    def require_writable(self) -> None:
        """Find out before hours of work whether the cache can be written; `UserError` if not."""
        probe = self.folder / f"{uuid.uuid4().hex}.probe"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            probe.write_bytes(b"0")
        except OSError as error:
            raise self._cannot_write(error) from error
        finally:
            with suppress(OSError):
                probe.unlink(missing_ok=True)

    def _cannot_write(self, error: OSError) -> UserError:
        return UserError(f"{cannot_write(self.folder, error)} (RANKTILT_CACHE names the cache's folder)")

    def _store(self, keys: Keys, made: npt.NDArray[np.floating[Any]]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / ABOUT).exists():
            text = json.dumps({"what": self.folder.parent.name, **(self._about or {})}, ensure_ascii=False)
            with _whole(self.folder / ABOUT) as stream:
                stream.write(text.encode())
        _write(self.folder, keys, made.shape[1], [made])

    def _paths(self) -> list[Path]:
        return sorted(self.folder.glob(f"*{SUFFIX}"))

    def _shards(self) -> list[Shard]:
        """Open all files; where one goes away meanwhile, because another process merges, look again."""
        for _ in range(_PATIENCE):
            with suppress(FileNotFoundError):
                return self._opened()
        raise UserError(f"{self.folder}: files of the cache vanish while they are read; is it being pruned?")

    def _opened(self) -> list[Shard]:
        found: list[Shard] = []
        for path in self._paths():
            try:
                shard = Shard.open(path)
                if found and shard.vectors.shape[1] != found[0].vectors.shape[1]:
                    raise ValueError(f"vectors of {shard.vectors.shape[1]} numbers, not {found[0].vectors.shape[1]}")
            except FileNotFoundError:
                raise
            except (OSError, ValueError) as error:
                message = f"{path}: a damaged file of the cache is passed over, what it held is made again: {error}"
                warnings.warn(message, DataWarning, stacklevel=5)
                continue
            found.append(shard)
        return found

    def _merge(self) -> None:
        """Write the smallest files as one; who has the old ones open reads on."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            small = sorted(self._shards(), key=lambda shard: len(shard.keys))[:MERGED]
        if len(small) < 2:
            return
        keys = np.concatenate([shard.keys for shard in small])
        part = np.repeat(np.arange(len(small), dtype=np.int32), [len(shard.keys) for shard in small])
        row = np.concatenate([np.arange(len(shard.keys)) for shard in small])
        order = np.argsort(keys, kind="stable")
        order = order[np.append(True, keys[order][1:] != keys[order][:-1])]
        stored = Stored([shard.vectors for shard in small], part[order], row[order])
        step = max(_BLOCK // (4 * stored.shape[1]), 1)
        blocks = (stored.read(i, i + step).astype(self._dtype) for i in range(0, len(order), step))
        _write(self.folder, keys[order], stored.shape[1], blocks)
        for shard in small:
            with suppress(OSError):
                shard.path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Shard:
    """One file: a header, sorted keys, and their vectors, both memory-mapped.

    Parameters
    ----------
    path : Path
        The file.
    keys : ndarray of 16-byte records, shape (n,)
        Sorted.
    vectors : ndarray of float32 or float16, shape (n, d)
        One a key.
    """

    path: Path
    keys: Keys
    vectors: npt.NDArray[np.floating[Any]]

    @classmethod
    def open(cls, path: Path) -> Shard:
        """Map a file.

        Raises
        ------
        OSError
            If it cannot be opened.
        ValueError
            If it is no whole file of this format.
        """
        with path.open("rb") as stream:
            header = stream.read(_HEADER.size)
            size = os.fstat(stream.fileno()).st_size
            if len(header) < _HEADER.size:
                raise ValueError("it is cut off")
            magic, version, kind, dimension, count = _HEADER.unpack(header)
            if magic != _MAGIC or version != _VERSION or kind not in _KINDS:
                raise ValueError("it is no file of vectors that this version reads")
            start, dtype = _start(count), np.dtype(kind.rstrip(b"\0").decode())
            expected = start + count * dimension * dtype.itemsize
            if size != expected or not count or not dimension:
                raise ValueError(f"it has {size:,} bytes, not {expected:,}")
            whole = np.memmap(stream, dtype=np.uint8, mode="r")
        plain = np.asarray(whole)
        keys = plain[_HEADER_BYTES : _HEADER_BYTES + count * KEY_BYTES].view(f"V{KEY_BYTES}")
        return cls(path, keys, plain[start:].view(dtype).reshape(count, dimension))


def _start(count: int) -> int:
    """Byte at which the vectors of a file begin: behind header and keys, rounded up."""
    return -(-(_HEADER_BYTES + count * KEY_BYTES) // _HEADER_BYTES) * _HEADER_BYTES


def _write(folder: Path, keys: Keys, dimension: int, blocks: Iterable[npt.NDArray[np.floating[Any]]]) -> None:
    """Write a file whole: sorted keys, and their vectors a block at a time."""
    with _whole(folder / f"{uuid.uuid4().hex}{SUFFIX}") as stream:
        for number, block in enumerate(blocks):
            if not number:
                kind = block.dtype.str.encode()
                header = _HEADER.pack(_MAGIC, _VERSION, kind, dimension, len(keys)).ljust(_HEADER_BYTES, b"\0")
                stream.write((header + keys.tobytes()).ljust(_start(len(keys)), b"\0"))
            stream.write(np.ascontiguousarray(block).data)


@contextmanager
def _whole(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that appears under its name when it lies on the disk to its last byte."""
    temporary = path.with_name(f"{uuid.uuid4().hex}{TEMPORARY}")
    try:
        with temporary.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other processes from merging the same files; `OSError` where one does, or nothing can keep them."""
    try:
        import fcntl
    except ImportError as error:  # Windows: files stay as they are, which is only slower
        raise OSError("no locks here") from error
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)
