"""The layouts of folders that `load` recognises: BEIR's, Cocktail's, and those that packages add."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from ranktilt.data.formats.parquet import part_files
from ranktilt.errors import DataError, DataWarning
from ranktilt.extensions import ExtensionTable

READERS = {
    "beir": "ranktilt.data.folders:BEIR",
    "cocktail": "ranktilt.data.folders:COCKTAIL",
}
"""RankTilt's own, as ``module:FolderReader``; a paper's and those of other packages join them."""
Corpora = tuple[tuple[str | None, Path], ...]
"""(source, file); source None where the file itself says it. A folder is one of Parquet parts."""
_ENDINGS = (".jsonl", ".jsonl.gz")


@dataclass(frozen=True, kw_only=True)
class FolderReader:
    """How the documents of a collection lie in a folder, beside ``queries.jsonl`` and ``qrels/<split>.tsv``."""

    files: str
    """What such a folder holds, for the message where no reader recognises one."""
    corpora: Callable[[Path], Corpora]
    """Return source and file of each part of the corpus; empty where the folder is of another layout.

    Files are JSON lines, plain or ``.gz``."""


def readers() -> ExtensionTable:
    """Return the table of layouts, in the order in which they are tried."""
    return ExtensionTable("reader", "ranktilt.readers", READERS, _fault)


def folder_layout(folder: Path) -> tuple[str, Corpora]:
    """Recognise a folder's layout by its files, or say which files were expected."""
    if not folder.is_dir():
        public = "; a public collection begins with hub: or irds:" if ":" in str(folder) else ""
        raise DataError(
            folder,
            "expected a folder, got a file" if folder.exists() else f"no such folder{public}",
        )
    table, expected = readers(), list[str]()
    for name in table.names():
        reader: FolderReader = table.load(name)
        if corpora := reader.corpora(folder):
            return name, human_first(corpora)
        expected.append(f"{reader.files} ({name})")
    raise DataError(folder, f"expected {', '.join(expected[:-1])} or {expected[-1]}, plain or .gz")


def human_first(corpora: Corpora) -> Corpora:
    """Order the sources, human text first; refuse two files of one source."""
    ordered = sorted(corpora, key=lambda corpus: (corpus[0] != "human", corpus[0] or ""))
    for (source, file), (next_source, next_file) in pairwise(ordered):
        if source == next_source:
            raise DataError(
                next_file, f"a second file for source {source!r}, beside {file}; remove one of them"
            )
    return tuple(ordered)


def jsonl_files(folder: Path, pattern: str = "*") -> list[Path]:
    """List the files of JSON lines in a folder that match a pattern, by name."""
    return [file for file in sorted(folder.glob(pattern)) if is_visible(file, _ENDINGS)]


def is_visible(path: Path, endings: tuple[str, ...]) -> bool:
    """Whether a file ends so; what begins with a dot is the system's own, such as ``._a.jsonl`` of macOS."""
    return path.name.endswith(endings) and not path.name.startswith(".")


def stem(path: Path) -> str:
    """Return a file's name without ``.jsonl`` and ``.gz``."""
    return path.name.removesuffix(".gz").removesuffix(".jsonl")


def plain_or_gz(path: Path) -> Path | None:
    """Return the file, plain or compressed; where both are there the plain one, with a warning."""
    found = [p for p in (path, path.with_name(path.name + ".gz")) if p.exists()]
    if len(found) > 1:
        warnings.warn(
            f"{found[0]} is read instead of {found[1].name} beside it", DataWarning, stacklevel=2
        )
    return found[0] if found else None


def _beir(folder: Path) -> Corpora:
    """``corpus.jsonl``, or Parquet parts in ``corpus/``; refuses both."""
    file, parts = plain_or_gz(folder / "corpus.jsonl"), folder / "corpus"
    if not parts.is_dir() or not (files := part_files(parts)):
        return ((None, file),) if file else ()
    if lines := file or next(iter(jsonl_files(parts)), None):
        beside = f"{lines.relative_to(folder)} beside Parquet parts in corpus/ ({files[0].name})"
        raise DataError(
            folder, f"expected one format of the documents, got {beside}; remove one of them"
        )
    return ((None, parts),)


def _cocktail(folder: Path) -> Corpora:
    """``corpus/<source>.jsonl``."""
    corpora = folder / "corpus"
    files = jsonl_files(corpora) if corpora.is_dir() else []
    return tuple((stem(file), file) for file in files)


def _fault(loaded: object, name: str) -> str:
    return "" if isinstance(loaded, FolderReader) else "is no FolderReader of ranktilt"


BEIR = FolderReader(files="corpus.jsonl or corpus/*.parquet", corpora=_beir)
COCKTAIL = FolderReader(files="corpus/<source>.jsonl", corpora=_cocktail)
