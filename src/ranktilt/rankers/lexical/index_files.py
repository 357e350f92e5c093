"""The lexical index as files: written whole under the hash of what it was made from, and mapped into memory."""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
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

from ranktilt.data.cache import cache_folder
from ranktilt.data.files import cannot_write
from ranktilt.errors import DataWarning

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
_NO_ROWS = np.empty(0, dtype=np.int32)
PostingPart = tuple[npt.NDArray[np.int32], Array]

FILES = ("rows.npy", "times.npy", "offsets.npy", "lengths.npy", "terms.json")
_HASHED = 16_384
_MADE_BY = (
    "data/text/analyzers.py",
    "rankers/lexical/index.py",
    "rankers/lexical/index_files.py",
    "data/text/stopwords-lucene-english.txt",
    "data/text/stopwords-nltk-english.txt",
)


@dataclass(frozen=True)
class Postings:
    """Where some terms occur, term after term."""

    rows: Ints
    """Documents."""
    times: npt.NDArray[np.float64]
    """How often each of them holds the term."""
    sizes: Ints
    """In how many documents each term occurs."""


@dataclass(frozen=True)
class PostingTable:
    """Documents and counts, term after term."""

    rows: npt.NDArray[np.int32]
    """Documents, in order within a term."""
    times: Array
    """How often each of them holds the term."""
    offsets: Ints
    """Where each term's postings start and end."""
    lengths: npt.NDArray[np.int32]
    """Terms of each document, repeats counted."""

    def postings(self, terms: Ints) -> Postings:
        """Read where these terms occur."""
        ends = self.offsets
        spans = [
            slice(low, high)
            for low, high in zip(ends[terms].tolist(), ends[terms + 1].tolist(), strict=True)
        ]
        rows = np.concatenate([_NO_ROWS, *(self.rows[span] for span in spans)])
        times = np.concatenate([_NO_ROWS, *(self.times[span] for span in spans)])
        return Postings(
            rows.astype(np.int64), times.astype(np.float64), ends[terms + 1] - ends[terms]
        )


@dataclass(frozen=True)
class PostingTableDraft:
    """A `PostingTable` whose postings come in pieces, as often as they are asked for."""

    pieces: Callable[[], Iterator[PostingPart]]
    kind: np.dtype[Any]
    offsets: Ints
    lengths: npt.NDArray[np.int32]

    def whole(self) -> PostingTable:
        """Hold all of it in memory."""
        rows, times = (
            np.empty(self.offsets[-1], dtype=np.int32),
            np.empty(self.offsets[-1], dtype=self.kind),
        )
        end = 0
        for some, counts in self.pieces():
            start, end = end, end + len(some)
            rows[start:end], times[start:end] = some, counts
        return PostingTable(rows, times, self.offsets, self.lengths)


@dataclass(frozen=True)
class IndexFolder:
    """Where the index of certain texts is kept: under their hash, so that it is never taken for another's."""

    path: Path

    @classmethod
    def from_texts(cls, texts: pl.Series, how: str) -> IndexFolder:
        """Name the folder by everything that the index depends on: texts, analyzer, packages, and this code."""
        whole = hashlib.blake2b(
            f"{how} {pl.__version__} {version('PyStemmer')}".encode(), digest_size=16
        )
        with suppress(PackageNotFoundError):  # who splits the texts will say what is missing
            whole.update(version("nltk").encode() if how == "paper" else b"")
        for name in _MADE_BY:
            whole.update(package_files("ranktilt").joinpath(*name.split("/")).read_bytes())
        parts = [texts.slice(start, _HASHED) for start in range(0, len(texts), _HASHED)]
        with ThreadPoolExecutor(pl.thread_pool_size()) as pool:
            for digest in pool.map(_digest, parts):
                whole.update(digest)
        return cls(cache_folder() / "lexical" / whole.hexdigest())

    def read(self) -> tuple[PostingTable, list[str]] | None:
        """Map the index into memory; None where there is none, or a damaged one, which is warned of and removed."""
        if not self.path.is_dir():
            return None
        try:
            return _read(self.path)
        except (OSError, ValueError, KeyError, TypeError) as error:
            message = f"{self.path}: a damaged lexical index is made anew: {error}"
            warnings.warn(message, DataWarning, stacklevel=2)
            shutil.rmtree(self.path, ignore_errors=True)
            return None

    @contextmanager
    def writing(self) -> Iterator[IndexWriter]:
        """Give what writes the index; whatever it leaves aside is gone after the ``with`` block."""
        writer = IndexWriter(self)
        try:
            writer.temporary.mkdir(parents=True)
            yield writer
        except OSError as error:
            raise cannot_write(self.path.parent, error) from error
        finally:
            shutil.rmtree(writer.temporary, ignore_errors=True)


class IndexWriter:
    """Puts arrays aside while an index is made, and then the index in its place."""

    def __init__(self, target: IndexFolder) -> None:
        self.target, self.temporary = (
            target,
            target.path.with_name(f"{target.path.name}.{uuid.uuid4().hex}.tmp"),
        )
        self._aside = 0

    def aside(self, array: Array) -> Array:
        """Move an array to a file and return it mapped."""
        file = self.temporary / f"{self._aside}.npy"
        self._aside += 1
        _save(file, array)
        mapped: Array = np.load(file, mmap_mode="r")
        return mapped

    def write(self, draft: PostingTableDraft, names: Sequence[str]) -> PostingTable:
        """Write the index whole and map it."""
        made = self.temporary / "index"
        _write(made, draft, names)
        with suppress(OSError):  # another process has put the same there
            os.replace(made, self.target.path)
        stored = self.target.read()
        return draft.whole() if stored is None else stored[0]


def _digest(texts: pl.Series) -> bytes:
    found = hashlib.blake2b(texts.str.len_bytes().to_numpy().tobytes(), digest_size=16)
    found.update(texts.str.join("").cast(pl.Binary).item())
    return found.digest()


def _save(file: Path, array: Array) -> None:
    with file.open("wb") as stream:
        np.save(stream, array)


def _write(folder: Path, draft: PostingTableDraft, names: Sequence[str]) -> None:
    folder.mkdir()
    with (folder / "rows.npy").open("wb") as rows, (folder / "times.npy").open("wb") as times:
        for stream, kind in ((rows, np.dtype(np.int32)), (times, draft.kind)):
            header = {"descr": kind.str, "fortran_order": False, "shape": (int(draft.offsets[-1]),)}
            np.lib.format.write_array_header_1_0(stream, header)
        for piece in draft.pieces():
            for stream, array in zip((rows, times), piece, strict=True):
                stream.write(array.data)
    _save(folder / "offsets.npy", draft.offsets)
    _save(folder / "lengths.npy", draft.lengths)
    (folder / "terms.json").write_bytes(orjson.dumps(names))
    (folder / "about.json").write_bytes(orjson.dumps({"documents": len(draft.lengths)}))


def _read(folder: Path) -> tuple[PostingTable, list[str]]:
    rows, times, offsets, lengths = (np.load(folder / name, mmap_mode="r") for name in FILES[:4])
    table = PostingTable(rows, times, np.array(offsets), np.array(lengths))
    return table, orjson.loads((folder / "terms.json").read_bytes())
