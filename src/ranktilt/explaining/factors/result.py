"""Effects of the factors of a designed collection: rows, and the sentences about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from ranktilt.auditing.answer.findings import Finding, ranked
from ranktilt.auditing.effects import ALPHA
from ranktilt.data.artifact import Result
from ranktilt.errors import join_words
from ranktilt.measures.printing import signed
from ranktilt.statistics.variation import Variation

SOURCE, MODEL_TEXT = "source", ("source", "length", "words", "fluency", "style")
"""The factor that says who wrote a text, and those in which a model's text may differ from a
person's by itself.
"""
TOGETHER: Final = "together"
ALONE: Final = "alone"
HELD: Final = "others held"
AS_IS: Final = "others as is"
Question = Literal["together", "alone", "others held", "others as is"]


@dataclass(frozen=True)
class EstimandUnit:
    """How the effects on one estimand are printed."""

    name: str
    unit: str
    digits: int
    about: str
    """What a value of a version is."""


PRIMARY, HEAD_TO_HEAD = "rank gap", "head-to-head"
UNITS = {
    unit.name: unit
    for unit in (
        EstimandUnit(PRIMARY, "ranks", 1, "by how many ranks a version moves up"),
        EstimandUnit(
            "score gap", "sd", 3, "its score, in standard deviations of the query's scores"
        ),
        EstimandUnit(
            HEAD_TO_HEAD,
            "%",
            1,
            "pairs of versions of one document that it wins less those that it loses",
        ),
        EstimandUnit("nDCG", "points", 2, "what the version adds to its query's nDCG, of 100"),
    )
}
_NOTHING, _SMALL = 1e-9, 0.05
"""What rounding leaves of an effect of nothing, and what is printed as one, in ranks."""


@dataclass(frozen=True, kw_only=True)
class DesignedFactor:
    """A factor of the design, and what its two levels are."""

    name: str
    low: str
    high: str
    analysed: bool = True
    """False where its check failed: it stays in the regression, and its effect is not reported."""


@dataclass(frozen=True, kw_only=True)
class FactorEffect:
    """What a factor does, or how one factor changes what another does (``length × words``)."""

    ranker: str
    estimand: str
    effect: str
    value: float
    """High less low: twice the coefficient of levels coded −1 and 1. Above 0 a version stands
    higher.
    """
    low: float
    """95 % interval."""
    high: float
    error: float
    p: float
    """The level at which the interval first excludes 0: t by errors clustered by query and
    document.
    """
    p_corrected: float
    detectable: float
    """Smallest effect that the table would show with 80 % power."""
    queries: int
    origins: int
    versions: int
    """(query, document version) that were compared."""

    @property
    def shown(self) -> bool:
        """Whether corrected p < .05; its 95 % interval then excludes 0."""
        return self.p_corrected < ALPHA

    @property
    def interaction(self) -> bool:
        return " × " in self.effect

    def derived(self) -> dict[str, Any]:
        return {"shown": self.shown}


@dataclass(frozen=True, kw_only=True)
class SourceEffect:
    """What a text by a model gains: with what comes with it, and by itself."""

    ranker: str
    estimand: str
    question: Question
    """``together``: all factors in which a model's text may differ, high at once. Of the source by
    itself: ``alone`` in the regression, with ``others held``, and where all ``others as is``.
    """
    factors: tuple[str, ...]
    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class AdoptionEffect:
    """Effect of an edit on exposure where a share of all others has it, against no edit at all."""

    ranker: str
    factor: str
    share: float
    """Of the other documents, 0 to 1."""
    edited: bool
    """Whether the document itself has the edit."""
    value: float
    """Points of exposure, ``100 / log2(1 + rank)``: 100 in the first place, 0 where it is not
    retrieved.
    """
    low: float
    high: float


@dataclass(frozen=True, eq=False, kw_only=True)
class FactorEffects(
    Result,
    format="ranktilt-factors",
    version=1,
    noun="effects of factors",
    command="ranktilt explain --by-factor",
):
    """What `factor_effects` found; immutable.

    Parameters
    ----------
    spec : mapping
        How it was made: collection, design, rankers, versions.
    factors : tuple of DesignedFactor
        What was varied.
    rows : tuple of FactorEffect
        Main effects and two-factor interactions of every ranker and estimand.
    sources : tuple of SourceEffect
        The source before and after the other factors are held; empty without a factor ``source``.
    adoptions : tuple of AdoptionEffect
        What edits do to exposure as ever more documents have them; empty where no share was given.
    notes : tuple of str
        What a reader should know.
    variations : mapping of str to Variation
        In how many lists of each ranker a factor could have moved a document.
    """

    spec: Mapping[str, Any]
    factors: tuple[DesignedFactor, ...]
    rows: tuple[FactorEffect, ...]
    sources: tuple[SourceEffect, ...] = ()
    adoptions: tuple[AdoptionEffect, ...] = ()
    notes: tuple[str, ...] = ()
    variations: Mapping[str, Variation] = field(default_factory=dict)

    @property
    def rankers(self) -> tuple[str, ...]:
        """Names, in the order in which they were given."""
        return tuple(dict.fromkeys(row.ranker for row in self.rows))

    @property
    def estimands(self) -> tuple[str, ...]:
        """What effects are on: ``rank gap`` first."""
        return tuple(dict.fromkeys(row.estimand for row in self.rows))

    def of(self, estimand: str, ranker: str | None = None) -> tuple[FactorEffect, ...]:
        """Return the effects on one estimand, of one ranker or all."""
        return tuple(
            row for row in self.rows if row.estimand == estimand and ranker in (None, row.ranker)
        )

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What moves each ranker and what does not, the largest effect first."""
        return ranked(self._finding(ranker) for ranker in self.rankers)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What moves each ranker, and what does not."""
        return tuple(finding.sentence for finding in self.findings)

    @property
    def headline(self) -> str:
        """The sentence of the ranker with the largest effect."""
        return next(iter(self.sentences), "nothing was compared")

    def _finding(self, ranker: str) -> Finding:
        rows = self.of(PRIMARY, ranker)
        sizes = [abs(row.value) for row in rows if row.shown]
        sizes += [abs(row.value) for row in self._together(ranker) if row.low > 0 or row.high < 0]
        if sizes:
            size = max(sizes)
            return Finding(kind="favours", sentence=self._sentence(ranker), size=size, run=ranker)
        variation = self.variations.get(ranker)
        if variation is not None and not variation.enough:
            sentence = (
                f"{ranker}: nothing is shown: {variation.words}, so that no factor could move a "
                "document"
            )
            return Finding(kind="inconclusive", sentence=sentence, run=ranker)
        still = all(abs(row.value) + row.error < _NOTHING for row in rows)
        return Finding(
            kind="level" if still else "inconclusive", sentence=self._sentence(ranker), run=ranker
        )

    def _together(self, ranker: str) -> list[SourceEffect]:
        """Return what a model's text gains in ranks; none without a factor ``source``."""
        key = ranker, PRIMARY, TOGETHER
        return [row for row in self.sources if (row.ranker, row.estimand, row.question) == key]

    def _sentence(self, ranker: str) -> str:
        rows = self.of(PRIMARY, ranker)
        mains = sorted(
            (row for row in rows if not row.interaction), key=lambda row: -abs(row.value)
        )
        together = next(iter(self._together(ranker)), None)
        end = "".join(
            f"; {more}"
            for more in (", ".join(_interactions(rows)), self._beyond_ranks(ranker, mains))
            if more
        )
        if together is not None:
            return f"{_source_sentence(together, mains)}{end}"
        return f"{ranker}: {_movers(mains)}{end}"

    def _beyond_ranks(self, ranker: str, mains: Sequence[FactorEffect]) -> str:
        """Name factors that surely move no ranks, but decide which version comes first."""
        known = {row.effect for row in mains if row.shown}
        rows = [row for row in self.of(HEAD_TO_HEAD, ranker) if row.shown and not row.interaction]
        parts = [f"{row.effect} {_number(row)} %" for row in rows if row.effect not in known]
        return f"head-to-head shows more: {', '.join(parts)}" if parts else ""

    def derived(self) -> dict[str, Any]:
        """The headline and the sentences, for those who read the file."""
        return {"headline": self.headline, "sentences": self.sentences}


def _number(row: FactorEffect | SourceEffect) -> str:
    return f"{signed(row.value)} [{signed(row.low)}, {signed(row.high)}]"


def _source_sentence(together: SourceEffect, mains: Sequence[FactorEffect]) -> str:
    """Split the gap of model text.

    ``of x's +8.1 ranks for model text, +6.0 [4.1, 7.9] go with length, …``
    """
    parts = [row for row in mains if row.effect in together.factors and row.effect != SOURCE]
    names = [(row, row.effect) for row in parts]
    names += [(row, "source itself") for row in mains if row.effect == SOURCE]
    shares = [f"{_number(row)} with {name}" for row, name in names]
    if shares:
        first, name = names[0]
        shares[0] = f"{_number(first)} go with {name}"
    others = [row for row in mains if row.effect not in together.factors]
    end = f"; beside it, {_movers(others)}" if others else ""
    split = ", ".join(shares)
    if together.low <= 0 <= together.high:
        return (
            f"{together.ranker} shows no effect of model text ({_number(together)} ranks): "
            f"{split}{end}"
        )
    return f"of {together.ranker}'s {signed(together.value)} ranks for model text, {split}{end}"


def _movers(mains: Sequence[FactorEffect]) -> str:
    """Name the factors that move a version, those that show no effect, and idle ones."""
    unmoved = [row.effect for row in mains if abs(row.value) + row.error < _NOTHING]
    not_shown = [row for row in mains if not row.shown and row.effect not in unmoved]
    clauses = []
    if moving := [row for row in mains if row.shown]:
        first, *others = moving
        moves = [f"{row.effect} by {_number(row)}" for row in others]
        clauses.append(
            join_words([f"{first.effect} moves a text by {_number(first)} ranks", *moves])
        )
    if not_shown:
        clauses.append(_not_shown(not_shown))
    if unmoved:
        verb = "changes" if len(unmoved) == 1 else "change"
        clauses.append(f"{join_words(unmoved)} {verb} no rank")
    return "; ".join(clauses)


def _not_shown(rows: Sequence[FactorEffect]) -> str:
    detectable = max(row.detectable for row in rows)
    limit = f" (detectable: {detectable:.1f} ranks)" if detectable >= _SMALL else ""
    return f"no effect of {join_words([row.effect for row in rows], 'or')} is shown{limit}"


def _interactions(rows: Sequence[FactorEffect]) -> Iterator[str]:
    for row in rows:
        if row.interaction and row.shown:
            yield f"{row.effect} {_number(row)}"
