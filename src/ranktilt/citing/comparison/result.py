"""The outcome of a comparison of two engines: data only.

Its words are in `reporting/sentences/citing/comparison`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ranktilt.auditing.effects import ALPHA
from ranktilt.citing.inference.infer import FEWEST_UNITS
from ranktilt.citing.questions import QuestionKey
from ranktilt.data.artifact import Coded, Result
from ranktilt.data.notes.base import Note
from ranktilt.measures.citations.base import Scale
from ranktilt.statistics.correction import detectable_effect

CitationChangeKind = Literal["differs", "identical", "inconclusive"]
"""Verdict on one change: the tilts differ, are the same in every citation, or may do either."""


@dataclass(frozen=True, kw_only=True)
class CitationChange:
    """One question about two groups, asked of two engines: whose tilt is larger.

    A *tilt* is how far an engine's value lies from neutral.
    """

    question: QuestionKey
    """Key of the question in `QUESTIONS`."""
    a: str
    """Group whose citations a value above neutral favours."""
    b: str
    """Group that a is compared with."""
    new: float
    """The new engine's ratio a / b, or group a's part in percent, over the common queries."""
    old: float
    """The old engine's ratio a / b, or group a's part in percent, over the common queries."""
    neutral_new: float
    """Value of the new engine that favours neither group; NaN where unknown."""
    neutral_old: float
    """Value of the old engine that favours neither group; NaN where unknown."""
    value: float
    """The new ratio over the old one, or the difference of the distances from neutral in points."""
    neutral: float
    """Value at which both engines tilt alike: 1 for a ratio, 0 for points."""
    scale: Scale
    """``log ratio`` where the value is a ratio, ``share`` where it is in points."""
    low: float
    """Lower end of the 95 % interval over other questions and units; NaN where undefined."""
    high: float
    """Upper end of the 95 % interval."""
    error: float
    """Standard error on `scale`."""
    p: float
    """The larger of `exchange_p` and `two_way_p`."""
    p_corrected: float
    """`p` corrected for the number of tests in `family_size`."""
    exchange_p: float
    """p by labels that are exchanged between units."""
    two_way_p: float
    """p of the t test with the error over questions and units."""
    growth: float
    """How much further the new engine is from neutral, whichever way: times, or points."""
    growth_low: float
    """Lower end of the 95 % interval of the growth."""
    growth_high: float
    """Upper end of the 95 % interval of the growth."""
    these_low: float
    """Lower end for further questions about the same units; NaN where there are ten or more."""
    these_high: float
    """Upper end for further questions about the same units; NaN where there are ten or more."""
    thinner: str
    """The group with fewer effective units."""
    effective_units: float
    """Effective number of units of the engine and the group that have fewest."""
    effective_questions: float
    """Effective number of queries."""
    questions: int
    """Queries with pages of either group."""
    family_size: int
    """Tests that are corrected together."""

    @property
    def is_testable(self) -> bool:
        """Whether units and questions suffice for a verdict about the kind of pages."""
        return min(self.effective_units, self.effective_questions) >= FEWEST_UNITS

    @property
    def leans(self) -> Literal["a", "b", ""]:
        """The group toward which the whole interval says that the new engine leans further.

        Empty where the interval holds neutral.
        """
        if self.low > self.neutral:
            return "a"
        return "b" if self.high < self.neutral else ""

    @property
    def kind(self) -> CitationChangeKind:
        """The verdict, by the rule of every comparison."""
        if self.value == self.neutral and self.error == 0:
            return "identical"
        is_shown = self.is_testable and bool(self.leans) and self.p_corrected < ALPHA
        return "differs" if is_shown else "inconclusive"

    @property
    def side(self) -> str:
        """Name of the group toward which the new engine leans further; empty for neither."""
        return {"a": self.a, "b": self.b}.get(self.leans, "")

    @property
    def detectable(self) -> float:
        """Smallest difference found four times in five: points, or a ratio above 1.

        NaN where units or questions are too few.
        """
        if not self.is_testable:
            return np.nan
        freedom = min(self.effective_units, self.effective_questions)
        size = detectable_effect(self.error, self.family_size, freedom)
        return float(np.exp(size)) if self.scale == "log ratio" else size

    def derived(self) -> dict[str, Any]:
        """Return what follows from the fields, for the result's file."""
        return {"kind": self.kind, "detectable": self.detectable}


@dataclass(frozen=True, kw_only=True)
class CitationOverlap:
    """How alike the citations of two engines are, on average over the common queries."""

    of: Literal["pages", "domains"]
    """What is compared: cited pages, or their domains."""
    measure: Literal["Jaccard", "rank-biased overlap"]
    """How likeness is measured; see `ranktilt.measures.citations.stability`."""
    value: float
    """Likeness of an answer of one engine and one of the other, 0 to 1."""
    low: float
    """Lower end of the 95 % interval over queries."""
    high: float
    """Upper end of the 95 % interval over queries."""
    within_new: float
    """Likeness of two answers of the new engine to one query; NaN where it answered each once."""
    within_old: float
    """Likeness of two answers of the old engine to one query; NaN where it answered each once."""
    queries: int
    """Queries to which either engine cites a page."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CitationComparison(
    Result,
    format="ranktilt-citation-comparison",
    version=1,
    noun="a comparison of two audits of citations",
    command="ranktilt compare",
):
    """Two engines on the same questions: whose tilt is larger, and how alike they cite."""

    new: str
    """Name of the new engine, or of its file."""
    old: str
    """Name of the old engine, or of its file."""
    changes: tuple[CitationChange, ...]
    """The primary question of every pair first, then the others."""
    overlaps: tuple[CitationOverlap, ...]
    """How alike both engines cite pages, and domains."""
    unit: str
    """Unit at which labels are constant: ``domain``, ``page``, or a column."""
    queries: int
    """Queries that both engines answered."""
    correction: str
    """How p-values are corrected for many tests: ``holm`` or ``bonferroni``."""
    notes: tuple[Coded[Note], ...] = ()
    """What a reader should know, what endangers the verdict first."""
    spec: dict[str, Any] = field(default_factory=dict)
    """Settings, and where each audit comes from."""

    @property
    def primary(self) -> tuple[CitationChange, ...]:
        """Changes of the primary question: one for each pair."""
        if not self.changes:
            return ()
        first = self.changes[0].question
        return tuple(change for change in self.changes if change.question == first)
