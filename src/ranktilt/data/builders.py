"""Builders make a published collection from its original files, as ``ranktilt data build`` does.

Such as the collection of a paper that may not be redistributed, from the files of its sources.

A builder is a plain function that returns a `BuiltCollection`. The command line makes a command of
it: a parameter before ``*`` becomes an argument, and a parameter after it an option. Values are
read by the parameters' types, and the help comes from the docstring (numpydoc, ``Parameters``).
Every builder belongs to a paper or to another package; RankTilt's core has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ranktilt.data.collection import Collection
from ranktilt.data.notes.base import Note
from ranktilt.data.save import save
from ranktilt.extensions import ExtensionTable

CANDIDATES = "candidates.trec"
"""Name of the run in a built folder: rankers re-rank it, and pairs are drawn from it."""
FOLDER = "{folder}"
"""Placeholder for the written folder in a builder's next command."""


@dataclass(frozen=True, kw_only=True)
class BuiltCollection:
    """The collection that a builder made, with notes for its user."""

    collection: Collection
    """The collection."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Further files of the folder, by name."""
    summary: tuple[tuple[str, str], ...] = ()
    """Counts to print: each a name, and a text."""
    notes: tuple[Note, ...] = ()
    """Notes for the user; `Remark` is a note with any sentence."""
    next_command: tuple[str, ...] = ()
    """Arguments of the ``ranktilt`` command to run next, with the placeholder `FOLDER`."""

    def save(self, folder: Path) -> None:
        """Write the collection and its further files as a folder that `load` reads."""
        save(self.collection, folder, beside=self.files)


def builders() -> ExtensionTable:
    """Return all builders by name: the papers', and those of installed packages.

    Packages offer them as entry points of the group ``ranktilt.builders``.
    """
    return ExtensionTable(noun="builder", group="ranktilt.builders", bundled={}, fault=_fault)


def _fault(loaded: object, name: str) -> str:
    """Say why an object that a package offers is no builder; empty if it is a builder."""
    return "" if callable(loaded) else "is not a function"
