"""Tests of equivalence: whether a difference of effectiveness is too small to matter.

A *source* is who wrote a document, such as a human or a language model. A corpus has *twins*: two
versions of a document, one by a reference source and one by another source. A *side* is all
versions of one source, and is searched without the other side: a side that is hard to search would
explain a tilt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ranktilt.auditing.effects import INTERVAL_FIELDS, Effect
from ranktilt.auditing.significance import correct_p_values
from ranktilt.measures.base import Measure
from ranktilt.measures.ranking import Floats
from ranktilt.statistics.bootstrap import FEWEST_ROWS
from ranktilt.statistics.equivalence import smallest_margin, standard_error, t_interval, tost_p
from ranktilt.statistics.permutation import t_test_p

Outcome = Literal[
    "equivalent", "different within the margin", "different", "inconclusive", "not tested"
]
"""Whether effectiveness on two sides is shown to be the same, up to a margin."""


@dataclass(frozen=True, kw_only=True)
class Equivalence(Effect):
    """Difference of effectiveness between two sides of a corpus, each searched alone.

    A side has one version of each document: `a` is the version of the reference source, such as
    human texts, and `b` that of another source. Values are positive if the same queries are
    answered better on the reference. Tests and intervals are Student's t.
    """

    margin: float
    """Largest difference that would not matter, on the scale of the measure, 0 to 1."""
    p_equivalent: float
    """The larger p of two one-sided paired t tests against ±margin (Schuirmann 1987)."""
    smallest: float
    """Smallest margin for which these queries would show equivalence, on the same scale."""
    outcome: Outcome = "not tested"
    """Verdict of the tests."""
    pairs: int
    """Number of pairs of twins; each side has one document of every pair."""
    left_out: int
    """Number of documents without a twin, which are on neither side."""

    @property
    def _beyond_sample(self) -> tuple[str, ...]:
        """Names of the fields that the sample is too small for.

        Student's t holds for small samples, so that p is shown wherever an interval is.
        """
        if self.sample < FEWEST_ROWS:
            return (*INTERVAL_FIELDS, "p_equivalent", "smallest")
        return ()

    @property
    def source(self) -> str:
        """The source that is compared with the reference."""
        return self.b

    def derived(self) -> dict[str, Any]:
        """Return numbers that follow from the fields, for the file."""
        of_sides = {
            "source": self.b,
            "on_reference": self.mean_a,
            "on_source": self.mean_b,
            "difference": self.value,
            "p_different": self.p,
        }
        return {**super().derived(), **of_sides}


@dataclass(frozen=True, kw_only=True, eq=False)  # `==` of arrays is no single truth value
class EquivalenceTask:
    """Values per query of one ranker and measure on both sides.

    A value is NaN if the side has no document that is relevant to the query.
    """

    run: str
    """Name of the ranker that made the run."""
    measure: Measure
    """Measure of effectiveness."""
    a: str
    """The reference source."""
    b: str
    """The source that is compared with it."""
    values_a: Floats
    """Values on the reference side, one for each query."""
    values_b: Floats
    """Values on the other side, in the same order."""
    pairs: int
    """Number of pairs of twins; each side has one document of every pair."""
    left_out: int
    """Number of documents without a twin, which are on neither side."""


def equivalence_rows(
    tasks: Sequence[EquivalenceTask], *, margin: float, alpha: float
) -> tuple[Equivalence, ...]:
    """Test each task's difference both for equivalence and for a difference.

    Equivalence is tested by two one-sided paired t tests. Its p is not corrected for the number of
    rows. Whoever claims that *all* rows are equivalent needs every single test to succeed. If any
    row is not equivalent, this happens with a probability of at most `alpha` (Berger 1982). The p
    of the two-sided test of a difference is corrected by Holm over all rows.

    Parameters
    ----------
    tasks : sequence of EquivalenceTask
        Values per query, a task for each row.
    margin : float
        Largest difference that would not matter, on the scale of the measures, 0 to 1.
    alpha : float
        Significance level of both tests. Intervals are 95 % intervals, whatever it is.
    """
    rows = correct_p_values([_equivalence(task, margin, alpha) for task in tasks], "holm")
    return tuple(
        replace(row, outcome=outcome(row.p_equivalent, row.p_corrected, alpha)) for row in rows
    )


def outcome(p_equivalent: float, p_different: float, alpha: float) -> Outcome:
    """Return what the two tests show together.

    A test that shows no difference does not by itself show equivalence.
    """
    if np.isnan(p_equivalent) or np.isnan(p_different):
        return "not tested"
    if p_equivalent < alpha:
        return "different within the margin" if p_different < alpha else "equivalent"
    return "different" if p_different < alpha else "inconclusive"


def _equivalence(task: EquivalenceTask, margin: float, alpha: float) -> Equivalence:
    """Test one difference; its outcome is decided once all p are corrected."""
    is_defined = ~(np.isnan(task.values_a) | np.isnan(task.values_b))
    values_a, values_b = task.values_a[is_defined], task.values_b[is_defined]
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
        excluded=int((~is_defined).sum()),
        details={"mean_a": mean_a, "mean_b": mean_b},
        margin=margin,
        p_equivalent=tost_p(difference, margin),
        smallest=smallest_margin(difference, alpha),
        pairs=task.pairs,
        left_out=task.left_out,
    )
