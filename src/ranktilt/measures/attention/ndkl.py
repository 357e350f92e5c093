"""NDKL: how far every prefix of a list lies from the groups' target shares, the top most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ranktilt.measures.attention.base import GroupLists, TargetedEstimand
from ranktilt.measures.ranking import in_block

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class NormalizedDiscountedDivergence(TargetedEstimand):
    """Normalised discounted cumulative Kullback–Leibler divergence of a list's prefixes from target shares.

    ``Σ_i KL(D_i ‖ target)/log2(i + 1) ÷ Σ_i 1/log2(i + 1)`` over the first i = 1, 2, … ranks, natural logarithms; D_i
    are the groups' shares of the first i documents, of tied ones in expectation. 0 where every prefix has the target
    shares; larger is farther. A prefix without a labelled document is passed over. A query says nothing where its list
    holds one group alone, or a group whose target share is 0.

    Parameters
    ----------
    cutoff : int, optional
        Prefixes that count; all where None.
    unlabelled, target : str, optional
        See `AttentionEstimand` and `TargetedEstimand`; by default the shares of the query's list (``candidates``).

    References
    ----------
    Geyik, Ambler & Kenthapadi, KDD 2019, eq. 4.
    """

    target: str = "candidates"

    name = "NDKL"
    targets: ClassVar[tuple[str, ...]] = ("candidates", "population", "mixed", "relevant")
    question = "is every beginning of the list mixed as it should be?"
    heading = "mix of beginnings"
    outside = ("nearer to the target than random rankings", "farther from the target than random rankings")
    method = (
        "for each beginning of a list, the Kullback–Leibler divergence (natural logarithm) of the groups' shares in it "
        "from their target shares, weighted with 1 / log2(1 + length); 0 and above, averaged over queries. Random "
        "band: each list is shuffled."
    )
    bounds = (0.0, np.inf)
    term = "NDKL"
    definition = (
        "How far the beginnings of a list, from the first result on, are from the mix of groups that they should have: "
        "0 is exactly so; larger is farther. It speaks of all groups at once and favours none."
    )
    page = "ndkl"
    pattern = r"NDKL(?:\([^()]*\))?(?:@\d+)?"

    def per_query(self, lists: GroupLists) -> Floats:
        ranking, n = lists.ranking, lists.queries
        block, place = in_block(ranking)
        rank = ranking.before[block] + place
        shares, weight = self._prefixes(lists), 1 / np.log2(1.0 + rank)
        target = self.shares(lists)[ranking.query]
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(shares > 0, shares * np.log(shares / target), 0.0)
        distance = terms.sum(axis=1)
        counts = ~np.isnan(shares).any(axis=1) & (rank <= (self.cutoff or len(rank)))
        total, whole = (
            np.bincount(ranking.query[counts], weights=column[counts], minlength=n)
            for column in (weight * distance, weight)
        )
        listed = (self.columns_of(lists.sums(np.ones(len(lists.kind)))) > 0).sum(axis=1)
        defined = (whole > 0) & (listed > 1) & np.isfinite(total)
        found: Floats = np.divide(total, whole, out=np.full(n, np.nan), where=defined)
        return found

    def _prefixes(self, lists: GroupLists) -> Floats:
        """Each group's share of the documents down to each rank, in expectation over ties; NaN where there is none."""
        ranking = lists.ranking
        held = self.columns_of(lists.parts[lists.kind])
        means = np.add.reduceat(held, ranking.starts, axis=0) / ranking.sizes[:, None] if len(held) else held
        total = np.cumsum(np.repeat(means, ranking.sizes, axis=0), axis=0)
        before = np.concatenate([np.zeros((1, held.shape[1])), total])[ranking.offsets[:-1][ranking.query]]
        here = np.maximum(total - before, 0.0)
        known = here.sum(axis=1, keepdims=True)
        found: Floats = np.divide(here, known, out=np.full(here.shape, np.nan), where=known > _NOTHING)
        return found

    def _said_beside(self, parts: Mapping[str, float]) -> str:
        return f"target {self.target}"


_NOTHING = 1e-9
"""What is left of a difference of running sums where a prefix holds no labelled document."""
NDKL = NormalizedDiscountedDivergence()
