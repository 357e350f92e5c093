"""Rows on a judge's confidence: its calibration curve, and the tilt of unsure grades."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ranktilt.auditing.effects import ALPHA
from ranktilt.judging.records import Estimate


@dataclass(frozen=True, kw_only=True)
class ConfidenceBin:
    """A bin of the curve: pairs of like confidence."""

    lowest: float
    """Lowest confidence in the bin."""
    highest: float
    """Highest confidence in the bin."""
    confidence: float
    """Mean confidence."""
    agreement: Estimate
    """Share of pairs with the human grade."""
    pairs: int
    """Number of pairs."""


@dataclass(frozen=True, kw_only=True)
class UnsureTilt:
    """The tilt of the grades that a judge is least sure of, against that of the others."""

    a: str
    """The first source; positive tilts favour it."""
    b: str
    """The second source."""
    is_of_twins: bool
    """Whether it is the grade gap of twins; else grades beyond human ones are compared."""
    border: float
    """Highest confidence that counts as unsure."""
    share: float
    """Share of the twins, or grades, that are unsure: a third, or more where values are equal."""
    unsure: Estimate
    """Tilt where the judge is unsure, in grades."""
    rest: Estimate
    """Tilt of the others."""
    difference: Estimate
    """Unsure minus the others."""
    p: float
    """p of no difference."""
    p_corrected: float
    """The same, corrected over judges."""
    rows: int
    """Twins, or grades."""
    queries: int
    """Number of their queries."""

    @property
    def is_shown(self) -> bool:
        """Whether the difference is shown."""
        return self.p_corrected < ALPHA

    def derived(self) -> dict[str, Any]:
        """Return whether the difference is shown."""
        return {"is_shown": self.is_shown}


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Whether the confidence of a judge is right."""

    judge: str
    """Name of the judge."""
    bins: tuple[ConfidenceBin, ...]
    """The curve: bins of equal count, from the lowest confidence on."""
    error: Estimate
    """Expected calibration error: mean distance of agreement from confidence, 0 to 1."""
    excess: Estimate
    """Mean confidence minus the share of pairs with the human grade; above 0 it is too sure."""
    confidence: float
    """Mean confidence."""
    agreement: float
    """Share of pairs with the human grade."""
    pairs: int
    """Pairs with a confidence and a human grade."""
    queries: int
    """Number of their queries."""
    without: int
    """Graded pairs without a confidence."""
    tilt: UnsureTilt | None
    """Tilt of unsure grades; None without two sources, or where a part has no grade of a side."""
