"""The outcome of an audit of citations: data only.

Its words are in `reporting/sentences/citing/cite`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from ranktilt.auditing.comparison.options import ComparisonOptions
from ranktilt.citing.comparison.audited_engine import AuditedEngine
from ranktilt.citing.comparison.compare import compare_engines
from ranktilt.citing.comparison.result import CitationComparison
from ranktilt.citing.counts import CitationCounts
from ranktilt.citing.effect import CitationEffect
from ranktilt.citing.pages.kept_pages import KeptPages
from ranktilt.citing.query_breakdown import CitationBreakdown
from ranktilt.citing.stages import FunnelPart, RankRate, StageShare
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
    """Label of its pages; ``several`` where they have more than one."""
    citations: int
    """Citations of its pages, each page once for each answer."""
    consulted: int
    """Pages of it that answers consulted; 0 where unknown."""
    retrieved: int
    """Pages of it in retrieved lists, once for each answer to the query; 0 where unknown."""


@dataclass(frozen=True, kw_only=True)
class Steadiness:
    """How alike repeats of one query are, and over how many domains citations are spread.

    Repeats are several answers of the engine to the same query.
    """

    repeats: int
    """Pairs of repeats that are compared; 0 where no query was asked twice."""
    jaccard: float
    """Mean Jaccard similarity of the pages that two repeats cite, 0 to 1; NaN without repeats."""
    overlap: float
    """Mean rank-biased overlap of what two repeats cite, 0 to 1; NaN without repeats."""
    effective_domains: float
    """1 / Σ p² over the domains of citations: as many equally cited ones would be as concentrated.

    NaN without citations.
    """
    largest_share: float
    """Part of the citations that goes to the most cited domain, 0 to 1."""


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
    """Each group's share of what was retrieved, consulted and cited, pair by pair."""
    funnel: tuple[FunnelPart, ...]
    """Where a share of citations comes from; empty where no retrieved list is known."""
    rank_rates: tuple[RankRate, ...]
    """Citation rates by rank and group; empty where no retrieved list is known."""
    domains: tuple[DomainCitations, ...]
    """The most cited domains first."""
    steadiness: Steadiness
    """How alike repeats are, and how concentrated citations are."""
    counts: CitationCounts
    """How much of the answers can be used."""
    unit: Unit
    """At which unit labels are constant."""
    groups: tuple[str, ...]
    """Groups of the labelled pages, the most cited first."""
    margin: float
    """Percent of a ratio, or points of a share, that count as level."""
    correction: str
    """How p-values are corrected for many tests: ``holm`` or ``bonferroni``."""
    pages: Coded[KeptPages]
    """The answers and their pages, for comparisons and explanations."""
    notes: tuple[Coded[Note], ...] = ()
    """What a reader should know, what endangers the verdict first."""
    spec: dict[str, Any] = field(default_factory=dict)
    """Settings and files that make this audit again."""
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
        """Return what a comparison needs of this audit.

        The engine is called as the answers call it, or else by the name of the file.
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
