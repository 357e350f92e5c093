"""The outcome of an experiment with contexts: data only.

Its words are in `reporting/sentences/citing/context_experiment`.
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
    """What differs between the two."""
    labels: LabelsOfAnswers
    """Labels that the compared answers were shown."""
    is_primary: bool
    """Whether the effect decides the verdict."""
    a: str
    """The first of the two: a group, or ``first`` of two positions."""
    b: str
    """The second of the two: a group, or ``second`` of two positions."""
    value: float
    """In percent; NaN where both or neither are cited throughout."""
    low: float
    """Lower end of the 95 % interval over other queries and documents, in percent."""
    high: float
    """Upper end of the 95 % interval."""
    error: float
    """Standard error, in points."""
    p: float
    """p of a share of 50 %."""
    p_corrected: float
    """`p` corrected for the number of tests in `family_size`."""
    effective_n: float
    """Effective number of queries, or of documents, whichever is smaller."""
    rate_a: float
    """How often a is cited, alone or not, in percent."""
    rate_b: float
    """How often b is cited, alone or not, in percent."""
    only_a: int
    """Comparisons in which a is cited and b is not. With the next three: McNemar's table."""
    only_b: int
    """Comparisons in which b is cited and a is not."""
    both: int
    """Comparisons in which both are cited."""
    neither: int
    """Comparisons in which neither is cited."""
    queries: int
    """Queries with a comparison."""
    documents: int
    """Documents in a comparison."""
    family_size: int
    """Tests that are corrected together."""

    @property
    def neutral(self) -> float:
        """The share that favours neither."""
        return EVEN

    @property
    def is_testable(self) -> bool:
        """Whether queries and documents suffice for a verdict."""
        return self.effective_n >= FEWEST and not np.isnan(self.low)

    @property
    def leans(self) -> Literal["a", "b", ""]:
        """The one that the whole interval favours; empty where it holds 50 %."""
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
        """Smallest distance from 50 %, in points, that is found four times in five.

        NaN where queries or documents are too few.
        """
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
    """Part of the answers that cite it, 0 to 1."""
    low: float
    """Lower end of the 95 % interval over other queries."""
    high: float
    """Upper end of the 95 % interval."""
    answers: int
    """Answers with a document at this position."""


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
    """The language model that was asked."""
    effects: tuple[ContextEffect, ...]
    """The primary questions first."""
    positions: tuple[PositionRate, ...]
    """How often each position of the prompt is cited."""
    counts: SessionCounts
    """What became of the requests."""
    groups: tuple[str, str]
    """Groups a and b."""
    shown_labels: tuple[str, ...]
    """Which author each document was shown with: ``none``, ``true`` or ``swapped``."""
    has_twins: bool
    """Whether both versions of each document were shown."""
    margin: float
    """Points around 50 % that count as level."""
    correction: str
    """How p-values are corrected for many tests: ``holm`` or ``bonferroni``."""
    notes: tuple[Coded[Note], ...] = ()
    """What a reader should know, what endangers the verdict first."""
    spec: dict[str, Any] = field(default_factory=dict)
    """How answers were made, and settings that make this experiment again."""

    @property
    def primary(self) -> tuple[ContextEffect, ...]:
        """Effects of what was varied: the version, the label, or both."""
        return tuple(effect for effect in self.effects if effect.is_primary)

    def effect(self, question: Question) -> ContextEffect | None:
        """Return the first effect of a question; None where it was not asked."""
        return next((effect for effect in self.effects if effect.question == question), None)
