"""The lexical index as files: written whole under the hash of what it was made from, and mapped into memory."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
import uuid
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.errors import DataWarning
from ranktilt.io.cache import cache_folder
from ranktilt.io.files import cannot_write

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
_NO_ROWS = np.empty(0, dtype=np.int32)
PostingPart = tuple[npt.NDArray[np.int32], Array]

FORMAT = 2
_POSTINGS = ("rows.bin", "times.bin")
_HASHED = 16_384
_STALE = 24 * 3600
_MADE_BY = (
    "text/analyzers.py", "rankers/lexical/index.py", "rankers/lexical/index_files.py",
    "text/stopwords-lucene-english.txt", "text/stopwords-nltk-english.txt",
)  # fmt: skip


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
    foreign: tuple[int, int]
    """How many documents are mostly in a script that is not Latin, and the row of the first (-1 for none)."""

    def postings(self, terms: Ints) -> Postings:
        """Read where these terms occur."""
        ends = self.offsets
        spans = [slice(low, high) for low, high in zip(ends[terms].tolist(), ends[terms + 1].tolist(), strict=True)]
        rows = np.concatenate([_NO_ROWS, *(self.rows[span] for span in spans)])
        times = np.concatenate([_NO_ROWS, *(self.times[span] for span in spans)])
        return Postings(rows.astype(np.int64), times.astype(np.float64), ends[terms + 1] - ends[terms])


@dataclass(frozen=True)
class PostingTableDraft:
    """A `PostingTable` whose postings come in pieces, as often as they are asked for."""

    pieces: Callable[[], Iterator[PostingPart]]
    kind: np.dtype[Any]
    offsets: Ints
    lengths: npt.NDArray[np.int32]
    foreign: tuple[int, int]

    def whole(self) -> PostingTable:
        """Hold all of it in memory."""
        rows, times = np.empty(self.offsets[-1], dtype=np.int32), np.empty(self.offsets[-1], dtype=self.kind)
        end = 0
        for some, counts in self.pieces():
            start, end = end, end + len(some)
            rows[start:end], times[start:end] = some, counts
        return PostingTable(rows, times, self.offsets, self.lengths, self.foreign)


@dataclass(frozen=True)
class IndexFolder:
    """Where the index of certain texts is kept: under their hash, so that it is never taken for another's."""

    path: Path

    @classmethod
    def of(cls, texts: pl.Series, how: str) -> IndexFolder:
        """Name the folder by everything that the index depends on: texts, analyzer, packages, and this code."""
        whole = hashlib.blake2b(f"{FORMAT} {how} {pl.__version__} {version('PyStemmer')}".encode(), digest_size=16)
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
        """Map the index into memory; None where there is none, or a damaged one, which is warned of and moved away."""
        if not self.path.is_dir():
            return None
        try:
            return _read(self.path)
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            message = f"{self.path}: a damaged lexical index is made anew: {error}"
            warnings.warn(message, DataWarning, stacklevel=2)
            with suppress(OSError):
                away = _temporary(self.path)
                os.replace(self.path, away)
                shutil.rmtree(away, ignore_errors=True)
            return None

    @contextmanager
    def writing(self) -> Iterator[IndexWriter]:
        """Give what writes the index; whatever it leaves aside is gone after the ``with`` block."""
        _sweep(self.path.parent)
        writer = IndexWriter(self, _temporary(self.path))
        try:
            yield writer
        finally:
            shutil.rmtree(writer.temporary, ignore_errors=True)


class IndexWriter:
    """Puts arrays aside while an index is made, and then the index in its place; without a disk all stays in memory."""

    def __init__(self, place: IndexFolder, temporary: Path) -> None:
        self.place, self.temporary = place, temporary
        self.failed = False
        self._aside = 0
        self._try(lambda: temporary.mkdir(parents=True))

    def aside(self, array: Array) -> Array:
        """Move an array to a file and return it mapped; the array itself where that fails."""
        file = self.temporary / f"{self._aside}.part"
        self._aside += 1
        if self.failed or not self._try(lambda: _dump(file, [array])):
            return array
        return _map(file, array.dtype, len(array))

    def write(self, draft: PostingTableDraft, names: Sequence[str]) -> PostingTable:
        """Write the index whole and map it; hold it in memory where it cannot be written."""
        made = self.temporary / "index"
        if not self.failed and self._try(lambda: _write(made, draft, names)):
            with suppress(OSError):  # another process has put the same there
                os.replace(made, self.place.path)
            found = self.place.read()
            if found is not None:
                return found[0]
        return draft.whole()

    def _try(self, work: Callable[[], None]) -> bool:
        try:
            work()
        except OSError as error:
            self.failed = True
            message = f"{cannot_write(self.place.path.parent, error)}; the lexical index stays in memory"
            warnings.warn(message, DataWarning, stacklevel=2)
        return not self.failed


def _digest(texts: pl.Series) -> bytes:
    found = hashlib.blake2b(texts.str.len_bytes().to_numpy().tobytes(), digest_size=16)
    found.update(texts.str.join("").cast(pl.Binary).item())
    return found.digest()


def _write(folder: Path, draft: PostingTableDraft, names: Sequence[str]) -> None:
    folder.mkdir()
    checks = dict.fromkeys(_POSTINGS, 0)
    with ExitStack() as stack:
        streams = [stack.enter_context((folder / name).open("wb")) for name in _POSTINGS]
        for piece in draft.pieces():
            for name, stream, array in zip(_POSTINGS, streams, piece, strict=True):
                stream.write(array.data)
                checks[name] = zlib.crc32(array.data, checks[name])
    small = {
        "offsets.bin": draft.offsets.tobytes(),
        "lengths.bin": draft.lengths.tobytes(),
        "terms.txt": "\n".join(names).encode(),
    }
    for name, data in small.items():
        (folder / name).write_bytes(data)
    about = {
        "documents": len(draft.lengths),
        "terms": len(names),
        "postings": int(draft.offsets[-1]),
        "times": draft.kind.str,
        "foreign": draft.foreign,
        "checks": {**checks, **{name: zlib.crc32(data) for name, data in small.items()}},
    }
    (folder / "about.json").write_text(json.dumps({**about, "check": _check(about)}), encoding="utf-8")


def _read(folder: Path) -> tuple[PostingTable, list[str]]:
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    if about.pop("check") != _check(about):
        raise ValueError("about.json has changed")
    small = {name: (folder / name).read_bytes() for name in ("offsets.bin", "lengths.bin", "terms.txt")}
    table = PostingTable(
        _map(folder / "rows.bin", np.dtype(np.int32), about["postings"]),
        _map(folder / "times.bin", np.dtype(about["times"]), about["postings"]),
        np.frombuffer(small["offsets.bin"], dtype=np.int64),
        np.frombuffer(small["lengths.bin"], dtype=np.int32),
        (int(about["foreign"][0]), int(about["foreign"][1])),
    )
    postings: dict[str, Any] = {"rows.bin": table.rows.data, "times.bin": table.times.data}
    for name, data in {**small, **postings}.items():
        if zlib.crc32(data) != about["checks"][name]:
            raise ValueError(f"{name} has changed")
    names = small["terms.txt"].decode().split("\n") if about["terms"] else []
    return table, names


def _check(about: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(about).encode())


def _dump(file: Path, arrays: Sequence[Array]) -> None:
    with file.open("wb") as stream:
        for array in arrays:
            stream.write(array.data)


def _map(file: Path, kind: np.dtype[Any], length: int) -> Array:
    if file.stat().st_size != kind.itemsize * length:
        raise ValueError(f"{file.name}: expected {kind.itemsize * length:,} bytes, got {file.stat().st_size:,}")
    return np.memmap(file, dtype=kind, mode="r", shape=(length,)) if length else np.empty(0, dtype=kind)


def _temporary(path: Path) -> Path:
    return path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")


def _sweep(folder: Path) -> None:
    """Remove what processes that were killed have left."""
    for path in folder.glob("*.tmp"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _STALE:
                shutil.rmtree(path, ignore_errors=True)
