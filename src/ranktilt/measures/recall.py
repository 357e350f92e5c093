"""Recall: the share of the relevant documents that are among the first k."""

from __future__ import annotations

from dataclasses import dataclass

from ranktilt.measures.precision import Precision
from ranktilt.measures.ranking import Floats


@dataclass(frozen=True, repr=False)
class Recall(Precision):
    """Recall at k: relevant documents among the first k, divided by all relevant ones; in [0, 1].

    Tied documents count by the share of their ranks within k, as for precision.
    """

    name = "R"
    question = "how many of the right answers are found?"
    term = "R@k"
    definition = "Recall: the share of the relevant documents that are among the first k results."
    pattern = r"R@(?:\d+|k)"

    def best(self, count: Floats) -> Floats:
        """Return the number of relevant documents of each query."""
        return count


R = Recall()
