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
"""The factor of who wrote a text, and all in which a model's text may differ by itself."""
TOGETHER: Final = "together"
"""All factors in which a model's text may differ, high at once."""
ALONE: Final = "alone"
"""The source by itself, in the regression."""
HELD: Final = "others held"
"""The source, with the others held fixed at both levels."""
AS_IS: Final = "others as is"
"""The source, where all others are low."""
Question = Literal["together", "alone", "others held", "others as is"]
"""What an effect of the source leaves fixed."""


@dataclass(frozen=True, kw_only=True)
class EstimandUnit:
    """How the effects on one estimand are printed."""

    name: str
    """Name of the estimand."""
    unit: str
    """Unit of its effects."""
    digits: int
    """Decimals that are printed."""
    about: str
    """What a value of a version is."""


PRIMARY, HEAD_TO_HEAD = "rank gap", "head-to-head"
"""The estimand that comes first, and that of wins against other versions."""
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
            about="pairs of versions of one document that it wins minus those it loses",
        ),
        EstimandUnit(
            name="nDCG",
            unit="points",
            digits=2,
            about="what the version adds to its query's nDCG, out of 100",
        ),
    )
}
"""Estimands by name, in the order of the tables."""
_NOTHING = 1e-9
"""What rounding leaves of an effect of nothing, in ranks."""


@dataclass(frozen=True, kw_only=True)
class DesignedFactor:
    """A factor of the design, and its two levels."""

    name: str
    """Name of the factor."""
    low: str
    """What its low level is."""
    high: str
    """What its high level is."""
    analysed: bool = True
    """False where its check failed: it stays in the regression, and its effect is not reported."""


@dataclass(frozen=True, kw_only=True)
class FactorEffect:
    """The effect of a factor, or how one factor changes another's effect (``length × words``)."""

    ranker: str
    """Name of the ranker."""
    estimand: str
    """Name of the estimand, of `UNITS`."""
    effect: str
    """Name of the factor, or of both."""
    value: float
    """High less low: twice the coefficient of levels coded −1 and 1. Above 0 a version stands
    higher.
    """
    low: float
    """Lower end of the 95 % interval."""
    high: float
    """Upper end of the 95 % interval."""
    error: float
    """Standard error, clustered by query and document."""
    p: float
    """Level at which the interval first excludes 0, by a t-test with these errors."""
    p_corrected: float
    """The same, corrected over all rankers and effects of the estimand."""
    detectable: float
    """Smallest effect that the table would show with 80 % power."""
    queries: int
    """Number of queries."""
    origins: int
    """Number of different documents."""
    versions: int
    """Number of versions that were compared, query by query."""

    @property
    def is_shown(self) -> bool:
        """Whether corrected p < .05; its 95 % interval then excludes 0."""
        return self.p_corrected < ALPHA

    @property
    def is_idle(self) -> bool:
        """Whether the factor moves nothing, whatever the query."""
        return abs(self.value) + self.error < _NOTHING

    @property
    def interaction(self) -> bool:
        """Whether it is the effect of one factor on another's effect."""
        return " × " in self.effect

    def derived(self) -> dict[str, Any]:
        """Return what a file holds besides the fields."""
        return {"is_shown": self.is_shown}


@dataclass(frozen=True, kw_only=True)
class SourceEffect:
    """What a text by a model gains, with and without the other factors."""

    ranker: str
    """Name of the ranker."""
    estimand: str
    """Name of the estimand, of `UNITS`."""
    question: Question
    """``together``: all factors in which a model's text may differ, high at once. Of the source by
    itself: ``alone`` in the regression, with ``others held``, and where all ``others as is``.
    """
    factors: tuple[str, ...]
    """Factors that are high, against low."""
    value: float
    """The effect; above 0 the model's text stands higher."""
    low: float
    """Lower end of the 95 % interval."""
    high: float
    """Upper end of the 95 % interval."""


@dataclass(frozen=True, kw_only=True)
class AdoptionEffect:
    """Effect of an edit on exposure where a share of all others has it, against no edit at all."""

    ranker: str
    """Name of the ranker."""
    factor: str
    """Name of the factor, whose high level is the edit."""
    share: float
    """Share of the other documents that have the edit, 0 to 1."""
    edited: bool
    """Whether the document itself has the edit."""
    value: float
    """Points of exposure, ``100 / log2(1 + rank)``: 100 in the first place, 0 where it is not
    retrieved.
    """
    low: float
    """Lower end of the 95 % interval."""
    high: float
    """Upper end of the 95 % interval."""


@dataclass(frozen=True, eq=False, kw_only=True)
class FactorEffects(
    Result,
    format="ranktilt-factors",
    version=1,
    noun="effects of factors",
    command="ranktilt explain --by-factor",
):
    """The result of `factor_effects`; immutable.

    Parameters
    ----------
    spec : mapping
        How it was made: collection, design, rankers, versions.
    factors : tuple of DesignedFactor
        What was varied.
    rows : tuple of FactorEffect
        Main effects and two-factor interactions of every ranker and estimand.
    sources : tuple of SourceEffect
        The source's effect before and after holding the other factors; empty without a factor
        ``source``.
    adoptions : tuple of AdoptionEffect
        What edits do to exposure as more and more documents have them; empty without shares.
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
        """Estimands of the effects: ``rank gap`` first."""
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
