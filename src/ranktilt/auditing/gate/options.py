"""The options of a gate, and their valid values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ranktilt.auditing.comparison.common_queries import MAX_LEFT_OUT
from ranktilt.auditing.gate.limit_checks import LARGEST_DELTA
from ranktilt.auditing.options import check_resamples
from ranktilt.errors import UserError, unknown_name
from ranktilt.measures.margin import DEFAULT_MARGIN, Margin

POLICIES = ("fail", "pass")
"""What an inconclusive outcome can do to a build."""
_LARGEST_LOSS = 100
"""Largest possible loss of effectiveness, in points."""


@dataclass(frozen=True, kw_only=True)
class GateOptions:
    """Limits of a gate, and options of its bootstrap; those of `gate`.

    The baseline is an earlier audit to compare with.
    """

    max_tilt: Margin | None
    """Largest tilt that passes, in points or with its unit; None for the default."""
    min_effect: float
    """Largest growth of a tilt since the baseline that passes, in points."""
    max_loss: float | None
    """Largest loss of effectiveness since the baseline, in points; None if it is not checked."""
    max_left_out: float | None
    """Largest percentage of queries in one of audit and baseline only; None for the default."""
    inconclusive: str
    """What an inconclusive outcome does to a build, one of `POLICIES`."""
    resamples: int
    """Number of bootstrap resamples."""
    seed: int
    """Random seed."""
    has_baseline: bool
    """Whether there is an earlier audit to compare with."""

    @property
    def tilt_limit(self) -> Margin | None:
        """Largest tilt that passes; None where only growth or loss since a baseline is checked."""
        if self.max_tilt is None and not self.has_baseline:
            return DEFAULT_MARGIN
        return self.max_tilt

    @property
    def most_left_out(self) -> float:
        """Largest percentage of all queries that only one of audit and baseline may hold."""
        return MAX_LEFT_OUT if self.max_left_out is None else self.max_left_out

    @property
    def spec(self) -> dict[str, Any]:
        """Options that a gate's report holds.

        `max_left_out` is not among them: if it is exceeded, there is no report.
        """
        return {
            "max_tilt": self.tilt_limit,
            "baseline": self.has_baseline,
            "min_effect": self.min_effect,
            "max_loss": self.max_loss,
            "inconclusive": self.inconclusive,
            "resamples": self.resamples,
            "seed": self.seed,
        }

    def check(self) -> None:
        """Raise `UserError` for limits that are out of range or need a baseline."""
        self._check_limits()
        if self.inconclusive not in POLICIES:
            raise unknown_name("policy for inconclusive", self.inconclusive, POLICIES)
        check_resamples(self.resamples)

    def _check_limits(self) -> None:
        """Refuse limits that are out of range, or that need a baseline where there is none."""
        if not 0 <= self.min_effect < math.inf:
            raise UserError(
                f"--min-effect: expected a number of points of at least 0, got {self.min_effect:g}"
            )
        if isinstance(self.max_tilt, float | int) and self.max_tilt >= LARGEST_DELTA:
            raise UserError(
                f"--max-tilt: expected less than {LARGEST_DELTA:g}, the largest possible Relative "
                f"Δ; got {self.max_tilt:g}"
            )
        # A limit as large as the largest loss would check nothing.
        if self.max_loss is not None and not 0 <= self.max_loss < _LARGEST_LOSS:
            raise UserError(
                f"--max-loss: expected a number of points from 0 to {_LARGEST_LOSS}, got "
                f"{self.max_loss:g}"
            )
        uses_baseline = {
            "--min-effect": self.min_effect > 0,
            "--max-left-out": self.max_left_out is not None,
            "--max-loss": self.max_loss is not None,
        }
        for option, is_named in uses_baseline.items():
            if is_named and not self.has_baseline:
                raise UserError(f"{option} needs a baseline: --baseline OLD.json")
