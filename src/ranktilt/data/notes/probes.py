"""What probes find in texts, as notes: findings, what figures and tables show, and attribution."""

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
    """The mean of what was measured of a source's texts, where there are no twins to compare."""

    source: str
    mean: float
    unit: str
    is_per_document: bool = True
    """Whether it is of each document by itself; otherwise of documents after their origins."""


@dataclass(frozen=True, kw_only=True)
class TermsKept(Note):
    """How many of a text's terms its rewrites keep, means over pairs of twins."""

    source: str
    reference: str
    pairs: int
    """Pairs whose reference has a term."""
    overlap: float
    """Share of the reference's terms that rewrites keep, in [0, 1]; NaN without pairs."""
    jaccard: float
    """Terms of both over terms of either, in [0, 1]; NaN without pairs."""


@dataclass(frozen=True, kw_only=True)
class TwinsNear(Note):
    """How near twins lie in an encoder's space, and whether the sources can be told apart."""

    source: str
    model: str
    pairs: int
    """Pairs with a vector on both sides."""
    median: float
    """Of the cosines of twins, −1 to 1."""
    above: float
    """Share of twins whose cosine is above `limit`, in [0, 1]."""
    limit: float
    other_pairs: int
    """Pairs of a text and the rewrite of another one."""
    other_median: float
    """Of their cosines; NaN without any."""
    auc: float
    """Area under the ROC curve for separating the sources, in [0, 1]; NaN if unknown."""


@dataclass(frozen=True, kw_only=True)
class DirectionsConcentrated(Note):
    """How much of the embeddings lies in the largest tenth of their directions."""

    source: str
    reference: str
    pairs: int
    share: float
    reference_share: float
    """Of the source and of the reference, in [0, 1]."""
    low: float
    high: float
    """95 % interval of the difference, source less reference."""


@dataclass(frozen=True, kw_only=True)
class RatiosShown(Note):
    """The ends of a curve of relative singular values."""

    source: str
    first: float = np.nan
    last: float = np.nan
    """The first, and the last one above rounding; NaN where none is."""


@dataclass(frozen=True, kw_only=True)
class ValuesShown(Note):
    """What a histogram shows of one series."""

    series: str
    values: int
    mean: float
    quartile_1: float
    quartile_3: float
    """NaN without values."""


@dataclass(frozen=True, kw_only=True)
class GapPartsShown(Note):
    """Parts of a mean gap, drawn beside each other."""

    gap: float
    """In standard deviations of a query's scores."""
    is_of_retrieved: bool
    """Whether it is of retrieved pairs only."""


@dataclass(frozen=True, kw_only=True)
class GapAttributed(Note):
    """Which side a ranker scores higher, and which properties of texts go with that."""

    run: str
    source: str
    reference: str
    gap: float
    low: float
    high: float
    """Mean gap, in standard deviations of a query's scores, and its 95 % interval; positive: the
    reference is scored higher."""
    is_of_retrieved: bool
    """Whether pairs were chosen by their scores, so that no property is named."""
    with_gap: tuple[str, ...]
    against_gap: tuple[str, ...]
    """Properties that are shown to go with the gap, and against it."""
    unvarying: tuple[str, ...] = ()
    """Properties that could not be examined, because all twins differ by the same."""

    @property
    def is_shown(self) -> bool:
        """Whether the interval excludes 0."""
        return not self.low <= 0 <= self.high


@dataclass(frozen=True, kw_only=True)
class DocumentsScored(Note):
    """Documents that a ranker scored, whether it retrieves them or not."""

    run: str
    documents: int
    queries: int
    seed: int


@dataclass(frozen=True, kw_only=True)
class AttributionNote(Note):
    """What one run's attribution leaves out, or where it means less than it seems to."""

    run: str
    source: str


@dataclass(frozen=True, kw_only=True)
class PairsWithoutValues(AttributionNote):
    """Pairs of twins that lack a value of some properties."""

    pairs: int
    properties: tuple[Count, ...]


@dataclass(frozen=True, kw_only=True)
class PropertyValue:
    """A property of texts with a number."""

    name: str
    value: float


@dataclass(frozen=True, kw_only=True)
class PropertiesConstant(AttributionNote):
    """Properties in which all twins differ by the same."""

    properties: tuple[PropertyValue, ...]
    """With the difference."""


@dataclass(frozen=True, kw_only=True)
class OneQuery(AttributionNote):
    """There is one query, so that intervals speak of other documents alone."""


@dataclass(frozen=True, kw_only=True)
class PropertiesInflated(AttributionNote):
    """Properties that follow from each other."""

    properties: tuple[PropertyValue, ...]
    """With the inflation of their variances; NaN where it has no end."""


@dataclass(frozen=True, kw_only=True)
class GapsOfTwins(Note):
    """Gaps are between scores of twins, and not those of a measure of relevance."""


@dataclass(frozen=True, kw_only=True)
class PropertyUnit:
    """What is measured of a text, and in which unit."""

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
    value: float
    """Left side of the conclusion, in nats per token."""
    low: float
    high: float
    """95 % interval of the value."""
    pairs: int
    """Pairs of twins that it was checked on."""
    is_complete: bool = True
    """Whether all conditions were checked; some need a model that stands for human readers."""
