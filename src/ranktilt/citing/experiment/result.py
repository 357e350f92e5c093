"""The outcome of an experiment with contexts: data only.

Its words are in `reporting/sentences/context_experiment`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ranktilt.auditing.effects import ALPHA, FEWEST
from ranktilt.citing.experiment.paired import EVEN
from ranktilt.citing.making.session import SessionCounts
from ranktilt.data.artifact import Coded, Result
from ranktilt.data.notes.base import Note
from ranktilt.statistics.correction import detectable_effect

Question = Literal["version", "label", "position"]
"""What decides which of two is cited: who wrote it, whose label it shows, or where it stands."""
LabelsOfAnswers = Literal["none", "true", "swapped", "both", "all"]
"""Labels that the compared answers were shown: ``both`` are the true and the swapped ones."""


@dataclass(frozen=True, kw_only=True)
class ContextEffect:
    """How often one of two is cited where only one is; 50 % favours neither."""

    question: Question
    labels: LabelsOfAnswers
    is_primary: bool
    a: str
    b: str
    """Groups, or ``first`` and ``second`` of a position."""
    value: float
    """In percent; NaN where both or neither are cited throughout."""
    low: float
    high: float
    """95 % interval over other queries and documents."""
    error: float
    """Standard error, in points."""
    p: float
    p_corrected: float
    effective_n: float
    """Effective number of queries, or of documents, whichever is smaller."""
    rate_a: float
    rate_b: float
    """How often each of the two is cited, in percent."""
    only_a: int
    only_b: int
    both: int
    neither: int
    """Comparisons by what is cited: McNemar's table."""
    queries: int
    documents: int
    family_size: int
    """Tests that are corrected together."""

    @property
    def neutral(self) -> float:
        """The share that favours neither."""
        return EVEN

    @property
    def is_testable(self) -> bool:
        """Whether enough queries and documents decide for a verdict."""
        return self.effective_n >= FEWEST and not np.isnan(self.low)

    @property
    def leans(self) -> Literal["a", "b", ""]:
        """The side of 50 % on which the whole interval lies; empty for neither."""
        if self.low > EVEN:
            return "a"
        return "b" if self.high < EVEN else ""

    def verdict(self, margin: float) -> Literal["a", "b", "level", "inconclusive"]:
        """Return which of the two is favoured, by the rule of every command."""
        if not self.is_testable:
            return "inconclusive"
        if self.leans and self.p_corrected < ALPHA:
            return self.leans
        is_within = EVEN - margin <= self.low and self.high <= EVEN + margin
        return "level" if is_within else "inconclusive"

    @property
    def detectable(self) -> float:
        """Smallest distance from 50 %, in points, that is found four times in five."""
        if not self.is_testable:
            return np.nan
        return detectable_effect(self.error, self.family_size, self.effective_n)

    def side(self, which: str) -> str:
        """Name of ``a`` or ``b``; empty for neither."""
        return {"a": self.a, "b": self.b}.get(which, "")

    def derived(self) -> dict[str, Any]:
        """Return numbers that follow from the fields."""
        return {"detectable": self.detectable}


@dataclass(frozen=True, kw_only=True)
class PositionRate:
    """How often the document at a position of the prompt is cited."""

    position: int
    """From 1."""
    value: float
    """From 0 to 1."""
    low: float
    high: float
    """95 % interval over other queries."""
    answers: int


@dataclass(frozen=True, kw_only=True, eq=False)
class ContextExperiment(
    Result,
    format="ranktilt-context-experiment",
    version=1,
    noun="an experiment with contexts",
    command="ranktilt cite --twins",
):
    """Which of two a model cites that differ in one thing: version, label or position."""

    model: str
    effects: tuple[ContextEffect, ...]
    """The primary questions first."""
    positions: tuple[PositionRate, ...]
    counts: SessionCounts
    groups: tuple[str, str]
    """Groups a and b."""
    shown_labels: tuple[str, ...]
    has_twins: bool
    margin: float
    """Points around 50 % that count as level."""
    correction: str
    notes: tuple[Coded[Note], ...] = ()
    spec: dict[str, Any] = field(default_factory=dict)

    @property
    def primary(self) -> tuple[ContextEffect, ...]:
        """Effects of what was varied: the version, the label, or both."""
        return tuple(effect for effect in self.effects if effect.is_primary)

    def effect(self, question: Question) -> ContextEffect | None:
        """Return the first effect of a question; None where it was not asked."""
        return next((effect for effect in self.effects if effect.question == question), None)
