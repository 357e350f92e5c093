"""The outcome of an audit of citations: data only.

An *answer* is what an engine wrote for a query, and cites pages. Pages were *retrieved* for the
query, *consulted* (read by the engine before it answered), and cited. Each page has a *label*, its
*group*; queries may have groups too, such as topics. An *effect* is the value of a question about
two groups of pages. The words about the outcome are in `reporting/sentences/citing/cite`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from ranktilt.auditing.comparison.options import ComparisonOptions
from ranktilt.auditing.query_groups.result import (
    GroupDifference,
    QueryGroup,
    RestDifference,
    TiltVariance,
)
from ranktilt.citing.comparison.audited_engine import AuditedEngine
from ranktilt.citing.comparison.compare import compare_engines
from ranktilt.citing.comparison.result import CitationComparison
from ranktilt.citing.counts import CitationCounts
from ranktilt.citing.effect import CitationEffect, FunnelPart, RankRate, StageShare
from ranktilt.citing.pages.kept_pages import KeptPages
from ranktilt.citing.unit import Unit
from ranktilt.data.artifact import Coded, Result
from ranktilt.data.notes.base import Note
from ranktilt.errors import UserError


@dataclass(frozen=True, kw_only=True)
class DomainCitations:
    """The citations of one domain, over all answers."""

    domain: str
    """The domain, such as ``example.org``."""
    group: str
    """Label of its pages; ``several`` if they have more than one."""
    citations: int
    """Number of citations of its pages, each page once for each answer."""
    consulted: int
    """Number of its pages that answers consulted, once for each answer; 0 where unknown."""
    retrieved: int
    """Number of its pages in retrieved lists, once for each answer; 0 where unknown."""


@dataclass(frozen=True, kw_only=True)
class Steadiness:
    """How alike repeats of one query are, and over how many domains citations are spread.

    Repeats are several answers of the engine to the same query.
    """

    repeats: int
    """Number of pairs of repeats that are compared; 0 if no query was asked twice."""
    jaccard: float
    """Mean Jaccard similarity of the pages that two repeats cite, 0 to 1; NaN without repeats."""
    overlap: float
    """Mean rank-biased overlap of what two repeats cite, 0 to 1; NaN without repeats."""
    effective_domains: float
    """Effective number of domains: 1 / Σ p², with p each domain's part of the citations.

    So many equally cited domains would be as concentrated. NaN without citations.
    """
    largest_share: float
    """Part of the citations that goes to the most cited domain, 0 to 1."""


@dataclass(frozen=True, kw_only=True)
class CitationGroupAnswer:
    """An effect on the queries of one group alone."""

    group: str
    """Name of the group of queries."""
    effect: CitationEffect
    """The effect; its p is corrected over all groups."""


@dataclass(frozen=True, kw_only=True)
class CitationBreakdown:
    """Every effect of an audit of citations by group of queries, such as a topic."""

    column: str
    """Column of the queries that groups them, with its number of bins: ``topic``, ``year:3``."""
    groups: tuple[QueryGroup, ...]
    """The groups with their numbers of queries, in order."""
    without_group: int
    """Number of queries that have no group."""
    answers: tuple[CitationGroupAnswer, ...]
    """Effects by group; none where the queries of a group cannot answer a question."""
    differences: tuple[GroupDifference, ...]
    """Whether the groups differ, for each question and pair of groups of pages."""
    against_rest: tuple[RestDifference, ...]
    """How each group differs from all other queries."""
    variances: tuple[TiltVariance, ...]
    """How far single queries differ beyond noise, for the primary question of each pair."""

    def answers_to(self, difference: GroupDifference) -> list[CitationGroupAnswer]:
        """Return the effects that a test of differences compares, in the order of the groups."""
        return [
            answer
            for answer in self.answers
            if answer.effect.question == difference.question
            and (answer.effect.a, answer.effect.b) == (difference.a, difference.b)
        ]

    def rest_of(self, answer: CitationGroupAnswer) -> RestDifference | None:
        """Return how a group's effect differs from that of all other queries, if tested."""
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
    """Whom an engine's answers cite, among the pages that they could have cited."""

    effects: tuple[CitationEffect, ...]
    """The value of each question for each pair of groups.

    The primary question, which decides the verdict, comes first for every pair.
    """
    stages: tuple[StageShare, ...]
    """Each group's share of what was retrieved, consulted and cited, pair by pair."""
    funnel: tuple[FunnelPart, ...]
    """Parts of the difference between a group's share of citations and of retrieved pages.

    Empty if no retrieved list is known.
    """
    rank_rates: tuple[RankRate, ...]
    """Citation rates by rank and group; empty where no retrieved list is known."""
    domains: tuple[DomainCitations, ...]
    """The most cited domains first."""
    steadiness: Steadiness
    """How alike several answers to one query are, and how concentrated citations are."""
    counts: CitationCounts
    """How much of the answers can be used."""
    unit: Unit
    """Unit at which labels are constant, such as the domain; errors are clustered by it."""
    groups: tuple[str, ...]
    """Groups of the labelled pages, the most cited first."""
    margin: float
    """Largest difference, in percent of a ratio or points of a share, that counts as level."""
    correction: str
    """How p-values are corrected for many tests: ``holm`` or ``bonferroni``."""
    pages: Coded[KeptPages]
    """The answers and their pages, for comparisons and explanations."""
    notes: tuple[Coded[Note], ...] = ()
    """Notes for the reader; those that cast doubt on the verdict come first."""
    spec: dict[str, Any] = field(default_factory=dict)
    """Settings and files from which the audit can be repeated."""
    by_query: CitationBreakdown | None = None
    """Every effect by group of queries, and whether the groups differ; None if not asked for."""

    def compared_with(self, old: Result, options: ComparisonOptions) -> CitationComparison:
        """Return how this engine differs from another one on the same queries.

        `ranktilt.compare` calls this method. `options` are resamples, seed, correction, and the
        percentage of queries that may be left out.
        """
        if not isinstance(old, CitationAudit):
            raise UserError("expected two audits of citations: NEW.json OLD.json")
        return compare_engines(self._audited_engine(), old._audited_engine(), options)

    def _audited_engine(self) -> AuditedEngine:
        """Return the part of this audit that a comparison needs.

        The engine has the name that the answers give it, or else that of their file.
        """
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
    def of_documents(self) -> bool:
        """Whether pages are documents of a collection, without domains."""
        return bool(self.spec.get("of_documents"))

    @property
    def primary(self) -> tuple[CitationEffect, ...]:
        """Effects of the primary question, which decides the verdict: one for each pair."""
        first = self.effects[0].question
        return tuple(effect for effect in self.effects if effect.question == first)
