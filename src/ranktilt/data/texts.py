"""Keep the texts of large collections in files that are mapped into memory.

The operating system reads a part of such a file when it is used, and may drop it again. So only
texts in use take up memory.
"""

from __future__ import annotations

import hashlib
import mmap
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Lock
from typing import IO, Any, TypeVar
from weakref import WeakSet

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.data.cache import cache_folder, cannot_write_cache
from ranktilt.progress import report

Rows = TypeVar("Rows", pl.Series, pl.DataFrame)
"""A column with a value for each text, or a table with a row for each text."""

DOCUMENTS_AT_ONCE = 8_192
"""Number of documents whose texts are processed together."""
TEXTS_A_BLOCK = 1_024
"""Number of texts that a thread processes at a time, so that small collections have work for all.
"""
_TEXTS_A_HASH = 2_048
"""Number of texts that a thread hashes at a time."""
LARGE_BYTES = 32 << 20
"""Number of bytes from which texts are kept in a file: 32 MiB."""
_BYTES = ".bytes"
"""Ending of the file with the bytes of a column's texts."""
_ENDS = ".ends"
"""Ending of the file with the positions where these texts end."""

_mapped_files = WeakSet[mmap.mmap]()
"""Files of texts that are mapped into memory now."""
_mapping = Lock()
"""Held while `_mapped_files` changes or is read: one thread may load while another one reads."""

Part = TypeVar("Part")
"""Texts that are processed together."""
Made = TypeVar("Made")
"""What is made of them."""
TextBlocks = Iterable[Mapping[str, pl.Series]]
"""Blocks of a few rows, each with its columns of texts by their names."""


def mapped_texts(make_blocks: Callable[[], TextBlocks]) -> dict[str, pl.Series]:
    """Write columns of texts to files, and return columns that are mapped from these files.

    The files are removed when this process ends. `make_blocks` returns the texts to write.
    """
    folder = cache_folder() / "texts"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            dir=folder, suffix=".tmp", ignore_cleanup_errors=True
        ) as temporary:
            _write(Path(temporary), make_blocks())
            # The mapped files stay readable after their folder is removed, as long as a column
            # uses them.
            ends = sorted(Path(temporary).glob(f"*{_ENDS}"))
            columns = {path.stem: _mapped_column(Path(temporary) / path.stem) for path in ends}
            release_texts()  # polars has read the beginning of each text
            return columns
    except OSError as error:
        raise cannot_write_cache(folder, error) from error


def _write(folder: Path, blocks: TextBlocks) -> None:
    """Write the bytes of each column, and the positions at which its texts end."""
    writers = dict[str, _ColumnWriter]()
    with ExitStack() as stack:
        for block in blocks:
            for name, texts in block.items():
                if name not in writers:
                    data = stack.enter_context((folder / f"{name}{_BYTES}").open("wb"))
                    ends = stack.enter_context((folder / f"{name}{_ENDS}").open("wb"))
                    writers[name] = _ColumnWriter(data, ends)
                writers[name].write(texts)


class _ColumnWriter:
    """Two open files of a column, and how many bytes of texts were written.

    `data` gets the bytes of the texts, `ends` the positions at which each text ends.
    """

    def __init__(self, data: IO[bytes], ends: IO[bytes]) -> None:
        self._data, self._ends, self._size = data, ends, 0
        # Arrow's list of ends begins with the start of the first text: 0, in 8 bytes.
        ends.write(bytes(8))

    def write(self, texts: pl.Series) -> None:
        """Append texts to the column."""
        ends = self._size + np.cumsum(texts.str.len_bytes().to_numpy(), dtype=np.int64)
        self._data.write(texts.str.join("").cast(pl.Binary).item())
        self._ends.write(ends.data)
        self._size = int(ends[-1]) if len(ends) else self._size


def _mapped_column(path: Path) -> pl.Series:
    """Return a column whose texts are mapped from its files; `path` is theirs without an ending."""
    # Imported here, because only large collections need this package.
    from nanoarrow import c_array_from_buffers, large_string

    ends = np.memmap(f"{path}{_ENDS}", dtype=np.int64, mode="r")
    data = np.empty(0, dtype=np.uint8)
    if ends[-1]:  # an empty file cannot be mapped
        data = np.memmap(f"{path}{_BYTES}", dtype=np.uint8, mode="r")
        with _mapping:
            _mapped_files.add(data.base)  # type: ignore[arg-type]
    # A column of strings in Arrow is the ends of its texts and their bytes. The files are freed
    # with the last table that has a part of the column.
    buffers = [None, ends, data]
    array = c_array_from_buffers(large_string(), len(ends) - 1, buffers, null_count=0)
    return pl.Series(array).alias(path.name)


def by_blocks(make: Callable[[pl.Series], Rows], texts: pl.Series, task: str = "") -> Rows:
    """Apply a function of texts to blocks of them, in threads, and join what it returns.

    No more texts are in memory than a few blocks.

    Parameters
    ----------
    make : callable
        Returns a value for each text: a column, or a row of a table.
    texts : polars.Series
        The texts.
    task : str, optional
        Name of the work, whose progress is reported; by default no progress is reported.

    Returns
    -------
    polars.Series or polars.DataFrame
        What `make` returns, for all texts in their order.
    """
    starts = range(0, max(len(texts), 1), TEXTS_A_BLOCK)

    def make_block(start: int) -> Rows:
        values = make(texts.slice(start, TEXTS_A_BLOCK))
        release_texts()
        return values

    blocks, examined_count = list[Rows](), 0
    for block in map_in_threads(make_block, starts):
        blocks.append(block)
        examined_count += len(block)
        if task:
            report(task, examined_count, len(texts))
    return pl.concat(blocks)


def map_in_threads(make: Callable[[Part], Made], parts: Sequence[Part]) -> Iterator[Made]:
    """Yield what a function makes of each part, in their order; it runs in threads.

    A single part is left to the calling thread. polars compiles a pattern anew in each thread,
    which takes longer than to look for it in the texts of a small collection.
    """
    if len(parts) == 1:
        yield make(parts[0])
        return
    with ThreadPoolExecutor(pl.thread_pool_size()) as pool:
        yield from pool.map(make, parts)


def digest_of(texts: pl.Series) -> bytes:
    """Return a hash of texts and their order."""
    digest = hashlib.blake2b(digest_size=16)
    parts = [texts.slice(start, _TEXTS_A_HASH) for start in range(0, len(texts), _TEXTS_A_HASH)]
    for part_digest in map_in_threads(_digest_of_part, parts):
        digest.update(part_digest)
        release_texts()
    return digest.digest()


def _digest_of_part(texts: pl.Series) -> bytes:
    """Return a hash of some texts."""
    # Lengths say where each text ends: "ab", "c" is not "a", "bc".
    digest = hashlib.blake2b(texts.str.len_bytes().to_numpy().tobytes(), digest_size=16)
    digest.update(texts.str.join("").cast(pl.Binary).item())
    return digest.digest()


def release_texts() -> None:
    """Give the memory of all mapped texts back to the system, which reads them again if needed.

    Work that reads every text once calls this as it goes. Otherwise the process would seem to hold
    all of them until another process needs the memory.
    """
    with _mapping:
        mapped_files = list(_mapped_files)
    for mapped_file in mapped_files:
        _release(mapped_file)


def release_array(array: npt.NDArray[Any]) -> None:
    """Give the memory of an array back to the system if the array is mapped from a file."""
    if isinstance(array.base, mmap.mmap):
        _release(array.base)


def _release(mapped_file: mmap.mmap) -> None:
    """Give the memory of a mapped file back to the system, where there is a way to."""
    if hasattr(mmap, "MADV_DONTNEED"):  # not on Windows
        mapped_file.madvise(mmap.MADV_DONTNEED)
