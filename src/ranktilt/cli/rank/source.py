"""The collection that ``ranktilt rank`` reads, and the options that say how."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ranktilt.cli.output import collection_files
from ranktilt.data.formats.notation import file_of

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection


@dataclass(frozen=True, kw_only=True)
class RankedSource:
    """A collection and the options that say how it is read."""

    folder: Path
    """The collection, as it was typed."""
    split: str | None
    """Name of the judgments to use, such as ``test``; None for the usual ones."""
    qrels: str | None
    """File of judgments to use instead; None for the collection's own."""
    ignore_unknown: bool
    """Whether judgments may name documents or queries that the collection lacks."""

    @property
    def files(self) -> list[Path]:
        """Files that are read."""
        qrels_files = [file_of(self.qrels)] if self.qrels else []
        return [*collection_files(self.folder), *qrels_files]

    @property
    def reading_options(self) -> list[str]:
        """Options, as typed, with which an audit reads the collection in the same way."""
        options: list[str] = []
        if self.split is not None:
            options += ["--split", self.split]
        if self.qrels is not None:
            options += ["--qrels", self.qrels]
        if self.ignore_unknown:
            options.append("--ignore-unknown")
        return options

    def load(self) -> Collection:
        """Read the collection."""
        from ranktilt.data.loading.load import load

        return load(
            self.folder, split=self.split, qrels=self.qrels, ignore_unknown=self.ignore_unknown
        )
