"""Notes on findings of probes: means, figures, tables and attribution.

A probe measures a property of texts. It compares a source with the reference over twins, which are
versions of one text by both. A gap is the mean difference of the scores that a run gives to twins.

Each class is a kind of note, and its fields are what is known. The sentence is made in the file of
the same name in `ranktilt.reporting.sentences.notes`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ranktilt.data.notes.base import Count, Note

Decision = Literal["yes", "no", "undecided"]
"""Whether a condition holds; ``undecided`` where its limit lies in its interval."""


@dataclass(frozen=True, kw_only=True)
class NoTwinsToCompare(Note):
    """No source but the reference has twins, so that nothing can be compared."""


@dataclass(frozen=True, kw_only=True)
class SourceMean(Note):
    """Mean of a property over a source's texts, if there are no twins to compare with."""

    source: str
    mean: float
    unit: str
    is_per_document: bool = True
    """Whether each document was measured alone; otherwise each after its original."""


@dataclass(frozen=True, kw_only=True)
class TermsKept(Note):
    """Share of a text's terms that its rewrite keeps, as means over pairs of twins."""

    source: str
    reference: str
    pairs: int
    """Number of pairs whose reference has any term."""
    overlap: float
    """Share of the reference's terms that rewrites keep, in [0, 1]; NaN without pairs."""
    jaccard: float
    """Jaccard similarity of both texts' terms, in [0, 1]; NaN without pairs."""


@dataclass(frozen=True, kw_only=True)
class TwinsNear(Note):
    """Similarity of twins in an encoder's space, and whether sources can be told apart there."""

    source: str
    model: str
    """Name of the encoder."""
    pairs: int
    """Number of pairs with a vector on both sides."""
    median: float
    """Median cosine of twins, from −1 to 1."""
    above: float
    """Share of twins whose cosine is above `limit`, in [0, 1]."""
    limit: float
    """Cosine above which twins count as `above`."""
    other_pairs: int
    """Number of pairs of a text and the rewrite of another text, for comparison."""
    other_median: float
    """Median cosine of these pairs; NaN without any."""
    auc: float
    """Area under the ROC curve of a classifier of the sources, in [0, 1]; NaN if unknown."""


@dataclass(frozen=True, kw_only=True)
class DirectionsConcentrated(Note):
    """Share of the embeddings' squared length along the largest tenth of their directions."""

    source: str
    reference: str
    pairs: int
    """Number of pairs of twins."""
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
    """The ends of a curve of singular values, each relative to the largest."""

    source: str
    first: float = np.nan
    """First value of the curve; NaN if there is none."""
    last: float = np.nan
    """Last value that is not only rounding errors; NaN if there is none."""


@dataclass(frozen=True, kw_only=True)
class ValuesShown(Note):
    """What a histogram shows of one series of values."""

    series: str
    """Name of the series, such as a source."""
    values: int
    """Number of values."""
    mean: float
    """Mean; NaN without values."""
    quartile_1: float
    """First quartile; NaN without values."""
    quartile_3: float
    """Third quartile; NaN without values."""


@dataclass(frozen=True, kw_only=True)
class GapPartsShown(Note):
    """What a chart of the parts of a mean gap shows."""

    gap: float
    """Mean gap in standard deviations of a query's scores."""
    is_of_retrieved: bool
    """Whether only pairs that the run retrieved count."""


@dataclass(frozen=True, kw_only=True)
class GapAttributed(Note):
    """The side that a ranker scores higher, and properties of texts that go with this gap."""

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
    """Whether only retrieved pairs count.

    They are selected by their scores, so that no property is named.
    """
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
    """A caution about the attribution of one run's gap to properties of texts."""

    run: str
    source: str


@dataclass(frozen=True, kw_only=True)
class PairsWithoutValues(AttributionNote):
    """Pairs of twins that are left out, as they lack a value of some property."""

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
    """Properties that are left out, as all twins differ by the same amount in them."""

    properties: tuple[PropertyValue, ...]
    """Properties with this amount."""


@dataclass(frozen=True, kw_only=True)
class OneQuery(AttributionNote):
    """There is only one query, so that intervals cover other documents, but no other queries."""


@dataclass(frozen=True, kw_only=True)
class PropertiesInflated(AttributionNote):
    """Properties that go together, so that their effects are hard to separate."""

    properties: tuple[PropertyValue, ...]
    """Properties with their variance inflation factors; NaN for an infinite one."""


@dataclass(frozen=True, kw_only=True)
class GapsOfTwins(Note):
    """Gaps compare the scores of twins wherever they rank, unlike a measure of relevance."""


@dataclass(frozen=True, kw_only=True)
class PropertyUnit:
    """Name and unit of a property."""

    name: str
    unit: str


@dataclass(frozen=True, kw_only=True)
class GapUnits(Note):
    """The units in which gaps and properties are printed."""

    reference: str
    properties: tuple[PropertyUnit, ...]


@dataclass(frozen=True, kw_only=True)
class TheoremChecked(Note):
    """Whether the conditions of theorem 4.1 of Dai et al. (KDD 2024) hold for a source.

    The theorem concludes that a language model finds rewrites easier to predict than originals.
    """

    source: str
    failed: tuple[str, ...]
    """Names of conditions that do not hold."""
    undecided: tuple[str, ...]
    """Names of conditions whose limit lies in their interval."""
    conclusion: Decision
    """Whether the conclusion holds."""
    value: float
    """Left side of the conclusion, in nats per token; below 0, rewrites are easier."""
    low: float
    """Lower end of the 95 % interval of the value."""
    high: float
    """Upper end of the same interval."""
    pairs: int
    """Number of pairs of twins."""
    is_complete: bool = True
    """Whether all conditions were checked; some need a model that stands for readers."""
