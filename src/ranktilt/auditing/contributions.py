"""Which queries make Relative Δ: each query's part of it, in points."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.result import Audit
from ranktilt.errors import unknown
from ranktilt.measures.base import Measure

Floats = npt.NDArray[np.float64]


def contributions(audit: Audit, run: str, measure: str | Measure, a: str, b: str) -> Floats:
    """Split Relative Δ over the queries: how many of its points each of them brings.

    Parameters
    ----------
    audit : Audit
        Its per-query values are read.
    run : str
        Name of a run.
    measure : str or Measure
        One of the audit's measures.
    a, b : str
        Groups; positive parts favour `a`. Naming them the other way round negates every part exactly.

    Returns
    -------
    ndarray of float64, shape (n_queries,)
        ``200·(a_q − b_q) / Σ(a + b)`` in percentage points, in the order of ``audit.queries``: what remains of
        Relative Δ ``200·(M_a − M_b) / (M_a + M_b)`` when its means are written as sums over the queries. The parts
        add up to Relative Δ as it is without rounding of the means. NaN for a query without a relevant document in
        both groups, and for every query where both means are 0.

    Raises
    ------
    UserError
        If the audit has no such run, measure or group.

    References
    ----------
    Relative Δ: Dai et al., KDD 2024, sec. 3.1.
    """
    measures, name = tuple(map(repr, audit.measures)), measure if isinstance(measure, str) else repr(measure)
    axes = (
        ("run", run, audit.runs),
        ("measure", name, measures),
        ("group", a, audit.groups),
        ("group", b, audit.groups),
    )
    for noun, value, names in axes:
        if value not in names:
            raise unknown(noun, value, names)
    values = audit.values[audit.runs.index(run), measures.index(name)]
    return parts(values[audit.groups.index(a)], values[audit.groups.index(b)])


def parts(a: Floats, b: Floats) -> Floats:
    """Split Relative Δ of two groups over the queries, the last axis, in points; see `contributions`."""
    counts = ~(np.isnan(a) | np.isnan(b))
    total = np.where(counts, a, 0.0).sum(axis=-1, keepdims=True) + np.where(counts, b, 0.0).sum(axis=-1, keepdims=True)
    shares: Floats = np.divide(a - b, total, out=np.full(counts.shape, np.nan), where=counts & (total > 0))
    shares *= 200
    return shares
