"""The permutation test of citations, which exchanges the labels of units.

Pages that answers cite are of two groups, a and b, by their *labels*. A *unit* is pages that are
labelled together, such as those of a domain. If the group of a page did not matter, the labels of
units could be exchanged without changing what is cited. So the test deals the labels out again at
random, computes its statistic for each *exchange*, and counts how often it is at least as far from
0 as the observed one. `ranktilt.measures.citations.base.Exchange` defines the statistic. It is made
of *amounts*, such as the citations of each unit, and often also of *supports*, such as the pages of
each unit that could have been cited.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ranktilt.measures.citations.base import (
    Bools,
    CitationEstimate,
    CitationRows,
    Floats,
    Ints,
)
from ranktilt.statistics.two_way import sums

_MOST_LABELS = 10_000_000
"""Most labels to deal in all exchanges together, which limits time.

With many units there are fewer exchanges.
"""
_LEAST_EXCHANGES = 1_000
"""Fewest exchanges, however many units there are."""
_BLOCK_LABELS = 4_000_000
"""Most labels in memory at a time, one byte each."""
_EPSILON = 1e-12
"""Difference below which two statistics count as equal, as they are sums of rounded numbers."""
_SIZE_CLASSES = 3
"""Number of classes of units by size, if labels are exchanged within classes only."""


def exchanged_p(
    rows: CitationRows,
    estimate: CitationEstimate,
    *,
    resamples: int,
    seed: int,
    within_sizes: bool = False,
) -> float:
    """Return the p of an estimate by exchanging labels of units.

    With T the observed statistic and T* those of n exchanges, p = (1 + #{|T*| ≥ |T|}) / (1 + n):
    the observed labels count as one of the exchanges, so that p is never 0. If the estimate's
    exchange has a `distance`, T is that distance, and T* are distances from the mean of all
    exchanges. p is NaN if the value is undefined, or all units have one label.

    Parameters
    ----------
    rows : CitationRows
        The pages of answers.
    estimate : CitationEstimate
        The value of a question about them, with the amounts of its statistic.
    resamples, seed : int
        Most exchanges; random seed.
    within_sizes : bool, optional
        Whether labels are exchanged between units of about the same size only (`size_classes`).
        A group of few large units may be cited more just because large units are.
    """
    amount, support = estimate.exchange.amount, estimate.exchange.support
    # Units that add nothing to the statistic, such as pages that were only retrieved, keep out.
    is_used = amount != 0 if support is None else support > 0
    # A unit with pages of both groups is split into two units: 2 · number for its pages of group b,
    # and 2 · number + 1 for those of group a.
    unit_of_row = (2 * rows.cluster + rows.is_a)[is_used]
    units = np.flatnonzero(np.bincount(unit_of_row))
    is_a = units % 2 == 1
    amounts = sums(unit_of_row, amount[is_used])[units]
    supports = None if support is None else sums(unit_of_row, support[is_used])[units]
    if not is_a.any() or is_a.all() or np.isnan(estimate.value):
        return np.nan
    classes = None
    if within_sizes:
        sizes = sums(unit_of_row, (estimate.support_a + estimate.support_b)[is_used])[units]
        classes = size_classes(sizes)
    distance = estimate.exchange.distance
    if distance is None:
        observed = abs(exchange_statistic(is_a[None, :], amounts, supports)[0])
    else:
        # Each exchange has equally many labels of group a. So with centred amounts each statistic
        # becomes its distance from the mean of all exchanges.
        observed, amounts = abs(distance), amounts - amounts.mean()
    at_least_as_far, exchanges = 0, 0
    for labels in exchange_blocks(is_a, resamples=resamples, seed=seed, classes=classes):
        statistics = exchange_statistic(labels, amounts, supports)
        at_least_as_far += int((np.abs(statistics) >= observed - _EPSILON).sum())
        exchanges += len(labels)
    return (1 + at_least_as_far) / (1 + exchanges)


def size_classes(sizes: Floats) -> Ints:
    """Divide units into three classes by size, with about equally many pages each.

    The smallest units, which hold a third of all pages together, are class 0, the largest class 2.
    `sizes` are the numbers of pages of units.
    """
    order = np.argsort(sizes, kind="stable")
    pages = np.cumsum(sizes[order])
    classes = np.empty(len(sizes), dtype=np.int64)
    # If all pages were lined up by the size of their unit, and cut in three, a unit would be of the
    # class of its last page.
    parts = np.ceil(_SIZE_CLASSES * pages / pages[-1] - _EPSILON) - 1
    classes[order] = np.clip(parts, 0, _SIZE_CLASSES - 1).astype(np.int64)
    return classes


def exchange_blocks(
    is_a: Bools, *, resamples: int, seed: int, classes: Ints | None = None
) -> Iterator[Bools]:
    """Yield exchanged labels in blocks of shape (n_exchanges, n_units).

    Each row of a block has as many labels of group a as `is_a` has.

    Parameters
    ----------
    is_a : array of bool
        Whether each unit is of group a.
    resamples, seed : int
        Most exchanges; random seed.
    classes : array of int, optional
        Class of each unit; labels are then exchanged between units of one class only.
    """
    count = int(np.clip(_MOST_LABELS // len(is_a), _LEAST_EXCHANGES, resamples))
    rng = np.random.default_rng(seed)
    block_size = max(1, _BLOCK_LABELS // len(is_a))
    for start in range(0, count, block_size):
        labels = np.repeat(is_a[None, :], min(block_size, count - start), axis=0)
        if classes is None:
            yield rng.permuted(labels, axis=1)
            continue
        for size_class in np.unique(classes):
            members = np.flatnonzero(classes == size_class)
            labels[:, members] = rng.permuted(labels[:, members], axis=1)
        yield labels


def exchange_statistic(labels: Bools, amounts: Floats, supports: Floats | None) -> Floats:
    """Return the statistic of each exchange.

    It is the sum of the amounts of group a. With supports it is ln(rate_a / rate_b), where rate =
    (Σ amount + ½) / (Σ support + ½) over the units of a group.

    Parameters
    ----------
    labels : array of bool
        Which units are of group a, shape (n_exchanges, n_units).
    amounts, supports : array of float
        What each unit adds to numerator and denominator of its group, shape (n_units,); supports
        are None where the statistic is a sum.
    """
    amount_a: Floats = labels @ amounts
    if supports is None:
        return amount_a
    support_a = labels @ supports
    amount_b, support_b = amounts.sum() - amount_a, supports.sum() - support_a
    rate_a = (amount_a + 0.5) / (support_a + 0.5)
    rate_b = (amount_b + 0.5) / (support_b + 0.5)
    log_ratios: Floats = np.log(rate_a / rate_b)
    return log_ratios
