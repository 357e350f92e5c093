"""Effects of the factors of a designed collection, as one saved file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from ranktilt.auditing.effects import ALPHA
from ranktilt.data.artifact import Coded, Result
from ranktilt.data.notes.base import Note
from ranktilt.statistics.variation import Variation

SOURCE = "source"
"""Name of the factor that says who wrote a text: a person or a model."""
MODEL_TEXT = ("source", "length", "words", "fluency", "style")
"""Names of the factors in which a text differs when a model writes it freely."""
TOGETHER: Final = "together"
"""The effect of all factors in `MODEL_TEXT`, set high together."""
SOURCE_ALONE: Final = "alone"
"""The effect of the source in a regression that has no other factor."""
OTHERS_HELD: Final = "others held"
"""The effect of the source in the regression of all factors, as a mean over the others' levels."""
OTHERS_AS_IS: Final = "others as is"
"""The effect of the source in the same regression, where all other factors are low."""
Question = Literal["together", "alone", "others held", "others as is"]
"""How an effect of the source treats the other factors: one of the four constants above."""


@dataclass(frozen=True, kw_only=True)
class EstimandUnit:
    """How the effects on one estimand are printed."""

    name: str
    """Name of the estimand."""
    unit: str
    """Unit of its effects."""
    digits: int
    """Decimals that are printed."""
    meaning: str
    """What the value of one version is, as the tables print it."""


PRIMARY = "rank gap"
"""Name of the estimand that comes first in tables and sentences."""
CITED, CITED_FIRST = "cited", "cited first"
"""Names of the estimands of answers: whether a version is cited, and whether as the first one."""
HEAD_TO_HEAD = "head-to-head"
"""Name of the estimand that counts wins of a version against others of the same document."""
_RANK_UNITS = (
    EstimandUnit(
        name=PRIMARY, unit="ranks", digits=1, meaning="by how many ranks a version moves up"
    ),
    EstimandUnit(
        name="score gap",
        unit="sd",
        digits=3,
        meaning="its score, in standard deviations of the query's scores",
    ),
    EstimandUnit(
        name=HEAD_TO_HEAD,
        unit="%",
        digits=1,
        meaning="pairs of versions of one document that it wins minus those it loses",
    ),
    EstimandUnit(
        name="nDCG",
        unit="points",
        digits=2,
        meaning="what the version adds to its query's nDCG, out of 100",
    ),
)
_CITATION_UNITS = (
    EstimandUnit(
        name=CITED,
        unit="points",
        digits=1,
        meaning="how often answers that read a version cite it, in percent",
    ),
    EstimandUnit(
        name=CITED_FIRST,
        unit="points",
        digits=1,
        meaning="how often they cite it before all others, in percent",
    ),
)
UNITS = {unit.name: unit for unit in (*_RANK_UNITS, *_CITATION_UNITS)}
"""Estimands by name, in the order of the tables."""
_ROUNDING_ERROR = 1e-9
"""Size, in the unit of the estimand, below which an effect is an exact 0 plus rounding errors."""


@dataclass(frozen=True, kw_only=True)
class DesignedFactor:
    """A factor of the design, and its two levels."""

    name: str
    """Name of the factor."""
    low: str
    """Description of its low level."""
    high: str
    """Description of its high level."""
    analysed: bool = True
    """Whether its effect is reported.

    False if the check of the texts failed; the factor is then in the regression all the same.
    """


@dataclass(frozen=True, kw_only=True)
class FactorEffect:
    """The effect of a factor, or how one factor changes another's effect (``length × words``)."""

    ranker: str
    """Name of the ranker."""
    estimand: str
    """Name of the estimand, of `UNITS`."""
    effect: str
    """Name of the factor, or the names of two factors with ``×`` between them.

    Pairs of factors that the design cannot separate are joined by ``=``.
    """
    value: float
    """Mean at the high level minus mean at the low level; above 0, the high level ranks higher.

    It is twice the regression's coefficient, because the levels are coded −1 and 1. For two
    factors, it is half the difference between the effects of one at both levels of the other.
    """
    low: float
    """Lower end of the 95 % interval."""
    high: float
    """Upper end of the 95 % interval."""
    error: float
    """Standard error, clustered by query and document."""
    p: float
    """P value of a t test of the effect against 0, with the clustered standard error.

    NaN with fewer than 10 queries or documents.
    """
    p_corrected: float
    """The p value, corrected over all rankers and effects of the estimand."""
    detectable: float
    """Smallest effect that the table would show with 80 % power."""
    queries: int
    """Number of queries."""
    origins: int
    """Number of different documents."""
    versions: int
    """Number of versions that were compared, each counted once for every query."""

    @property
    def is_shown(self) -> bool:
        """Whether corrected p < .05; its 95 % interval then excludes 0."""
        return self.p_corrected < ALPHA

    @property
    def is_idle(self) -> bool:
        """Whether the factor has no effect under any query: value and error are both 0."""
        return abs(self.value) + self.error < _ROUNDING_ERROR

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
    """How the other factors are treated.

    ``together``: all factors in which a model's text may differ are high. The other three are
    effects of the source: ``alone`` in a regression without other factors, ``others held`` in the
    regression of all factors, and ``others as is`` in that regression where all others are low.
    """
    factors: tuple[str, ...]
    """Names of the factors whose high level is compared with their low level."""
    value: float
    """The effect; above 0, the model's text ranks higher."""
    low: float
    """Lower end of the 95 % interval."""
    high: float
    """Upper end of the 95 % interval."""


@dataclass(frozen=True, kw_only=True)
class AdoptionEffect:
    """The exposure that a document gains or loses once some of the documents have an edit.

    It is compared with a collection in which no document has the edit.
    """

    ranker: str
    """Name of the ranker."""
    factor: str
    """Name of the factor, whose high level is the edit."""
    share: float
    """Share of the other documents that have the edit, 0 to 1."""
    edited: bool
    """Whether the document itself has the edit."""
    value: float
    """Change of the document's exposure, in points.

    Exposure is ``100 / log2(1 + rank)``: 100 at the first rank, 0 if the document is not retrieved.
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
        For each ranker by name, the number of lists in which a factor could have moved a document.
    """

    spec: Mapping[str, Any]
    factors: tuple[DesignedFactor, ...]
    rows: tuple[FactorEffect, ...]
    sources: tuple[SourceEffect, ...] = ()
    adoptions: tuple[AdoptionEffect, ...] = ()
    # `Coded`: a file has the kind of each note beside its fields, see `data/notes/`.
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
        """Estimands of the effects: ``rank gap``, or ``cited``, first."""
        return tuple(dict.fromkeys(row.estimand for row in self.rows))

    @property
    def of_citations(self) -> bool:
        """Whether the effects are on what answers cite, and not on ranks."""
        return CITED in self.estimands

    @property
    def primary(self) -> str:
        """Name of the estimand that comes first in tables and sentences."""
        return CITED if self.of_citations else PRIMARY

    def of(self, estimand: str, ranker: str | None = None) -> tuple[FactorEffect, ...]:
        """Return the effects on one estimand, of one ranker or all."""
        return tuple(
            row for row in self.rows if row.estimand == estimand and ranker in (None, row.ranker)
        )

    def together(self, ranker: str) -> SourceEffect | None:
        """Return what a model's text gains, first estimand; None without a factor ``source``."""
        key = ranker, self.primary, TOGETHER
        for row in self.sources:
            if (row.ranker, row.estimand, row.question) == key:
                return row
        return None
