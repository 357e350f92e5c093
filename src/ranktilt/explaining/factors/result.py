"""Effects of the factors of a designed collection, as a result that can be saved.

In a *designed collection*, each document is written in several *versions*, which differ in
*factors*: properties with two levels, low (as it is) and high (changed). An *estimand* says how
high a version ranks, or whether it is cited. A *main effect* is that of one factor; two factors
*interact* if the effect of one depends on the level of the other. *Adoption* asks what an edit is
worth once other documents have it too.
"""

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
    """Definition of the value of one version, as a phrase that tables print."""


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
    """Whether the effect is reported.

    False if a check showed that the factor did not change the texts as it should. It is then in the
    regression, but not reported.
    """


@dataclass(frozen=True, kw_only=True)
class FactorEffect:
    """The effect of a factor, or the interaction of two factors (``length × words``)."""

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
    """Smallest effect that would be shown with 80 % power, given the number of tests."""
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
        """Whether this is the interaction of two factors, and not a main effect."""
        return " × " in self.effect

    def derived(self) -> dict[str, Any]:
        """Return values that a file holds besides the fields."""
        return {"is_shown": self.is_shown}


@dataclass(frozen=True, kw_only=True)
class SourceEffect:
    """The effect of a text being written by a model, with or without other factors."""

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
        How the effects were estimated: collection, design, rankers, versions.
    factors : tuple of DesignedFactor
        The factors of the design.
    rows : tuple of FactorEffect
        Main effects and two-factor interactions of every ranker and estimand.
    sources : tuple of SourceEffect
        The effect of the source with and without holding other factors constant; empty without a
        factor ``source``.
    adoptions : tuple of AdoptionEffect
        Change of exposure as more and more documents have an edit; empty if no shares were given.
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
        """Names of the rankers, in the order in which they were given."""
        return tuple(dict.fromkeys(row.ranker for row in self.rows))

    @property
    def runs(self) -> tuple[str, ...]:
        """Names of the rankers; results of all kinds have this property."""
        return self.rankers

    @property
    def estimands(self) -> tuple[str, ...]:
        """Names of the estimands; the first is ``rank gap`` or ``cited``."""
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
        """Return the effect of all properties of a model's text together, on the first estimand.

        None without a factor ``source``.
        """
        key = ranker, self.primary, TOGETHER
        for row in self.sources:
            if (row.ranker, row.estimand, row.question) == key:
                return row
        return None
