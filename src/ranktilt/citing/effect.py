"""The effect of an audit of citations: one question about two groups of pages, answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ranktilt.auditing.effects import ALPHA
from ranktilt.citing.inference.infer import FEWEST_UNITS
from ranktilt.citing.questions import QuestionKey
from ranktilt.measures.citations.base import Scale
from ranktilt.statistics.correction import detectable_effect


@dataclass(frozen=True, kw_only=True)
class UnitShare:
    """A unit of a group, such as a domain, and the effect without it."""

    name: str
    """Name of the unit."""
    share: float
    """Its part of the group's pages, 0 to 1."""
    value_without: float
    """The effect's value where the unit's pages are left out."""


@dataclass(frozen=True, kw_only=True)
class TheseUnits:
    """The same effect for further questions about the same units: nothing about their kind.

    With fewer than ten units in a group, such as three domains of AI pages, an audit cannot say
    whether *AI pages* are favoured. It can say whether *these three domains* are.
    """

    low: float
    """Lower end of the 95 % interval over questions, in the unit of the effect's value."""
    high: float
    """Upper end of the 95 % interval over questions."""
    score_low: float
    """Lower end by the score form, below ten citations of a group; NaN from ten on."""
    score_high: float
    """Upper end by the score form, below ten citations of a group; NaN from ten on."""
    thinner: str
    """The group with fewer effective units."""
    largest: tuple[UnitShare, ...]
    """The two largest units of that group."""
    exchange_p_within_sizes: float
    """p of labels that are exchanged between units of about the same size only."""


@dataclass(frozen=True, kw_only=True)
class ObservedCitations:
    """An effect by the labels as they are, where the effect is corrected for their errors.

    The fields mean what those of `CitationEffect` mean.
    """

    value: float
    value_a: float
    value_b: float
    neutral: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class CitationEffect:
    """One question about two groups of pages: how much more a is cited than b."""

    question: QuestionKey
    """Key of the question in `QUESTIONS`."""
    a: str
    """Group whose citations a value above neutral favours."""
    b: str
    """Group that a is compared with."""
    value: float
    """A ratio a / b, or group a's part in percent; NaN where undefined."""
    value_a: float
    """Group a's rate from 0 to 1, or its part in percent."""
    value_b: float
    """Group b's rate from 0 to 1, or its part in percent."""
    scale: Scale
    """``log ratio`` where the value is a ratio, ``share`` where it is in percent."""
    neutral: float
    """Value that favours neither; NaN where that is unknown, so that nothing is tested."""
    low: float
    """Lower end of the 95 % interval over other questions and units; NaN where undefined."""
    high: float
    """Upper end of the 95 % interval."""
    error: float
    """Standard error on `scale`."""
    p: float
    """The larger of `exchange_p` and `two_way_p`; NaN where nothing is tested."""
    p_corrected: float
    """`p` corrected for the number of tests in `family_size`."""
    exchange_p: float
    """p by labels that are exchanged between units."""
    two_way_p: float
    """p of the t test with the error over questions and units."""
    effective_units: float
    """Effective number of units of the group that has fewer."""
    effective_questions: float
    """Effective number of queries."""
    questions: int
    """Queries with pages of either group."""
    citations_a: int
    """Citations of group a."""
    citations_b: int
    """Citations of group b."""
    family_size: int
    """Tests that are corrected together."""
    these_units: TheseUnits | None = None
    """For the primary question, where units are too few to say something about their kind."""
    observed: ObservedCitations | None = None
    """The effect by the labels as they are, where this one is corrected for their errors."""

    @property
    def is_testable(self) -> bool:
        """Whether units and questions suffice for a verdict about the kind of pages."""
        return (
            self.effective_units >= FEWEST_UNITS
            and self.effective_questions >= FEWEST_UNITS
            and not np.isnan(self.neutral)
        )

    @property
    def leans(self) -> Literal["a", "b", ""]:
        """The group that the whole interval favours; empty where it holds neutral."""
        if self.low > self.neutral:
            return "a"
        return "b" if self.high < self.neutral else ""

    def half_widths(self, margin: float) -> tuple[float, float]:
        """Return the lowest and the highest value that count as level.

        For a share, neutral ± `margin` points. For a ratio, `margin` percent more or less: neutral
        times, or divided by, 1 + margin / 100.
        """
        if self.scale == "share":
            return self.neutral - margin, self.neutral + margin
        factor = 1 + margin / 100
        return self.neutral / factor, self.neutral * factor

    def verdict(self, margin: float) -> Literal["a", "b", "level", "inconclusive"]:
        """Return who is favoured, by the rule of every command.

        A group is favoured where interval and corrected p agree. An effect is level where its whole
        interval is within the margin. All else is inconclusive.
        """
        if not self.is_testable or np.isnan(self.low):
            return "inconclusive"
        if self.leans and self.p_corrected < ALPHA:
            return self.leans
        low, high = self.half_widths(margin)
        is_within = low <= self.low and self.high <= high
        return "level" if is_within else "inconclusive"

    @property
    def detectable(self) -> float:
        """Smallest effect found four times in five: points of a share, or a ratio above 1.

        NaN where nothing is tested.
        """
        if not self.is_testable:
            return np.nan
        freedom = min(self.effective_units, self.effective_questions)
        size = detectable_effect(self.error, self.family_size, freedom)
        return float(np.exp(size)) if self.scale == "log ratio" else size

    def side(self, which: str) -> str:
        """Name of the group ``a`` or ``b``; empty for any other verdict."""
        return {"a": self.a, "b": self.b}.get(which, "")

    def derived(self) -> dict[str, Any]:
        """Return numbers that follow from the fields, for the result's file."""
        return {"detectable": self.detectable}
