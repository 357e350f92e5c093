"""Recognise the layout of a collection's folder: BEIR's, Cocktail's, and those of packages."""

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
"""Source and file of each part of a corpus.

The source is None if the file has a field for it; the file may be a folder of Parquet parts.
"""
_ENDINGS = (".jsonl", ".jsonl.gz")
"""Endings of files of JSON lines."""


@dataclass(frozen=True, kw_only=True)
class FolderReader:
    """A layout of the documents in a folder with ``queries.jsonl`` and ``qrels/<split>.tsv``."""

    files: str
    """Names of the files in such a folder, for the message if no reader recognises a folder."""
    corpora: Callable[[Path], Corpora]
    """Function from a folder to its `Corpora`; empty if the folder has another layout.

    Files are JSON lines, plain or ``.gz``."""


def readers() -> ExtensionTable:
    """Return all layouts, in the order in which `folder_layout` tries them."""
    return ExtensionTable("reader", "ranktilt.readers", READERS, _fault)


def folder_layout(folder: Path) -> tuple[str, Corpora]:
    """Recognise a folder's layout by its files; `DataError` lists the expected files."""
    if folder.exists() and not folder.is_dir():
        raise DataError(folder, "expected a folder, got a file")
    if not folder.is_dir():
        hint = "; a public collection begins with hub: or irds:" if ":" in str(folder) else ""
        raise DataError(folder, f"no such folder{hint}")
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
    return [file for file in sorted(folder.glob(pattern)) if is_visible(file, _ENDINGS)]


def is_visible(path: Path, endings: tuple[str, ...]) -> bool:
    """Return whether a file has one of these endings and is no hidden file, as macOS adds."""
    return path.name.endswith(endings) and not path.name.startswith(".")


def stem(path: Path) -> str:
    """Return a file's name without ``.jsonl`` and ``.gz``."""
    return path.name.removesuffix(".gz").removesuffix(".jsonl")


def plain_or_gz(path: Path) -> Path | None:
    """Return a file, plain or compressed; the plain one, with a warning, if both exist."""
    compressed = path.with_name(path.name + ".gz")
    if not path.exists():
        return compressed if compressed.exists() else None
    if compressed.exists():
        message = f"reading {path}, not {compressed.name} in the same folder"
        warnings.warn(message, DataWarning, stacklevel=2)
    return path


def _beir(folder: Path) -> Corpora:
    """Return ``corpus.jsonl``, or the folder ``corpus/`` of Parquet parts; refuse both."""
    file, parts = plain_or_gz(folder / "corpus.jsonl"), folder / "corpus"
    part_paths = part_files(parts) if parts.is_dir() else []
    if not part_paths:
        return ((None, file),) if file else ()
    if lines := file or next(iter(jsonl_files(parts)), None):
        names = f"{lines.relative_to(folder)} and Parquet parts in corpus/ ({part_paths[0].name})"
        message = f"expected one format of the documents, got {names}; remove one of them"
        raise DataError(folder, message)
    return ((None, parts),)


def _cocktail(folder: Path) -> Corpora:
    """Return the files ``corpus/<source>.jsonl``."""
    corpora = folder / "corpus"
    files = jsonl_files(corpora) if corpora.is_dir() else []
    return tuple((stem(file), file) for file in files)


def _fault(loaded: object, name: str) -> str:
    """Say why an object that a package offers is no layout; empty if it is one."""
    return "" if isinstance(loaded, FolderReader) else "is not a FolderReader of ranktilt"


BEIR = FolderReader(files="corpus.jsonl or corpus/*.parquet", corpora=_beir)
"""Layout of BEIR: one file of documents."""
COCKTAIL = FolderReader(files="corpus/<source>.jsonl", corpora=_cocktail)
"""Layout of Cocktail: one file of documents for each source."""
