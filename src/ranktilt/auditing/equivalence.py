"""Tests of equivalence: whether a difference of effectiveness is too small to matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ranktilt.auditing.effects import Equivalence, Outcome
from ranktilt.auditing.significance import corrected
from ranktilt.measures.base import Measure
from ranktilt.measures.ranking import Floats
from ranktilt.statistics.equivalence import smallest_margin, standard_error, t_interval, tost_p
from ranktilt.statistics.permutation import t_test_p


@dataclass(frozen=True, kw_only=True, eq=False)
class EquivalenceTask:
    """Values per query of one ranker and measure, on each side searched alone.

    A value is NaN if the side has nothing relevant to the query.
    """

    run: str
    """Name of the ranker."""
    measure: Measure
    a: str
    """The reference."""
    b: str
    """The source that is compared with it."""
    values_a: Floats
    """Values of the reference, one for each query."""
    values_b: Floats
    """Values of the source."""
    pairs: int
    """Pairs of twins that both sides are made of."""
    left_out: int
    """Documents without a twin."""


def equivalence_rows(
    tasks: Sequence[EquivalenceTask], *, margin: float, alpha: float
) -> tuple[Equivalence, ...]:
    """Test each difference both for equivalence and for a difference.

    Equivalence is tested by two one-sided paired t tests. Its p is not corrected: the claim that
    *all* rows are equivalent needs every single test, which keeps the level (Berger 1982). The p of
    the two-sided test of a difference is corrected by Holm over all rows.
    """
    rows = corrected([_equivalence(task, margin, alpha) for task in tasks], "holm")
    return tuple(
        replace(row, outcome=outcome(row.p_equivalent, row.p_corrected, alpha)) for row in rows
    )


def outcome(p_equivalent: float, p_different: float, alpha: float) -> Outcome:
    """Return what the two tests show together.

    That no difference is shown is never equivalence.
    """
    if np.isnan(p_equivalent) or np.isnan(p_different):
        return "not tested"
    if p_equivalent < alpha:
        return "different within the margin" if p_different < alpha else "equivalent"
    return "different" if p_different < alpha else "inconclusive"


def _equivalence(task: EquivalenceTask, margin: float, alpha: float) -> Equivalence:
    """Test one difference; its outcome is decided once all p are corrected."""
    defined = ~(np.isnan(task.values_a) | np.isnan(task.values_b))
    values_a, values_b = task.values_a[defined], task.values_b[defined]
    difference = values_a - values_b
    value, mean_a, mean_b = (
        float(np.mean(column)) if len(column) else np.nan
        for column in (difference, values_a, values_b)
    )
    low, high = t_interval(difference)
    return Equivalence(
        run=task.run,
        estimand=task.measure,
        a=task.a,
        b=task.b,
        value=value,
        low=low,
        high=high,
        error=standard_error(difference),
        p=t_test_p(difference),
        p_corrected=np.nan,
        queries=len(difference),
        excluded=int((~defined).sum()),
        details={"mean_a": mean_a, "mean_b": mean_b},
        margin=margin,
        p_equivalent=tost_p(difference, margin),
        smallest=smallest_margin(difference, alpha),
        pairs=task.pairs,
        left_out=task.left_out,
    )
