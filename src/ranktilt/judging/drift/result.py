"""The outcome of a comparison of two audits of judges: data only.

A judge is whoever gives grades of relevance; the new and the old judge are the same model, or
person, at two times, or two that may replace each other. The words about the outcome are in
`reporting/sentences/judging/drift`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ranktilt.auditing.effects import ALPHA
from ranktilt.data.artifact import Coded, Result
from ranktilt.data.notes.base import Note
from ranktilt.judging.records import FEWEST_QUERIES, Estimate
from ranktilt.statistics.correction import detectable_effect

DriftQuestion = Literal["agreement", "grade", "tilt", "order"]
"""What may have changed.

``agreement``: κ of grades with human grades. ``grade``: the mean grade. ``tilt``: how much higher
documents of one source are graded than those of another. ``order``: τ-b with the human order of
systems, the rankers that are evaluated by the grades.
"""
DriftKind = Literal["changed", "identical", "inconclusive"]
"""Verdict on a change; ``identical`` if no number behind it differs at all."""


@dataclass(frozen=True, kw_only=True)
class JudgeChange:
    """One number of a judge, new minus old, over the pairs that both judges graded."""

    judge: str
    """Name of the new judge."""
    question: DriftQuestion
    """What may have changed."""
    subject: str
    """What the question is about.

    For ``grade`` it is a source, or empty for all documents; for ``order`` the measure that orders
    the systems. It is empty for other questions.
    """
    a: str
    """The first source of a tilt; empty for other questions."""
    b: str
    """The second source of a tilt."""
    is_of_twins: bool
    """Whether a tilt is of twins: two versions of one document for one query."""
    new: float
    """Value of the new judge."""
    old: float
    """Value of the old judge."""
    value: float
    """New minus old, in grades, or in units of κ or τ-b."""
    low: float
    """Lower end of its 95 % interval over queries and, for grades, documents."""
    high: float
    """Upper end of its 95 % interval."""
    error: float
    """Standard error, from the interval."""
    p: float
    """p of no change."""
    p_corrected: float
    """The same, corrected for all changes of the comparison."""
    growth: float
    """How much further from 0 a tilt is now, in either direction; NaN for other questions."""
    growth_low: float
    """Lower end of the growth's 95 % interval."""
    growth_high: float
    """Upper end of the growth's 95 % interval."""
    pairs: int
    """Graded pairs, twins or systems behind the value."""
    queries: int
    """Queries behind the value."""
    effective_n: float
    """Effective number of queries or documents, whichever is smaller."""
    family_size: int
    """Tests that are corrected together."""

    @classmethod
    def without_interval(
        cls, judge: str, new: float, old: float, *, pairs: int, queries: int
    ) -> JudgeChange:
        """Return a change of agreement without an interval, as a base for `replace`.

        `new` and `old` are the values of both judges; `pairs` and `queries` are the numbers behind
        them.
        """
        return cls(
            judge=judge,
            question="agreement",
            subject="",
            a="",
            b="",
            is_of_twins=False,
            new=new,
            old=old,
            value=new - old,
            low=np.nan,
            high=np.nan,
            error=np.nan,
            p=np.nan,
            p_corrected=np.nan,
            growth=np.nan,
            growth_low=np.nan,
            growth_high=np.nan,
            pairs=pairs,
            queries=queries,
            effective_n=np.nan,
            family_size=1,
        )

    @property
    def is_testable(self) -> bool:
        """Whether there are enough queries for a verdict."""
        return self.queries >= FEWEST_QUERIES and not np.isnan(self.low)

    @property
    def kind(self) -> DriftKind:
        """The verdict: changed if the corrected p is below .05."""
        if self.value == 0 and self.error == 0:
            return "identical"
        is_shown = self.is_testable and self.p_corrected < ALPHA
        return "changed" if is_shown else "inconclusive"

    @property
    def detectable(self) -> float:
        """Smallest true change that these data would show four times in five."""
        if not self.is_testable:
            return np.nan
        return detectable_effect(self.error, self.family_size, self.effective_n)

    def derived(self) -> dict[str, Any]:
        """Return the properties that an audit's file holds besides the fields."""
        return {"kind": self.kind, "detectable": self.detectable}


@dataclass(frozen=True, kw_only=True)
class OrderLikeness:
    """How alike two judges order the systems, without regard to human grades."""

    measure: str
    """Measure that orders the systems."""
    systems: int
    """Systems that both judges evaluated."""
    queries: int
    """Queries that both judges have."""
    tau: Estimate
    """Kendall's τ-b of the two orders."""


@dataclass(frozen=True, kw_only=True)
class JudgePair:
    """A new and an old judge: how many pairs both graded, and how alike."""

    judge: str
    """Name of the new judge."""
    old_judge: str
    """Name of the old judge."""
    new_pairs: int
    """Number of pairs that the new judge graded."""
    old_pairs: int
    """Number of pairs that the old judge graded."""
    common_pairs: int
    """Number of pairs that both graded."""
    human_pairs: int
    """Number of common pairs that humans graded too."""
    queries: int
    """Number of queries of the common pairs."""
    same: Estimate
    """Share of the common pairs with the same grade."""
    orders: tuple[OrderLikeness, ...]
    """Likeness of the two orders of systems, by measure."""

    @property
    def is_identical(self) -> bool:
        """Whether both judges gave the same grade to every common pair."""
        return self.same.value == 1


@dataclass(frozen=True, kw_only=True, eq=False)
class JudgeDrift(
    Result,
    format="ranktilt-judge-drift",
    version=1,
    noun="a comparison of judges",
    command="ranktilt compare",
):
    """How judges changed between two audits; immutable."""

    judges: tuple[JudgePair, ...]
    """Judges that are compared."""
    changes: tuple[JudgeChange, ...]
    """Changes of each judge: agreement, grades, tilt, order."""
    top_grade: int
    """Highest grade of the scale; 0 where grades are not known."""
    correction: str
    """Correction of the p of all changes together."""
    notes: tuple[Coded[Note], ...] = ()
    """Notes for the reader."""
    spec: dict[str, Any] = field(default_factory=dict)
    """How it was made."""

    def changes_of(self, judge: str) -> tuple[JudgeChange, ...]:
        """Return the changes of one judge."""
        return tuple(change for change in self.changes if change.judge == judge)

    def derived(self) -> dict[str, Any]:
        """Return keys that the file of every result has, and that are empty here."""
        return {"next_steps": (), "effects": ()}
