"""How often the first of two is cited, in comparisons in which only one of the two is.

A comparison is two possible citations, a and b, that differ in one thing, such as the two versions
of a document in one answer. With n_a comparisons in which only a is cited, and n_b in which only b
is, the share of a is 100 · n_a / (n_a + n_b). In most comparisons both are cited, or neither is,
and these say nothing about a preference (McNemar, Psychometrika 12(2), 1947). McNemar's test takes
comparisons as independent. But answers to one query are alike, and so are answers that show the
same document. So here the error is clustered by query and by document (`statistics.two_way`).
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
"""The share of a, in percent, that favours neither."""
_HALF = 0.5
"""Half lead of a if only a is ever cited, the largest; `paired_share` defines the half lead."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PairedCitations:
    """Comparisons of two possible citations; every array has an element for each comparison."""

    query: Ints
    """Number of the query, from 0, without gaps."""
    origin: Ints
    """Number of the document, from 0; its versions share it."""
    weight: Floats
    """1 / the number of the query's answers, so that every query counts equally."""
    is_cited_a: Bools
    """Whether the first of the two is cited."""
    is_cited_b: Bools
    """Whether the second of the two is cited."""

    def __len__(self) -> int:
        return len(self.query)


@dataclass(frozen=True, kw_only=True)
class PairedShare:
    """How often a is cited in comparisons in which only one of the two is."""

    value: float
    """The share of a in percent; NaN if there is no such comparison."""
    low: float
    """Lower end of the 95 % interval over other queries and documents, in percent."""
    high: float
    """Upper end of the 95 % interval."""
    error: float
    """Standard error, in points."""
    p: float
    """p that the true share is 50 %: below .05 exactly if the interval excludes 50 %."""
    effective_n: float
    """Effective number of queries, or of documents, whichever is smaller."""
    rate_a: float
    """How often a is cited, alone or with b, in percent; every query counts equally."""
    rate_b: float
    """How often b is cited, alone or with a, in percent."""
    only_a: int
    """Number of comparisons in which a is cited and b is not.

    With the next three it makes McNemar's table.
    """
    only_b: int
    """Number of comparisons in which b is cited and a is not."""
    both: int
    """Number of comparisons in which both are cited."""
    neither: int
    """Number of comparisons in which neither is cited."""
    queries: int
    """Number of queries with a comparison."""
    documents: int
    """Number of documents with a comparison."""


def paired_share(citations: PairedCitations, *, resamples: int, seed: int) -> PairedShare:
    """Return how often a is cited in comparisons in which only one of the two is.

    A comparison is *decided* if only one is cited. The *half lead* of a is ½ for each comparison
    that a decides and −½ for each that b decides, on average over decided comparisons. The share is
    50 % + 100 · half lead. Interval and p are computed from the half lead: if a and b are
    exchanged, it changes its sign exactly, which a share does not after rounding.
    `resamples` is the number of bootstrap resamples of the queries, and `seed` their random seed.
    """
    weight = citations.weight
    only_a = citations.is_cited_a & ~citations.is_cited_b
    only_b = citations.is_cited_b & ~citations.is_cited_a
    decided = weight * (only_a | only_b)
    lead = weight * (only_a.astype(np.float64) - only_b) * _HALF
    value = low = high = error = p = np.nan
    effective_n = 0.0
    if decided.any():
        total = float(decided.sum())
        half_lead = float(lead.sum()) / total
        # Both sides of a comparison have the same document.
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
    """Return how often each of the two is cited, in percent; every query counts equally."""
    total = float(citations.weight.sum()) or np.nan
    rate_a, rate_b = (
        100 * float(citations.weight[is_cited].sum()) / total
        for is_cited in (citations.is_cited_a, citations.is_cited_b)
    )
    return rate_a, rate_b
