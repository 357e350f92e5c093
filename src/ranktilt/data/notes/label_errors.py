"""Notes on wrong labels: the rates by which answers are corrected, and errors that would matter.

`a` and `b` are two groups of documents, and labels say which of them a document belongs to. The
rates say how often labels are right in each group. An answer is the value of a measure for a run;
it is level if it lies within a margin around the value that favours neither group.

Each class is a kind of note, and its fields are what is known. The sentence is made in the file of
the same name in `ranktilt.reporting.sentences.notes`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ranktilt.data.notes.base import Note


@dataclass(frozen=True, kw_only=True)
class RatesOfPart:
    """How well labels tell two or more groups apart, in one part of the documents."""

    part: str
    """Name of the part; empty if the rates hold for all documents."""
    information: float
    """J, which is the factor by which wrong labels shrink a gap between groups.

    It is sensitivity + specificity − 1 for two groups, and otherwise the determinant of the matrix
    of rates.
    """
    information_error: float
    """Standard error of J; 0 if the rates are taken as known."""
    checked: int
    """Number of documents with checked labels; 0 if the rates are taken as known."""


@dataclass(frozen=True, kw_only=True)
class LabelsCorrected(Note):
    """Answers are corrected for errors of labels."""

    label_errors: str
    """The rates, or the file of the checked sample, as the user named it."""
    rates: tuple[RatesOfPart, ...]
    """The rates of each part of the documents."""


@dataclass(frozen=True, kw_only=True)
class ObservedLevel(Note):
    """An answer that is level by the labels as they are, but not after correction."""

    run: str
    a: str
    b: str
    measure: str
    margin: str
    """The margin, with its unit."""
    wider_margin: str
    """The margin within which the corrected interval lies, with its unit."""


@dataclass(frozen=True, kw_only=True)
class ErrorsThatExplain(Note):
    """Label errors that could explain why a run favours a group.

    Labels would have to err more often in the first ranks than in the whole list.
    """

    run: str
    a: str
    """The favoured group."""
    b: str
    """The other group."""
    cutoff: int
    """Number of first ranks."""
    one_kind: float
    """Difference of error rates, from 0 to 1, that explains it if labels err in one direction.

    Documents of one group are then taken for the other, but not the other way around.
    """
    both_kinds: float
    """Difference of error rates that explains it if labels err in both directions."""


@dataclass(frozen=True, kw_only=True)
class AnswerAsLabelled(Note):
    """An answer, or the difference of two runs' answers, by the labels as they are."""

    run: str
    old_run: str = ""
    """Run that it is compared with; empty for an answer of a single run."""
    measure: str
    a: str
    b: str
    value: float
    """The answer, in the unit of the measure."""
