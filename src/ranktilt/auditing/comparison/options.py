"""The options of a comparison, and what they may be."""

from __future__ import annotations

from dataclasses import dataclass

from ranktilt.auditing.options import check_resamples
from ranktilt.errors import unknown
from ranktilt.statistics.correction import CORRECTIONS


@dataclass(frozen=True, kw_only=True)
class ComparisonOptions:
    """How changes are tested; `ranktilt.compare` has the meaning of each field."""

    resamples: int
    seed: int
    correction: str
    max_left_out: float

    def check(self) -> None:
        """Refuse values that no comparison takes."""
        if self.correction not in CORRECTIONS:
            raise unknown("correction", self.correction, CORRECTIONS)
        check_resamples(self.resamples)
