"""nDCG, AP, P, R and RR over tie blocks against plain definitions averaged over all orders of ties,
and trec_eval.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import pytrec_eval
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ranktilt import AP, RR, Measure, P, R, measure, nDCG
from ranktilt.auditing.grouping.labels import grouping
from ranktilt.auditing.judged_run import JudgedRun, group_values
from ranktilt.auditing.judgments import Judgments
from ranktilt.measures.ranking import Judged, Ranking
from ranktilt.measures.relevance import values
from tests.toy import Table, collection_of, run_of

Grades = Sequence[int]
BY_NAME: dict[str, Measure] = {m.name: m for m in (nDCG, AP, P, R, RR)}


@dataclass(frozen=True)
class Query:
    """Grades of the retrieved documents, tie block by tie block, and those of relevant ones never
    retrieved.
    """

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
    numbers = np.array([i for i, _ in judged], dtype=np.int64)
    judged_grades = np.array([g for _, g in judged], dtype=np.float64)
    per_query = values(
        measure,
        ranking,
        np.array(grades, dtype=np.float64),
        Judged(query=numbers, grade=judged_grades, n_queries=len(queries)),
    )
    return list(map(float, per_query))


def plain(measure: Measure, ranked: Grades, judged: Grades) -> float:
    """One measure of one order, from its textbook definition."""
    top = ranked[: measure.cutoff]
    hits = [rank for rank, grade in enumerate(top, start=1) if grade >= measure.rel]
    relevant = sum(grade >= measure.rel for grade in judged)
    if not relevant:
        return math.nan
    if measure.name == "nDCG":
        best = sorted(judged, reverse=True)[: measure.cutoff]
        gained, ideal = (
            sum(g / math.log2(1 + rank) for rank, g in enumerate(side, start=1))
            for side in (top, best)
        )
        return gained / ideal
    if measure.name == "AP":
        return sum(number / rank for number, rank in enumerate(hits, start=1)) / relevant
    if measure.name == "P":
        return len(hits) / (measure.cutoff or math.nan)
    if measure.name == "R":
        return len(hits) / relevant
    return 1 / hits[0] if hits else 0.0


def over_all_orders(measure: Measure, query: Query) -> float:
    """Mean over all orders; equal documents swap without effect, so that distinct orders weigh the
    same.
    """
    orders = product(*(sorted(set(permutations(block))) for block in query.blocks))
    measured = [plain(measure, sum(order, ()), query.judged) for order in orders]
    return math.fsum(measured) / len(measured)


def measures() -> st.SearchStrategy[Measure]:
    def build(name: str, cutoff: int, deep: bool, rel: int) -> Measure:
        is_uncut = deep and name not in ("P", "R")
        return replace(
            BY_NAME[name], cutoff=None if is_uncut else cutoff, rel=1 if name == "nDCG" else rel
        )

    return st.builds(
        build, st.sampled_from(list(BY_NAME)), st.integers(1, 9), st.booleans(), st.integers(1, 3)
    )


def queries() -> st.SearchStrategy[Query]:
    blocks = st.lists(st.integers(0, 3), min_size=1, max_size=6).map(tuple)
    lost = st.lists(st.integers(1, 3), max_size=2).map(tuple)
    return st.builds(Query, st.lists(blocks, max_size=3).map(tuple), lost)


@given(measures(), st.lists(queries(), min_size=1, max_size=3))
@settings(max_examples=250)
def test_closed_form_is_the_mean_over_all_orders(measure: Measure, batch: list[Query]) -> None:
    assume(
        all(
            math.prod(len(set(permutations(block))) for block in query.blocks) <= 3000
            for query in batch
        )
    )
    expected = [over_all_orders(measure, q) for q in batch]
    assert closed(measure, batch) == pytest.approx(expected, abs=1e-12, nan_ok=True)


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
    assert closed(measure, [Query(((0,), (2,), (0,), (1,)))]) == pytest.approx(
        [expected], abs=1e-15
    )


@pytest.mark.parametrize("measure", [nDCG @ 7, nDCG, AP, R @ 4000, RR, P @ 3000])
def test_a_big_block_of_relevant_documents_is_perfect(measure: Measure) -> None:
    assert closed(measure, [Query(((1,) * 3000,))]) == pytest.approx([1.0], abs=1e-9)


def first_hit_mean(above: int, size: int, relevant: int, cutoff: int | None) -> float:
    """Mean reciprocal rank of the first of `relevant` among `size` tied, by the recurrence of its
    chance.
    """
    chance, total = relevant / size, 0.0
    for rank in range(1, size - relevant + 2):
        if cutoff is None or above + rank <= cutoff:
            total += chance / (above + rank)
        if rank < size:
            chance *= (size - rank - relevant + 1) / (size - rank)
    return total


@pytest.mark.parametrize(("size", "relevant"), [(5000, 1), (5000, 37), (800, 800)])
@pytest.mark.parametrize("above", [0, 3])
@pytest.mark.parametrize("cutoff", [None, 1, 10, 4000])
def test_reciprocal_rank_of_a_big_block(
    size: int, relevant: int, above: int, cutoff: int | None
) -> None:
    block = (1,) * relevant + (0,) * (size - relevant)
    (value,) = closed(replace(RR, cutoff=cutoff), [Query((*[(0,)] * above, block))])
    assert value == pytest.approx(
        first_hit_mean(above, size, relevant, cutoff), rel=1e-9, abs=1e-15
    )


def test_ndcg_of_a_big_block_is_the_mean_discount() -> None:
    size, cutoff = 4000, 25
    mean = math.fsum(1 / math.log2(1 + rank) for rank in range(1, cutoff + 1)) * 3 / size
    ideal = 1 + 1 / math.log2(3) + 1 / 2
    block = (1, 1, 1) + (0,) * (size - 3)
    assert closed(nDCG @ cutoff, [Query((block,))]) == pytest.approx([mean / ideal], rel=1e-12)


@pytest.mark.parametrize(
    ("depth", "docs"),
    [
        (0, []),
        (1, [0, 1]),
        (2, [0, 1]),
        (3, [0, 1, 2]),
        (4, [0, 1, 2, 3, 4]),
        (None, [0, 1, 2, 3, 4]),
    ],
)
def test_a_head_keeps_whole_blocks(depth: int | None, docs: list[int]) -> None:
    ranking = Ranking(np.array([0, 5, 6]), np.array([9.0, 9.0, 8.0, 7.0, 7.0, 1.0]))
    head, mask = ranking.head(depth)
    rest = [] if depth == 0 else [5]
    assert np.flatnonzero(mask).tolist() == docs + rest
    assert head.offsets.tolist() == [0, len(docs), len(docs) + len(rest)]
    assert head.scores.tolist() == ranking.scores[mask].tolist()


def test_equal_scores_of_neighbouring_queries_are_no_tie() -> None:
    ranking = Ranking(np.array([0, 2, 4]), np.array([3.0, 1.0, 1.0, 1.0]))
    assert ranking.starts.tolist() == [0, 1, 2]
    assert ranking.sizes.tolist() == [1, 1, 2]
    assert ranking.before.tolist() == [0, 1, 0]
    assert ranking.block_query.tolist() == [0, 0, 1]
    judged = Judged(query=np.array([0, 1, 0, 0]), grade=np.array([1.0, 2.0, 3.0, 1.0]), n_queries=3)
    assert [judged.count().tolist(), judged.count(2).tolist()] == [[3, 1, 0], [1, 1, 0]]
    assert judged.ideal(2) == pytest.approx([3 + 1 / math.log2(3), 2, 0])
    assert judged.ideal(None) == pytest.approx([3 + 1 / math.log2(3) + 1 / 2, 2, 0])


# As trec_eval has them

MEASURES = tuple(
    measure(text)
    for text in (
        "nDCG@1",
        "nDCG@5",
        "nDCG",
        "AP@1",
        "AP@5",
        "AP",
        "AP(rel=2)@3",
        "P@1",
        "P@10",
        "P(rel=2)@5",
        "R@1",
        "R@5",
        "R(rel=3)@5",
        "RR@1",
        "RR@3",
        "RR",
        "RR(rel=2)@5",
        "RR(rel=2)",
    )
)
THEIRS = {
    "nDCG": ("ndcg_cut", "ndcg"),
    "AP": ("map_cut", "map"),
    "P": ("P", ""),
    "R": ("recall", ""),
    "RR": ("recip_rank", "recip_rank"),
}
"""pytrec_eval's names with and without a cutoff; it cuts no reciprocal rank."""

IDS = st.text("abz019-_é語", min_size=1, max_size=4)
GRADES = st.dictionaries(IDS, st.integers(0, 3), max_size=6)


def scores(values: st.SearchStrategy[float]) -> st.SearchStrategy[dict[str, float]]:
    return st.dictionaries(IDS, values, min_size=1, max_size=14)


def ours(measures: Sequence[Measure], run: Table, qrels: Table) -> list[npt.NDArray[np.float64]]:
    """Values with trec_eval's ties as an audit has them; NaN for a query without judgments."""
    ids = {"other": None}
    for by_doc in (*run.values(), *qrels.values()):
        ids |= dict.fromkeys(by_doc)
    collection = collection_of(
        [{"id": doc, "text": "x"} for doc in ids], dict.fromkeys(qrels, "?"), qrels
    )
    groups = grouping(collection, None)
    judgments = Judgments.from_collection(collection, groups)
    aligned = JudgedRun.from_run(run_of(collection, run), collection, judgments)
    by_query = [
        dict(zip(judgments.queries, row[0], strict=True))
        for row in group_values(aligned, measures, groups, "trec_eval")
    ]
    return [np.array([row.get(q, np.nan) for q in qrels]) for row in by_query]


def evaluated(metric: Measure, run: Table, qrels: Table) -> dict[str, float]:
    """One measure by pytrec_eval itself, per query that it reports."""
    name = THEIRS[metric.name][metric.cutoff is None]
    their_name = name if metric.cutoff is None or metric.name == "RR" else f"{name}.{metric.cutoff}"
    key = their_name.replace(".", "_")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        known = {q: dict(g) for q, g in qrels.items() if g}
        evaluator = pytrec_eval.RelevanceEvaluator(known, {their_name}, relevance_level=metric.rel)
        reported = evaluator.evaluate({q: dict(s) for q, s in run.items()})
    per_query = {q: float(v[key]) for q, v in reported.items()}
    if metric.name == "RR" and metric.cutoff is not None:
        return {q: v if v and round(1 / v) <= metric.cutoff else 0.0 for q, v in per_query.items()}
    return per_query


def expected(metric: Measure, run: Table, qrels: Table) -> list[float]:
    """pytrec_eval's values; NaN without a relevant document, 0 where the run lacks the query."""
    reported = evaluated(metric, run, qrels)
    least = metric.rel if metric.name != "nDCG" else 1
    has = {q: any(g >= least for g in grades.values()) for q, grades in qrels.items()}
    return [reported.get(q, 0.0) if has[q] else math.nan for q in qrels]


@st.composite
def problems(
    draw: st.DrawFn, values: st.SearchStrategy[float]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A run and judgments: queries may be missing on either side."""
    names = [f"q{i}" for i in range(draw(st.integers(1, 3)))]
    run = {q: draw(scores(values)) for q in names if draw(st.integers(0, 5))}
    qrels = {}
    for q in names:
        grades = draw(GRADES)
        for doc in run.get(q, {}):
            grade = draw(st.integers(-4, 3))
            if grade >= 0:
                grades[doc] = grade
        qrels[q] = grades
    return run, qrels


@given(problems(st.floats(-100, 100, width=32)) | problems(st.integers(0, 2).map(float)))
@settings(max_examples=120)
def test_values_and_ties_are_those_of_pytrec_eval(problem: tuple[Table, Table]) -> None:
    run, qrels = problem
    for metric, mine in zip(MEASURES, ours(MEASURES, run, qrels), strict=True):
        assert mine == pytest.approx(expected(metric, run, qrels), abs=1e-9, nan_ok=True), metric


def test_greater_id_as_bytes_wins_ties_of_float32_scores() -> None:
    run = {"q": {"Z": 1 + 1e-9, "a": 1.0, "é": 1.0}}
    ranks = [ours([RR], run, {"q": {d: 1}})[0][0] for d in ("é", "a", "Z")]
    assert ranks == pytest.approx([1, 1 / 2, 1 / 3])
