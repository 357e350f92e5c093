"""The outcome of an experiment with contexts: data only.

A language model answers queries from *contexts*, the documents that it is shown, and cites some. A
*comparison* is two possible citations that differ in one thing: the two *versions* of a document,
by group a and group b; the two *positions* at which versions are shown; or one text shown with
either *label*, the group that is said to be its author. The words about the outcome are in
`reporting/sentences/citing/context_experiment`.
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
"""What differs between two possible citations."""
LabelsOfAnswers = Literal["none", "true", "swapped", "both", "all"]
"""Labels that the documents of the compared answers were shown with.

``swapped`` names the other group, ``both`` are answers with true and with swapped labels, and
``all`` are also those without.
"""


@dataclass(frozen=True, kw_only=True)
class ContextEffect:
    """How often the first of two is cited, in comparisons in which only one is; 50 % is neutral."""

    question: Question
    """What differs between the two."""
    labels: LabelsOfAnswers
    """Labels that the documents of the compared answers were shown with."""
    is_primary: bool
    """Whether the effect decides the verdict."""
    a: str
    """The first of the two: a group, or ``first`` of two positions."""
    b: str
    """The second of the two: a group, or ``second`` of two positions."""
    value: float
    """The share of the first, in percent; NaN if no comparison has only one of the two cited."""
    low: float
    """Lower end of the 95 % interval over other queries and documents, in percent."""
    high: float
    """Upper end of the 95 % interval."""
    error: float
    """Standard error, in points."""
    p: float
    """p that the true share is 50 %."""
    p_corrected: float
    """`p` corrected for the number of tests in `family_size`."""
    effective_n: float
    """Effective number of queries, or of documents, whichever is smaller."""
    rate_a: float
    """How often a is cited, alone or with b, in percent."""
    rate_b: float
    """How often b is cited, alone or with a, in percent."""
    only_a: int
    """Number of comparisons in which a is cited and b is not.

    With the next three it makes McNemar's table.
    """
    only_b: int
    """Number of comparisons in which b is cited and a is not."""
    both: int
    """Number of comparisons in which both are cited."""
    neither: int
    """Number of comparisons in which neither is cited."""
    queries: int
    """Number of queries with a comparison."""
    documents: int
    """Number of documents with a comparison."""
    family_size: int
    """Number of tests that are corrected together."""

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
        """Which of the two the whole interval favours; empty if it contains 50 %."""
        if self.low > EVEN:
            return "a"
        return "b" if self.high < EVEN else ""

    def verdict(self, margin: float) -> Literal["a", "b", "level", "inconclusive"]:
        """Return which of the two is favoured, by the rule that all commands share.

        One is favoured if the interval and the corrected p both say so. An effect is level if its
        whole interval lies within `margin` points of 50 %. All else is inconclusive.
        """
        if not self.is_testable:
            return "inconclusive"
        if self.leans and self.p_corrected < ALPHA:
            return self.leans
        is_within = EVEN - margin <= self.low and self.high <= EVEN + margin
        return "level" if is_within else "inconclusive"

    @property
    def detectable(self) -> float:
        """Smallest true distance from 50 % that these data would show four times in five.

        It is in points; NaN with too few queries or documents.
        """
        if not self.is_testable:
            return np.nan
        return detectable_effect(self.error, self.family_size, self.effective_n)

    def side(self, which: str) -> str:
        """Return the name of ``a`` or ``b``; empty for any other verdict."""
        return {"a": self.a, "b": self.b}.get(which, "")

    def derived(self) -> dict[str, Any]:
        """Return numbers that follow from the fields."""
        return {"detectable": self.detectable}


@dataclass(frozen=True, kw_only=True)
class PositionRate:
    """How often the document at a position of the prompt is cited."""

    position: int
    """Position in the prompt, from 1."""
    value: float
    """Part of the answers that cite it, 0 to 1."""
    low: float
    """Lower end of the 95 % interval over other queries."""
    high: float
    """Upper end of the 95 % interval."""
    answers: int
    """Number of answers with a document at this position."""


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
    """Effects of version, label and position; the primary ones, which decide the verdict, first."""
    positions: tuple[PositionRate, ...]
    """How often each position of the prompt is cited."""
    counts: SessionCounts
    """What became of the requests."""
    groups: tuple[str, str]
    """Groups a and b."""
    shown_labels: tuple[str, ...]
    """Labels that documents were shown with: ``none``, ``true`` or ``swapped``."""
    has_twins: bool
    """Whether both versions of each document were shown."""
    margin: float
    """Largest distance from 50 %, in points, that counts as level."""
    correction: str
    """How p-values are corrected for many tests: ``holm`` or ``bonferroni``."""
    notes: tuple[Coded[Note], ...] = ()
    """Notes for the reader; those that cast doubt on the verdict come first."""
    spec: dict[str, Any] = field(default_factory=dict)
    """How answers were made, and settings from which the experiment can be repeated."""

    @property
    def primary(self) -> tuple[ContextEffect, ...]:
        """Effects of what was varied: the version, the label, or both."""
        return tuple(effect for effect in self.effects if effect.is_primary)

    def effect(self, question: Question) -> ContextEffect | None:
        """Return the first effect of a question; None if there is none."""
        return next((effect for effect in self.effects if effect.question == question), None)
