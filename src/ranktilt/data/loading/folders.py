"""Recognise the layout of a collection's folder: BEIR's, Cocktail's, and those of packages.

A *corpus* is all documents of a collection. It may consist of several files, one for each source.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from ranktilt.data.formats.tables.parquet import part_files
from ranktilt.errors import DataError, DataWarning
from ranktilt.extensions import ExtensionTable

READERS = {
    "beir": "ranktilt.data.loading.folders:BEIR",
    "cocktail": "ranktilt.data.loading.folders:COCKTAIL",
}
"""The layouts of RankTilt's core as ``module:FolderReader``; papers and packages add theirs."""
Corpora = tuple[tuple[str | None, Path], ...]
"""Source and file of each file of a corpus.

The source is None if documents name their sources themselves. In place of a file there may be a
folder of Parquet files.
"""
_JSONL_ENDINGS = (".jsonl", ".jsonl.gz")
"""Endings of files of JSON lines."""


@dataclass(frozen=True, kw_only=True)
class FolderReader:
    """A layout of the documents in a folder with ``queries.jsonl`` and ``qrels/<split>.tsv``."""

    files: str
    """Names of the files in such a folder, for the message if no reader recognises a folder."""
    corpora: Callable[[Path], Corpora]
    """Function from a folder to its `Corpora`, which are empty if the folder has another layout.

    Files are JSON lines, plain or ``.gz``.
    """


def readers() -> ExtensionTable:
    """Return all layouts, in the order in which `folder_layout` tries them."""
    return ExtensionTable(noun="reader", group="ranktilt.readers", bundled=READERS, fault=_fault)


def folder_layout(folder: Path) -> tuple[str, Corpora]:
    """Return the name of a folder's layout, and its files; `DataError` lists the expected files."""
    if folder.exists() and not folder.is_dir():
        raise DataError(folder, "expected a folder, got a file")
    if not folder.is_dir():
        hint = "; a public collection begins with hub: or irds:" if ":" in str(folder) else ""
        missing = "file or folder" if folder.suffix == ".json" else "folder"
        raise DataError(folder, f"no such {missing}{hint}")
    table, expected = readers(), list[str]()
    for name in table.names():
        reader: FolderReader = table.load(name)
        if corpora := reader.corpora(folder):
            return name, human_first(corpora)
        expected.append(f"{reader.files} ({name})")
    raise DataError(folder, f"expected {', '.join(expected[:-1])} or {expected[-1]}, plain or .gz")


def human_first(corpora: Corpora) -> Corpora:
    """Order files by their sources, human text first; refuse two files of one source."""
    ordered = sorted(corpora, key=lambda corpus: (corpus[0] != "human", corpus[0] or ""))
    for (source, file), (next_source, next_file) in pairwise(ordered):
        if source == next_source:
            message = f"a second file for source {source!r}, besides {file}; remove one of them"
            raise DataError(next_file, message)
    return tuple(ordered)


def jsonl_files(folder: Path, pattern: str = "*") -> list[Path]:
    """List the files of JSON lines in a folder that match a pattern, by name."""
    return [file for file in sorted(folder.glob(pattern)) if is_visible(file, _JSONL_ENDINGS)]


def is_visible(path: Path, endings: tuple[str, ...]) -> bool:
    """Return whether a file has one of these endings, and is no hidden file such as macOS adds."""
    return path.name.endswith(endings) and not path.name.startswith(".")


def jsonl_stem(path: Path) -> str:
    """Return a file's name without ``.jsonl`` and ``.gz``."""
    return path.name.removesuffix(".gz").removesuffix(".jsonl")


def plain_or_gz(path: Path) -> Path | None:
    """Return a file, plain or compressed, or None if neither exists.

    If both exist, it is the plain file, with a warning.
    """
    compressed = path.with_name(path.name + ".gz")
    if not path.exists():
        return compressed if compressed.exists() else None
    if compressed.exists():
        message = f"reading {path}, not {compressed.name} in the same folder"
        warnings.warn(message, DataWarning, stacklevel=2)
    return path


def _beir(folder: Path) -> Corpora:
    """Return ``corpus.jsonl``, or the folder ``corpus/`` of Parquet files; refuse both."""
    file, parts_folder = plain_or_gz(folder / "corpus.jsonl"), folder / "corpus"
    parts = part_files(parts_folder) if parts_folder.is_dir() else []
    if not parts:
        return ((None, file),) if file else ()
    jsonl_file = file or next(iter(jsonl_files(parts_folder)), None)
    if jsonl_file is not None:
        name = jsonl_file.relative_to(folder)
        names = f"{name} and Parquet parts in corpus/ ({parts[0].name})"
        message = f"expected one format of the documents, got {names}; remove one of them"
        raise DataError(folder, message)
    return ((None, parts_folder),)


def _cocktail(folder: Path) -> Corpora:
    """Return the files ``corpus/<source>.jsonl``."""
    corpus_folder = folder / "corpus"
    files = jsonl_files(corpus_folder) if corpus_folder.is_dir() else []
    return tuple((jsonl_stem(file), file) for file in files)


def _fault(loaded: object, name: str) -> str:
    """Say why an object that a package offers is no layout; empty if it is a layout."""
    return "" if isinstance(loaded, FolderReader) else "is not a FolderReader of ranktilt"


BEIR = FolderReader(files="corpus.jsonl or corpus/*.parquet", corpora=_beir)
"""Layout of BEIR: one file of documents."""
COCKTAIL = FolderReader(files="corpus/<source>.jsonl", corpora=_cocktail)
"""Layout of Cocktail: one file of documents for each source."""
