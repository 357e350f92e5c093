"""Bootstrap over queries: resampled means and 95 % intervals, in array code only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
RESAMPLES = 10_000
"""Default number of bootstrap resamples."""
FEWEST_ROWS = 3
"""Rows below which there is no interval: resamples of two rows say nothing about others."""
_CELLS = 1 << 19
"""Most numbers that are drawn together, which the processor's cache holds."""
_SLICE = 1 << 13
"""Longest product that BLAS leaves to a single thread."""


class Interval(NamedTuple):
    """A 95 % interval and the spread behind it."""

    low: float
    high: float
    error: float
    """Standard deviation of the resampled statistic (its standard error)."""
    dropped: int
    """Resamples in which the statistic was undefined."""


def resampled_means(
    columns: list[Floats], *, resamples: int = RESAMPLES, seed: int = 0
) -> list[Floats]:
    """Compute the means of each column over bootstrap resamples of the rows.

    Columns hold no NaN and share the resamples. A column's result depends on its values, the seed
    and the two sizes only, to the last bit: other columns do not matter. All are NaN below three
    rows, so that no interval can be made of them.
    """
    n = len(columns[0]) if columns else 0
    if n < FEWEST_ROWS:
        return [np.full(resamples, np.nan) for _ in columns]
    rng = np.random.default_rng(seed)
    contiguous = [np.ascontiguousarray(column, dtype=np.float64) for column in columns]
    means = [np.empty(resamples) for _ in columns]
    for start, stop in blocks(resamples, n):
        weights = _drawn_weights(rng, stop - start, n)
        for column, mean in zip(contiguous, means, strict=True):
            mean[start:stop] = dots(weights, column) / n
    return means


def _drawn_weights(rng: np.random.Generator, resamples: int, n: int) -> Floats:
    """Draw how often each of n rows is in each resample: (resamples, n)."""
    # Small numbers are drawn faster.
    dtype = np.uint16 if n <= 1 << 16 else np.int64
    draws = rng.integers(0, n, size=(resamples, n), dtype=dtype)
    cells = draws + (np.arange(resamples) * n)[:, None]
    counts = np.bincount(cells.ravel(), minlength=resamples * n)
    return counts.reshape(-1, n).astype(np.float64)


def blocks(rows: int, width: int, cells: int = _CELLS) -> Iterator[tuple[int, int]]:
    """Cut rows of so many numbers into parts that stay in the processor's cache."""
    step = max(cells // max(width, 1), 1)
    for start in range(0, rows, step):
        yield start, min(start + step, rows)


def interval(samples: Floats) -> Interval:
    """Return the 95 % interval of resampled statistics, of which NaN ones are dropped.

    Its ends are order statistics 250 and 9,751 of 10,000. Negating the samples negates and swaps
    the ends exactly, and keeps the error to the last bit.
    """
    defined = samples[~np.isnan(samples)]
    ordered = np.sort(defined)
    dropped = len(samples) - len(ordered)
    if not len(ordered):
        return Interval(low=np.nan, high=np.nan, error=np.nan, dropped=dropped)
    order = max(int(0.025 * len(ordered)), 1)
    return Interval(
        low=float(ordered[order - 1]),
        high=float(ordered[len(ordered) - order]),
        error=float(np.std(defined)) if ordered[0] != ordered[-1] else 0.0,
        dropped=dropped,
    )


def dots(rows: Floats, column: Floats) -> Floats:
    """Multiply each row with the column, in slices that BLAS does not spread over threads.

    A threaded product takes a hundred times as long while other work shares the processor.
    """
    total: Floats = np.vecdot(rows[:, :_SLICE], column[:_SLICE])
    for start in range(_SLICE, len(column), _SLICE):
        total = total + np.vecdot(rows[:, start : start + _SLICE], column[start : start + _SLICE])
    return total


def sum_repeats(column: Floats, distinct: Ints | None) -> Floats:
    """Sum the rows of queries that repeat each other, one row for each distinct query, in order.

    `distinct` numbers the queries, alike for repeats; where None, the column is returned as it is.
    """
    if distinct is None:
        return column
    order = np.unique(distinct, return_inverse=True)[1]
    return np.bincount(order, weights=column).astype(np.float64)


def shared_numbering(numberings: Sequence[Ints | None]) -> Ints | None:
    """Return a numbering that is alike for queries that are alike in all of several numberings.

    None if any of them is None, where no queries repeat each other, or if there are none.
    """
    known = [numbering for numbering in numberings if numbering is not None]
    if not known or len(known) < len(numberings):
        return None
    return np.unique(np.stack(known), axis=1, return_inverse=True)[1].ravel()
