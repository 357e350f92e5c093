"""Precision: the share of relevant documents among the first k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ranktilt.errors import UserError
from ranktilt.measures.base import Measure
from ranktilt.measures.ranking import Floats, Ints, Judged, Ranking, per_block, per_query, rank_spans


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

    def totals(self, ranking: Ranking, gains: Floats) -> Floats:
        spans = rank_spans(ranking.before, ranking.sizes, self.cutoff)
        return per_query(ranking, per_block(ranking, gains) * spans / ranking.sizes)

    def label_weights(self, ranking: Ranking, gains: Floats) -> Floats:
        return rank_spans(ranking.before, ranking.sizes, self.cutoff) / ranking.sizes

    def block_weights(self, before: Ints, size: Ints, hits: Ints) -> tuple[tuple[Floats, ...], Any]:
        return (rank_spans(before, size, self.cutoff) / size,), None

    def ideal(self, judged: Judged) -> Floats:
        return self.best(judged.count(self.rel).astype(np.float64))

    def best(self, count: Floats) -> Floats:
        if self.cutoff is None:
            raise UserError("measure P needs a cutoff")
        return np.where(count > 0, float(self.cutoff), 0.0)


P = Precision()
