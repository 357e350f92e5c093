"""Fair re-ranking: a group gets at least a share of every prefix, or a share of the exposure."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ranktilt.errors import UserError
from ranktilt.measures.ranking import discount_spans
from ranktilt.mitigation.base import Correction, Lists, in_order, uniform
from ranktilt.mitigation.exposure import expected_exposure, exposure_mixture
from ranktilt.mitigation.fa_ir import m_table
from ranktilt.mitigation.prefixes import (
    expected_counts,
    minimum_counts,
    placed,
    reached,
    untied,
    with_minimums,
)
from ranktilt.rankers.base import require_choices

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
METHODS = ("det-const-sort", "fa-ir", "exposure")


@dataclass(frozen=True)
class FairReRank(Correction):
    """Re-ranks each list so that `group` does not get too little: of the first ranks, or of the exposure.

    A list that keeps to the `target` as it is comes back to the last bit. Documents of no group keep their places.

    Parameters
    ----------
    method : {"det-const-sort", "fa-ir", "exposure"}
        ``det-const-sort``: every prefix holds the group's share and the others', rounded down (Geyik et al., KDD 2019).
        ``fa-ir``: every prefix holds so many of the group that chance explains the lack (Zehlike et al., CIKM 2017).
        ``exposure``: the best expected DCG at which the group's exposure per document is `target` times the others'
        (Singh & Joachims, KDD 2018); below 1, either side's is at least `target` times the other's. One of two orders
        of each list is drawn. It needs real scores.
    by : str
        Column of the groups.
    group : str
        The group that shall not get too little; all others together are the other side.
    target : float, optional
        In points, −100 to 100, 0 by default: what the group's share of every prefix may lie above (+) or below (−) its
        share of the query's candidates, as `Share` measures it. Under ``det-const-sort``, 0 holds both sides to their
        shares; below 0 either may lie that far below its own, and above 0 the others give up what the group gets.
        Under ``exposure``: the ratio of exposure to reach, 1 by default, as `ExposureRatio` measures it.
    alpha : float
        Of ``fa-ir``: probability at which it may take a fair list for an unfair one.
    seed : int
        Of ``exposure``: which orders are drawn.
    """

    method: str = field(default=METHODS[0], kw_only=True)
    group: str = field(default="", kw_only=True)
    target: float | None = field(default=None, kw_only=True)
    alpha: float = field(default=0.1, kw_only=True)
    seed: int = field(default=0, kw_only=True)

    name: ClassVar[str] = "fair-rerank"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choices(self, method=METHODS)
        target = self._target
        if self.method == "exposure" and not 0 <= target < math.inf:
            raise UserError(f"{self.name}: expected a ratio of exposures of 0 or more as target, got {target}")
        if self.method != "exposure" and not -100 <= target <= 100:
            raise UserError(f"{self.name}: expected a target from -100 to 100 points, got {target}")
        if not 0 < self.alpha < 1:
            raise UserError(f"{self.name}: expected alpha between 0 and 1, got {self.alpha}")

    @property
    def reads_scores(self) -> bool:
        """Only the method ``exposure`` does."""
        return self.method == "exposure"

    @property
    def _target(self) -> float:
        level = 1.0 if self.method == "exposure" else 0.0
        return level if self.target is None else self.target

    def rescored(self, lists: Lists) -> Floats:
        """Re-rank each list that does not keep to the target; see `Correction.rescored`."""
        if not self.group:
            groups = ", ".join(lists.groups.names)
            raise UserError(f"{self!r} needs the group that shall not get too little: group=NAME (valid: {groups})")
        sides, keys, scores = lists.two_sided(self.group), lists.tie_keys(), lists.run.scores.copy()
        found = list[_Outcome]()
        for query, part in lists.parts():
            side = sides[part]
            known = np.flatnonzero(side >= 0)
            if not 0 < side[known].sum() < len(known):
                continue
            one = _Candidates(query, known, side[known] > 0, scores[part][known], keys[part][known])
            found.append(self._exposed(one) if self.method == "exposure" else self._shared(one))
            if found[-1].order is not None:
                order = np.arange(len(side))
                order[known] = known[found[-1].order]
                scores[part] = in_order(order, scores[part], side)
        lists.notes["fair_rerank"] = self._summary(found)
        return scores

    def _shared(self, one: _Candidates) -> _Outcome:
        """Hold each prefix to its least number of documents."""
        first, n, available = one.first, len(one.first), int(one.first.sum())
        base, moved = available / n, self._target / 100
        share = min(max(base + moved, 0.0), 1.0)
        counts, ranks = expected_counts(first, one.scores), np.arange(1, n + 1)
        if self.method == "fa-ir":
            needed = np.minimum(m_table(n, share, self.alpha), available)
            others = np.zeros_like(needed)
        else:
            # The published insertion gives the order of `with_minimums` where there are two sides; its pseudo-code
            # counts `maxIndices` from 1 and places from 0, so that a prefix may miss its minimum by one.
            needed = minimum_counts(share, n, available)
            others = minimum_counts(max(1 - base - abs(moved), 0.0), n, n - available)
        if reached(counts, needed) and reached(ranks - counts, others):
            return _Outcome()
        coin = uniform(0, one.query) < 0.5
        order = untied(first, one.scores, one.keys, share=share, coin=coin)
        return _Outcome(order[placed(first[order], with_minimums(first[order], needed, others))])

    def _exposed(self, one: _Candidates) -> _Outcome:
        """Draw one of the two orders that bring the side that gets too little to its target on average."""
        weights = discount_spans(one.places, np.ones_like(one.places), None)
        # Lifting one side alone would tilt a ranker that is level, whose lists scatter to both sides of it.
        least_of_others = min(self._target, 1 / self._target) if self._target else 0.0
        for raised, least in ((one.first, self._target), (~one.first, least_of_others)):
            mixture = exposure_mixture(raised, one.scores, weights, least)
            if mixture is not None:
                drawn = mixture.more if uniform(self.seed, one.query) < mixture.odds else mixture.fewer
                ratio = mixture.ratio if raised is one.first else 1 / mixture.ratio
                return _Outcome(placed(raised, drawn), ratio, mixture.dcg, mixture.short)
        exposure, others = expected_exposure(one.first, one.scores, weights)
        return _Outcome(None, exposure / others)

    def _summary(self, found: list[_Outcome]) -> dict[str, Any]:
        """What became of the lists with documents of both sides."""
        told: dict[str, Any] = {"lists": len(found), "corrected": sum(one.order is not None for one in found)}
        if self.method == "exposure" and found:
            told["out_of_reach"] = sum(one.short for one in found)
            told["expected_ratio"] = float(np.mean([one.ratio for one in found]))
            told["expected_dcg"] = float(np.mean([one.dcg for one in found]))
        return told


@dataclass(frozen=True, eq=False)
class _Candidates:
    """A list's documents of both sides, in the run's order."""

    query: str
    places: Ints
    """Where they stand in the whole list, from 0."""
    first: npt.NDArray[np.bool_]
    scores: Floats
    keys: npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class _Outcome:
    """What became of a list."""

    order: Ints | None = None
    """The candidates from the best to the worst; None where they stay as they are."""
    ratio: float = math.nan
    dcg: float = 1.0
    short: bool = False
