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
    """Judgments to use; None for the usual ones."""
    qrels: str | None
    """File of judgments to use instead; None for the collection's own."""
    ignore_unknown: bool
    """Whether judgments of unknown documents are allowed."""

    @property
    def files(self) -> list[Path]:
        """Files that are read."""
        qrels_files = [file_of(self.qrels)] if self.qrels else []
        return [*collection_files(self.folder), *qrels_files]

    @property
    def words(self) -> list[str]:
        """Options with which an audit reads the collection in the same way."""
        words: list[str] = []
        if self.split is not None:
            words += ["--split", self.split]
        if self.qrels is not None:
            words += ["--qrels", self.qrels]
        if self.ignore_unknown:
            words.append("--ignore-unknown")
        return words

    def load(self) -> Collection:
        """Read the collection."""
        from ranktilt.data.loading.load import load

        return load(
            self.folder, split=self.split, qrels=self.qrels, ignore_unknown=self.ignore_unknown
        )
