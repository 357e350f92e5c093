"""nDCG, AP, P, R and RR over tie blocks against plain definitions averaged over every order of tied documents."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ranktilt.measures.average_precision import AP
from ranktilt.measures.base import Measure
from ranktilt.measures.ndcg import nDCG
from ranktilt.measures.precision import P
from ranktilt.measures.ranking import Judged, Ranking
from ranktilt.measures.recall import R
from ranktilt.measures.reciprocal_rank import RR
from ranktilt.measures.relevance import values

Grades = Sequence[int]
MADE: dict[str, Measure] = {m.name: m for m in (nDCG, AP, P, R, RR)}


@dataclass(frozen=True)
class Query:
    """Grades of the retrieved documents, tie block by tie block, and those of relevant ones never retrieved."""

    blocks: tuple[tuple[int, ...], ...]
    unretrieved: tuple[int, ...] = ()

    @property
    def judged(self) -> list[int]:
        return [g for g in (*sum(self.blocks, ()), *self.unretrieved) if g > 0]


def closed(measure: Measure, queries: Sequence[Query]) -> list[float]:
    """What the library says; every query's blocks have falling scores."""
    grades = [g for q in queries for block in q.blocks for g in block]
    scores = [-float(i) for q in queries for i, block in enumerate(q.blocks) for _ in block]
    offsets = np.cumsum([0, *(sum(map(len, q.blocks)) for q in queries)])
    judged = [(i, g) for i, q in enumerate(queries) for g in q.judged]
    ranking = Ranking(offsets, np.array(scores, dtype=np.float64))
    who = np.array([i for i, _ in judged], dtype=np.int64)
    what = np.array([g for _, g in judged], dtype=np.float64)
    found = values(measure, ranking, np.array(grades, dtype=np.float64), Judged(who, what, len(queries)))
    return list(map(float, found))


def plain(measure: Measure, ranked: Grades, judged: Grades) -> float:
    """One measure of one order, from its textbook definition."""
    depth = len(ranked) if measure.cutoff is None else measure.cutoff
    return PLAIN[measure.name](ranked[:depth], judged, measure)


def plain_ndcg(top: Grades, judged: Grades, measure: Measure) -> float:
    best = sorted(judged, reverse=True)[: measure.cutoff]
    gained, ideal = (sum(g / math.log2(1 + rank) for rank, g in enumerate(side, start=1)) for side in (top, best))
    return gained / ideal if ideal else math.nan


def plain_ap(top: Grades, judged: Grades, measure: Measure) -> float:
    relevant = sum(g >= measure.rel for g in judged)
    hits, total = 0, 0.0
    for rank, grade in enumerate(top, start=1):
        if grade >= measure.rel:
            hits += 1
            total += hits / rank
    return total / relevant if relevant else math.nan


def plain_precision(top: Grades, judged: Grades, measure: Measure) -> float:
    assert measure.cutoff
    hits = sum(g >= measure.rel for g in top)
    return hits / measure.cutoff if any(g >= measure.rel for g in judged) else math.nan


def plain_recall(top: Grades, judged: Grades, measure: Measure) -> float:
    relevant = sum(g >= measure.rel for g in judged)
    return sum(g >= measure.rel for g in top) / relevant if relevant else math.nan


def plain_rr(top: Grades, judged: Grades, measure: Measure) -> float:
    if not any(g >= measure.rel for g in judged):
        return math.nan
    return next((1 / rank for rank, g in enumerate(top, start=1) if g >= measure.rel), 0.0)


PLAIN: dict[str, Callable[[Grades, Grades, Measure], float]] = {
    "nDCG": plain_ndcg,
    "AP": plain_ap,
    "P": plain_precision,
    "R": plain_recall,
    "RR": plain_rr,
}


def over_all_orders(measure: Measure, query: Query) -> float:
    """Mean over all orders; equal documents swap without effect, so that distinct orders weigh the same."""
    orders = product(*(sorted(set(permutations(block))) for block in query.blocks))
    found = [plain(measure, sum(order, ()), query.judged) for order in orders]
    return math.fsum(found) / len(found)


def measures() -> st.SearchStrategy[Measure]:
    def made(name: str, cutoff: int, deep: bool, rel: int) -> Measure:
        whole = deep and name not in ("P", "R")
        return replace(MADE[name], cutoff=None if whole else cutoff, rel=1 if name == "nDCG" else rel)

    return st.builds(made, st.sampled_from(list(MADE)), st.integers(1, 9), st.booleans(), st.integers(1, 3))


def blocks(largest: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.lists(st.integers(0, 3), min_size=1, max_size=largest).map(tuple)


def queries(largest: int = 6, most: int = 3) -> st.SearchStrategy[Query]:
    return st.builds(
        Query,
        st.lists(blocks(largest), max_size=most).map(tuple),
        st.lists(st.integers(1, 3), max_size=2).map(tuple),
    )


def orders(query: Query) -> int:
    return math.prod(
        math.factorial(len(b)) // math.prod(math.factorial(b.count(g)) for g in set(b)) for b in query.blocks
    )


@given(measures(), st.lists(queries(), min_size=1, max_size=3))
@settings(max_examples=250)
def test_closed_form_is_the_mean_over_all_orders(measure: Measure, given: list[Query]) -> None:
    assume(all(orders(q) <= 3000 for q in given))
    expected = [over_all_orders(measure, q) for q in given]
    assert closed(measure, given) == pytest.approx(expected, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        # Grades 0, 2, 0, 1 without ties; the ideal is 2, 1.
        (nDCG @ 1, 0.0),
        (nDCG @ 2, 2 / math.log2(3) / (2 + 1 / math.log2(3))),
        (nDCG, (2 / math.log2(3) + 1 / math.log2(5)) / (2 + 1 / math.log2(3))),
        (AP @ 3, (1 / 2) / 2),
        (AP, (1 / 2 + 2 / 4) / 2),
        (AP(rel=2), 1 / 2),
        (P @ 3, 1 / 3),
        (P(rel=2) @ 4, 1 / 4),
        (R @ 3, 1 / 2),
        (RR, 1 / 2),
        (RR @ 1, 0.0),
    ],
)
def test_a_ranking_without_ties_by_hand(measure: Measure, expected: float) -> None:
    assert closed(measure, [Query(((0,), (2,), (0,), (1,)))]) == pytest.approx([expected], abs=1e-15)


@pytest.mark.parametrize("measure", [nDCG @ 3, nDCG, AP @ 3, AP, P @ 3, R @ 3, RR @ 3, RR])
def test_undefined_is_not_zero(measure: Measure) -> None:
    assert math.isnan(closed(measure, [Query(((0, 0), (0,)))])[0])  # no relevant document
    assert math.isnan(closed(measure, [Query(((1,),)), Query(())])[1])
    assert closed(measure, [Query(((1,),)), Query((), unretrieved=(1,)), Query(((1,),))])[1] == 0.0
    assert closed(measure, [Query(((0,), (0, 0)), unretrieved=(1,))]) == [0.0]


def test_a_grade_below_rel_is_not_relevant() -> None:
    assert math.isnan(closed(AP(rel=2) @ 3, [Query(((1,),))])[0])
    assert closed(AP(rel=2) @ 3, [Query(((1,), (2,)))]) == [0.5]


@pytest.mark.parametrize("measure", [nDCG @ 7, nDCG, AP, R @ 4000, RR, P @ 3000])
def test_a_big_block_of_relevant_documents_is_perfect(measure: Measure) -> None:
    assert closed(measure, [Query(((1,) * 3000,))]) == pytest.approx([1.0], abs=1e-9)


def first_hit_mean(above: int, size: int, relevant: int, cutoff: int | None) -> float:
    """Mean reciprocal rank of the first of `relevant` among `size` tied, by the recurrence of its chance."""
    chance, total = relevant / size, 0.0
    for place in range(1, size - relevant + 2):
        if cutoff is None or above + place <= cutoff:
            total += chance / (above + place)
        if place < size:
            chance *= (size - place - relevant + 1) / (size - place)
    return total


@pytest.mark.parametrize(("size", "relevant"), [(5000, 1), (5000, 37), (800, 800)])
@pytest.mark.parametrize("above", [0, 3])
@pytest.mark.parametrize("cutoff", [None, 1, 10, 4000])
def test_reciprocal_rank_of_a_big_block(size: int, relevant: int, above: int, cutoff: int | None) -> None:
    block = (1,) * relevant + (0,) * (size - relevant)
    (value,) = closed(replace(RR, cutoff=cutoff), [Query((*[(0,)] * above, block))])
    assert value == pytest.approx(first_hit_mean(above, size, relevant, cutoff), rel=1e-9, abs=1e-15)


def test_ndcg_of_a_big_block_is_the_mean_discount() -> None:
    size, cutoff = 4000, 25
    mean = math.fsum(1 / math.log2(1 + rank) for rank in range(1, cutoff + 1)) * 3 / size
    ideal = 1 + 1 / math.log2(3) + 1 / 2
    block = (1, 1, 1) + (0,) * (size - 3)
    assert closed(nDCG @ cutoff, [Query((block,))]) == pytest.approx([mean / ideal], rel=1e-12)


@pytest.mark.parametrize(
    ("depth", "kept"),
    [(0, []), (1, [0, 1]), (2, [0, 1]), (3, [0, 1, 2]), (4, [0, 1, 2, 3, 4]), (None, [0, 1, 2, 3, 4])],
)
def test_a_head_keeps_whole_blocks(depth: int | None, kept: list[int]) -> None:
    ranking = Ranking(np.array([0, 5, 6]), np.array([9.0, 9.0, 8.0, 7.0, 7.0, 1.0]))
    head, mask = ranking.head(depth)
    other = [] if depth == 0 else [5]
    assert np.flatnonzero(mask).tolist() == kept + other
    assert head.offsets.tolist() == [0, len(kept), len(kept) + len(other)]
    assert head.scores.tolist() == ranking.scores[mask].tolist()


def test_equal_scores_of_neighbouring_queries_are_no_tie() -> None:
    ranking = Ranking(np.array([0, 2, 4]), np.array([3.0, 1.0, 1.0, 1.0]))
    assert ranking.starts.tolist() == [0, 1, 2]
    assert ranking.sizes.tolist() == [1, 1, 2]
    assert ranking.before.tolist() == [0, 1, 0]
    assert ranking.block_query.tolist() == [0, 0, 1]


def test_graded_judgments_count_by_rel() -> None:
    judged = Judged(np.array([0, 0, 0, 2]), np.array([1.0, 2.0, 3.0, 1.0]), 4)
    assert judged.count().tolist() == [3, 0, 1, 0]
    assert judged.count(2).tolist() == [2, 0, 0, 0]


def test_the_ideal_takes_the_best_grades_first() -> None:
    judged = Judged(np.array([0, 1, 0, 0]), np.array([1.0, 2.0, 3.0, 1.0]), 3)
    assert judged.ideal(2) == pytest.approx([3 + 1 / math.log2(3), 2, 0])
    assert judged.ideal(None) == pytest.approx([3 + 1 / math.log2(3) + 1 / 2, 2, 0])
