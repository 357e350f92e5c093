"""Fair re-ranking: a group gets at least a share of every prefix, or a share of the exposure.

A *prefix* of a list is its first 1, 2, … ranks. The *exposure* of a document is the attention that
it gets, as a weight of its rank: ``1 / log2(1 + rank)``.

A list has two *sides*. The first side is the group that must not get too little; all other groups
together are the second. The three methods are DetConstSort (Geyik et al., KDD 2019), FA*IR (Zehlike
et al., CIKM 2017) and a constraint of exposure (Singh & Joachims, KDD 2018).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.grouping.labels import grouping
from ranktilt.errors import UserError, list_names, unknown_name
from ranktilt.measures.base import GroupEstimand
from ranktilt.measures.exposure_ratio import ExposureRatio
from ranktilt.measures.ranking import discount_spans
from ranktilt.measures.share import Share
from ranktilt.mitigation.base import (
    Correction,
    Lists,
    expected_counts,
    random_share,
    reassign_scores,
)
from ranktilt.mitigation.method import FittedMethod, FittingQueries, Method
from ranktilt.mitigation.remedy import Rule
from ranktilt.rankers.base import Ranker, require_choices

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
METHODS = ("det-const-sort", "fa-ir", "exposure")
"""Names of the methods; the first is the default."""
_GOLDEN_SECTION = (3 - 5**0.5) / 2
"""Point at which `m_table` divides an interval of significances: .38 of its width.

If it were halved, several counts would change together for a group whose share is one half.
"""
_NARROWEST = 1e-12
"""Width of the narrowest interval of significances that `m_table` divides."""
_ROUNDING = 1e-9
"""Difference below which two numbers count as equal, because it may be a rounding error."""


@dataclass(frozen=True)
class FairReRank(Correction):
    """Re-rank each list so that `group` gets enough of the first ranks, or of the exposure.

    A list that already meets the `target` comes back unchanged, to the last bit. Documents without
    a group keep their ranks.
    """

    method: str = field(default=METHODS[0], kw_only=True)
    """Way to re-rank a list.

    ``det-const-sort``: every prefix of k ranks holds at least the group's share of k documents, and
    at least the others' share, each rounded down (Geyik et al., KDD 2019).

    ``fa-ir``: every prefix holds at least as many documents of the group as a fair list might hold
    by chance (Zehlike et al., CIKM 2017). See `alpha`.

    ``exposure``: the mean exposure of the group's documents is `target` times that of the others,
    at the smallest loss of expected DCG (Singh & Joachims, KDD 2018). With a target below 1, either
    side gets at least `target` times the exposure of the other. In general no single order does
    that, so one of two orders is drawn for each list. This method needs real scores.
    """
    group: str = field(default="", kw_only=True)
    """The first side: the group that must not get too little."""
    target: float | None = field(default=None, kw_only=True)
    """Tilt to aim at.

    For ``det-const-sort`` and ``fa-ir``: the group's share of every prefix minus its share of the
    whole list, in points from −100 to 100, as `Share` measures it. The default is 0, which gives
    each side its share. Under ``det-const-sort``, a target below 0 allows either side to be that
    far below its share. A target above 0 takes from the others what it gives to the group.

    For ``exposure``: the ratio of the group's mean exposure to that of the others, as
    `ExposureRatio` measures it. The default is 1.
    """
    alpha: float = field(default=0.1, kw_only=True)
    """Significance of ``fa-ir``: the probability of changing a list that is fair."""
    seed: int = field(default=0, kw_only=True)
    """Seed by which ``exposure`` draws one of the two orders of each list."""

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
        """The target; by default the value that favours neither side."""
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

    def rescore(self, lists: Lists) -> Floats:
        if not self.group:
            groups = list_names(lists.groups.names)
            raise UserError(f"{self!r} needs the group to protect: group=NAME (valid: {groups})")
        sides, keys, scores = (
            lists.side_codes(self.group),
            lists.tie_keys(),
            lists.run.scores.copy(),
        )
        for query, span in lists.slices():
            side = sides[span]
            known = np.flatnonzero(side >= 0)  # documents with a group
            if not 0 < side[known].sum() < len(known):  # all are on one side
                continue
            candidates = _Candidates(
                query=query,
                ranks=known,
                first=side[known] > 0,
                scores=scores[span][known],
                keys=keys[span][known],
            )
            reorder = (
                self._draw_exposure_order if self.method == "exposure" else self._enforce_shares
            )
            better = reorder(candidates)
            if better is not None:
                order = np.arange(len(side))
                order[known] = known[better]
                scores[span] = reassign_scores(order, scores[span], side)
        return scores

    def _enforce_shares(self, candidates: _Candidates) -> Ints | None:
        """Return an order in which each prefix holds enough documents of each side.

        None if each prefix does so already.
        """
        first, n, available = candidates.first, len(candidates.first), int(candidates.first.sum())
        # The first side's share of the list, and the target as a difference from that share.
        list_share, target = available / n, self.aim / 100
        share = min(max(list_share + target, 0.0), 1.0)
        counts, ranks = expected_counts(first, candidates.scores), np.arange(1, n + 1)
        if self.method == "fa-ir":
            needed = np.minimum(m_table(n, share, self.alpha), available)
            others_needed = np.zeros_like(needed)
        else:
            # DetConstSort as published inserts documents one by one. With two sides, that gives the
            # order of `ranks_with_minimums`. The pseudo-code counts `maxIndices` from 1 and ranks
            # from 0, so that a prefix may miss its minimum by one; this is not reproduced here.
            needed = minimum_counts(share, n, available)
            others_share = max(1 - list_share - abs(target), 0.0)
            others_needed = minimum_counts(others_share, n, n - available)
        if meets_minimums(counts, needed) and meets_minimums(ranks - counts, others_needed):
            return None
        coin = random_share(0, candidates.query) < 0.5
        order = order_with_fair_ties(
            first, candidates.scores, candidates.keys, share=share, coin=coin
        )
        first_ranks = ranks_with_minimums(first[order], needed, others_needed)
        return order[order_from_ranks(first[order], first_ranks)]

    def _draw_exposure_order(self, candidates: _Candidates) -> Ints | None:
        """Draw one of two orders, so that on average the side with too little gets its target.

        None if neither side gets too little.
        """
        weights = discount_spans(candidates.ranks, np.ones_like(candidates.ranks), None)
        # By chance, a list of a level ranker favours the first or the second side. If only lists
        # in which the first side gets too little were changed, the ranker would be tilted.
        others_target = min(self.aim, 1 / self.aim) if self.aim else 0.0
        for raised, target in (
            (candidates.first, self.aim),
            (~candidates.first, others_target),
        ):
            mixture = exposure_mixture(raised, candidates.scores, weights, target)
            if mixture is not None:
                draws_more = random_share(self.seed, candidates.query) < mixture.odds
                return order_from_ranks(raised, mixture.more if draws_more else mixture.fewer)
        return None


@dataclass(frozen=True, kw_only=True, eq=False)
class _Candidates:
    """Documents of a list that have a group, in the run's order."""

    query: str
    """Id of the query."""
    ranks: Ints
    """Rank of each document in the complete list, from 0."""
    first: Bools
    """Whether each document is on the first side."""
    scores: Floats
    """Score of each document."""
    keys: npt.NDArray[np.uint64]
    """Tie key of each document: of two tied documents, the one with the smaller key is first."""


def minimum_counts(share: float, n: int, available: int) -> Ints:
    """Return the minimum number of documents of a side on each of n prefixes.

    It is `share` of the prefix, rounded down, but at most `available`, the number of documents that
    the side has.
    """
    shares = np.floor(share * np.arange(1, n + 1) + _ROUNDING)
    counts: Ints = np.minimum(shares, available).astype(np.int64)
    return counts


def meets_minimums(counts: Floats, needed: Ints) -> bool:
    """Return whether every prefix holds as many documents as it needs."""
    return bool((counts >= needed - _ROUNDING).all())


def order_from_ranks(first: Bools, ranks: Ints) -> Ints:
    """Return the order of a list in which the first side has the given ranks.

    `ranks` rise and start at 0. Documents of the same side keep their order.
    """
    order = np.empty(len(first), dtype=np.int64)
    is_taken = np.zeros(len(first), dtype=bool)
    is_taken[ranks] = True
    order[is_taken] = np.flatnonzero(first)
    order[~is_taken] = np.flatnonzero(~first)
    return order


def ranks_with_minimums(first: Bools, needed: Ints, others_needed: Ints) -> Ints:
    """Return the ranks of the first side (rising, from 0) in a list that meets its minimums.

    At each rank, the better document of the two sides comes next, unless the other side would then
    fall short of its minimum.

    Parameters
    ----------
    first : ndarray of bool, shape (n,)
        Whether each document is on the first side, from the best to the worst.
    needed, others_needed : ndarray of int64, shape (n,)
        The fewest documents of the first and of the second side on each prefix. From one prefix to
        the next, a minimum must rise by at most 1. Both together must not exceed the length of the
        prefix, and neither may exceed the number of its side's documents.
    """
    mine, others = np.flatnonzero(first).tolist(), np.flatnonzero(~first).tolist()
    ranks = list[int]()
    for rank, (least, least_others) in enumerate(
        zip(needed.tolist(), others_needed.tolist(), strict=True)
    ):
        count = len(ranks)  # documents of the first side so far; the others have `rank - count`
        behind, others_behind = count < least, rank - count < least_others
        # The next document of each side, as a list, which is empty if the side has no more.
        next_mine, next_other = mine[count : count + 1], others[rank - count : rank - count + 1]
        is_better = bool(next_mine) and next_mine < next_other
        if behind or not next_other or (is_better and not others_behind):
            ranks.append(rank)
    return np.array(ranks, dtype=np.int64)


def order_with_fair_ties(
    first: Bools, scores: Floats, keys: npt.NDArray[np.uint64], *, share: float, coin: bool
) -> Ints:
    """Return the order of a list in which tied documents favour neither side.

    Among tied documents, the next one comes from the side that is further behind its share of the
    prefix. If both are equally far behind, the smaller tie key comes next. If the keys are equal
    too, as those of twins are, the coin decides.

    Parameters
    ----------
    first : ndarray of bool, shape (n,)
        Whether each document is on the first side.
    scores : ndarray of float64, shape (n,)
        Scores, which fall.
    keys : ndarray of uint64, shape (n,)
        Tie key of each document.
    share : float
        The first side's share of each prefix.
    coin : bool
        Whether the first side comes next where nothing else decides.
    """
    order = np.lexsort((keys, -scores))
    counts = np.append(0, np.cumsum(first))  # documents of the first side before each rank
    ends = np.append(np.flatnonzero(np.diff(scores)) + 1, len(scores)).tolist()
    for start, stop in zip([0, *ends[:-1]], ends, strict=True):  # each block of tied documents
        if not 0 < counts[stop] - counts[start] < stop - start:  # one side has the whole block
            continue
        block = order[start:stop]
        mine, others = block[first[block]].tolist(), block[~first[block]].tolist()
        count, merged = int(counts[start]), list[int]()
        while mine and others:
            # The number of documents by which the first side is behind its share at this rank. The
            # two shares add up to the number of ranks, so the other side is behind by 1 − lag, and
            # both are equally far behind at ½.
            lag = share * (start + len(merged) + 1) - count
            my_key, their_key = keys[mine[0]], keys[others[0]]
            is_mine_next = bool(my_key < their_key) if my_key != their_key else coin
            if abs(lag - 0.5) > _ROUNDING:
                is_mine_next = lag > 0.5
            merged.append((mine if is_mine_next else others).pop(0))
            count += is_mine_next
        order[start:stop] = [*merged, *mine, *others]
    return order


def fail_probability(table: npt.ArrayLike, p: float) -> float:
    """Return the probability that a fair list fails: that some prefix holds fewer than it must.

    In a fair list, each rank holds a document of the group with probability `p`, independently of
    the other ranks. The result is exact. It is found by recursion over the ranks at which the table
    rises (Zehlike et al., CIKM 2017, section 4.2).

    Parameters
    ----------
    table : array_like of int, shape (k,)
        The fewest documents of the group on each prefix; it never falls.
    p : float
        Share of the group.
    """
    needed = np.asarray(table, dtype=np.int64)
    # not_failed[i]: probability that a list has not failed on its first `previous_rank` ranks, and
    # holds `previous_minimum` + i documents of the group there.
    not_failed = np.ones(1)
    previous_rank, previous_minimum, failed = 0, 0, 0.0
    for rank in (np.flatnonzero(np.diff(needed, prepend=0)) + 1).tolist():
        not_failed = np.convolve(not_failed, _binomial(rank - previous_rank, p))
        minimum = int(needed[rank - 1])
        rise = minimum - previous_minimum
        failed += float(not_failed[:rise].sum())
        not_failed = not_failed[rise:]
        previous_rank, previous_minimum = rank, minimum
        if not len(not_failed):
            return 1.0
    return failed


@lru_cache(maxsize=4096)
def m_table(k: int, p: float, alpha: float) -> tuple[int, ...]:
    """Return FA*IR's table: the minimum number of a group's documents on the first 1, 2, … k ranks.

    A list is unfair if it falls short of the table on any prefix. These are k tests of one list, so
    each of them must have a smaller significance c than `alpha`. Each c gives a table. The result
    is the table for which a fair list falls short with a probability nearest to `alpha`
    (`fail_probability`). If two tables are equally near, it is the one with the smaller counts
    (Zehlike et al., CIKM 2017, section 4.2). `p` is the share of the group.
    """
    if p in (0, 1):
        return tuple(range(1, k + 1)) if p else (0,) * k
    # The table for `low` fails too rarely, that for `high` often enough; the interval narrows.
    low, high = 0.0, 1.0
    low_table, high_table = np.zeros(k, dtype=np.int64), np.arange(1, k + 1)
    # The largest table asks for the group on every rank, which a list has with probability p^k.
    low_chance, high_chance = 0.0, 1 - p**k
    # Counts rise with c. If two tables differ by 1 in a single count, none is between them.
    while (high_table - low_table).sum() > 1 and high - low > _NARROWEST:
        middle = low + _GOLDEN_SECTION * (high - low)
        table = _quantiles(k, p, middle)
        chance = fail_probability(table, p)
        if chance < alpha:
            low, low_table, low_chance = middle, table, chance
        else:
            high, high_table, high_chance = middle, table, chance
    is_low_nearer = alpha - low_chance <= high_chance - alpha
    return tuple((low_table if is_low_nearer else high_table).tolist())


def _quantiles(k: int, p: float, c: float) -> Ints:
    """Return the fewest documents of the group on each of k prefixes, for one significance c.

    They are c-quantiles of binomial distributions, not adjusted for k tests.
    """
    from scipy import stats  # takes half a second, which no other method should wait for

    counts: Ints = stats.binom.ppf(c, np.arange(1, k + 1), p).astype(np.int64)
    return counts


@lru_cache(maxsize=4096)
def _binomial(n: int, p: float) -> Floats:
    """Return the probability of 0, 1, … n successes in n independent trials."""
    probabilities = np.ones(1)
    for _ in range(n):
        probabilities = np.convolve(probabilities, (1 - p, p))
    return probabilities


@dataclass(frozen=True, kw_only=True, eq=False)
class Mixture:
    """Two orders of a list, of which one is drawn: each as the ranks of the first side."""

    fewer: Ints
    """Ranks (rising, from 0) in the order that gives the first side less exposure."""
    more: Ints
    """Ranks (rising, from 0) in the order that gives the first side more exposure."""
    odds: float
    """Probability of drawing `more`."""


def expected_exposure(first: Bools, scores: Floats, weights: Floats) -> tuple[float, float]:
    """Return the mean exposure of the first side's documents, and that of the others.

    Tied documents share the exposure of their block's ranks equally. `weights` has the exposure of
    each rank.
    """
    starts = np.append(0, np.flatnonzero(np.diff(scores)) + 1)
    sizes = np.diff(np.append(starts, len(scores)))
    shared = np.repeat(np.add.reduceat(weights, starts) / sizes, sizes)
    return float(shared[first].mean()), float(shared[~first].mean())


def exposure_mixture(
    first: Bools, scores: Floats, weights: Floats, target: float
) -> Mixture | None:
    """Return two orders of a list that on average give the first side its target of exposure.

    The mean exposure of the first side's documents becomes `target` times that of the others, with
    the largest expected DCG that this allows (the linear program of Singh & Joachims, KDD 2018).
    The program assigns documents to ranks under one further constraint, that on exposure. So its
    optimum is a mixture of two orders. Both sort by score after the first side's scores are raised
    by one amount. They differ only in who wins ties.

    If no order reaches the target, both put the first side before all others.

    Parameters
    ----------
    first : ndarray of bool, shape (n,)
        Whether each document is on the first side.
    scores : ndarray of float64, shape (n,)
        Scores, which fall.
    weights : ndarray of float64, shape (n,)
        Exposure of each rank, which falls.
    target : float
        Ratio of exposure to reach.

    Returns
    -------
    Mixture or None
        None if the list has reached its target already.
    """
    exposure, their_exposure = expected_exposure(first, scores, weights)
    if exposure >= target * their_exposure * (1 - _ROUNDING):
        return None
    raising = _RaisedSide(
        scores=scores[first],
        negated_others=-scores[~first],
        weights=weights,
        total_weight=weights.sum(),
        target=target,
    )
    top = np.arange(len(raising.scores))
    if raising.lead(top) < 0:
        return Mixture(fewer=top, more=top, odds=1.0)
    # The amount to raise by lies between nothing and enough to pass every other document.
    low, high = 0.0, 2 * float(scores[0] - scores[-1])
    if raising.lead(raising.ranks(low, wins=True)) >= 0:
        fewer, more = raising.ranks(low, wins=False), raising.ranks(low, wins=True)
    else:
        # Halve until no number lies between: the amounts are exact to the last bit.
        while low < (middle := (low + high) / 2) < high:
            if raising.lead(raising.ranks(middle, wins=True)) >= 0:
                high = middle
            else:
                low = middle
        fewer, more = raising.ranks(low, wins=True), raising.ranks(high, wins=True)
    # `fewer` leads by less than 0 and `more` by at least 0; their mixture leads by 0 on average.
    under, over = raising.lead(fewer), raising.lead(more)
    return Mixture(fewer=fewer, more=more, odds=-under / (over - under))


@dataclass(frozen=True, kw_only=True, eq=False)
class _RaisedSide:
    """A list whose first side is raised: an amount is added to each of its scores."""

    scores: Floats
    """Scores of the first side, falling."""
    negated_others: Floats
    """Scores of the other side with the opposite sign, so that they rise for `searchsorted`."""
    weights: Floats
    """Exposure of each rank."""
    total_weight: float
    """Sum of the weights."""
    target: float
    """Ratio of exposure to reach."""

    def ranks(self, amount: float, *, wins: bool) -> Ints:
        """Return the ranks of the first side (rising, from 0) after it is raised by an amount.

        Where scores tie, the first side comes first if it `wins`, and last otherwise.
        """
        others_above: Ints = np.searchsorted(
            self.negated_others, -(self.scores + amount), side="left" if wins else "right"
        )
        return others_above + np.arange(len(self.scores))

    def lead(self, ranks: Ints) -> float:
        """Return the mean exposure of the first side minus the target times that of the others."""
        first_weight = self.weights[ranks].sum()
        rest = self.target * (self.total_weight - first_weight) / len(self.negated_others)
        return float(first_weight / len(self.scores) - rest)


@dataclass(frozen=True, kw_only=True)
class FittedShare(FittedMethod):
    """A fair re-ranking whose target depends on the strength.

    At strength 0 the target is the value that the ranker has without any correction, and at
    strength 1 it is the target of the method.
    """

    uncorrected: float
    """Value of the ranker without correction, in the unit of the target."""
    lowest: float
    """Smallest target that `FairReRank` takes."""

    def at_strength(self, strength: float) -> Ranker:
        """Return the fair re-ranking with the target for a strength."""
        ranker: FairReRank = self.full
        full_target = ranker.aim
        # A target is a minimum. If the uncorrected value is above the full target, targets above it
        # would raise the group further. So they are as far below it instead (`abs`).
        target = round(full_target - (1 - strength) * abs(full_target - self.uncorrected), 6)
        return replace(ranker, target=full_target if strength == 1 else max(target, self.lowest))


@dataclass(frozen=True, kw_only=True)
class FairReRankMethod(Method):
    """Raise the group that is ranked lower, up to a target."""

    name: ClassVar[str] = "fair-rerank"

    variant: str = ""
    """Name of a `FairReRank.method`, typed behind a colon; empty for the first one."""
    target: float | None = None
    """Target at strength 1 (`FairReRank.target`); None for the value that favours neither side."""

    def __post_init__(self) -> None:
        if self.variant and self.variant not in METHODS:
            raise unknown_name(f"method of {self.name}", self.variant, METHODS)
        FairReRank(method=self.variant or METHODS[0], target=self.target)  # refuses a bad target

    @property
    def label(self) -> str:
        return f"{self.name}:{self.variant}" if self.variant else self.name

    def fit(self, queries: FittingQueries) -> FittedMethod:
        queries.need_groups(queries.pair)
        group, opposite = queries.pair
        share = Share @ queries.page
        # The group to raise is the one whose share is too small. Relevance is not considered,
        # because few judgments are left to fit on.
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
            uncorrected=value * question.scale,
            lowest=0.0 if self.variant == "exposure" else -100.0,
        )
