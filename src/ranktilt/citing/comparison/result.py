"""The outcome of a comparison of two engines: data only.

Both engines answered the same queries, and their answers cite pages of two groups, a and b. A
*question* compares the groups, such as by their citation rates. An engine's *tilt* is how far the
value of a question lies from *neutral*, which favours neither group. A *unit* is pages that are
labelled together, such as those of a domain. The words about the outcome are in
`reporting/sentences/citing/comparison`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ranktilt.auditing.effects import ALPHA
from ranktilt.citing.effect import QuestionKey
from ranktilt.citing.inference.infer import FEWEST_UNITS
from ranktilt.data.artifact import Coded, Result
from ranktilt.data.notes.base import Note
from ranktilt.measures.citations.base import Scale
from ranktilt.statistics.correction import detectable_effect

CitationChangeKind = Literal["differs", "identical", "inconclusive"]
"""Verdict on one change: tilts differ, all citations are the same, or neither is shown."""


@dataclass(frozen=True, kw_only=True)
class CitationChange:
    """One question about two groups, and how the tilts of two engines differ in it."""

    question: QuestionKey
    """Key of the question in `ranktilt.citing.effect.QUESTIONS`."""
    a: str
    """Group that a value above neutral favours."""
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
    """How the tilts differ.

    It is the new ratio divided by the old one, or for shares the new distance from neutral minus
    the old one, in points.
    """
    neutral: float
    """The `value` at which both engines tilt alike: 1 for a ratio, 0 for points."""
    scale: Scale
    """``log ratio`` where the value is a ratio, ``share`` where it is in points."""
    low: float
    """Lower end of the 95 % interval over other questions and units; NaN where undefined."""
    high: float
    """Upper end of the 95 % interval."""
    error: float
    """Standard error on `scale`: of the logarithm of a ratio, or in points of a share."""
    p: float
    """The larger of `exchange_p` and `two_way_p`."""
    p_corrected: float
    """`p` corrected for the number of tests in `family_size`."""
    exchange_p: float
    """p of a permutation test that exchanges labels between units."""
    two_way_p: float
    """p of the t test with the error over questions and units."""
    growth: float
    """How much further the new engine is from neutral, in either direction: times, or points."""
    growth_low: float
    """Lower end of the 95 % interval of the growth."""
    growth_high: float
    """Upper end of the 95 % interval of the growth."""
    these_low: float
    """Lower end of the interval for further questions about the same units.

    NaN if there are ten units or more, so that the interval over other units counts.
    """
    these_high: float
    """Upper end of the interval for further questions about the same units."""
    thinner: str
    """The group with fewer effective units."""
    effective_units: float
    """Effective number of units, of the engine and the group that have fewest."""
    effective_questions: float
    """Effective number of queries."""
    questions: int
    """Number of queries with pages of either group."""
    family_size: int
    """Number of tests that are corrected together."""

    @property
    def is_testable(self) -> bool:
        """Whether units and questions suffice for a verdict about the kind of pages."""
        return min(self.effective_units, self.effective_questions) >= FEWEST_UNITS

    @property
    def leans(self) -> Literal["a", "b", ""]:
        """The group that the new engine favours more than the old one, by the whole interval.

        Empty if the interval contains neutral.
        """
        if self.low > self.neutral:
            return "a"
        return "b" if self.high < self.neutral else ""

    @property
    def kind(self) -> CitationChangeKind:
        """The verdict: it differs if the interval and the corrected p both say so."""
        if self.value == self.neutral and self.error == 0:
            return "identical"
        is_shown = self.is_testable and bool(self.leans) and self.p_corrected < ALPHA
        return "differs" if is_shown else "inconclusive"

    @property
    def side(self) -> str:
        """Name of the group that the new engine favours more than the old; empty for neither."""
        return {"a": self.a, "b": self.b}.get(self.leans, "")

    @property
    def detectable(self) -> float:
        """Smallest true difference that these answers would show four times in five.

        It is in points, or a ratio above 1; NaN with too few units or questions.
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
    """Measure of similarity, as `ranktilt.measures.citations.stability` defines it."""
    value: float
    """Similarity of an answer of one engine and one of the other, 0 to 1."""
    low: float
    """Lower end of the 95 % interval over queries."""
    high: float
    """Upper end of the 95 % interval over queries."""
    within_new: float
    """Similarity of two answers of the new engine to one query; NaN if it answered each once."""
    within_old: float
    """Similarity of two answers of the old engine to one query; NaN if it answered each once."""
    queries: int
    """Number of queries to which either engine cites a page."""


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
    """The change of each question for each pair of groups.

    The primary question, which decides the verdict, comes first for every pair.
    """
    overlaps: tuple[CitationOverlap, ...]
    """How alike both engines cite pages, and domains."""
    unit: str
    """Unit at which labels are constant: ``domain``, ``page``, or a column."""
    queries: int
    """Number of queries that both engines answered."""
    correction: str
    """How p-values are corrected for many tests: ``holm`` or ``bonferroni``."""
    notes: tuple[Coded[Note], ...] = ()
    """Notes for the reader; those that cast doubt on the verdict come first."""
    spec: dict[str, Any] = field(default_factory=dict)
    """Settings, and where each audit comes from."""

    @property
    def primary(self) -> tuple[CitationChange, ...]:
        """Changes of the primary question: one for each pair."""
        if not self.changes:
            return ()
        first = self.changes[0].question
        return tuple(change for change in self.changes if change.question == first)
