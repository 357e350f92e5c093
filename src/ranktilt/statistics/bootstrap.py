"""Bootstrap over queries: resampled means and 95 % intervals, in array code only.

A resample of n queries draws n of them with replacement: some come twice, some not at all. The
spread of a mean over many resamples shows how much it would vary over other queries (Efron, Annals
of Statistics 7(1), 1979).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
RESAMPLES = 10_000
"""Default number of bootstrap resamples.

The ends of a 95 % interval are then the 250th smallest and the 250th largest value.
"""
FEWEST_ROWS = 3
"""Fewest rows for an interval: resamples of two rows say nothing about other rows."""
_CELLS = 1 << 19
"""Most numbers that are drawn at a time: 4 MiB of them, which fit into a processor's cache."""
_SLICE = 1 << 13
"""Longest vector whose product the BLAS library computes in a single thread; see `dots`."""


class Interval(NamedTuple):
    """A 95 % interval and the standard error behind it."""

    low: float
    """Lower end."""
    high: float
    """Upper end."""
    error: float
    """Standard error: the standard deviation of the statistic over the resamples."""
    dropped: int
    """Number of resamples in which the statistic was undefined (NaN)."""


def resampled_means(
    columns: list[Floats], *, resamples: int = RESAMPLES, seed: int = 0
) -> list[Floats]:
    """Compute the mean of each column in many resamples of the rows.

    Parameters
    ----------
    columns : list of ndarray of float64, shape (n_rows,)
        Columns without NaN. All use the same resamples, so their means can be combined, such as to
        a ratio, one resample at a time.
    resamples, seed : int, optional
        Number of resamples, and their seed.

    Returns
    -------
    list of ndarray of float64, shape (resamples,)
        The means of each column. They are the same to the last bit whatever other columns there
        are. With fewer than three rows, all means are NaN, so that no interval can be made of them.
    """
    n = len(columns[0]) if columns else 0
    if n < FEWEST_ROWS:
        return [np.full(resamples, np.nan) for _ in columns]
    rng = np.random.default_rng(seed)
    contiguous = [np.ascontiguousarray(column, dtype=np.float64) for column in columns]
    means = [np.empty(resamples) for _ in columns]
    for start, stop in blocks(resamples, n):
        counts = _resampled_counts(rng, stop - start, n)
        for column, mean in zip(contiguous, means, strict=True):
            mean[start:stop] = dots(counts, column) / n
    return means


def _resampled_counts(rng: np.random.Generator, resamples: int, n: int) -> Floats:
    """Draw how often each of n rows is in each resample, shape (resamples, n)."""
    # Numbers of 16 bits are drawn faster.
    dtype = np.uint16 if n <= 1 << 16 else np.int64
    drawn_rows = rng.integers(0, n, size=(resamples, n), dtype=dtype)
    # Each resample gets a range of numbers of its own, so that they can be counted all together.
    cells = drawn_rows + (np.arange(resamples) * n)[:, None]
    counts = np.bincount(cells.ravel(), minlength=resamples * n)
    return counts.reshape(-1, n).astype(np.float64)


def blocks(rows: int, width: int, cells: int = _CELLS) -> Iterator[tuple[int, int]]:
    """Divide the rows of a table into blocks that fit into the processor's cache.

    A row has `width` numbers. A block has at most `cells` numbers, but always a whole row. Yields
    the index of the first row of each block, and the index after its last row.
    """
    step = max(cells // max(width, 1), 1)
    for start in range(0, rows, step):
        yield start, min(start + step, rows)


def interval(samples: Floats) -> Interval:
    """Return the 95 % percentile interval of a resampled statistic.

    The ends are the 250th smallest and the 250th largest of 10,000 values, and correspondingly for
    other numbers. Undefined values (NaN) are dropped. Negated samples give exactly the negated ends
    in the other order, so an audit with swapped groups prints the same figures.
    """
    defined = samples[~np.isnan(samples)]
    ordered = np.sort(defined)
    dropped = len(samples) - len(ordered)
    if not len(ordered):
        return Interval(low=np.nan, high=np.nan, error=np.nan, dropped=dropped)
    position = max(int(0.025 * len(ordered)), 1)  # counted from 1, from either end
    return Interval(
        low=float(ordered[position - 1]),
        high=float(ordered[len(ordered) - position]),
        error=float(np.std(defined)) if ordered[0] != ordered[-1] else 0.0,
        dropped=dropped,
    )


def dots(rows: Floats, column: Floats) -> Floats:
    """Return the dot product of each row with the column.

    Long vectors are multiplied in slices, which the BLAS library does not spread over threads: a
    threaded product takes a hundred times as long while other work shares the processor.
    """
    total: Floats = np.vecdot(rows[:, :_SLICE], column[:_SLICE])
    for start in range(_SLICE, len(column), _SLICE):
        total = total + np.vecdot(rows[:, start : start + _SLICE], column[start : start + _SLICE])
    return total


def sum_repeats(column: Floats, distinct: Ints | None) -> Floats:
    """Sum the values of queries that repeat each other: queries of equal text count as one.

    `distinct` has a number for each query, the same one for queries that repeat each other. The
    result has one sum for each number, in rising order. If `distinct` is None, no query is a
    repeat, and the column is returned as it is.
    """
    if distinct is None:
        return column
    index = np.unique(distinct, return_inverse=True)[1]  # the same numbers without gaps, from 0
    return np.bincount(index, weights=column).astype(np.float64)


def shared_numbering(numberings: Sequence[Ints | None]) -> Ints | None:
    """Return a numbering that gives two queries one number if each of several numberings does.

    A numbering gives queries that repeat each other the same number (`sum_repeats`); it is None if
    no queries do. The result is None if any of the numberings is None, or if there are none.
    """
    known = [numbering for numbering in numberings if numbering is not None]
    if not known or len(known) < len(numberings):
        return None
    return np.unique(np.stack(known), axis=1, return_inverse=True)[1].ravel()
