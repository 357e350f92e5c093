"""Fair re-ranking: a group gets at least a share of every prefix, or a share of the exposure.

It has FA*IR (Zehlike et al., CIKM 2017) and the constraint of exposure (Singh & Joachims, KDD
2018).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.grouping.labels import grouping
from ranktilt.errors import UserError, list_names, unknown
from ranktilt.measures.base import GroupEstimand
from ranktilt.measures.exposure_ratio import ExposureRatio
from ranktilt.measures.ranking import discount_spans
from ranktilt.measures.share import Share
from ranktilt.mitigation.base import (
    Correction,
    Lists,
    expected_counts,
    in_order,
    uniform,
)
from ranktilt.mitigation.method import FittedMethod, FittingQueries, Method
from ranktilt.mitigation.remedy import Rule
from ranktilt.rankers.base import Ranker, require_choices

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
METHODS = ("det-const-sort", "fa-ir", "exposure")
"""Names of the methods; the first is the default."""
_PART = (3 - 5**0.5) / 2
"""Position at which an interval of significances is divided.

Not in halves, because several counts change together there if p is a half.
"""
_NARROW = 1e-12
"""Width of an interval of significances that is not divided further."""
_MARGIN = 1e-9
"""Difference below which two numbers count as equal, so that roundoff decides nothing."""


@dataclass(frozen=True)
class FairReRank(Correction):
    """Re-rank each list so that `group` gets enough of the first ranks, or of the exposure.

    A list that meets the `target` already comes back unchanged, to the last bit. Documents of no
    group keep their ranks.
    """

    method: str = field(default=METHODS[0], kw_only=True)
    """Way to re-rank a list.

    ``det-const-sort``: every prefix holds the group's share and the others', rounded down (Geyik et
    al., KDD 2019).

    ``fa-ir``: every prefix holds so many of the group that chance explains the lack (Zehlike et
    al., CIKM 2017).

    ``exposure``: the best expected DCG at which the group's exposure per document is `target` times
    the others' (Singh & Joachims, KDD 2018); below 1, the exposure of either side is at least
    `target` times the other's. One of two orders of each list is drawn. It needs real scores.
    """
    group: str = field(default="", kw_only=True)
    """Group that must not get too little; all others together are the other side."""
    target: float | None = field(default=None, kw_only=True)
    """Tilt to aim at, in points from −100 to 100; 0 by default.

    It is the distance from the group's share of the query's candidates to its share of every
    prefix, as `Share` measures it: above (+) or below (−). Under ``det-const-sort``, 0 holds both
    sides to their shares; below 0 either side may lie that far below its share, and above 0 the
    others give up what the group gets.

    Under ``exposure``: the ratio of exposure to reach, 1 by default, as `ExposureRatio` measures
    it.
    """
    alpha: float = field(default=0.1, kw_only=True)
    """Probability at which ``fa-ir`` may take a fair list for an unfair one."""
    seed: int = field(default=0, kw_only=True)
    """Seed of the orders that ``exposure`` draws."""

    name: ClassVar[str] = "fair-rerank"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choices(self, method=METHODS)
        target = self.aim
        if self.method == "exposure" and not 0 <= target < math.inf:
            raise UserError(
                f"{self.name}: expected a ratio of exposures of 0 or more as target, got {target}"
            )
        if self.method != "exposure" and not -100 <= target <= 100:
            raise UserError(f"{self.name}: expected a target from -100 to 100 points, got {target}")
        if not 0 < self.alpha < 1:
            raise UserError(f"{self.name}: expected alpha between 0 and 1, got {self.alpha}")

    @property
    def reads_scores(self) -> bool:
        return self.method == "exposure"

    @property
    def aim(self) -> float:
        """The target, or the value that favours neither side."""
        neutral = 1.0 if self.method == "exposure" else 0.0
        return neutral if self.target is None else self.target

    def rule(self) -> Rule:
        parameters: dict[str, float | int | str] = {"target": self.aim}
        if self.method == "fa-ir":
            parameters["alpha"] = self.alpha
        if self.method == "exposure":
            parameters["seed"] = self.seed
        return Rule(
            method=self.method,
            reads="scores" if self.reads_scores else "order",
            protected=self.group,
            parameters=parameters,
        )

    def rescored(self, lists: Lists) -> Floats:
        if not self.group:
            groups = list_names(lists.groups.names)
            raise UserError(f"{self!r} needs the group to protect: group=NAME (valid: {groups})")
        sides, keys, scores = lists.two_sided(self.group), lists.tie_keys(), lists.run.scores.copy()
        for query, part in lists.parts():
            side = sides[part]
            known = np.flatnonzero(side >= 0)
            if not 0 < side[known].sum() < len(known):
                continue
            candidates = _Candidates(
                query=query,
                ranks=known,
                first=side[known] > 0,
                scores=scores[part][known],
                keys=keys[part][known],
            )
            reorder = self._exposed if self.method == "exposure" else self._shared
            better = reorder(candidates)
            if better is not None:
                order = np.arange(len(side))
                order[known] = known[better]
                scores[part] = in_order(order, scores[part], side)
        return scores

    def _shared(self, candidates: _Candidates) -> Ints | None:
        """Return an order in which each prefix holds its least number of documents.

        None if each prefix does so already.
        """
        first, n, available = candidates.first, len(candidates.first), int(candidates.first.sum())
        base, moved = available / n, self.aim / 100
        share = min(max(base + moved, 0.0), 1.0)
        counts, ranks = expected_counts(first, candidates.scores), np.arange(1, n + 1)
        if self.method == "fa-ir":
            needed = np.minimum(m_table(n, share, self.alpha), available)
            others = np.zeros_like(needed)
        else:
            # The published insertion gives the order of `with_minimums` where there are two sides;
            # its pseudo-code counts `maxIndices` from 1 and places from 0, so that a prefix may
            # miss its minimum by one.
            needed = minimum_counts(share, n, available)
            others = minimum_counts(max(1 - base - abs(moved), 0.0), n, n - available)
        if reached(counts, needed) and reached(ranks - counts, others):
            return None
        coin = uniform(0, candidates.query) < 0.5
        order = untied(first, candidates.scores, candidates.keys, share=share, coin=coin)
        return order[placed(first[order], with_minimums(first[order], needed, others))]

    def _exposed(self, candidates: _Candidates) -> Ints | None:
        """Draw one of two orders that on average bring the side with too little to its target.

        None if neither side gets too little.
        """
        weights = discount_spans(candidates.ranks, np.ones_like(candidates.ranks), None)
        # Lifting one side alone would tilt a ranker that is level, whose lists scatter to both
        # sides of it.
        least_of_others = min(self.aim, 1 / self.aim) if self.aim else 0.0
        for raised, least in (
            (candidates.first, self.aim),
            (~candidates.first, least_of_others),
        ):
            mixture = exposure_mixture(raised, candidates.scores, weights, least)
            if mixture is not None:
                drawn = (
                    mixture.more
                    if uniform(self.seed, candidates.query) < mixture.odds
                    else mixture.fewer
                )
                return placed(raised, drawn)
        return None


class _Candidates(NamedTuple):
    """Documents of a list that are on a side, in the run's order."""

    query: str
    """Id of the query."""
    ranks: Ints
    """Their ranks in the complete list, from 0."""
    first: Bools
    """Whether they are on the first side."""
    scores: Floats
    """Their scores."""
    keys: npt.NDArray[np.uint64]
    """Their tie keys."""


def minimum_counts(share: float, n: int, available: int) -> Ints:
    """Return the fewest documents of a side on each of n prefixes.

    It is the side's share of the prefix, rounded down, and at most `available`.
    """
    shares = np.floor(share * np.arange(1, n + 1) + _MARGIN)
    counts: Ints = np.minimum(shares, available).astype(np.int64)
    return counts


def reached(counts: Floats, needed: Ints) -> bool:
    """Return whether every prefix holds as many documents as it needs."""
    return bool((counts >= needed - _MARGIN).all())


def placed(first: Bools, ranks: Ints) -> Ints:
    """Return the order of a list after the first side gets other ranks (rising, from 0).

    Each side keeps its own order.
    """
    order = np.empty(len(first), dtype=np.int64)
    is_taken = np.zeros(len(first), dtype=bool)
    is_taken[ranks] = True
    order[is_taken] = np.flatnonzero(first)
    order[~is_taken] = np.flatnonzero(~first)
    return order


def with_minimums(first: Bools, needed: Ints, others_needed: Ints) -> Ints:
    """Return the ranks of the first side (rising, from 0) in the merged list.

    The best document comes next, unless a side would fall short of its minimum.

    From one prefix to the next, the minimum of a side must rise by at most 1. Both together must
    not exceed the length of the prefix, nor either the number of its side's documents.
    """
    mine, others = np.flatnonzero(first).tolist(), np.flatnonzero(~first).tolist()
    ranks = list[int]()
    for rank, (least, least_others) in enumerate(
        zip(needed.tolist(), others_needed.tolist(), strict=True)
    ):
        count = len(ranks)
        behind, others_behind = count < least, rank - count < least_others
        left, others_left = mine[count : count + 1], others[rank - count : rank - count + 1]
        if behind or not others_left or (left and left < others_left and not others_behind):
            ranks.append(rank)
    return np.array(ranks, dtype=np.int64)


def untied(
    first: Bools, scores: Floats, keys: npt.NDArray[np.uint64], *, share: float, coin: bool
) -> Ints:
    """Return the order of a list of falling scores in which ties of both sides favour neither.

    Among tied documents, the next one comes from the side that is further behind its share of the
    prefix (`share` is the first side's). If both are equally far behind, the smaller tie key comes
    next. If the keys are equal too, as twins' are, the first side comes next where `coin` is true.
    """
    order = np.lexsort((keys, -scores))
    counts = np.append(0, np.cumsum(first))
    ends = np.append(np.flatnonzero(np.diff(scores)) + 1, len(scores)).tolist()
    for start, stop in zip([0, *ends[:-1]], ends, strict=True):
        if not 0 < counts[stop] - counts[start] < stop - start:
            continue
        block = order[start:stop]
        mine, others = block[first[block]].tolist(), block[~first[block]].tolist()
        count, merged = int(counts[start]), list[int]()
        while mine and others:
            # The other side lags behind by one less this.
            lag = share * (start + len(merged) + 1) - count
            my_key, their_key = keys[mine[0]], keys[others[0]]
            ahead = bool(my_key < their_key) if my_key != their_key else coin
            if abs(lag - 0.5) > _MARGIN:
                ahead = lag > 0.5
            merged.append((mine if ahead else others).pop(0))
            count += ahead
        order[start:stop] = [*merged, *mine, *others]
    return order


def fail_probability(table: npt.ArrayLike, p: float) -> float:
    """Return the probability that a random list falls below a table on some prefix.

    The table holds the minimum count of each prefix; it never falls.

    Each rank holds a document of the group with probability `p`, independently of the others.
    Exact, by recursion over the ranks at which the table rises (Zehlike et al., CIKM 2017, section
    4.2).
    """
    needed = np.asarray(table, dtype=np.int64)
    # Probability of each count, from the last minimum up, of lists that have not failed yet.
    alive, before, least, lost = np.ones(1), 0, 0, 0.0
    for rank in (np.flatnonzero(np.diff(needed, prepend=0)) + 1).tolist():
        alive = np.convolve(alive, _binomial(rank - before, p))
        short = int(needed[rank - 1]) - least
        lost += float(alive[:short].sum())
        alive, before, least = alive[short:], rank, int(needed[rank - 1])
        if not len(alive):
            return 1.0
    return lost


@lru_cache(maxsize=4096)
def m_table(k: int, p: float, alpha: float) -> tuple[int, ...]:
    """Return FA*IR's table, adjusted for k tests.

    It holds the fewest documents of a group on the first 1, 2, … k ranks of a fair list. `p` is the
    least share of the group. Each significance gives a table; this is the one whose
    `fail_probability` is nearest to `alpha`, the smaller one if two are equally near.
    """
    if p in (0, 1):
        return tuple(range(1, k + 1)) if p else (0,) * k
    low, high = 0.0, 1.0
    below, above = np.zeros(k, dtype=np.int64), np.arange(1, k + 1)
    under, over = 0.0, 1 - p**k
    # Tables grow with c, and between two that differ in one count there is none.
    while (above - below).sum() > 1 and high - low > _NARROW:
        middle = low + _PART * (high - low)
        table = _quantiles(k, p, middle)
        chance = fail_probability(table, p)
        if chance < alpha:
            low, below, under = middle, table, chance
        else:
            high, above, over = middle, table, chance
    return tuple((below if alpha - under <= over - alpha else above).tolist())


def _quantiles(k: int, p: float, c: float) -> Ints:
    """Return minimum counts without any adjustment, at significance c."""
    from scipy import stats  # takes half a second, which no other method should wait for

    counts: Ints = stats.binom.ppf(c, np.arange(1, k + 1), p).astype(np.int64)
    return counts


@lru_cache(maxsize=4096)
def _binomial(n: int, p: float) -> Floats:
    """Return the probability of 0, 1, … n successes."""
    probabilities = np.ones(1)
    for _ in range(n):
        probabilities = np.convolve(probabilities, (1 - p, p))
    return probabilities


class Mixture(NamedTuple):
    """Ranks of the first side's documents in two orders of a list; one of the two is drawn."""

    fewer: Ints
    """Ranks (rising, from 0) in the order that gives the first side less exposure."""
    more: Ints
    """Ranks (rising, from 0) in the order that gives it more."""
    odds: float
    """Probability of drawing `more`."""


def expected_exposure(first: Bools, scores: Floats, weights: Floats) -> tuple[float, float]:
    """Return the mean exposure of a document of the first side and of the others.

    Tied documents share their block's ranks.
    """
    starts = np.append(0, np.flatnonzero(np.diff(scores)) + 1)
    sizes = np.diff(np.append(starts, len(scores)))
    shared = np.repeat(np.add.reduceat(weights, starts) / sizes, sizes)
    return float(shared[first].mean()), float(shared[~first].mean())


def exposure_mixture(
    first: Bools, scores: Floats, weights: Floats, target: float
) -> Mixture | None:
    """Return two orders that maximise a list's expected DCG at a ratio of exposure.

    The first side's exposure becomes `target` times the others'. None if a list has reached its
    target. `scores` fall, and so do `weights`, the exposure of each rank. The constraint on
    exposure is the only one added to those of an assignment, so the optimum is a mixture of two
    orders. Both sort by score, with the first side raised by one amount, and differ only in who
    wins ties. If no order reaches the target, both put the first side before the others.
    """
    n, n_first = len(first), int(first.sum())
    exposure, their_exposure = expected_exposure(first, scores, weights)
    if exposure >= target * their_exposure * (1 - _MARGIN):
        return None
    mine, others, total = scores[first], -scores[~first], weights.sum()

    def positions(raised: float, *, wins: bool) -> Ints:
        """Return the ranks of the first side, raised by an amount; it wins ties, or loses them."""
        above: Ints = np.searchsorted(others, -(mine + raised), side="left" if wins else "right")
        return above + np.arange(n_first)

    def lead(ranks: Ints) -> float:
        """Return the exposure of the first side minus the target times the others'."""
        got = weights[ranks].sum()
        return float(got / n_first - target * (total - got) / (n - n_first))

    low, high = 0.0, 2 * float(scores[0] - scores[-1])
    most = np.arange(n_first)
    if lead(most) < 0:
        return Mixture(most, most, 1.0)
    if lead(positions(low, wins=True)) >= 0:
        fewer, more = positions(low, wins=False), positions(low, wins=True)
    else:
        # Halve until no number lies between: the amounts are exact to the last bit.
        while low < (middle := (low + high) / 2) < high:
            if lead(positions(middle, wins=True)) >= 0:
                high = middle
            else:
                low = middle
        fewer, more = positions(low, wins=True), positions(high, wins=True)
    under, over = lead(fewer), lead(more)
    return Mixture(fewer, more, -under / (over - under))


@dataclass(frozen=True, kw_only=True)
class FittedShare(FittedMethod):
    """A fair re-ranking whose target starts at the tilt of today and moves with the strength."""

    today: float
    """Value of the ranker without correction."""
    lowest: float
    """Smallest possible target."""

    def at_strength(self, strength: float) -> Ranker:
        ranker: FairReRank = self.full
        end = ranker.aim
        # From as far below the end as the ranker is from it today, on whichever side.
        target = round(end - (1 - strength) * abs(end - self.today), 6)
        return replace(ranker, target=end if strength == 1 else max(target, self.lowest))


@dataclass(frozen=True, kw_only=True)
class FairReRankMethod(Method):
    """Raise the group that is ranked lower, up to a target."""

    name: ClassVar[str] = "fair-rerank"

    variant: str = ""
    """A `FairReRank.method`, typed behind a colon; by default the first one."""
    target: float | None = None
    """Target at strength 1.

    For shares, points of the first ranks' share above that of the candidates (0 by default); for
    exposure, the ratio (1).
    """

    def __post_init__(self) -> None:
        if self.variant and self.variant not in METHODS:
            raise unknown(f"method of {self.name}", self.variant, METHODS)
        FairReRank(method=self.variant or METHODS[0], target=self.target)  # refuses a bad target

    @property
    def label(self) -> str:
        return f"{self.name}:{self.variant}" if self.variant else self.name

    def fit(self, queries: FittingQueries) -> FittedMethod:
        queries.need_groups(queries.pair)
        group, opposite = queries.pair
        share = Share @ queries.page
        # Few judgments are left to fit on, so the shares say which group is put lower.
        if not queries.group_value(share, group, opposite) < 0:
            group, opposite = opposite, group
        question: GroupEstimand = share
        if self.variant == "exposure":
            question = ExposureRatio @ queries.page
        if len(grouping(queries.collection, queries.by).names) > 2:
            opposite = ""  # the group is compared with all others together
        value = queries.group_value(question, group, opposite)
        if not math.isfinite(value):
            raise UserError(
                f"{self.name}: {question!r} is undefined on the queries to fit on: no list has "
                f"both {group} and others"
            )
        ranker = FairReRank(
            method=self.variant or METHODS[0],
            group=group,
            target=self.target,
            by=queries.by,
            seed=queries.seed,
        )
        return FittedShare(
            full=replace(ranker, target=ranker.aim),
            today=value * question.scale,
            lowest=0.0 if self.variant == "exposure" else -100.0,
        )
