"""Precision: the share of relevant documents among the first k.

*Tied* documents have the same score, and all their orders are equally likely.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranktilt.errors import UserError
from ranktilt.measures.base import Measure
from ranktilt.measures.ranking import Floats, Ints, rank_spans


@dataclass(frozen=True, repr=False)
class Precision(Measure):
    """Precision at k: relevant documents among the first k, divided by k; in [0, 1].

    Tied documents count by the share of their ranks within k (McSherry & Najork, ECIR 2008).
    """

    name = "P"
    question = "how many of the first results are right?"
    term = "P@k"
    definition = "Precision: the share of relevant documents among the first k results."
    pattern = r"P@(?:\d+|k)"
    needs_cutoff = True

    def per_document(self, before: Ints, size: Ints) -> Floats:
        return rank_spans(before, size, self.cutoff) / size

    def best(self, count: Floats) -> Floats:
        """Return k for each query with a relevant document: precision is divided by k."""
        if self.cutoff is None:
            raise UserError("measure P needs a cutoff")
        return np.where(count > 0, float(self.cutoff), 0.0)


P = Precision()
