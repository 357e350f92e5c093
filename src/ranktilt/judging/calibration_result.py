"""Results about a judge's confidence: its calibration curve, and the tilt of unsure grades.

A judge, a model that grades documents, may say with each grade how sure it is: its confidence, from
0 to 1. A tilt of grades is how much higher it grades documents of one source than of another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ranktilt.auditing.effects import ALPHA
from ranktilt.judging.records import Estimate


@dataclass(frozen=True, kw_only=True)
class ConfidenceBin:
    """A point of the curve: pairs of query and document with similar confidence."""

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
    """The tilt of the grades that a judge is least sure of, compared with the tilt of the rest."""

    a: str
    """The first source; positive tilts favour it."""
    b: str
    """The second source."""
    is_of_twins: bool
    """Whether the tilt is the grade gap of twins, two versions of one text.

    Else it is the judge's grade minus the human one, for the first source minus the second.
    """
    border: float
    """Highest confidence that counts as unsure."""
    share: float
    """Share of the twins, or grades, that are unsure: a third, or more where values are equal."""
    unsure: Estimate
    """Tilt of the unsure grades, in grades."""
    rest: Estimate
    """Tilt of all other grades."""
    difference: Estimate
    """Tilt of the unsure grades minus that of the rest."""
    p: float
    """p of no difference."""
    p_corrected: float
    """The same, corrected over judges."""
    rows: int
    """Number of twins, or of grades."""
    queries: int
    """Number of their queries."""

    @property
    def is_shown(self) -> bool:
        """Whether the difference is shown: corrected p < .05."""
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
    """Expected calibration error, 0 to 1: mean distance of agreement from confidence over bins."""
    excess: Estimate
    """Mean confidence minus the share of pairs with the human grade; above 0 it is too sure."""
    confidence: float
    """Mean confidence."""
    agreement: float
    """Share of pairs with the human grade."""
    pairs: int
    """Number of pairs with a confidence and a human grade."""
    queries: int
    """Number of their queries."""
    without: int
    """Number of graded pairs without a confidence."""
    tilt: UnsureTilt | None
    """Tilt of unsure grades; None without two sources, or if unsure grades or the rest lack one."""
