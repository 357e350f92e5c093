"""The permutation test of citations: exchange the labels of units, and see what else could be.

If the kind of a page does not matter, the labels of units (such as domains) could be exchanged
without changing what is cited. So the test deals the labels out again at random, computes its
statistic for each deal, and counts how often it is at least as far from 0 as the observed one. The
statistic is defined in `ranktilt.measures.citations.base.Exchange`.
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
"""Labels that are dealt over all exchanges: with more units there are fewer exchanges."""
_LEAST_EXCHANGES = 1_000
"""Exchanges that are made however many units there are."""
_BLOCK_LABELS = 4_000_000
"""Labels that are in memory together, one byte each."""
_EPSILON = 1e-12
"""Difference below which two statistics count as equal, for they are sums of rounded numbers."""
_SIZE_CLASSES = 3
"""Classes of units by size, within which labels are exchanged where sizes are held."""


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
    the observed labels count as one of the exchanges, so that p is never 0. NaN where the value is
    undefined, or all units have one label. Where the exchange has a `distance`, that is T, and T*
    is taken from the mean of all exchanges.

    Parameters
    ----------
    rows : CitationRows
        The pages of answers.
    estimate : CitationEstimate
        What a question says of them.
    resamples, seed : int
        Most exchanges, and where they start.
    within_sizes : bool, optional
        Whether labels are exchanged between units of about the same size only (`size_classes`).
        A group of few large units may be cited more just because large units are.
    """
    amount, support = estimate.exchange.amount, estimate.exchange.support
    # Units that add nothing to the statistic, such as pages that were retrieved only, are no draws.
    adds = amount != 0 if support is None else support > 0
    # A unit with pages of both groups becomes two, each with the label of its pages: the odd
    # number is the part of group a.
    unit_of_row = (2 * rows.cluster + rows.is_a)[adds]
    units = np.flatnonzero(np.bincount(unit_of_row))
    is_a = units % 2 == 1
    amounts = sums(unit_of_row, amount[adds])[units]
    supports = None if support is None else sums(unit_of_row, support[adds])[units]
    if not is_a.any() or is_a.all() or np.isnan(estimate.value):
        return np.nan
    classes = None
    if within_sizes:
        sizes = sums(unit_of_row, (estimate.support_a + estimate.support_b)[adds])[units]
        classes = size_classes(sizes)
    distance = estimate.exchange.distance
    if distance is None:
        observed = abs(exchange_statistic(is_a[None, :], amounts, supports)[0])
    else:
        # Each exchange has as many labels of group a, so this takes their mean from all of them.
        observed, amounts = abs(distance), amounts - amounts.mean()
    as_far, exchanges = 0, 0
    for labels in exchange_blocks(is_a, resamples=resamples, seed=seed, classes=classes):
        statistics = exchange_statistic(labels, amounts, supports)
        as_far += int((np.abs(statistics) >= observed - _EPSILON).sum())
        exchanges += len(labels)
    return (1 + as_far) / (1 + exchanges)


def size_classes(sizes: Floats) -> Ints:
    """Return the size class of each unit, 0 to 2: three classes with about equally many pages.

    The smallest units that hold a third of all pages together are the first class.
    """
    order = np.argsort(sizes, kind="stable")
    pages = np.cumsum(sizes[order])
    classes = np.empty(len(sizes), dtype=np.int64)
    # A unit is of the class in which its last page lies.
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
        Most exchanges, and where they start.
    classes : array of int, optional
        Class of each unit; labels are then exchanged between units of one class only.
    """
    count = int(np.clip(_MOST_LABELS // len(is_a), _LEAST_EXCHANGES, resamples))
    rng = np.random.default_rng(seed)
    block = max(1, _BLOCK_LABELS // len(is_a))
    for start in range(0, count, block):
        labels = np.repeat(is_a[None, :], min(block, count - start), axis=0)
        if classes is None:
            yield rng.permuted(labels, axis=1)
            continue
        for number in np.unique(classes):
            members = np.flatnonzero(classes == number)
            labels[:, members] = rng.permuted(labels[:, members], axis=1)
        yield labels


def exchange_statistic(labels: Bools, amounts: Floats, supports: Floats | None) -> Floats:
    """Return the statistic of each exchange; `Exchange` defines it.

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
