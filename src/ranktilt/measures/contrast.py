"""Relative Δ: how much higher one side scores than the other."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from ranktilt.errors import unknown

Floats = npt.NDArray[np.float64]
Rounding = Literal["none", "paper"]
ROUNDINGS = ("none", "paper")


def relative_delta(a: npt.ArrayLike, b: npt.ArrayLike, *, rounding: str = "none") -> Floats:
    """Relative Δ of two means, in percent: ``100 · (a − b) / ((a + b)/2)``.

    Parameters
    ----------
    a, b : array_like of float
        Means of one measure over the same queries, at least 0; `a` is by convention the human side.
    rounding : {"none", "paper"}, optional
        ``"paper"`` first rounds both means to 0.1 % as Dai et al. print them; this reproduces their cells.

    Returns
    -------
    ndarray of float64
        In [−200, 200]; positive favours `a`; NaN where both are 0. Swapping `a` and `b` negates it exactly.

    References
    ----------
    Dai et al., KDD 2024, sec. 3.1.

    Examples
    --------
    >>> float(relative_delta(0.22, 0.17, rounding="paper"))
    25.64102564102563
    """
    if rounding not in ROUNDINGS:
        raise unknown("rounding", rounding, ROUNDINGS)
    one, two = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if rounding == "paper":
        one, two = np.round(one * 1000) / 1000, np.round(two * 1000) / 1000
    with np.errstate(invalid="ignore", divide="ignore"):
        # The quotient first: it is exactly ±1 where one side is 0, so that nothing leaves [−200, 200].
        delta: Floats = 200 * ((one - two) / (one + two))
    return delta
