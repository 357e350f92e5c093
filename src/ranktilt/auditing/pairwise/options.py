"""The options of a pairwise audit, and what they may be."""

from __future__ import annotations

from dataclasses import dataclass

from ranktilt.auditing.options import check_resamples
from ranktilt.auditing.pairwise.result import COUNTS
from ranktilt.errors import unknown


@dataclass(frozen=True, kw_only=True)
class PairwiseOptions:
    """How choices are counted and tested; `ranktilt.pairwise` has the meaning of each field."""

    count_rule: str
    margin: float
    correction: str
    resamples: int
    seed: int

    def check(self) -> None:
        """Refuse values that no pairwise audit takes, before a model is asked."""
        check_resamples(self.resamples)
        if self.count_rule not in COUNTS:
            raise unknown("rule for counting", self.count_rule, COUNTS)
