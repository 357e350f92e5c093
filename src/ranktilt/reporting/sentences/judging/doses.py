"""Grades by length in words: whether a judge grades the same passage higher when it is longer.

A dose is a multiple of the length, to which a passage is padded without new content.
"""

from __future__ import annotations

from math import isnan

from ranktilt.errors import join_words
from ranktilt.judging.grading.length_doses import LengthDoses
from ranktilt.measures.printing import rounded, signed
from ranktilt.reporting.sentences.findings import Finding

_SLOPE_MARGIN = 0.1
"""Grades per doubling of the length that count as one margin, in which findings are sorted."""


def dose_finding(doses: LengthDoses) -> Finding:
    """Return the effect of length on a judge's grades as a finding; its size is in margins."""
    return Finding(
        kind="favours" if doses.is_shown else "inconclusive",
        sentence=dose_sentence(doses),
        size=abs(doses.slope) / _SLOPE_MARGIN,
        run=doses.judge,
        tone="warning" if doses.is_shown else "unsure",
    )


def dose_sentence(doses: LengthDoses) -> str:
    """Say by how much a judge's grade changes when a passage becomes longer."""
    slope = f"{signed(doses.slope, 2)} grades per doubling{_interval(doses)}"
    mean_grades = join_words([rounded(dose.grade, 2) for dose in doses.grades])
    multiples = join_words([f"{dose.dose}" for dose in doses.grades])
    numbers = f"{slope}, mean {mean_grades} at {multiples} times the length"
    if not doses.is_shown:
        return f"{doses.judge}: no effect of length on its grades is shown: {numbers}"
    higher = "higher" if doses.slope > 0 else "lower"
    steps = "at every step" if doses.course in ("rising", "falling") else "though not at every step"
    return f"{doses.judge} grades padded passages of grade 0 {higher}, {steps}: {numbers}"


def _interval(doses: LengthDoses) -> str:
    """Print the interval of the slope after its value; empty where there is none."""
    if isnan(doses.low):
        return ""
    return f" [{signed(doses.low, 2)}, {signed(doses.high, 2)}]"
