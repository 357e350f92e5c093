"""nDCG, AP, P, R and RR over tie blocks: the expected value over all orders of tied documents.

Closed forms after McSherry & Najork, ECIR 2008. Everything is array code over all queries at once: entries lie
query by query, sorted by falling score.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from ranktilt.errors import UserError
from ranktilt.measures.base import Measure

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Ranking:
    """Scores of many queries, and the tie blocks in them.

    Parameters
    ----------
    offsets : ndarray of int64, shape (n_queries + 1,)
        Query ``i`` owns the entries ``offsets[i]:offsets[i + 1]``.
    scores : ndarray of float64, shape (n_entries,)
        Falling within each query.
    """

    offsets: Ints
    scores: Floats
    _heads: dict[int | None, tuple[Ranking, npt.NDArray[np.bool_]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @cached_property
    def query(self) -> Ints:
        """Query of each entry."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    @cached_property
    def starts(self) -> Ints:
        """First entry of each tie block."""
        new = np.ones(len(self.scores), dtype=bool)
        new[1:] = (self.scores[1:] != self.scores[:-1]) | (self.query[1:] != self.query[:-1])
        return np.flatnonzero(new)

    @cached_property
    def sizes(self) -> Ints:
        """Documents in each tie block (n)."""
        return np.diff(np.append(self.starts, len(self.scores)))

    @cached_property
    def block_query(self) -> Ints:
        """Query of each tie block."""
        return self.query[self.starts]

    @cached_property
    def before(self) -> Ints:
        """Documents ranked above each tie block (s)."""
        return self.starts - self.offsets[:-1][self.block_query]

    def head(self, depth: int | None) -> tuple[Ranking, npt.NDArray[np.bool_]]:
        """Keep the blocks that begin above `depth`; all where None. Returns the mask of kept entries too."""
        if depth not in self._heads:
            self._heads[depth] = self._head(depth)
        return self._heads[depth]

    def _head(self, depth: int | None) -> tuple[Ranking, npt.NDArray[np.bool_]]:
        if depth is None:
            return self, np.ones(len(self.scores), dtype=bool)
        keep = np.repeat(self.before < depth, self.sizes)
        lengths = np.bincount(self.query[keep], minlength=len(self.offsets) - 1)
        return Ranking(np.concatenate([[0], np.cumsum(lengths)]), self.scores[keep]), keep


@dataclass(frozen=True)
class Judged:
    """All judgments of one group: what an ideal ranking would hold.

    Parameters
    ----------
    query : ndarray of int64, shape (n_judgments,)
        Query of each relevant document.
    grade : ndarray of float64, shape (n_judgments,)
        Its grade, above 0.
    n_queries : int
        How many queries there are.
    """

    query: Ints
    grade: Floats
    n_queries: int

    def count(self, rel: int = 1) -> Ints:
        """Relevant documents of each query (R_g), retrieved or not."""
        return np.bincount(self.query[self.grade >= rel], minlength=self.n_queries)

    @cached_property
    def _ideal_order(self) -> tuple[Ints, Ints, Floats]:
        """Query, rank and discounted gain of each relevant document in its query's ideal ranking."""
        order = np.lexsort((-self.grade, self.query))
        query = self.query[order]
        first = np.concatenate([[0], np.cumsum(np.bincount(query, minlength=self.n_queries))])
        rank = np.arange(len(query)) - first[query] + 1
        return query, rank, self.grade[order] / np.log2(1 + rank)

    def ideal(self, cutoff: int | None) -> Floats:
        """DCG of the ideal ranking of each query, down to `cutoff`."""
        query, rank, gain = self._ideal_order
        if cutoff is not None:
            query, gain = query[rank <= cutoff], gain[rank <= cutoff]
        return np.bincount(query, weights=gain, minlength=self.n_queries).astype(np.float64)


def values(measure: Measure, ranking: Ranking, gains: Floats, judged: Judged) -> Floats:
    """Compute one measure for one group, per query, in expectation over ties.

    Parameters
    ----------
    measure : Measure
        What to compute.
    ranking : Ranking
        The run.
    gains : ndarray of float64, shape (n_entries,)
        Grade of each entry in this group; 0 for documents that are not relevant or of another group, which
        keep their ranks (Dai et al., KDD 2024, sec. 3.1).
    judged : Judged
        All relevant documents of the group.

    Returns
    -------
    ndarray of float64, shape (n_queries,)
        In [0, 1]; NaN for a query without a relevant document in the group; 0 for one that has some and
        retrieved none.
    """
    ranking, keep = ranking.head(measure.cutoff)
    gains = gains[keep]
    if measure.name == "nDCG":
        total, ideal = _dcg(ranking, gains, measure.cutoff), judged.ideal(measure.cutoff)
    else:
        relevant = (gains >= measure.rel).astype(np.float64)
        count = judged.count(measure.rel).astype(np.float64)
        total, ideal = _BINARY[measure.name](ranking, relevant, measure.cutoff), count
        if measure.name == "P":
            if measure.cutoff is None:
                raise UserError("measure P needs a cutoff")
            ideal = np.where(count > 0, float(measure.cutoff), 0.0)
        elif measure.name == "RR":
            ideal = np.where(count > 0, 1.0, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(ideal > 0, total / ideal, np.nan)


def label_weights(measure: Measure, ranking: Ranking, gains: Floats, judged: Judged) -> Floats:
    """What each relevant document adds to ``M_a − M_b`` of twins: as much where it is of `a`, the negative of `b`.

    Parameters
    ----------
    measure : Measure
        What is computed.
    ranking : Ranking
        The run.
    gains : ndarray of float64, shape (n_entries,)
        Grade of each entry of either group (for RR: of one of them); 0 for all others.
    judged : Judged
        The relevant documents of one group; its twins have the same grades.

    Returns
    -------
    ndarray of float64, shape (n_entries,)
        At least 0. With x = 1 for documents of `a` and −1 for those of `b`, ``Σ x · weight`` over a query is
        ``M_a − M_b`` in expectation over ties. For measures in `LINEAR` it is so whatever the labels are: nDCG, P and R
        are linear in x, and so is the difference of AP, since ``[(1 + x)(1 + y) − (1 − x)(1 − y)] / 4 = (x + y) / 2``.
        RR is not: its value goes to the first relevant documents of the group, and holds for these labels alone.
    """
    inside, keep = ranking.head(measure.cutoff)
    own = gains[keep]
    if measure.name == "nDCG":
        per_block, ideal = (
            discount_spans(inside.before, inside.sizes, measure.cutoff) / inside.sizes,
            judged.ideal(measure.cutoff),
        )
    else:
        own, ideal = (own >= measure.rel).astype(np.float64), judged.count(measure.rel).astype(np.float64)
        per_block = _BLOCK_WEIGHTS[measure.name](inside, own, measure.cutoff)
        if measure.name == "P":
            ideal = np.full(len(ideal), float(measure.cutoff or 1))
        elif measure.name == "RR":
            ideal = np.ones(len(ideal))
    out = np.zeros(len(gains))
    scale = np.divide(1.0, ideal, out=np.zeros(len(ideal)), where=ideal > 0)
    out[keep] = own * np.repeat(per_block * scale[inside.block_query], inside.sizes)
    return out


def _precision_weights(ranking: Ranking, relevant: Floats, cutoff: int | None) -> Floats:
    """Weight of a relevant document of each tie block in the difference of AP, before it is divided by R_g."""
    t = _per_block(ranking, relevant)
    block, place = _in_block(ranking)
    n, rank = ranking.sizes[block], ranking.before[block] + place
    part = 1.0 / rank if cutoff is None else np.where(rank <= cutoff, 1.0 / rank, 0.0)
    chances = _per_block(ranking, part) / ranking.sizes
    later = np.divide(place - 1, n - 1, out=np.zeros(len(n)), where=n > 1)
    among = _per_block(ranking, part * later) / ranking.sizes
    below = chances * t / 2
    above = _running(ranking, t) - t
    after = _per_query(ranking, below)[ranking.block_query] - _running(ranking, below)
    weights: Floats = chances * (above / 2 + 1) + among * (t - 1) + after
    return weights


def _running(ranking: Ranking, per_block: Floats) -> Floats:
    """Running sums of each query over its blocks, the block itself included."""
    total = np.cumsum(per_block)
    first = np.searchsorted(ranking.block_query, ranking.block_query)
    return total - (total - per_block)[first] if len(total) else total


def _ends(before: Ints, size: Ints, cutoff: int | None) -> tuple[Ints, Ints]:
    """Ranks above each block, and of its last document, both no deeper than the cutoff."""
    low, high = before, before + size
    return (low, high) if cutoff is None else (np.minimum(low, cutoff), np.minimum(high, cutoff))


def _per_block(ranking: Ranking, per_entry: Floats) -> Floats:
    return np.add.reduceat(per_entry, ranking.starts) if len(per_entry) else np.empty(0)


def _per_query(ranking: Ranking, per_block: Floats) -> Floats:
    return np.bincount(ranking.block_query, weights=per_block, minlength=len(ranking.offsets) - 1).astype(np.float64)


def discounts(depth: int) -> Floats:
    """Running sums of ``1/log2(1 + rank)`` over the first 0, 1, … `depth` ranks."""
    return np.concatenate([[0.0], np.cumsum(1 / np.log2(2.0 + np.arange(depth)))])


def discount_spans(before: Ints, size: Ints, cutoff: int | None) -> Floats:
    """Sum of the discounts of each tie block's ranks: of `size` ranks, with `before` ranks above them."""
    low, high = _ends(before, size, cutoff)
    running = discounts(int(high.max(initial=0)))
    # A block of one takes its own discount: the difference of running sums would lose its last digits.
    return np.where((size == 1) & (high > low), 1 / np.log2(2.0 + low), running[high] - running[low])


def rank_spans(before: Ints, size: Ints, cutoff: int | None) -> Ints:
    """Number of each tie block's ranks down to the cutoff."""
    low, high = _ends(before, size, cutoff)
    return high - low


def _dcg(ranking: Ranking, gains: Floats, cutoff: int | None) -> Floats:
    mean = _per_block(ranking, gains) / ranking.sizes
    return _per_query(ranking, mean * discount_spans(ranking.before, ranking.sizes, cutoff))


def _hits(ranking: Ranking, relevant: Floats, cutoff: int | None) -> Floats:
    spans = rank_spans(ranking.before, ranking.sizes, cutoff)
    return _per_query(ranking, _per_block(ranking, relevant) * spans / ranking.sizes)


def _in_block(ranking: Ranking) -> tuple[Ints, Ints]:
    """Block of each entry, and its place in it (i, from 1)."""
    block = np.repeat(np.arange(len(ranking.starts)), ranking.sizes)
    return block, np.arange(len(block)) - ranking.starts[block] + 1


def _precisions(ranking: Ranking, relevant: Floats, cutoff: int | None) -> Floats:
    r = _per_block(ranking, relevant)
    above = _running(ranking, r) - r
    block, place = _in_block(ranking)
    n, r, above, rank = ranking.sizes[block], r[block], above[block], ranking.before[block] + place
    with np.errstate(invalid="ignore", divide="ignore"):
        among = np.where(n > 1, (place - 1) * (r - 1) / (n - 1), 0.0)
    term = r / n * (above + among + 1) / rank
    if cutoff is not None:
        term = np.where(rank <= cutoff, term, 0.0)
    return _per_query(ranking, _per_block(ranking, term))


def _first_blocks(ranking: Ranking, r: Floats) -> npt.NDArray[np.bool_]:
    """Whether each tie block is the first of its query that holds something relevant."""
    hit = np.flatnonzero(r > 0)
    is_first = np.zeros(len(r), dtype=bool)
    is_first[hit[np.unique(ranking.block_query[hit], return_index=True)[1]]] = True
    return is_first


def _first_hit_weights(ranking: Ranking, relevant: Floats, cutoff: int | None) -> Floats:
    r = _per_block(ranking, relevant)
    value = _first_hit(ranking, relevant, cutoff)[ranking.block_query]
    return np.where(_first_blocks(ranking, r), value / np.maximum(r, 1), 0.0)


def _hit_weights(ranking: Ranking, relevant: Floats, cutoff: int | None) -> Floats:
    return rank_spans(ranking.before, ranking.sizes, cutoff) / ranking.sizes


def _first_hit(ranking: Ranking, relevant: Floats, cutoff: int | None) -> Floats:
    r = _per_block(ranking, relevant)
    hit = np.flatnonzero(_first_blocks(ranking, r))
    per_block = np.zeros(len(r))
    per_block[hit] = expected_reciprocal(ranking.before[hit], ranking.sizes[hit], r[hit].astype(np.int64), cutoff)
    return _per_query(ranking, per_block)


def expected_reciprocal(before: Ints, size: Ints, hits: Ints, cutoff: int | None) -> Floats:
    """Expected 1/rank of the first of so many hits in each tie block; what lies below the cutoff counts 0."""
    width = np.minimum(rank_spans(before, size, cutoff), size - hits + 1)
    block = np.repeat(np.arange(len(width)), width)
    place = np.arange(len(block)) - (np.cumsum(width) - width)[block] + 1
    rank, n, k = before[block] + place, size[block], hits[block]
    log_chance = _log_choose(n - place, k - 1) - _log_choose(n, k)
    chance = np.where(k == 1, 1.0 / n, np.exp(log_chance))
    chance = np.where(n == k, 1.0, chance)
    return np.bincount(block, weights=chance / rank, minlength=len(width)).astype(np.float64)


def _log_choose(n: npt.NDArray[np.number], k: npt.NDArray[np.number]) -> Floats:
    log: Floats = gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)
    return log


_BINARY = {"AP": _precisions, "P": _hits, "R": _hits, "RR": _first_hit}
_BLOCK_WEIGHTS = {"AP": _precision_weights, "P": _hit_weights, "R": _hit_weights, "RR": _first_hit_weights}
LINEAR = ("nDCG", "AP", "P", "R")
"""Measures whose difference between two groups of twins is linear in the labels."""
