"""The outcome of a comparison of two engines: data only.

Its words are in `reporting/sentences/citing_comparison`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ranktilt.auditing.effects import ALPHA
from ranktilt.citing.infer import FEWEST_UNITS
from ranktilt.citing.questions import QuestionKey
from ranktilt.data.artifact import Coded, Result
from ranktilt.data.notes.base import Note
from ranktilt.measures.citations.base import Scale
from ranktilt.statistics.correction import detectable_effect

CitationChangeKind = Literal["differs", "identical", "inconclusive"]


@dataclass(frozen=True, kw_only=True)
class CitationChange:
    """One question about two groups, asked of two engines: whose tilt is larger."""

    question: QuestionKey
    a: str
    b: str
    new: float
    old: float
    """Each engine's ratio a / b, or group a's part in percent, over the common queries."""
    neutral_new: float
    neutral_old: float
    """Value of each that favours neither group; NaN where unknown."""
    value: float
    """The new ratio over the old one, or the difference of the distances from neutral in points."""
    neutral: float
    """1 for a ratio, 0 for points."""
    scale: Scale
    low: float
    high: float
    """95 % interval over other questions and units."""
    error: float
    """Standard error on `scale`."""
    p: float
    p_corrected: float
    exchange_p: float
    two_way_p: float
    """The two tests of which `p` is the larger."""
    growth: float
    """How much further the new engine is from neutral, whichever way: times, or points."""
    growth_low: float
    growth_high: float
    these_low: float
    these_high: float
    """95 % interval for further questions about the same units, where they are too few for more."""
    thinner: str
    """The group with fewer effective units."""
    effective_units: float
    effective_questions: float
    questions: int
    """Queries with pages of either group."""
    family_size: int
    """Tests that are corrected together."""

    @property
    def is_testable(self) -> bool:
        """Whether enough units and questions speak for a verdict about the kind of pages."""
        return min(self.effective_units, self.effective_questions) >= FEWEST_UNITS

    @property
    def leans(self) -> Literal["a", "b", ""]:
        """The side toward which the new engine leans further, by the whole interval."""
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
        """Smallest difference found four times in five: points, or a ratio above 1."""
        if not self.is_testable:
            return np.nan
        freedom = min(self.effective_units, self.effective_questions)
        size = detectable_effect(self.error, self.family_size, freedom)
        return float(np.exp(size)) if self.scale == "log ratio" else size

    def derived(self) -> dict[str, Any]:
        """Return what follows from the fields."""
        return {"kind": self.kind, "detectable": self.detectable}


@dataclass(frozen=True, kw_only=True)
class CitationOverlap:
    """How alike the citations of two engines are, on average over the common queries."""

    of: Literal["pages", "domains"]
    measure: Literal["Jaccard", "rank-biased overlap"]
    value: float
    """0 to 1."""
    low: float
    high: float
    """95 % interval over queries."""
    within_new: float
    within_old: float
    """The same for two answers of one engine to one query; NaN where it answered each once."""
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
    old: str
    """Names of the engines, or of their files."""
    changes: tuple[CitationChange, ...]
    """The primary question of every pair first, then the others."""
    overlaps: tuple[CitationOverlap, ...]
    unit: str
    """Unit at which labels are constant: ``domain``, ``page``, or a column."""
    queries: int
    """Queries that both engines answered."""
    correction: str
    notes: tuple[Coded[Note], ...] = ()
    spec: dict[str, Any] = field(default_factory=dict)

    @property
    def primary(self) -> tuple[CitationChange, ...]:
        """Changes of the primary question, one a pair."""
        if not self.changes:
            return ()
        first = self.changes[0].question
        return tuple(change for change in self.changes if change.question == first)
