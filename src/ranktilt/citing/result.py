"""The outcome of an audit of citations: data only.

Its words are in `reporting/sentences/citing`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Literal

import numpy as np

from ranktilt.auditing.comparison.options import ComparisonOptions
from ranktilt.auditing.effects import ALPHA
from ranktilt.auditing.query_groups.result import (
    GroupDifference,
    QueryGroup,
    RestDifference,
    TiltVariance,
)
from ranktilt.citing.comparison import AuditedEngine, compare_engines
from ranktilt.citing.comparison_result import CitationComparison
from ranktilt.citing.infer import FEWEST_UNITS, Over
from ranktilt.citing.kept_pages import KeptPages
from ranktilt.citing.prepare import CitationCounts
from ranktilt.citing.questions import QuestionKey
from ranktilt.citing.unit import Unit
from ranktilt.data.artifact import Coded, Result
from ranktilt.data.notes.base import Note
from ranktilt.errors import UserError
from ranktilt.measures.citations.base import Scale
from ranktilt.measures.citations.funnel import Term
from ranktilt.statistics.correction import detectable_effect

Stage = Literal["retrieved", "consulted", "cited", "cited without being retrieved"]


@dataclass(frozen=True, kw_only=True)
class UnitShare:
    """A unit of a side, such as a domain, and the ratio without it."""

    name: str
    share: float
    """Its part of the side's pages, 0 to 1."""
    value_without: float
    """The effect's value where the unit's pages are left out."""


@dataclass(frozen=True, kw_only=True)
class TheseUnits:
    """The same effect for further questions about the same domains: nothing about their kind."""

    low: float
    high: float
    score_low: float
    score_high: float
    """Ends by the score form, below ten citations on a side; NaN from ten on."""
    thinner: str
    """The side with fewer effective units."""
    largest: tuple[UnitShare, ...]
    """The two largest units of that side."""
    exchange_p_within_sizes: float
    """p of labels that are exchanged between units of about the same size alone."""


@dataclass(frozen=True, kw_only=True)
class ObservedCitations:
    """An effect by the labels as they are, beside the one that is corrected for their errors."""

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
    a: str
    b: str
    value: float
    """A ratio a / b, or group a's part in percent."""
    value_a: float
    value_b: float
    """Rates from 0 to 1, or parts in percent."""
    scale: Scale
    neutral: float
    """Value that favours neither; NaN where that is unknown, so that nothing is tested."""
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
    effective_units: float
    effective_questions: float
    questions: int
    """Queries with pages of either group."""
    citations_a: int
    citations_b: int
    family_size: int
    """Tests that are corrected together."""
    these_units: TheseUnits | None = None
    """For the primary question, where the kind stays open."""
    observed: ObservedCitations | None = None
    """The effect by the labels as they are, where it is corrected for their errors."""

    @property
    def is_testable(self) -> bool:
        """Whether enough units and questions speak for a verdict about the kind of pages."""
        return (
            self.effective_units >= FEWEST_UNITS
            and self.effective_questions >= FEWEST_UNITS
            and not np.isnan(self.neutral)
        )

    @property
    def leans(self) -> Literal["a", "b", ""]:
        """The side of neutral on which the whole interval lies; empty for neither."""
        if self.low > self.neutral:
            return "a"
        return "b" if self.high < self.neutral else ""

    def half_widths(self, margin: float) -> tuple[float, float]:
        """Return the values between which an effect counts as level.

        Of a share, `margin` points around neutral; of a ratio, `margin` percent more or less.
        """
        if self.scale == "share":
            return self.neutral - margin, self.neutral + margin
        factor = 1 + margin / 100
        return self.neutral / factor, self.neutral * factor

    def verdict(self, margin: float) -> Literal["a", "b", "level", "inconclusive"]:
        """Return who is favoured, by the rule of every command."""
        if not self.is_testable or np.isnan(self.low):
            return "inconclusive"
        if self.leans and self.p_corrected < ALPHA:
            return self.leans
        low, high = self.half_widths(margin)
        is_within = low <= self.low and self.high <= high
        return "level" if is_within else "inconclusive"

    @property
    def detectable(self) -> float:
        """Smallest effect found four times in five: points of a share, or a ratio above 1."""
        if not self.is_testable:
            return np.nan
        freedom = min(self.effective_units, self.effective_questions)
        size = detectable_effect(self.error, self.family_size, freedom)
        return float(np.exp(size)) if self.scale == "log ratio" else size

    def side(self, which: str) -> str:
        """Name of the group ``a`` or ``b``; empty for neither."""
        return {"a": self.a, "b": self.b}.get(which, "")

    def derived(self) -> dict[str, Any]:
        """Return numbers that follow from the fields."""
        return {"detectable": self.detectable}


@dataclass(frozen=True, kw_only=True)
class StageShare:
    """A group's part of the pages of one stage of the funnel, in percent."""

    stage: Stage
    group: str
    value: float
    low: float
    high: float
    over: Over
    """What the interval is over."""
    pages: int


@dataclass(frozen=True, kw_only=True)
class FunnelPart:
    """A part of the difference between group a's share of citations and of what was retrieved."""

    name: Term
    a: str
    b: str
    value: float
    """In points."""
    low: float
    high: float
    over: Over
    p: float


@dataclass(frozen=True, kw_only=True)
class RankRate:
    """How often the pages at a rank are cited, by group."""

    first: int
    last: int
    """Ranks from first to last; both 0 for pages that were consulted and not retrieved."""
    group: str
    value: float
    """From 0 to 1."""
    low: float
    high: float
    over: Over
    pages: int


@dataclass(frozen=True, kw_only=True)
class DomainCitations:
    """The citations of one domain, over all answers."""

    domain: str
    group: str
    """Label of most of its pages."""
    citations: int
    consulted: int
    retrieved: int


@dataclass(frozen=True, kw_only=True)
class Steadiness:
    """How alike repeats of one query are, and how many domains citations are spread over."""

    repeats: int
    """Pairs of repeats that are compared; 0 where no query was asked twice."""
    jaccard: float
    overlap: float
    """Mean Jaccard similarity and rank-biased overlap of two repeats, 0 to 1."""
    effective_domains: float
    largest_share: float
    """1 / Σ p² over the domains of citations, and the part of the largest one, 0 to 1."""


@dataclass(frozen=True, kw_only=True)
class CitationGroupAnswer:
    """An answer on the queries of one group alone."""

    group: str
    """Name of the group of queries."""
    effect: CitationEffect
    """The answer; its p is corrected for all groups."""


@dataclass(frozen=True, kw_only=True)
class CitationBreakdown:
    """Every answer of an audit of citations by group of queries."""

    column: str
    """Column of the queries, with its parts: ``topic``, ``year:3``."""
    groups: tuple[QueryGroup, ...]
    """The groups, in order."""
    without_group: int
    """Queries that have no group."""
    answers: tuple[CitationGroupAnswer, ...]
    """Answers by group; a group that cannot answer a question has none."""
    differences: tuple[GroupDifference, ...]
    """Whether the groups differ, for each question and pair."""
    against_rest: tuple[RestDifference, ...]
    """Each group against all others."""
    variances: tuple[TiltVariance, ...]
    """What queries differ in beyond noise, for the primary question of each pair."""

    def answers_to(self, difference: GroupDifference) -> list[CitationGroupAnswer]:
        """Return the answers that a test compares, in the order of the groups."""
        return [
            answer
            for answer in self.answers
            if answer.effect.question == difference.question
            and (answer.effect.a, answer.effect.b) == (difference.a, difference.b)
        ]

    def rest_of(self, answer: CitationGroupAnswer) -> RestDifference | None:
        """Return how a group's answer differs from that of all other queries."""
        effect = answer.effect
        for rest in self.against_rest:
            is_question = (rest.question, rest.a, rest.b) == (effect.question, effect.a, effect.b)
            if is_question and rest.group == answer.group:
                return rest
        return None


@dataclass(frozen=True, kw_only=True, eq=False)
class CitationAudit(
    Result,
    format="ranktilt-citations",
    version=1,
    noun="an audit of citations",
    command="ranktilt cite",
):
    """Whom an engine's answers cite, of what they consulted and what was retrieved."""

    effects: tuple[CitationEffect, ...]
    """The primary question of every pair first, then the others."""
    stages: tuple[StageShare, ...]
    funnel: tuple[FunnelPart, ...]
    rank_rates: tuple[RankRate, ...]
    domains: tuple[DomainCitations, ...]
    """The most cited domains first."""
    steadiness: Steadiness
    counts: CitationCounts
    unit: Unit
    groups: tuple[str, ...]
    margin: float
    """Percent of a ratio, or points of a share, that count as level."""
    correction: str
    pages: Coded[KeptPages]
    """The answers and their pages, for comparisons and explanations."""
    notes: tuple[Coded[Note], ...] = ()
    spec: dict[str, Any] = field(default_factory=dict)
    by_query: CitationBreakdown | None = None
    """Every answer by group of queries, and whether the groups differ; None if not asked for."""

    def compared_with(self, old: Result, options: ComparisonOptions) -> CitationComparison:
        """Return how this engine differs from another one on the same questions.

        `ranktilt.compare` calls it.
        """
        if not isinstance(old, CitationAudit):
            raise UserError("expected two audits of citations: NEW.json OLD.json")
        return compare_engines(self._engine(), old._engine(), options)

    def _engine(self) -> AuditedEngine:
        file = self.loaded_from
        sources = [file] if file else self.spec.get("files", [])
        stem = PurePath(str(sources[0])).name.partition(".")[0] if sources else ""
        name = str(self.spec.get("engine") or stem)
        return AuditedEngine(
            name=name,
            pages=self.pages,
            unit=self.unit.name,
            pairs=tuple((effect.a, effect.b) for effect in self.primary),
            notes=self.notes,
            spec={**self.spec, "file": file},
        )

    @property
    def primary(self) -> tuple[CitationEffect, ...]:
        """Effects of the primary question, one a pair."""
        first = self.effects[0].question
        return tuple(effect for effect in self.effects if effect.question == first)
