"""The lexical index as files, named by a hash of its inputs, and mapped into memory."""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import polars as pl

from ranktilt.data.cache import cache_folder, cannot_write_cache
from ranktilt.data.collection import Collection
from ranktilt.errors import DataWarning

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
_NO_ROWS = np.empty(0, dtype=np.int32)
"""No documents."""
PostingPart = tuple[npt.NDArray[np.int32], Array]
"""Documents, and how often each of them holds the term."""

_CODE = (
    "data/collection.py",  # it joins title and text, which are hashed apart
    "data/text/analyzers.py",
    "rankers/lexical/index.py",
    "rankers/lexical/index_files.py",
    "data/text/stopwords-lucene-english.txt",
    "data/text/stopwords-nltk-english.txt",
)
"""Files whose code decides what an index holds; it is built again if one of them changes."""


@dataclass(frozen=True, kw_only=True)
class Postings:
    """The documents of some terms, term after term."""

    rows: Ints
    """Documents."""
    times: npt.NDArray[np.float64]
    """How often each of these documents holds the term."""
    sizes: Ints
    """Number of documents of each term."""


@dataclass(frozen=True, kw_only=True)
class PostingTable:
    """The documents of all terms, term after term."""

    rows: npt.NDArray[np.int32]
    """Documents, in order within a term."""
    times: Array
    """How often each of these documents holds the term."""
    offsets: Ints
    """Start and end of each term's postings."""
    lengths: npt.NDArray[np.int32]
    """Number of terms of each document, repeats included."""

    def postings(self, terms: Ints) -> Postings:
        """Read the postings of some terms."""
        starts, ends = self.offsets[terms], self.offsets[terms + 1]
        spans = list(map(slice, starts.tolist(), ends.tolist()))
        rows = np.concatenate([_NO_ROWS, *(self.rows[span] for span in spans)])
        times = np.concatenate([_NO_ROWS, *(self.times[span] for span in spans)])
        return Postings(
            rows=rows.astype(np.int64), times=times.astype(np.float64), sizes=ends - starts
        )


@dataclass(frozen=True, kw_only=True)
class PostingTableDraft:
    """A `PostingTable` whose postings are made part by part, each time that they are read."""

    parts: Callable[[], Iterator[PostingPart]]
    """Function that yields the postings from the first term on."""
    kind: np.dtype[Any]
    """Type of the numbers in `PostingTable.times`."""
    offsets: Ints
    lengths: npt.NDArray[np.int32]

    def in_memory(self) -> PostingTable:
        """Return the table, all of it in memory."""
        rows = np.empty(self.offsets[-1], dtype=np.int32)
        times = np.empty(self.offsets[-1], dtype=self.kind)
        end = 0
        for part_rows, part_times in self.parts():
            start, end = end, end + len(part_rows)
            rows[start:end], times[start:end] = part_rows, part_times
        return PostingTable(rows=rows, times=times, offsets=self.offsets, lengths=self.lengths)


@dataclass(frozen=True, kw_only=True)
class StoredIndex:
    """An index that was read from its folder."""

    table: PostingTable
    """Postings of the terms."""
    terms: list[str]
    """Names of the terms, in the order of the table."""


@dataclass(frozen=True, kw_only=True)
class IndexFolder:
    """The folder of the index of some texts, named by a hash of all that the index depends on."""

    path: Path
    """Path of the folder."""

    @classmethod
    def from_collection(cls, collection: Collection, analyzer_name: str, text: str) -> IndexFolder:
        """Return the folder for texts, an analyzer, the installed packages, and this code.

        `text` says which of title and text is indexed (`Collection.texts`).
        """
        digest = hashlib.blake2b(
            f"{analyzer_name} {pl.__version__} {version('PyStemmer')}".encode(),
            digest_size=16,
        )
        # Without NLTK the index is not built either, and the analyzer says what is missing.
        with suppress(PackageNotFoundError):
            digest.update(version("nltk").encode() if analyzer_name == "paper" else b"")
        for name in _CODE:
            digest.update(package_files("ranktilt").joinpath(*name.split("/")).read_bytes())
        digest.update(collection.text_digest(text))
        return cls(path=cache_folder() / "lexical" / digest.hexdigest())

    def read(self) -> StoredIndex | None:
        """Map the index into memory; None where there is none.

        A damaged index is removed with a warning.
        """
        if not self.path.is_dir():
            return None
        try:
            return _read(self.path)
        except (OSError, ValueError, KeyError, TypeError) as error:
            message = f"{self.path}: rebuilding a damaged lexical index: {error}"
            warnings.warn(message, DataWarning, stacklevel=2)
            shutil.rmtree(self.path, ignore_errors=True)
            return None

    @contextmanager
    def writing(self) -> Iterator[IndexWriter]:
        """Give a writer of the index; its temporary files are removed after the ``with`` block."""
        writer = IndexWriter(self)
        try:
            writer.temporary.mkdir(parents=True)
            yield writer
        except OSError as error:
            raise cannot_write_cache(self.path.parent, error) from error
        finally:
            shutil.rmtree(writer.temporary, ignore_errors=True)


class IndexWriter:
    """Writes an index, and moves parts of it to disk while it is built."""

    def __init__(self, target: IndexFolder) -> None:
        self.target = target
        self.temporary = target.path.with_name(f"{target.path.name}.{uuid.uuid4().hex}.tmp")
        self._file_count = 0

    def move_to_disk(self, array: Array) -> Array:
        """Write an array to a temporary file, and return it mapped."""
        file = self.temporary / f"{self._file_count}.npy"
        self._file_count += 1
        _save(file, array)
        mapped: Array = np.load(file, mmap_mode="r")
        return mapped

    def write(self, draft: PostingTableDraft, terms: Iterable[str]) -> PostingTable:
        """Write the index and map it; no other process sees it half-written."""
        folder = self.temporary / "index"
        _write(folder, draft, terms)
        with suppress(OSError):  # another process has put the same index there
            os.replace(folder, self.target.path)
        stored = self.target.read()
        return draft.in_memory() if stored is None else stored.table


def _save(file: Path, array: Array) -> None:
    with file.open("wb") as stream:
        np.save(stream, array)


def _write(folder: Path, draft: PostingTableDraft, terms: Iterable[str]) -> None:
    folder.mkdir()
    posting_count = int(draft.offsets[-1])
    with (folder / "rows.npy").open("wb") as rows, (folder / "times.npy").open("wb") as times:
        # The arrays are written part by part, so that they are never in memory entirely.
        for stream, kind in ((rows, np.dtype(np.int32)), (times, draft.kind)):
            header = {"descr": kind.str, "fortran_order": False, "shape": (posting_count,)}
            np.lib.format.write_array_header_1_0(stream, header)
        for part_rows, part_times in draft.parts():
            rows.write(part_rows.data)
            times.write(part_times.data)
    _save(folder / "offsets.npy", draft.offsets)
    _save(folder / "lengths.npy", draft.lengths)
    (folder / "terms.json").write_bytes(orjson.dumps(list(terms)))
    (folder / "about.json").write_bytes(orjson.dumps({"documents": len(draft.lengths)}))


def _read(folder: Path) -> StoredIndex:
    table = PostingTable(
        rows=np.load(folder / "rows.npy", mmap_mode="r"),
        times=np.load(folder / "times.npy", mmap_mode="r"),
        offsets=np.load(folder / "offsets.npy"),
        lengths=np.load(folder / "lengths.npy"),
    )
    return StoredIndex(table=table, terms=orjson.loads((folder / "terms.json").read_bytes()))
