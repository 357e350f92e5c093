"""Notes on findings of probes: means, figures, tables and attribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ranktilt.data.notes.base import Count, Note

Decision = Literal["yes", "no", "undecided"]
"""Whether a condition holds; ``undecided`` where its limit lies in its interval."""


@dataclass(frozen=True, kw_only=True)
class NoTwinsToCompare(Note):
    """No other source has twins."""


@dataclass(frozen=True, kw_only=True)
class SourceMean(Note):
    """Mean of a property over a source's texts, if there are no twins to compare."""

    source: str
    mean: float
    unit: str
    is_per_document: bool = True
    """Whether each document was measured alone; otherwise each after its origin."""


@dataclass(frozen=True, kw_only=True)
class TermsKept(Note):
    """Share of a text's terms that its rewrite keeps; means over pairs of twins."""

    source: str
    reference: str
    pairs: int
    """Pairs whose reference has a term."""
    overlap: float
    """Share of the reference's terms that rewrites keep, in [0, 1]; NaN without pairs."""
    jaccard: float
    """Jaccard similarity of both texts' terms, in [0, 1]; NaN without pairs."""


@dataclass(frozen=True, kw_only=True)
class TwinsNear(Note):
    """Similarity of twins in an encoder's space, and whether the sources can be separated there."""

    source: str
    model: str
    pairs: int
    """Pairs with a vector on both sides."""
    median: float
    """Median cosine of twins, from −1 to 1."""
    above: float
    """Share of twins whose cosine is above `limit`, in [0, 1]."""
    limit: float
    other_pairs: int
    """Number of pairs of a text and the rewrite of another text."""
    other_median: float
    """Median cosine of these pairs; NaN without any."""
    auc: float
    """Area under the ROC curve for separating the sources, in [0, 1]; NaN if unknown."""


@dataclass(frozen=True, kw_only=True)
class DirectionsConcentrated(Note):
    """How much of the embeddings lies in the largest tenth of their directions."""

    source: str
    reference: str
    pairs: int
    share: float
    """Share of the source, in [0, 1]."""
    reference_share: float
    """Share of the reference, in [0, 1]."""
    low: float
    """Lower end of the 95 % interval of the difference, source minus reference."""
    high: float
    """Upper end of the same interval."""


@dataclass(frozen=True, kw_only=True)
class RatiosShown(Note):
    """The ends of a curve of relative singular values."""

    source: str
    first: float = np.nan
    """First relative singular value; NaN if there is none."""
    last: float = np.nan
    """Last one above rounding; NaN if there is none."""


@dataclass(frozen=True, kw_only=True)
class ValuesShown(Note):
    """What a histogram shows of one series of values."""

    series: str
    values: int
    """Number of values."""
    mean: float
    """Mean; NaN without values, like the quartiles."""
    quartile_1: float
    quartile_3: float
    """NaN without values."""


@dataclass(frozen=True, kw_only=True)
class GapPartsShown(Note):
    """Parts of a mean gap, drawn next to each other."""

    gap: float
    """Mean gap in standard deviations of a query's scores."""
    is_of_retrieved: bool
    """Whether only retrieved pairs count."""


@dataclass(frozen=True, kw_only=True)
class GapAttributed(Note):
    """The side that a ranker scores higher, and properties of texts that go with that."""

    run: str
    source: str
    reference: str
    gap: float
    """Mean gap in standard deviations of a query's scores; above 0, the reference is scored higher.
    """
    low: float
    """Lower end of its 95 % interval."""
    high: float
    """Upper end of its 95 % interval."""
    is_of_retrieved: bool
    """Whether pairs were chosen by their scores, so that no property is named."""
    with_gap: tuple[str, ...]
    """Properties that are shown to go with the gap."""
    against_gap: tuple[str, ...]
    """Properties that are shown to go against it."""
    unvarying: tuple[str, ...] = ()
    """Properties that could not be examined, because all twins differ by the same amount."""

    @property
    def is_shown(self) -> bool:
        """Whether the interval excludes 0."""
        return not self.low <= 0 <= self.high


@dataclass(frozen=True, kw_only=True)
class DocumentsScored(Note):
    """Documents that a ranker scored, whether or not it retrieves them."""

    run: str
    documents: int
    queries: int
    seed: int


@dataclass(frozen=True, kw_only=True)
class AttributionNote(Note):
    """What an attribution of one run leaves out, or where it means less than it seems to."""

    run: str
    source: str


@dataclass(frozen=True, kw_only=True)
class PairsWithoutValues(AttributionNote):
    """Pairs of twins that lack a value of some properties."""

    pairs: int
    properties: tuple[Count, ...]
    """Number of pairs without a value, by property."""


@dataclass(frozen=True, kw_only=True)
class PropertyValue:
    """A property of texts with a number."""

    name: str
    value: float


@dataclass(frozen=True, kw_only=True)
class PropertiesConstant(AttributionNote):
    """Properties in which all twins differ by the same amount."""

    properties: tuple[PropertyValue, ...]
    """Properties with this difference."""


@dataclass(frozen=True, kw_only=True)
class OneQuery(AttributionNote):
    """There is one query, so that intervals are only about other documents."""


@dataclass(frozen=True, kw_only=True)
class PropertiesInflated(AttributionNote):
    """Properties that follow from each other."""

    properties: tuple[PropertyValue, ...]
    """Properties with the inflation of their variances; NaN if it is infinite."""


@dataclass(frozen=True, kw_only=True)
class GapsOfTwins(Note):
    """Gaps are differences of twins' scores, and not of a measure of relevance."""


@dataclass(frozen=True, kw_only=True)
class PropertyUnit:
    """Name and unit of a property."""

    name: str
    unit: str


@dataclass(frozen=True, kw_only=True)
class GapUnits(Note):
    """The units of gaps, coefficients and properties."""

    reference: str
    properties: tuple[PropertyUnit, ...]


@dataclass(frozen=True, kw_only=True)
class TheoremChecked(Note):
    """Which conditions of theorem 4.1 of Dai et al. hold for one source, and its conclusion."""

    source: str
    failed: tuple[str, ...]
    """Conditions that are not met."""
    undecided: tuple[str, ...]
    """Conditions whose limit lies in their interval."""
    conclusion: Decision
    """Whether the conclusion holds."""
    value: float
    """Left side of the conclusion, in nats per token."""
    low: float
    high: float
    """95 % interval of the value."""
    pairs: int
    """Pairs of twins that it was checked on."""
    is_complete: bool = True
    """Whether all conditions were checked; some need a model that stands for human readers."""
