"""Notes on labels that err: the rates of a correction, and errors that would matter."""

from __future__ import annotations

from dataclasses import dataclass

from ranktilt.data.notes.base import Note


@dataclass(frozen=True, kw_only=True)
class RatesOfPart:
    """How well labels tell the groups of one part of the documents."""

    part: str
    """Name of the part; empty where rates hold for all documents."""
    information: float
    """J: sensitivity + specificity − 1 of two groups, or else the determinant of the rates."""
    information_error: float
    """Standard error of J; 0 where the rates are taken as known."""
    checked: int
    """Number of checked documents; 0 where the rates are taken as known."""


@dataclass(frozen=True, kw_only=True)
class LabelsCorrected(Note):
    """Answers are corrected for errors of labels."""

    label_errors: str
    """The rates, or the file of the checked sample, as the user named it."""
    rates: tuple[RatesOfPart, ...]


@dataclass(frozen=True, kw_only=True)
class ObservedLevel(Note):
    """An answer that is level by the labels as they are, and not once they are corrected."""

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
    """A difference of label errors between the first ranks and the list that explains a finding."""

    run: str
    a: str
    """The favoured group."""
    b: str
    cutoff: int
    one_kind: float
    """Difference of error rates that explains it if only one group is taken for the other, 0 to 1.

    See `ranktilt.auditing.label_errors.sensitivity.LabelSensitivity`.
    """
    both_kinds: float
    """The same if one group is taken for the other more often, and the other as much less often."""


@dataclass(frozen=True, kw_only=True)
class AnswerAsLabelled(Note):
    """An answer, or the difference of two runs' answers, by the labels as they are."""

    run: str
    old_run: str = ""
    """The run that it is compared with; empty for an answer."""
    measure: str
    a: str
    b: str
    value: float
    """In the unit of the measure."""
