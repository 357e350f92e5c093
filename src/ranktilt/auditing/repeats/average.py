"""Average the repeats of one engine within each query, before any statistics.

Repeats are no further queries: they make the value of a query less random, and nothing else. So
the bootstrap, the two-way variance and p see one row for each query, as for a single run.
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

AnswerKey = tuple[str, str, str, str]
"""An answer: run, notation of the question, both groups."""


def answer_key(sample: Sample) -> AnswerKey:
    """Return the answer that a sample is about."""
    return sample.run, repr(sample.estimand), sample.a, sample.b


def samples_by_answer(samples: Iterable[Sample]) -> dict[AnswerKey, list[Sample]]:
    """Return the samples of all repeats of each answer, in the order of the first of them."""
    samples_of: dict[AnswerKey, list[Sample]] = {}
    for sample in samples:
        samples_of.setdefault(answer_key(sample), []).append(sample)
    return samples_of


def average_repeats(samples: Sequence[Sample]) -> list[Sample]:
    """Return one sample for each answer; that of a single run stays as it is."""
    return [
        repeats[0] if len(repeats) == 1 else _average(repeats)
        for repeats in samples_by_answer(samples).values()
    ]


def average_defined(values: Floats) -> Floats:
    """Return means over the first axis, of the defined values; NaN where there is none."""
    is_defined = ~np.isnan(values)
    total = np.where(is_defined, values, 0.0).sum(axis=0)
    count = is_defined.sum(axis=0)
    means: Floats = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return means


def _average(repeats: Sequence[Sample]) -> Sample:
    """Average the samples of one answer."""
    shares = _shares(repeats)
    numerators = [sample.numerator for sample in repeats]
    denominators = [sample.denominator for sample in repeats]
    return replace(
        repeats[0],
        numerator=_mean(repeats, numerators, shares),
        denominator=_mean(repeats, denominators, shares),
        parts=_mean_parts(repeats),
        null=_mean_null([sample.null for sample in repeats]),
        clusters=_mean_clusters(repeats, shares),
        distinct=shared_numbering([sample.distinct for sample in repeats]),
    )


def _shares(repeats: Sequence[Sample]) -> Floats:
    """Return the share that each repeat has in each query: of the repeats where it counts."""
    counts = np.array([sample.mask for sample in repeats], dtype=np.float64)
    total = counts.sum(axis=0)
    return np.where(total > 0, counts / np.maximum(total, 1), 1 / len(repeats))


def _mean(repeats: Sequence[Sample], columns: Sequence[Floats], shares: Floats) -> Floats:
    """Return the mean of a column over the repeats where a query counts.

    A query that counts in none keeps its value of the first repeat, so that it counts in none here.
    """
    values = np.array(columns)
    weighted = np.where(shares > 0, values, 0.0) * shares
    never = ~np.array([sample.mask for sample in repeats]).any(axis=0)
    means: Floats = np.where(never, values[0], weighted.sum(axis=0))
    return means


def _mean_parts(repeats: Sequence[Sample]) -> dict[str, float]:
    """Return the mean of each further count; a count of all repeats together may be no whole."""
    means = {}
    for name in repeats[0].parts:
        numbers = [sample.parts.get(name, np.nan) for sample in repeats]
        means[name] = float(average_defined(np.array(numbers)))
    return means


def _mean_null(nulls: Sequence[NullDistribution | None]) -> NullDistribution | None:
    """Return the null distribution of a mean of answers, from that of each.

    All repeats have the same random labels, so their draws rise and fall together, and quantiles
    of the mean are the means of the quantiles. Twice the mean of several p is a p, however they
    depend on each other (Vovk & Wang, Biometrika 107(4), 2020).
    """
    known = [null for null in nulls if null is not None]
    if len(known) < len(nulls):
        return None
    low, high, p, median = np.array(known, dtype=np.float64).mean(axis=0).tolist()
    return NullDistribution(low=low, high=high, p=min(2 * p, 1.0), median=median)


def _mean_clusters(repeats: Sequence[Sample], shares: Floats) -> Clusters | None:
    """Return what each document adds to the mean of the answers."""
    rows = []
    for sample, share in zip(repeats, shares, strict=True):
        clusters = sample.clusters
        if clusters is None:
            return None
        # Rows of no query (−1) hold what a document adds to the mean of all.
        factor = np.where(clusters.query < 0, 1 / len(repeats), share[clusters.query])
        rows.append(
            clusters._replace(total=clusters.total * factor, weight=clusters.weight * factor)
        )
    return Clusters(*map(np.concatenate, zip(*rows, strict=True)))
