"""Collections by name: ``hub:OWNER/NAME@REVISION`` and ``irds:ID``, beside folders."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from ranktilt.errors import DataError, UserError, unknown

KINDS = ("hub", "irds")
NO_QRELS = "none"
DOCS = ("all", "judged")
"""Which documents to keep: all of them, or the judged ones and their versions only."""


@dataclass(frozen=True)
class Named:
    """A collection's name, taken apart: its library (``hub`` or ``irds``), its name there, and the hub's revision."""

    kind: str
    id: str
    revision: str | None = None

    def __str__(self) -> str:
        return f"{self.kind}:{self.id}" + (f"@{self.revision}" if self.revision else "")


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What of a collection is loaded; see `ranktilt.data.load.load`."""

    split: str | None = None
    qrels: str | Path | None = None
    ignore_unknown: bool = False
    docs: str = "all"


def choose_split(splits: Collection[str], name: str | None, where: str | Path) -> str:
    """Return the split that is named; ``test``, or the only one, where none is."""
    if name is None:
        name = next(iter(splits)) if len(splits) == 1 else "test"
    if name not in splits:
        raise DataError(where, f"{unknown('split', name, sorted(splits))}; choose one with --split")
    return name


def read_name(path: str | Path) -> Named | None:
    """Read the name of a collection that a library keeps; None for a folder: what has no prefix, or is on disk."""
    kind, colon, rest = str(path).partition(":")
    named = colon and kind in KINDS and not os.path.exists(path)
    name, at, revision = rest.partition("@") if kind == "hub" else (rest, "", "")
    if not named:
        return None
    if not name.strip("/"):
        example = "hub:IR-Cocktail/scifact" if kind == "hub" else "irds:beir/scifact/test"
        raise UserError(f"{path}: expected a name after the colon, such as {example}")
    if at and not revision:
        raise UserError(f"{path}: expected a revision after the @, such as {path}v1")
    return Named(kind, name.strip("/"), revision or None)
