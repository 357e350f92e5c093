"""The options of a gate, and what they may be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ranktilt.auditing.comparison.match import MAX_LEFT_OUT
from ranktilt.auditing.gate.limit_checks import MOST
from ranktilt.auditing.options import check_resamples
from ranktilt.errors import UserError, unknown
from ranktilt.measures.margin import DEFAULT_MARGIN, Margin

POLICIES = ("fail", "pass")


@dataclass(frozen=True, kw_only=True)
class GateOptions:
    """What a gate allows, and how it resamples; see `gate`."""

    max_tilt: Margin | None
    min_effect: float
    max_loss: float | None
    max_left_out: float | None
    inconclusive: str
    resamples: int
    seed: int
    has_baseline: bool

    @property
    def tilt(self) -> Margin | None:
        """Largest tilt that is allowed; None where only a growth or a loss is judged."""
        if self.max_tilt is None and not self.has_baseline:
            return DEFAULT_MARGIN
        return self.max_tilt

    @property
    def most_left_out(self) -> float:
        """Percent of all queries that only one of audit and baseline may hold."""
        return MAX_LEFT_OUT if self.max_left_out is None else self.max_left_out

    @property
    def spec(self) -> dict[str, Any]:
        """The options as a result has them."""
        return {
            "max_tilt": self.tilt,
            "baseline": self.has_baseline,
            "min_effect": self.min_effect,
            "max_loss": self.max_loss,
            "inconclusive": self.inconclusive,
            "resamples": self.resamples,
            "seed": self.seed,
        }

    def check(self) -> None:
        """Refuse what no gate takes: limits out of range, or that need a baseline."""
        self._check_limits()
        if self.inconclusive not in POLICIES:
            raise unknown("policy for inconclusive", self.inconclusive, POLICIES)
        check_resamples(self.resamples)

    def _check_limits(self) -> None:
        if not 0 <= self.min_effect < math.inf:
            raise UserError(
                f"--min-effect: expected a number of points of at least 0, got {self.min_effect:g}"
            )
        if isinstance(self.max_tilt, float | int) and self.max_tilt >= MOST:
            raise UserError(
                f"--max-tilt: expected less than {MOST:g}, the most Relative Δ can be; "
                f"got {self.max_tilt:g}"
            )
        if self.max_loss is not None and not 0 <= self.max_loss < 100:
            raise UserError(
                f"--max-loss: expected a number of points from 0 to 100, got {self.max_loss:g}"
            )
        needs_baseline = {
            "--min-effect": self.min_effect > 0,
            "--max-left-out": self.max_left_out is not None,
            "--max-loss": self.max_loss is not None,
        }
        for option, is_used in needs_baseline.items():
            if is_used and not self.has_baseline:
                raise UserError(f"{option} needs a baseline: --baseline OLD.json")
