"""McNemar's share: of the comparisons in which only one of two is cited, those of the first.

Both are cited, or neither is, in most comparisons, and these say nothing about a preference
(McNemar, Psychometrika 12(2), 1947). Answers to one query hang together, and so do those that
show one document, so the error is clustered by both (`statistics.two_way`) where McNemar's own is
not.
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
    is_cited_b: Bools

    def __len__(self) -> int:
        return len(self.query)


@dataclass(frozen=True, kw_only=True)
class PairedShare:
    """How often a is cited alone where only one of the two is."""

    value: float
    """In percent; NaN where both or neither are cited throughout."""
    low: float
    high: float
    """95 % interval over other queries and documents."""
    error: float
    """Standard error, in points."""
    p: float
    effective_n: float
    """Effective number of queries, or of documents, whichever is smaller."""
    rate_a: float
    rate_b: float
    """How often each of the two is cited, in percent."""
    only_a: int
    only_b: int
    both: int
    neither: int
    """Comparisons by what is cited: McNemar's table."""
    queries: int
    documents: int


def paired_share(citations: PairedCitations, *, resamples: int, seed: int) -> PairedShare:
    """Return the share of a among comparisons in which one is cited, with its interval and p.

    Exchanging a and b turns the share around 50 % exactly.
    """
    weight = citations.weight
    only_a = citations.is_cited_a & ~citations.is_cited_b
    only_b = citations.is_cited_b & ~citations.is_cited_a
    decided = weight * (only_a | only_b)
    # Half the lead turns its sign to the last bit where the sides are exchanged; a share does not.
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
