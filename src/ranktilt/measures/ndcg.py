"""nDCG: how high the relevant documents are ranked.

Each relevant document gains its grade times a factor that falls with its rank, the *discount*. nDCG
is the sum of these gains, divided by that of the best possible (*ideal*) ranking.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranktilt.measures.base import Measure
from ranktilt.measures.ranking import Floats, Ints, Judged, discount_spans


@dataclass(frozen=True, repr=False)
class NDCG(Measure):
    """Normalised discounted cumulative gain with linear gains, as trec_eval's ndcg_cut.

    ``DCG@k / ideal DCG@k`` with ``DCG = Σ grade / log2(1 + rank)``, in [0, 1]. Gains are linear:
    the grade itself counts, and not 2 to its power. Tied documents (of equal score) get the mean of
    ``1/log2(1 + rank)`` over their ranks (McSherry & Najork, ECIR 2008).
    """

    name = "nDCG"
    question = "is the right answer high up?"
    binary = False
    term = "nDCG"
    definition = (
        "How high the relevant documents are, from 0 (none found) to 1 (as high as possible). The "
        "lower a document is, the less it counts; nDCG@10 looks at the first ten results."
    )
    pattern = r"nDCG(?:@\d+)?"

    def per_document(self, before: Ints, size: Ints) -> Floats:
        return discount_spans(before, size, self.cutoff) / size

    def ideal(self, judged: Judged) -> Floats:
        return judged.ideal(self.cutoff)

    def discount(self, depth: int) -> Floats:
        """Return ``1/log2(1 + rank)`` for each rank down to the cutoff, with a 0 before rank 1."""
        discount = np.append(0.0, 1 / np.log2(2.0 + np.arange(depth)))
        if self.cutoff is not None:
            discount[self.cutoff + 1 :] = 0.0
        return discount


nDCG = NDCG()  # noqa: N816
