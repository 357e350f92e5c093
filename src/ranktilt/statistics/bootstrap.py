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
"""Fewest rows for an interval: resamples of two rows say nothing about other rows."""
_CELLS = 1 << 19
"""Most numbers to draw at a time; so many fit into the processor's cache."""
_SLICE = 1 << 13
"""Longest product that BLAS leaves to a single thread."""


class Interval(NamedTuple):
    """A 95 % interval and the standard error behind it."""

    low: float
    """Lower end."""
    high: float
    """Upper end."""
    error: float
    """Standard deviation of the resampled statistic (its standard error)."""
    dropped: int
    """Resamples in which the statistic was undefined."""


def resampled_means(
    columns: list[Floats], *, resamples: int = RESAMPLES, seed: int = 0
) -> list[Floats]:
    """Compute the means of each column over bootstrap resamples of the rows.

    Columns hold no NaN, and all use the same resamples. A column's means depend only on its values,
    the seed and the numbers of rows and resamples, to the last bit: other columns do not matter.
    Below three rows all means are NaN, so that no interval can be made of them.
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
    """Cut a table into blocks of rows that fit into the processor's cache.

    A row has `width` numbers, a block at most `cells`. Yields the first row of each block, and the
    one after its last.
    """
    step = max(cells // max(width, 1), 1)
    for start in range(0, rows, step):
        yield start, min(start + step, rows)


def interval(samples: Floats) -> Interval:
    """Return the 95 % interval of resampled statistics; NaN ones are dropped.

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
    """Sum the rows of queries that repeat each other.

    Queries of equal text count as one. `distinct` gives them the same number. The result has a row
    for each number, in rising order; if `distinct` is None, the column is returned as it is.
    """
    if distinct is None:
        return column
    order = np.unique(distinct, return_inverse=True)[1]
    return np.bincount(order, weights=column).astype(np.float64)


def shared_numbering(numberings: Sequence[Ints | None]) -> Ints | None:
    """Return a numbering in which queries are alike if they are alike in all of several numberings.

    None if one of the numberings is None, where no queries repeat each other, or if there are none.
    """
    known = [numbering for numbering in numberings if numbering is not None]
    if not known or len(known) < len(numberings):
        return None
    return np.unique(np.stack(known), axis=1, return_inverse=True)[1].ravel()
