"""Residuals of an answer by query and repeat: the table behind every analysis of variance."""

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
    """Numbers of the distinct queries that count in every repeat; see `numbers_of`."""
    residual: Floats
    """Residuals, of the shape (n_queries, n_repeats)."""
    weight: Floats
    """Weight of each query in the mean of the repeats."""


def residuals_by_repeat(repeats: Sequence[Sample], mean: Sample) -> RepeatResiduals:
    """Return the residuals of one answer at the value of the mean of its repeats."""
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
