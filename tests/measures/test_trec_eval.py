"""Published numbers: trec_eval's order of ties gives its own values; without ties, so does the closed form."""

import math
import warnings
from collections.abc import Sequence
from typing import Any

import ir_measures
import numpy as np
import numpy.typing as npt
import pytest
import pytrec_eval
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ranktilt.auditing.groups import grouping
from ranktilt.auditing.judged_rankings import Aligned, Judgments, group_values
from ranktilt.measures.average_precision import AP
from ranktilt.measures.base import Measure, measure
from ranktilt.measures.ndcg import nDCG
from ranktilt.measures.precision import P
from ranktilt.measures.ranking import Judged, Ranking
from ranktilt.measures.recall import R
from ranktilt.measures.reciprocal_rank import RR
from ranktilt.measures.relevance import values
from tests.toy import Table, collection_of, run_of

MEASURES = tuple(
    measure(text)
    for text in (
        "nDCG@1", "nDCG@5", "nDCG", "AP@1", "AP@5", "AP", "AP(rel=2)@3", "P@1", "P@10", "P(rel=2)@5", "R@1", "R@5",
        "R(rel=3)@5", "RR@1", "RR@3", "RR", "RR(rel=2)@5", "RR(rel=2)",
    )
)  # fmt: skip
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
    ids = dict.fromkeys(["other", *(doc for table in (run, qrels) for found in table.values() for doc in found)])
    collection = collection_of([{"id": doc, "text": "x"} for doc in ids], dict.fromkeys(qrels, "?"), qrels)
    groups = grouping(collection, None)
    judgments = Judgments.of(collection, groups)
    aligned = Aligned.of(run_of(collection, run), collection, judgments)
    found = group_values(aligned, measures, groups, "trec_eval")[:, 0]
    place = {query: number for number, query in enumerate(judgments.queries)}
    return [np.array([row[place[q]] if q in place else np.nan for q in qrels]) for row in found]


def evaluated(found: Measure, run: Table, qrels: Table) -> dict[str, float]:
    """One measure by pytrec_eval itself, per query that it reports."""
    name = THEIRS[found.name][found.cutoff is None]
    asked = name if found.cutoff is None or found.name == "RR" else f"{name}.{found.cutoff}"
    key = asked.replace(".", "_")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        evaluator = pytrec_eval.RelevanceEvaluator(
            {q: dict(g) for q, g in qrels.items() if g}, {asked}, relevance_level=found.rel
        )
        reported = evaluator.evaluate({q: dict(s) for q, s in run.items()})
    per_query = {q: float(v[key]) for q, v in reported.items()}
    if found.name == "RR" and found.cutoff is not None:
        return {q: v if v and round(1 / v) <= found.cutoff else 0.0 for q, v in per_query.items()}
    return per_query


def expected(found: Measure, run: Table, qrels: Table) -> list[float]:
    """pytrec_eval's values; NaN without a relevant document, 0 where the run lacks the query."""
    reported = evaluated(found, run, qrels)
    has = {
        q: any(g >= (found.rel if found.name != "nDCG" else 1) for g in grades.values()) for q, grades in qrels.items()
    }
    return [reported.get(q, 0.0) if has[q] else math.nan for q in qrels]


def closed_form(found: Measure, run: Table, qrels: Table) -> npt.NDArray[np.float64]:
    """The closed form on the same input, from plain dictionaries."""
    ranked = [sorted(run.get(q, {}).items(), key=lambda item: -item[1]) for q in qrels]
    judged = [(i, g) for i, grades in enumerate(qrels.values()) for g in grades.values() if g > 0]
    gains = [max(qrels[q].get(d, 0), 0) for q, found in zip(qrels, ranked, strict=True) for d, _ in found]
    return values(
        found,
        Ranking(np.cumsum([0, *map(len, ranked)]), np.array([s for f in ranked for _, s in f], dtype=np.float64)),
        np.array(gains, dtype=np.float64),
        Judged(np.array([i for i, _ in judged], np.int64), np.array([g for _, g in judged], np.float64), len(qrels)),
    )


@st.composite
def problems(draw: st.DrawFn, values: st.SearchStrategy[float]) -> tuple[dict[str, Any], dict[str, Any]]:
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


def tied_as_float32(run: Table) -> bool:
    return any(len({np.float32(s) for s in found.values()}) < len(found) for found in run.values())


@given(problems(st.floats(-100, 100, width=32)))
@settings(max_examples=60)
def test_without_ties_closed_form_trec_eval_and_ir_measures_agree(given: tuple[Table, Table]) -> None:
    run, qrels = given
    assume(not tied_as_float32(run))
    through = ours(MEASURES, run, qrels)
    for found, mine in zip(MEASURES, through, strict=True):
        assert mine == pytest.approx(expected(found, run, qrels), abs=1e-9, nan_ok=True), found
        assert closed_form(found, run, qrels) == pytest.approx(mine, abs=1e-9, nan_ok=True), found


def test_a_large_random_run_equals_ir_measures() -> None:
    rng = np.random.default_rng(7)
    run, qrels = {}, {}
    for i in range(40):
        spread = rng.permutation(np.arange(300, dtype=np.float32) / 7)
        run[f"q{i}"] = {f"d{j}": float(s) for j, s in enumerate(spread)}
        qrels[f"q{i}"] = {f"d{j}": int(rng.integers(1, 4)) for j in rng.choice(320, 12, replace=False)}
    asked = [m for m in MEASURES if m.name != "RR"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        parsed = {ir_measures.parse_measure(repr(m)): m for m in asked}
        theirs = {(parsed[m.measure], m.query_id): m.value for m in ir_measures.iter_calc(list(parsed), qrels, run)}
    for found, mine in zip(asked, ours(asked, run, qrels), strict=True):
        wanted = [theirs[found, q] for q in qrels]
        assert mine == pytest.approx(wanted, abs=1e-9)
        assert closed_form(found, run, qrels) == pytest.approx(wanted, abs=1e-9)


@given(problems(st.integers(0, 2).map(float)))
@settings(max_examples=60)
def test_ties_fall_as_in_pytrec_eval(given: tuple[Table, Table]) -> None:
    run, qrels = given
    for found, mine in zip(MEASURES, ours(MEASURES, run, qrels), strict=True):
        assert mine == pytest.approx(expected(found, run, qrels), abs=1e-9, nan_ok=True), found


@pytest.mark.parametrize("found", [nDCG @ 1, P @ 1, AP @ 1, R @ 1, RR @ 1, RR])
def test_the_greater_id_wins_a_tie(found: Measure) -> None:
    qrels = {"q": {"x-llm": 1}, "r": {"x-human": 1}}
    run = {q: {"x-human": 1.0, "x-llm": 1.0} for q in qrels}
    (mine,) = ours([found], run, qrels)
    assert mine.tolist() == [1.0, 0.5 if found == RR else 0.0]


@pytest.mark.parametrize("found", [nDCG @ 1, RR @ 1])
def test_scores_that_are_one_as_float32_tie(found: Measure) -> None:
    run = {"q": {"a": 1 + 1e-9, "b": 1.0}}
    assert ours([found], run, {"q": {"a": 1}})[0].tolist() == [0.0]
    assert ours([found], run, {"q": {"b": 1}})[0].tolist() == [1.0]


def test_ids_are_compared_as_bytes() -> None:
    run = {"q": {"Z": 1.0, "a": 1.0, "é": 1.0}}
    found = [ours([RR], run, {"q": {d: 1}})[0][0] for d in ("é", "a", "Z")]
    assert found == pytest.approx([1, 1 / 2, 1 / 3])


@pytest.mark.parametrize("found", [nDCG @ 3, AP, P @ 3, R @ 3, RR, RR @ 3])
def test_what_is_missing_counts_0_or_is_undefined(found: Measure) -> None:
    run = {"q": {"a": 2.0}, "s": {"a": 2.0}, "z": {"a": 1.0}}  # z is not judged
    q, r, s = ours([found], run, {"q": {"a": 1}, "r": {"a": 1}, "s": {}})[0]
    assert (q > 0, r, math.isnan(s)) == (True, 0, True)
    assert ours([found], {}, {"q": {"a": 1}})[0].tolist() == [0.0]
    assert np.isnan(ours([found], {"q": {"a": 2.0}}, {"q": {}})[0]).all()


def test_values_come_in_the_order_of_measures_and_queries() -> None:
    run = {"q1": {"a": 2.0, "b": 1.0}, "q2": {"a": 2.0, "b": 1.0}}
    qrels = {"q2": {"b": 1}, "q1": {"a": 1}}
    found = ours([RR, P @ 1, AP(rel=2), nDCG @ 1], run, qrels)
    assert [v.tolist() for v in found[:2]] == [[0.5, 1.0], [0.0, 1.0]]
    assert np.isnan(found[2]).all()
    assert found[3].tolist() == [0.0, 1.0]
