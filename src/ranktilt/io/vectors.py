"""One file of vectors: sorted keys, their vectors, and checksums by which damage is noticed before it is used."""

from __future__ import annotations

import os
import struct
import uuid
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

KEY_BYTES = 16
Keys = npt.NDArray[np.void]

SUFFIX, TEMPORARY = ".vectors", ".tmp"
STORES = {"float32": "<f4", "float16": "<f2"}
_MAGIC, _KINDS = b"RANKTILT", {name.encode().ljust(4, b"\0") for name in STORES.values()}
_UNCHECKED, _VERSION = 1, 2
_HEADER = struct.Struct("<8sI4sIQ")
_HEADER_BYTES = 64
_SUM = np.dtype("<u4")
_CHECKED_BYTES = 1 << 18
_THREADS = 2
_UNKNOWN, _SOUND, _CHANGED = range(3)
_states: dict[tuple[str, int, int], npt.NDArray[np.int8]] = {}
"""What this process knows of each file's blocks; a file is known again by name, size and time of change."""


@dataclass(frozen=True)
class Shard:
    """One file: a header, sorted keys, their vectors, and a checksum for each block of them; all memory-mapped.

    `sums` is the CRC-32 of `rows_at_once` vectors each, None in files of earlier versions; `state` what is known of
    each block so far.
    """

    path: Path
    keys: Keys
    vectors: npt.NDArray[np.floating[Any]]
    sums: npt.NDArray[np.uint32] | None
    state: npt.NDArray[np.int8]

    @classmethod
    def open(cls, path: Path) -> Shard:
        """Map a file; `ValueError` if it is no whole file of this format or its keys or checksums have changed."""
        with path.open("rb") as stream:
            header = stream.read(_HEADER.size)
            about = os.fstat(stream.fileno())
            if len(header) < _HEADER.size:
                raise ValueError("it is cut off")
            magic, version, kind, dimension, count = _HEADER.unpack(header)
            if magic != _MAGIC or version not in (_UNCHECKED, _VERSION) or kind not in _KINDS:
                raise ValueError("it is no file of vectors that this version reads")
            start, dtype = _start(count), np.dtype(kind.rstrip(b"\0").decode())
            end = start + count * dimension * dtype.itemsize
            blocks = -(-count // rows_at_once(dimension, dtype)) if dimension else 0
            expected = end + (blocks + 1) * _SUM.itemsize * (version == _VERSION)
            if about.st_size != expected or not count or not dimension:
                raise ValueError(f"it has {about.st_size:,} bytes, not {expected:,}")
            plain = np.asarray(np.memmap(stream, dtype=np.uint8, mode="r"))
        keys = plain[_HEADER_BYTES : _HEADER_BYTES + count * KEY_BYTES].view(f"V{KEY_BYTES}")
        vectors = plain[start:end].view(dtype).reshape(count, dimension)
        state = _states.setdefault((str(path), about.st_size, about.st_mtime_ns), np.zeros(blocks, dtype=np.int8))
        if version == _UNCHECKED:
            return cls(path, keys, vectors, None, state)
        sums = np.frombuffer(plain[end:].tobytes(), dtype=_SUM)
        if zlib.crc32(sums[:-1].tobytes(), zlib.crc32(plain[:start].data)) != sums[-1]:
            raise ValueError("its keys or checksums have changed since it was written")
        return cls(path, keys, vectors, sums[:-1], state)

    def sound(self, rows: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.bool_]:
        """Say which rows are as they were written; a block is read for this once, without checksums all is sound."""
        if self.sums is None:
            return np.ones(len(rows), dtype=np.bool_)
        block = rows // rows_at_once(self.vectors.shape[1], self.vectors.dtype)
        touched = np.zeros(len(self.sums), dtype=np.bool_)
        touched[block] = True
        new = np.flatnonzero(touched & (self.state == _UNKNOWN))
        if len(new):
            with ThreadPoolExecutor(_THREADS) as pool:
                self.state[new] = [_SOUND if same else _CHANGED for same in pool.map(self._same, new.tolist())]
        return np.asarray(self.state[block] == _SOUND)

    def _same(self, block: int) -> bool:
        rows = rows_at_once(self.vectors.shape[1], self.vectors.dtype)
        return self.sums is not None and zlib.crc32(self.vectors[block * rows :][:rows].data) == self.sums[block]


def rows_at_once(dimension: int, dtype: npt.DTypeLike) -> int:
    """Return how many vectors of this length share a checksum: a quarter of a megabyte, at least one."""
    return max(_CHECKED_BYTES // (dimension * np.dtype(dtype).itemsize), 1)


def _start(count: int) -> int:
    """Byte at which the vectors of a file begin: behind header and keys, rounded up."""
    return -(-(_HEADER_BYTES + count * KEY_BYTES) // _HEADER_BYTES) * _HEADER_BYTES


def write_shard(folder: Path, keys: Keys, dimension: int, blocks: Iterable[npt.NDArray[np.floating[Any]]]) -> None:
    """Write a file whole: sorted keys, and their vectors in blocks of a multiple of `rows_at_once`."""
    front, sums = b"", list[int]()
    with whole_file(folder / f"{uuid.uuid4().hex}{SUFFIX}") as stream:
        for block in blocks:
            if not front:
                kind = block.dtype.str.encode()
                header = _HEADER.pack(_MAGIC, _VERSION, kind, dimension, len(keys)).ljust(_HEADER_BYTES, b"\0")
                front = (header + keys.tobytes()).ljust(_start(len(keys)), b"\0")
                stream.write(front)
            plain, rows = np.ascontiguousarray(block), rows_at_once(dimension, block.dtype)
            stream.write(plain.data)
            sums += [zlib.crc32(plain[i : i + rows].data) for i in range(0, len(plain), rows)]
        made = np.array(sums, dtype=_SUM).tobytes()
        stream.write(made + np.array(zlib.crc32(made, zlib.crc32(front)), dtype=_SUM).tobytes())


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
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
