"""How folders lie: BEIR, Cocktail, and the first paper's layout."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from ranktilt.errors import DataError, DataWarning, unknown

_ENDINGS = (".jsonl", ".jsonl.gz")
_SPLITS = (".tsv", ".tsv.gz")


@dataclass(frozen=True)
class Layout:
    """The files of a collection's folder."""

    name: str
    folder: Path
    corpora: tuple[tuple[str | None, Path], ...]
    """(source, file); source None where the file itself says it."""

    @cached_property
    def queries(self) -> Path:
        """The query file."""
        found = _plain_or_gz(self.folder / "queries.jsonl")
        if found is None:
            raise DataError(self.folder, "expected queries.jsonl (or .gz) in this folder")
        return found

    def qrels(self, split: str | None) -> tuple[str, Path]:
        """Name and file of a split's judgments; ``test``, or the only one, where none is named."""
        folder = self.folder / "qrels"
        with _readable(folder):
            files = sorted(folder.iterdir(), reverse=True) if folder.is_dir() else []  # plain wins over .gz
        splits = {f.name.removesuffix(".gz").removesuffix(".tsv"): f for f in files if _is_named(f, _SPLITS)}
        if not splits:
            raise DataError(folder, "expected judgments in qrels/<split>.tsv (or .gz)")
        if split is None:
            split = next(iter(splits)) if len(splits) == 1 else "test"
        if split not in splits:
            raise DataError(folder, str(unknown("split", split, sorted(splits))) + "; choose one with --split")
        return split, _plain_or_gz(folder / f"{split}.tsv") or splits[split]


def find_layout(folder: Path) -> Layout:
    """Recognise a folder's layout by its files, or say which files were expected."""
    with _readable(folder):
        if not folder.is_dir():
            public = "; a public collection begins with hub: or irds:" if ":" in str(folder) else ""
            raise DataError(folder, "expected a folder, got a file" if folder.exists() else f"no such folder{public}")
        one = _plain_or_gz(folder / "corpus.jsonl")
        if one:
            return Layout("beir", folder, ((None, one),))
        for name, corpora in (("cocktail", _cocktail(folder)), ("paper", _paper(folder))):
            if corpora:
                return Layout(name, folder, _human_first(corpora))
    raise DataError(
        folder,
        "expected corpus.jsonl (BEIR), corpus/<source>.jsonl (Cocktail) or corpus-human.jsonl with "
        "<temperature>/corpus-<llm>.jsonl, plain or .gz",
    )


@contextmanager
def _readable(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(folder, f"cannot be read: {error.strerror or error}") from error


def _cocktail(folder: Path) -> list[tuple[str, Path]]:
    corpora = folder / "corpus"
    return [(_stem(f), f) for f in sorted(corpora.iterdir()) if _is_jsonl(f)] if corpora.is_dir() else []


def _paper(folder: Path) -> list[tuple[str, Path]]:
    top = [(_stem(f).removeprefix("corpus-"), f) for f in sorted(folder.glob("corpus-*")) if _is_jsonl(f)]
    deep = [
        (f"{_stem(f).removeprefix('corpus-')}_{f.parent.name}", f)
        for f in sorted(folder.glob("*/corpus-*"))
        if _is_jsonl(f)
    ]
    return [*top, *deep]


def _human_first(corpora: list[tuple[str, Path]]) -> tuple[tuple[str | None, Path], ...]:
    ordered = sorted(corpora, key=lambda c: (c[0] != "human", c[0]))
    for (source, one), (again, two) in pairwise(ordered):
        if source == again:
            raise DataError(two, f"a second file for source {source!r}, beside {one}; remove one of them")
    return tuple(ordered)


def _plain_or_gz(path: Path) -> Path | None:
    """The file, plain or compressed; where both are there the plain one, with a warning."""
    found = [p for p in (path, path.with_name(path.name + ".gz")) if p.exists()]
    if len(found) > 1:
        message = f"{found[0]} is read, and not {found[1].name} beside it; remove one of them"
        warnings.warn(message, DataWarning, stacklevel=2)
    return found[0] if found else None


def _is_jsonl(path: Path) -> bool:
    return _is_named(path, _ENDINGS)


def _is_named(path: Path, endings: tuple[str, ...]) -> bool:
    """Whether a file ends so; what begins with a dot is the system's own, such as ``._a.jsonl`` of macOS."""
    if not path.name.endswith(endings) or path.name.startswith("."):
        return False
    try:
        path.name.encode()  # names say sources and splits
    except UnicodeEncodeError as error:
        raise DataError(path, "the file's name is not UTF-8; rename it") from error
    return True


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".jsonl")
