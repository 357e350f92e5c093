"""Notes on collections, labels and judgments.

The documents of a collection name a source, or a file of labels gives each a value in a column; by
these, documents are grouped.

Each class is a kind of note, and its fields are what is known. The sentence is made in the file of
the same name in `ranktilt.reporting.sentences.notes`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ranktilt.data.notes.base import Note, Severity


@dataclass(frozen=True, kw_only=True)
class JudgmentsReadAs(Note):
    """How a file of judgments was read, if it could be read in several ways."""

    format: str
    """Description of the layout that it was read as."""


@dataclass(frozen=True, kw_only=True)
class LabelsReadAs(Note):
    """How a file of labels was read, if it could be read in several ways."""

    format: str
    """Description of the layout that it was read as."""


@dataclass(frozen=True, kw_only=True)
class SourcesChosen(Note):
    """Which sources were ranked together, if some were left out."""

    ranked: tuple[str, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SourcesMixed(Note):
    """More than two sources were ranked as one collection."""

    sources: int


@dataclass(frozen=True, kw_only=True)
class ColumnValues:
    """A column of a collection with few values, and the first of these."""

    column: str
    values: tuple[str, ...]
    has_more: bool
    """Whether there are more values than these."""


@dataclass(frozen=True, kw_only=True)
class NoSource(Note):
    """No document names its source."""

    documents: int
    columns: tuple[ColumnValues, ...]
    """Columns with so few values that they could name the sources."""
    folder: str
    """Folder of the collection, as a command takes it."""


@dataclass(frozen=True, kw_only=True)
class TextsNotExamined(Note):
    """Texts were not examined, because no document names its source."""


@dataclass(frozen=True, kw_only=True)
class LabelNote(Note):
    """How the labels in a column of groups are written."""

    by: str
    """Name of the column."""
    has_remedy: bool = False
    """Whether the command that made the result has options to read labels otherwise."""


@dataclass(frozen=True, kw_only=True)
class LabelsAlike(LabelNote):
    """Labels that are most likely spellings of one name, but separate groups."""

    severity: Severity = "warning"
    labels: tuple[str, ...]
    """The spellings, the plainest first."""
    difference: str
    """The only thing that they differ in, such as ``case``."""


@dataclass(frozen=True, kw_only=True)
class LabelIsWord(LabelNote):
    """A label that may mean a missing value, such as ``n/a``, but is a group."""

    severity: Severity = "warning"
    label: str
    documents: int


@dataclass(frozen=True, kw_only=True)
class NumberLabels(LabelNote):
    """A column of numbers, each of which is a group, and where it could be cut in two."""

    values: int
    """Number of different numbers."""
    low: float
    """Smallest number."""
    high: float
    """Largest number."""
    parted_at: float
    """Number at which the column could be cut in two groups."""


@dataclass(frozen=True, kw_only=True)
class PropertyLabels(LabelNote):
    """A column of numbers that is read as a property of documents, such as length, not as groups.

    The note says where the column could be cut in two groups.
    """

    low: float
    """Smallest number."""
    high: float
    """Largest number."""
    parted_at: float
    """Number at which the column could be cut in two groups."""


@dataclass(frozen=True, kw_only=True)
class JudgmentsUnknown(Note):
    """Judgments of documents or queries that the collection does not hold."""

    documents: int
    """Number of judgments of unknown documents."""
    queries: int
    """Number of judgments of unknown queries."""
    has_labels_only: bool
    """Whether a file of labels stands for the collection, without its texts."""


@dataclass(frozen=True, kw_only=True)
class GradesAreFractions(Note):
    """Grades that are not whole numbers."""

    grades: int
    first: float
    """The first such grade."""
