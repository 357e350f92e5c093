"""How data sets of the hub lie: Cocktail's, BEIR's and MTEB's files, as JSON lines or Parquet."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from ranktilt.errors import UserError, unknown

SUFFIXES = (".jsonl", ".jsonl.gz", ".parquet", ".tsv", ".tsv.gz")
_ROWS = (".jsonl", ".jsonl.gz", ".parquet")
_SHARD = re.compile(r"-\d{5}-of-\d{5}$")
_NUMBER = re.compile(r"^\d+$")
_WHOLE = {"corpus", "train", "test", "dev", "validation", "default", "data"}
"""Names of files in corpus/ that say nothing of a source."""
_SPLITS = {"train", "test", "dev", "validation", "valid", "val"}


@dataclass(frozen=True)
class Inventory:
    """Which file of a data set holds what.

    Parameters
    ----------
    layout : str
        ``"cocktail"`` where each source has files of its own, else ``"beir"``.
    corpora : tuple of (str or None, Path)
        Source and file of the documents, human text first; None where the file itself says the source.
    queries : tuple of Path
        Files of queries.
    splits : mapping of str to tuple of Path
        Files of judgments by split.
    files : tuple of str
        All the data files there are.
    """

    layout: str
    corpora: tuple[tuple[str | None, Path], ...] = ()
    queries: tuple[Path, ...] = ()
    splits: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    files: tuple[str, ...] = ()

    def split(self, name: str | None, where: str) -> tuple[str, tuple[Path, ...]]:
        """Name and files of a split's judgments.

        Parameters
        ----------
        name : str or None
            Its name; None for ``test``, or the only one.
        where : str
            The data set, for the message.

        Returns
        -------
        tuple of (str, tuple of Path)
            Name and files.

        Raises
        ------
        UserError
            If there is none of the name, or none at all.
        """
        if not self.splits:
            shown = ", ".join(self.files) or "none"
            raise UserError(f"{where}: expected judgments in qrels/<split> or <split>.tsv; its files: {shown}")
        if name is None:
            name = next(iter(self.splits)) if len(self.splits) == 1 else "test"
        if name not in self.splits:
            raise UserError(f"{where}: {unknown('split', name, sorted(self.splits))}; choose one with --split")
        return name, self.splits[name]


def inventory(folder: Path, *, judgments_only: bool = False) -> Inventory:
    """Find out which files of a folder hold documents, queries and judgments.

    Parameters
    ----------
    folder : Path
        A snapshot of the hub, or an unpacked archive.
    judgments_only : bool, optional
        It holds nothing but judgments, as BEIR's ``<name>-qrels`` do.

    Returns
    -------
    Inventory
        What was found, each part empty where nothing was. Documents: ``corpus.jsonl`` or files in ``corpus/``,
        each of which is a source of its own if one is called ``human`` or they have several names. Queries:
        ``queries.jsonl`` or files in ``queries/``. Judgments: ``<split>`` in ``qrels/``, ``data/``, ``default/`` or
        on top. JSON lines and TSV may be gzipped, Parquet may be in shards.
    """
    there = [p.relative_to(folder) for p in sorted(folder.rglob("*")) if p.name.endswith(SUFFIXES) and p.is_file()]
    files = [p for p in there if not is_hidden(p)]
    corpora = [] if judgments_only else [(_name(p), folder / p) for p in files if _is(p, "corpus")]
    queries = [] if judgments_only else [folder / p for p in files if _is(p, "queries")]
    splits: dict[str, list[Path]] = {}
    for place in files:
        if _is_judgments(place, judgments_only=judgments_only):
            splits.setdefault(_name(place), []).append(folder / place)
    names = {name for name, _ in corpora}
    apart = bool(names - _WHOLE) and ("human" in names or len(names) > 1)
    named = [(name if apart else None, file) for name, file in corpora]
    return Inventory(
        "cocktail" if apart else "beir",
        tuple(sorted(named, key=lambda c: (c[0] not in (None, "human"), c[0] or "", str(c[1])))),
        tuple(queries),
        {name: tuple(found) for name, found in splits.items()},
        tuple(p.as_posix() for p in files),
    )


def is_hidden(place: PurePath) -> bool:
    """Whether a path is what an operating system or version control leaves behind."""
    return any(part.startswith(".") or part == "__MACOSX" for part in place.parts)


def _name(place: PurePath) -> str:
    """Name of a file without ending and shard; of its folder where it is only a number."""
    name = place.name
    for suffix in SUFFIXES[::-1]:
        name = name.removesuffix(suffix)
    name = _SHARD.sub("", name)
    return place.parts[-2] if _NUMBER.match(name) and len(place.parts) > 1 else name


def _is(place: PurePath, what: str) -> bool:
    inside = len(place.parts) > 1 and place.parts[0] == what
    return place.name.endswith(_ROWS) and (inside or (len(place.parts) == 1 and _name(place) == what))


def _is_judgments(place: PurePath, *, judgments_only: bool) -> bool:
    if len(place.parts) == 1:
        known = _name(place) in _SPLITS or judgments_only
        return known and not (_is(place, "corpus") or _is(place, "queries"))
    return place.parts[0] in ("qrels", "data", "default")
