"""The options of a pairwise audit, and their valid values."""

from __future__ import annotations

from dataclasses import dataclass

from ranktilt.auditing.options import check_resamples
from ranktilt.auditing.pairwise.result import COUNTS
from ranktilt.errors import unknown_name


@dataclass(frozen=True, kw_only=True)
class PairwiseOptions:
    """Options for counting and testing choices; those of `ranktilt.pairwise`."""

    count_rule: str
    """How choices are counted, one of `COUNTS`."""
    margin: float
    """Largest distance from 50 % that counts as level, in points."""
    correction: str
    """Correction for several tests: ``holm`` or ``bonferroni``."""
    resamples: int
    """Number of bootstrap resamples."""
    seed: int
    """Random seed."""

    def check(self) -> None:
        """Refuse values that no pairwise audit takes, before a model is asked."""
        check_resamples(self.resamples)
        if self.count_rule not in COUNTS:
            raise unknown_name("rule for counting", self.count_rule, COUNTS)
