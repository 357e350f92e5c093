"""A judge's confidence in words: whether it is right, and whether unsure grades favour a side.

A judge says with each grade how sure it is, from 0 to 1. It is calibrated if, of grades with a
confidence of 0.7, say, 70 % are the human grade. The excess is the mean confidence minus the share
of grades that are the human ones. The tilt is the grade gap: how much higher the judge grades one
of two sources.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import isnan

from ranktilt.judging.records import Calibration, Estimate, UnsureTilt
from ranktilt.measures.printing import ends_apart, rounded, signed
from ranktilt.reporting.numbers import probability
from ranktilt.reporting.sentences.findings import Finding
from ranktilt.reporting.tones import Tone

_CONFIDENCE_MARGIN = 5.0
"""Points of confidence that count as one margin, the unit in which findings are sorted."""
_GRADE_MARGIN = 0.1
"""Grades that count as one margin, in the same way."""


def confidence_findings(calibration: Calibration) -> Iterator[Finding]:
    """Yield findings on a judge's confidence: its calibration, then the tilt of unsure grades."""
    excess = calibration.excess
    is_miscalibrated = excess.low > 0 or excess.high < 0
    tone: Tone = "warning" if is_miscalibrated else "unsure"
    yield Finding(
        kind="described",
        sentence=calibration_sentence(calibration),
        size=100 * abs(excess.value) / _CONFIDENCE_MARGIN,
        run=calibration.judge,
        tone=tone,
    )
    tilt = calibration.tilt
    if tilt is not None:
        yield Finding(
            kind="favours" if tilt.is_shown else "inconclusive",
            sentence=unsure_sentence(calibration.judge, tilt),
            size=abs(tilt.difference.value) / _GRADE_MARGIN,
            run=calibration.judge,
            tone="warning" if tilt.is_shown else "unsure",
        )


def calibration_sentence(calibration: Calibration) -> str:
    """Say whether a judge is as often right as it is sure."""
    excess = calibration.excess
    numbers = (
        f"mean confidence {rounded(100 * calibration.confidence)} %, "
        f"{rounded(100 * calibration.agreement)} % of grades are the human one "
        f"({_excess_words(excess)}), expected calibration error {_error_words(calibration.error)}"
    )
    if excess.low > 0:
        return f"{calibration.judge} is more sure than right: {numbers}"
    if excess.high < 0:
        return f"{calibration.judge} is less sure than right: {numbers}"
    return f"{calibration.judge}: neither too much nor too little confidence is shown: {numbers}"


def _excess_words(excess: Estimate) -> str:
    """Print an excess of confidence in points, with its interval."""
    value = f"{signed(100 * excess.value)} points"
    if isnan(excess.low):
        return value
    return f"{value} [{signed(100 * excess.low)}, {signed(100 * excess.high)}]"


def _error_words(error: Estimate) -> str:
    """Print a calibration error in points, with its interval."""
    value = rounded(100 * error.value)
    if isnan(error.low):
        return f"{value} points"
    return f"{value} points [{rounded(100 * error.low)}, {rounded(100 * error.high)}]"


def unsure_sentence(judge: str, tilt: UnsureTilt) -> str:
    """Say whether a judge favours a side more where it is unsure.

    The difference is that between the grade gap of unsure grades and the gap of all others.
    """
    difference = f"{signed(tilt.difference.value, 2)} grades"
    if not isnan(tilt.difference.low):
        interval_ends = tilt.difference.low, tilt.difference.high
        ends = ends_apart(interval_ends, 0.0, partial(signed, digits=2))
        difference = f"{difference} [{', '.join(ends)}]"
    name = "grade gap of twins" if tilt.is_of_twins else "grade gap beyond humans"
    # The bracket stays open for a corrected p.
    numbers = (
        f"{name} {tilt.a} − {tilt.b} {signed(tilt.unsure.value, 2)} against "
        f"{signed(tilt.rest.value, 2)} elsewhere ({difference}"
    )
    where = f"where {judge} is least sure (confidence up to {tilt.border:.2f})"
    if not tilt.is_shown:
        return f"No other tilt is shown {where}: {numbers})"
    side = tilt.a if tilt.difference.value > 0 else tilt.b
    p = f"corrected p {probability(tilt.p_corrected)}"
    return f"{where[:1].upper()}{where[1:]}, it leans further toward {side} text: {numbers}, {p})"
