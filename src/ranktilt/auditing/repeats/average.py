"""Average the repeats of one engine within each query, before any statistics.

A *repeat* is one of several rankings of the same queries. Repeats are no further queries: they only
make the value of a query less random. So the bootstrap, the error and p see one row for each query,
as for a single run. A *sample* holds the values per query (numerator and denominator) behind one
answer; its *clusters* are what each document adds to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from ranktilt.auditing.null_distributions.base import NullDistribution
from ranktilt.auditing.significance import Sample
from ranktilt.measures.ranking import Floats
from ranktilt.statistics.bootstrap import shared_numbering
from ranktilt.statistics.two_way import Clusters

SampleKey = tuple[str, str, str, str]
"""Key of an answer: run, notation of the question, both groups."""


def sample_key(sample: Sample) -> SampleKey:
    """Return the key of the answer that a sample is about; repeats of a run have equal keys."""
    return sample.run, repr(sample.estimand), sample.a, sample.b


def samples_by_answer(samples: Iterable[Sample]) -> dict[SampleKey, list[Sample]]:
    """Return the samples of all repeats of each answer, in the order of the first of them."""
    by_answer: dict[SampleKey, list[Sample]] = {}
    for sample in samples:
        by_answer.setdefault(sample_key(sample), []).append(sample)
    return by_answer


def average_repeats(samples: Sequence[Sample]) -> list[Sample]:
    """Return one sample for each answer: the mean of its repeats; a single sample as it is."""
    return [
        repeats[0] if len(repeats) == 1 else _average(repeats)
        for repeats in samples_by_answer(samples).values()
    ]


def average_defined(values: Floats) -> Floats:
    """Return means of the defined values over the first axis; NaN where no value is defined."""
    is_defined = ~np.isnan(values)
    total = np.where(is_defined, values, 0.0).sum(axis=0)
    count = is_defined.sum(axis=0)
    means: Floats = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return means


def _average(repeats: Sequence[Sample]) -> Sample:
    """Average the samples of one answer."""
    shares = _weights_of_repeats(repeats)
    numerators = [sample.numerator for sample in repeats]
    denominators = [sample.denominator for sample in repeats]
    return replace(
        repeats[0],
        numerator=_mean_where_counted(repeats, numerators, shares),
        denominator=_mean_where_counted(repeats, denominators, shares),
        details=_mean_details(repeats),
        null=_mean_null([sample.null for sample in repeats]),
        clusters=_mean_clusters(repeats, shares),
        distinct=shared_numbering([sample.distinct for sample in repeats]),
    )


def _weights_of_repeats(repeats: Sequence[Sample]) -> Floats:
    """Return the weight of each repeat in the mean of each query, of shape (n_repeats, n_queries).

    The repeats in which a query counts have equal weights, the others 0. For a query that counts in
    none, all weights are equal.
    """
    is_counted = np.array([sample.mask for sample in repeats], dtype=np.float64)
    total = is_counted.sum(axis=0)
    return np.where(total > 0, is_counted / np.maximum(total, 1), 1 / len(repeats))


def _mean_where_counted(
    repeats: Sequence[Sample], columns: Sequence[Floats], shares: Floats
) -> Floats:
    """Return the mean of a column over the repeats in which a query counts.

    A query that counts in no repeat has its value in the first one, which does not count in the
    mean either. `columns` has the column of each repeat, and `shares` the weights of the repeats.
    """
    values = np.array(columns)
    weighted = np.where(shares > 0, values, 0.0) * shares
    never_counts = ~np.array([sample.mask for sample in repeats]).any(axis=0)
    means: Floats = np.where(never_counts, values[0], weighted.sum(axis=0))
    return means


def _mean_details(repeats: Sequence[Sample]) -> dict[str, float]:
    """Return the mean of each detail over the repeats, which may be no whole number."""
    means = {}
    for name in repeats[0].details:
        numbers = [sample.details.get(name, np.nan) for sample in repeats]
        means[name] = float(average_defined(np.array(numbers)))
    return means


def _mean_null(nulls: Sequence[NullDistribution | None]) -> NullDistribution | None:
    """Return the null distribution of the mean of the repeats' answers; None if one has none.

    All repeats have the same random labels, so their draws rise and fall together. Then the
    quantiles of the mean are the means of the quantiles. Twice the mean of several p is a p,
    however they depend on each other (Vovk & Wang, Biometrika 107(4), 2020).
    """
    computed = [null for null in nulls if null is not None]
    if len(computed) < len(nulls):
        return None
    low, high, p, median = np.array(computed, dtype=np.float64).mean(axis=0).tolist()
    return NullDistribution(low=low, high=high, p=min(2 * p, 1.0), median=median)


def _mean_clusters(repeats: Sequence[Sample], shares: Floats) -> Clusters | None:
    """Return what each document adds to the mean of the answers; None if a repeat does not say."""
    weighted = []
    for sample, share in zip(repeats, shares, strict=True):
        clusters = sample.clusters
        if clusters is None:
            return None
        # Rows that belong to no query (−1) have the same weight in all repeats.
        factor = np.where(clusters.query < 0, 1 / len(repeats), share[clusters.query])
        weighted.append(
            clusters._replace(total=clusters.total * factor, weight=clusters.weight * factor)
        )
    # Field by field: queries, origins, totals and weights of all repeats.
    return Clusters(*map(np.concatenate, zip(*weighted, strict=True)))
