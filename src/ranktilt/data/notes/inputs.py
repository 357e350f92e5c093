"""Notes on collections, labels and judgments."""

from __future__ import annotations

from dataclasses import dataclass

from ranktilt.data.notes.base import Note, Severity


@dataclass(frozen=True, kw_only=True)
class JudgmentsReadAs(Note):
    """How a file of judgments was read, where there was a choice."""

    format: str


@dataclass(frozen=True, kw_only=True)
class LabelsReadAs(Note):
    """How a file of labels was read, where there was a choice."""

    format: str


@dataclass(frozen=True, kw_only=True)
class SourcesChosen(Note):
    """Which sources were ranked together, where some were left out."""

    ranked: tuple[str, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SourcesMixed(Note):
    """More than two sources were ranked as one collection."""

    sources: int


@dataclass(frozen=True, kw_only=True)
class ColumnValues:
    """A column of few values, and the first of these."""

    column: str
    values: tuple[str, ...]
    has_more: bool


@dataclass(frozen=True, kw_only=True)
class NoSource(Note):
    """No document names its source; some columns have so few values that they could."""

    documents: int
    columns: tuple[ColumnValues, ...]
    folder: str
    """Of the collection, as an audit takes it."""


@dataclass(frozen=True, kw_only=True)
class TextsNotExamined(Note):
    """Texts were not examined, because no document names its source."""


@dataclass(frozen=True, kw_only=True)
class LabelNote(Note):
    """How labels of a column are written."""

    by: str
    has_remedy: bool = False
    """Whether the command that made the result has the options that change it."""


@dataclass(frozen=True, kw_only=True)
class LabelsAlike(LabelNote):
    """Labels that are most likely one name in several spellings, and are groups of their own."""

    severity: Severity = "warning"
    labels: tuple[str, ...]
    """The plainest spelling first."""
    difference: str
    """In what alone they differ, such as ``case``."""


@dataclass(frozen=True, kw_only=True)
class LabelIsWord(LabelNote):
    """A label that may stand for a missing value, and is a group."""

    severity: Severity = "warning"
    label: str
    documents: int


@dataclass(frozen=True, kw_only=True)
class NumberLabels(LabelNote):
    """A column of numbers of which each makes a group, and how it can be parted."""

    values: int
    """How many different numbers there are."""
    low: float
    high: float
    parted_at: float
    """Number at which it can be parted in two."""


@dataclass(frozen=True, kw_only=True)
class PropertyLabels(LabelNote):
    """A column of numbers that is taken for a property, and how it could be parted into groups."""

    low: float
    high: float
    parted_at: float


@dataclass(frozen=True, kw_only=True)
class JudgmentsUnknown(Note):
    """Judgments that name documents or queries which the collection does not hold."""

    documents: int
    queries: int
    """Judgments of unknown documents, and of unknown queries."""
    has_labels_only: bool
    """Whether labels stand for a collection, without its texts."""


@dataclass(frozen=True, kw_only=True)
class GradesAreFractions(Note):
    """Grades that are not whole numbers."""

    grades: int
    first: float
