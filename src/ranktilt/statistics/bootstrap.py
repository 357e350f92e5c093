"""Bootstrap over queries: resampled means and 95 % intervals, in array code only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
RESAMPLES = 10_000
FEWEST_ROWS = 3
"""Rows below which there is no interval: resamples of two are these two and their mean, whatever they are."""
_CELLS = 1 << 19
_SLICE = 1 << 13


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
    """Means of each column (without NaN) over bootstrap resamples of the rows; all columns share the resamples.

    A column's result depends on its values, the seed and the two sizes only, to the last bit: what
    is computed beside it does not matter. All are NaN below three rows, so that no interval can be
    made of them.
    """
    n = len(columns[0]) if columns else 0
    if n < FEWEST_ROWS:
        return [np.full(resamples, np.nan) for _ in columns]
    rng = np.random.default_rng(seed)
    stacked = [np.ascontiguousarray(c, dtype=np.float64) for c in columns]
    means = [np.empty(resamples) for _ in columns]
    for start, stop in blocks(resamples, n):
        draws = rng.integers(
            0, n, size=(stop - start, n), dtype=np.uint16 if n <= 1 << 16 else np.int64
        )
        draws = draws + (np.arange(stop - start) * n)[:, None]
        weights = (
            np.bincount(draws.ravel(), minlength=(stop - start) * n)
            .reshape(-1, n)
            .astype(np.float64)
        )
        for column, mean in zip(stacked, means, strict=True):
            mean[start:stop] = dots(weights, column) / n
    return means


def blocks(rows: int, width: int, cells: int = _CELLS) -> Iterator[tuple[int, int]]:
    """Cut rows of so many numbers into parts of so many cells, which stay in the processor's cache."""
    step = max(cells // max(width, 1), 1)
    for start in range(0, rows, step):
        yield start, min(start + step, rows)


def interval(samples: Floats) -> Interval:
    """95 % interval of resampled statistics: order statistics 250 and 9,751 of 10,000; NaN ones are dropped.

    Negating the samples negates and swaps the ends exactly, and keeps the error to the last bit.
    """
    defined = samples[~np.isnan(samples)]
    kept = np.sort(defined)
    dropped = len(samples) - len(kept)
    if not len(kept):
        return Interval(np.nan, np.nan, np.nan, dropped)
    low = max(int(0.025 * len(kept)), 1)
    error = float(np.std(defined)) if kept[0] != kept[-1] else 0.0
    return Interval(float(kept[low - 1]), float(kept[len(kept) - low]), error, dropped)


def dots(rows: Floats, column: Floats) -> Floats:
    """Each row times the column, in slices that BLAS does not spread over threads.

    A threaded product takes a hundred times as long while other work shares the processor.
    """
    total: Floats = np.vecdot(rows[:, :_SLICE], column[:_SLICE])
    for start in range(_SLICE, len(column), _SLICE):
        total = total + np.vecdot(rows[:, start : start + _SLICE], column[start : start + _SLICE])
    return total


def together(column: Floats, distinct: Ints | None) -> Floats:
    """Sum the rows of queries that repeat each other: one row a distinct query, in order; as it is where None."""
    if distinct is None:
        return column
    order = np.unique(distinct, return_inverse=True)[1]
    return np.bincount(order, weights=column).astype(np.float64)


def in_all(distinct: Sequence[Ints | None]) -> Ints | None:
    """Number queries so that those have one number which repeat each other in all of several numberings."""
    known = [one for one in distinct if one is not None]
    if not known or len(known) < len(distinct):
        return None
    return np.unique(np.stack(known), axis=1, return_inverse=True)[1].ravel()
