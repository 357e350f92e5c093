"""Residuals of an answer by query and repeat: the table for its analysis of variance.

A repeat is one of several rankings of the same queries. The residual of a query is how far it pulls
the answer away from its value: ``numerator − ratio · denominator`` for an answer that is a ratio.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ranktilt.auditing.significance import Sample, numbers_of
from ranktilt.measures.ranking import Floats, Ints
from ranktilt.statistics.bootstrap import sum_repeats


@dataclass(frozen=True, kw_only=True, eq=False)
class RepeatResiduals:
    """How far each query pulls an answer from its value, in each repeat."""

    numbers: Ints
    """Numbers of the queries that count in every repeat.

    Queries that repeat each other have one number.
    """
    residual: Floats
    """Residuals, of the shape (n_queries, n_repeats)."""
    weight: Floats
    """Weight of each query in the mean of the repeats."""


def residuals_by_repeat(repeats: Sequence[Sample], mean: Sample) -> RepeatResiduals:
    """Return the residuals of one answer in each repeat, from the value of their mean.

    `repeats` are the samples of the repeats, and `mean` is the sample that averages them.
    """
    estimand = mean.estimand
    is_common = np.all([sample.mask for sample in repeats], axis=0)
    distinct = None if mean.distinct is None else mean.distinct[is_common]
    weight = estimand.denominator(mean.numerator[is_common], mean.denominator[is_common])
    ratio = mean.value / estimand.per_ratio
    columns = []
    for sample in repeats:
        residuals = estimand.residuals(
            sample.numerator[is_common], sample.denominator[is_common], ratio
        )
        columns.append(sum_repeats(residuals, distinct))
    return RepeatResiduals(
        numbers=numbers_of(is_common, mean.distinct),
        residual=np.stack(columns, axis=1),
        weight=sum_repeats(weight, distinct),
    )
