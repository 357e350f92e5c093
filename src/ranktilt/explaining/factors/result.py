"""Effects of the factors of a designed collection, as one saved file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from ranktilt.auditing.effects import ALPHA
from ranktilt.data.artifact import Coded, Result
from ranktilt.data.notes.base import Note
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


@dataclass(frozen=True, kw_only=True)
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
        EstimandUnit(
            name=PRIMARY, unit="ranks", digits=1, about="by how many ranks a version moves up"
        ),
        EstimandUnit(
            name="score gap",
            unit="sd",
            digits=3,
            about="its score, in standard deviations of the query's scores",
        ),
        EstimandUnit(
            name=HEAD_TO_HEAD,
            unit="%",
            digits=1,
            about="pairs of versions of one document that it wins less those that it loses",
        ),
        EstimandUnit(
            name="nDCG",
            unit="points",
            digits=2,
            about="what the version adds to its query's nDCG, of 100",
        ),
    )
}
_NOTHING = 1e-9
"""What rounding leaves of an effect of nothing, in ranks."""


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
    def is_shown(self) -> bool:
        """Whether corrected p < .05; its 95 % interval then excludes 0."""
        return self.p_corrected < ALPHA

    @property
    def is_idle(self) -> bool:
        """Whether it moves nothing, whatever the query."""
        return abs(self.value) + self.error < _NOTHING

    @property
    def interaction(self) -> bool:
        return " × " in self.effect

    def derived(self) -> dict[str, Any]:
        return {"is_shown": self.is_shown}


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
    notes : tuple of Note
        What a reader should know.
    variations : mapping of str to Variation
        In how many lists of each ranker a factor could have moved a document.
    """

    spec: Mapping[str, Any]
    factors: tuple[DesignedFactor, ...]
    rows: tuple[FactorEffect, ...]
    sources: tuple[SourceEffect, ...] = ()
    adoptions: tuple[AdoptionEffect, ...] = ()
    notes: tuple[Coded[Note], ...] = ()
    variations: Mapping[str, Variation] = field(default_factory=dict)

    @property
    def rankers(self) -> tuple[str, ...]:
        """Names, in the order in which they were given."""
        return tuple(dict.fromkeys(row.ranker for row in self.rows))

    @property
    def runs(self) -> tuple[str, ...]:
        """The rankers, as audits call them."""
        return self.rankers

    @property
    def estimands(self) -> tuple[str, ...]:
        """What effects are on: ``rank gap`` first."""
        return tuple(dict.fromkeys(row.estimand for row in self.rows))

    def of(self, estimand: str, ranker: str | None = None) -> tuple[FactorEffect, ...]:
        """Return the effects on one estimand, of one ranker or all."""
        return tuple(
            row for row in self.rows if row.estimand == estimand and ranker in (None, row.ranker)
        )

    def together(self, ranker: str) -> SourceEffect | None:
        """Return what a model's text gains in ranks; None without a factor ``source``."""
        key = ranker, PRIMARY, TOGETHER
        for row in self.sources:
            if (row.ranker, row.estimand, row.question) == key:
                return row
        return None
