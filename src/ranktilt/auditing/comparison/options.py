"""The options of a comparison, and their valid values.

Audits of rankings, of citations and of judges are compared with the same options.
"""

from __future__ import annotations

from dataclasses import dataclass

from ranktilt.auditing.comparison.common_queries import check_left_out
from ranktilt.auditing.options import check_resamples
from ranktilt.errors import unknown_name
from ranktilt.field_checks import require_seed
from ranktilt.statistics.correction import CORRECTIONS


@dataclass(frozen=True, kw_only=True)
class ComparisonOptions:
    """Options for testing changes; those of `ranktilt.compare`."""

    resamples: int
    """Number of bootstrap resamples."""
    seed: int
    """Random seed."""
    correction: str
    """Correction for several tests: ``holm`` or ``bonferroni``."""
    max_left_out: float
    """Largest percentage of queries that only one result may hold."""

    def check(self) -> None:
        """Refuse values that no comparison takes."""
        if self.correction not in CORRECTIONS:
            raise unknown_name("correction", self.correction, CORRECTIONS)
        check_resamples(self.resamples)
        require_seed(self.seed)
        check_left_out(self.max_left_out)
