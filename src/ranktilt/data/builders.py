"""Builders, each a command of ``ranktilt data build``: they make a published collection from its original files.

A builder is a plain function that returns a `BuiltCollection`. Its parameters become the arguments and options of
the command: a parameter before ``*`` is an argument, one behind it an option; their types are read, and the docstring
says what each is (numpydoc, ``Parameters``). Every builder belongs to a paper or to another package; RankTilt's
core has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ranktilt.data.collection import Collection
from ranktilt.data.notes.base import Note
from ranktilt.data.save import save
from ranktilt.errors import UserError
from ranktilt.extensions import ExtensionTable

CANDIDATES = "candidates.trec"
"""The run of a built folder whose lists rankers order, and pairs of documents are drawn from."""
FOLDER = "{folder}"
"""What stands for the written folder in a builder's next command."""


@dataclass(frozen=True, kw_only=True)
class BuiltCollection:
    """A collection that was built, and what people should know about it."""

    collection: Collection
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Further files of the folder, by name."""
    summary: tuple[tuple[str, str], ...] = ()
    """What was counted: a name, and a text."""
    notes: tuple[Note, ...] = ()
    """What a user should know; `Remark` holds a sentence."""
    next_command: tuple[str, ...] = ()
    """Arguments of ``ranktilt`` that go on from here; ``{folder}`` stands for the folder."""

    def save(self, folder: Path) -> None:
        """Write the collection and its further files as a folder that `load` reads."""
        save(self.collection, folder, beside=self.files)


def require_seed(seed: int) -> None:
    """Refuse a random seed below 0."""
    if seed < 0:
        raise UserError(f"expected a seed of at least 0, got {seed}")


def builders() -> ExtensionTable:
    """Return the table of builders: of the papers, and of installed packages (``ranktilt.builders``)."""
    return ExtensionTable("builder", "ranktilt.builders", {}, _fault)


def _fault(loaded: object, name: str) -> str:
    return "" if callable(loaded) else "is no function"
