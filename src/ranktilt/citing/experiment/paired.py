"""McNemar's share: of the comparisons in which only one of two is cited, those of the first.

With n_a comparisons in which only a is cited, and n_b in which only b is, the share is
100 · n_a / (n_a + n_b). In most comparisons both are cited, or neither is, and these say nothing
about a preference (McNemar, Psychometrika 12(2), 1947). Answers to one query are alike, and so are
those that show one document. So the error is clustered by query and by document
(`statistics.two_way`); McNemar's own takes every comparison as independent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranktilt.statistics.bootstrap import resampled_means
from ranktilt.statistics.inversion import infer
from ranktilt.statistics.two_way import Dyads, sums

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
EVEN = 50.0
"""The share, in percent, that favours neither."""
_HALF = 0.5
"""Largest half of a lead: that of a where only a is ever cited."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PairedCitations:
    """Comparisons of two citations that differ in one thing; all arrays have shape (n,)."""

    query: Ints
    """Number of the query, from 0, without gaps."""
    origin: Ints
    """Number of the document's origin, from 0."""
    weight: Floats
    """1 / the number of the query's answers, so that every query counts alike."""
    is_cited_a: Bools
    """Whether the first of the two is cited."""
    is_cited_b: Bools
    """Whether the second of the two is cited."""

    def __len__(self) -> int:
        return len(self.query)


@dataclass(frozen=True, kw_only=True)
class PairedShare:
    """How often a is cited alone where only one of the two is."""

    value: float
    """In percent; NaN where both or neither are cited throughout."""
    low: float
    """Lower end of the 95 % interval over other queries and documents, in percent."""
    high: float
    """Upper end of the 95 % interval."""
    error: float
    """Standard error, in points."""
    p: float
    """p of a share of 50 %, by inversion of the interval."""
    effective_n: float
    """Effective number of queries, or of documents, whichever is smaller."""
    rate_a: float
    """How often a is cited, alone or not, in percent; every query counts alike."""
    rate_b: float
    """How often b is cited, alone or not, in percent."""
    only_a: int
    """Comparisons in which a is cited and b is not. With the next three: McNemar's table."""
    only_b: int
    """Comparisons in which b is cited and a is not."""
    both: int
    """Comparisons in which both are cited."""
    neither: int
    """Comparisons in which neither is cited."""
    queries: int
    """Queries with a comparison."""
    documents: int
    """Documents in a comparison."""


def paired_share(citations: PairedCitations, *, resamples: int, seed: int) -> PairedShare:
    """Return the share of a among comparisons in which one is cited, with its interval and p.

    Its variance is that of a ratio: the lead of a over the decided comparisons, where a comparison
    is *decided* if one of the two is cited alone. Exchanging a and b turns the share around 50 %
    exactly.
    """
    weight = citations.weight
    only_a = citations.is_cited_a & ~citations.is_cited_b
    only_b = citations.is_cited_b & ~citations.is_cited_a
    decided = weight * (only_a | only_b)
    # Computed is half the lead, ± ½ of each decided comparison: where a and b are exchanged it turns
    # its sign to the last bit, which a share does not. The share is 50 % + 100 · half the lead.
    lead = weight * (only_a.astype(np.float64) - only_b) * _HALF
    value = low = high = error = p = np.nan
    effective_n = 0.0
    if decided.any():
        total = float(decided.sum())
        half_lead = float(lead.sum()) / total
        dyads = Dyads(citations.query, citations.origin, citations.origin)
        variance = dyads.variance((lead - half_lead * decided) / total, decided / total)
        effective_n = variance.effective_n
        columns = [sums(citations.query, lead), sums(citations.query, decided)]
        leads, totals = resampled_means(columns, resamples=resamples, seed=seed)
        with np.errstate(invalid="ignore", divide="ignore"):
            resampled = leads / totals
        inference = infer(
            resampled, half_lead, variance=variance, neutral=0.0, bounds=(-_HALF, _HALF)
        )
        value = EVEN + 100 * half_lead
        low, high = EVEN + 100 * inference.low, EVEN + 100 * inference.high
        error, p = 100 * inference.error, inference.p
    rate_a, rate_b = _rates(citations)
    both = citations.is_cited_a & citations.is_cited_b
    neither = ~(citations.is_cited_a | citations.is_cited_b)
    return PairedShare(
        value=value,
        low=low,
        high=high,
        error=error,
        p=p,
        effective_n=effective_n,
        rate_a=rate_a,
        rate_b=rate_b,
        only_a=int(only_a.sum()),
        only_b=int(only_b.sum()),
        both=int(both.sum()),
        neither=int(neither.sum()),
        queries=len(np.unique(citations.query)),
        documents=len(np.unique(citations.origin)),
    )


def _rates(citations: PairedCitations) -> tuple[float, float]:
    """Return how often each of the two is cited, in percent; every query counts alike."""
    total = float(citations.weight.sum()) or np.nan
    rate_a, rate_b = (
        100 * float(citations.weight[is_cited].sum()) / total
        for is_cited in (citations.is_cited_a, citations.is_cited_b)
    )
    return rate_a, rate_b
