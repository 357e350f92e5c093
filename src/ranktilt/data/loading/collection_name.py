"""Read the names of public collections: ``hub:OWNER/NAME@REVISION`` and ``irds:ID``.

A *revision* is a version of a data set on the hub. A *split* is a named set of judgments, such as
``test``. The options of loading are here too, because all loaders take them.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from ranktilt.errors import DataError, UserError, unknown_name

KINDS = ("hub", "irds")
"""Libraries of collections, by the prefix of their names: ``hub:`` and ``irds:``."""
NO_QRELS = "none"
"""Value of ``qrels`` for a collection without judgments."""
DOCS = ("all", "judged")
"""Choices of documents: all, or only the judged ones and their versions by other sources."""


@dataclass(frozen=True, kw_only=True)
class CollectionName:
    """The name of a collection in a library."""

    kind: str
    """``hub`` (Hugging Face) or ``irds`` (ir_datasets)."""
    id: str
    """Name of the collection in its library."""
    revision: str | None = None
    """Commit, branch or tag of the hub."""

    def __str__(self) -> str:
        return f"{self.kind}:{self.id}" + (f"@{self.revision}" if self.revision else "")


@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """The options of `ranktilt.data.loading.load.load`: which parts of a collection to load."""

    split: str | None = None
    """Name of the judgments; None for the only ones there are, or for ``test``."""
    qrels: str | Path | None = None
    """File of judgments to use instead of the collection's own; `NO_QRELS` for no judgments."""
    ignore_unknown: bool = False
    """Whether to accept judgments of documents or queries that the collection does not have."""
    docs: str = "all"
    """Documents to load, one of `DOCS`."""


def choose_split(splits: Collection[str], name: str | None, where: str | Path) -> str:
    """Return the name of the split to use: `name`, or if it is None the only split, or ``test``.

    `where` is the folder or file of the splits, for errors.
    """
    if name is None:
        name = next(iter(splits)) if len(splits) == 1 else "test"
    if name not in splits:
        raise DataError(
            where, f"{unknown_name('split', name, sorted(splits))}; choose one with --split"
        )
    return name


def read_name(path: str | Path) -> CollectionName | None:
    """Read the name of a library's collection; None for a folder.

    A path without a prefix is a folder, and so is one that exists.
    """
    kind, colon, rest = str(path).partition(":")
    if not colon or kind not in KINDS or os.path.exists(path):
        return None
    name, at, revision = rest.partition("@") if kind == "hub" else (rest, "", "")
    if not name.strip("/"):
        example = "hub:IR-Cocktail/scifact" if kind == "hub" else "irds:beir/scifact/test"
        raise UserError(f"{path}: expected a name after the colon, such as {example}")
    if at and not revision:
        raise UserError(f"{path}: expected a revision after the @, such as {path}v1")
    return CollectionName(kind=kind, id=name.strip("/"), revision=revision or None)
