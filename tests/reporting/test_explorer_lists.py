"""Ranked lists of the explorer: order, ties, twins, which queries lead, and how much of them fits
into a page.
"""

import json
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt import Collection
from ranktilt.auditing.grouping.labels import grouping
from ranktilt.reporting.explorer.lists import FURTHER, twins_of
from ranktilt.reporting.explorer.numbers import MOST_PAIRS, Numbers
from ranktilt.reporting.explorer.pack import pack, rounded
from tests.auditing.arrays import audit_of
from tests.reporting.audits import twins
from tests.reporting.openings import explored, toy_opened, unpacked
from tests.toy import QRELS, collection_of, run_of, toy


def entries_of(
    scores: dict[str, float], *, depth: int = 10, **options: Any
) -> list[tuple[Any, ...]]:
    """Entries of the toy's q1, documents by id: first and last rank, score, grade, whether among
    the first.
    """
    view = explored(toy_opened(scores=[{"q1": scores}], **options), depth=depth)
    ids = view.lists["docs"]["id"]
    return [(ids[doc], *rest) for doc, *rest in view.list(0, "q1")["entries"]]


def test_ties_are_broken_by_id_also_across_the_depth() -> None:
    entries = entries_of({"d1-human": 2.0, "d1-llm": 2.0, "d2-llm": 1.0}, ties="trec_eval")
    assert [row[:4] for row in entries[:3]] == [
        ("d1-llm", 1, 1, 2.0),
        ("d1-human", 2, 2, 2.0),
        ("d2-llm", 3, 3, 1.0),
    ]
    entries = entries_of({"d2-human": 1.0, "d2-llm": 1.0, "d1-human": 1.0}, depth=1)
    assert [row[-1] for row in entries] == [1, 0, 0, 0, 0, 0]
    assert entries[0][1:3] == (1, 3)


def test_twin_that_was_not_retrieved_is_carried() -> None:
    view = explored(toy_opened(scores=[{"q2": {"d3-llm": 1.0}}]))
    assert view.docs(0, "q2") == ["d3-llm", "d2-human", "d2-llm"]
    assert "an old clock shows" in view.text("d3-human")


def test_versions_of_one_group_are_found_through_their_common_twin() -> None:
    versions = {"h1": "human", "h2": "human", "g": "llm"}
    docs = [
        {"id": name, "text": "x", "source": source, "origin": "h1"}
        for name, source in versions.items()
    ]
    docs += [{"id": f"n{n}", "text": "x", "source": "llm", "origin": f"n{n}"} for n in range(3)]
    collection = collection_of(docs, {"q": "x"}, {"q": {"h1": 1, "g": 1}})
    ranked = {name: -float(rank) for rank, name in enumerate(["h1", "n0", "n1", "g", "n2", "h2"])}
    view = explored(toy_opened(collection, [{"q": ranked}]), depth=1)
    assert view.docs(0, "q") == ["h1", "g", "h2"]
    assert view.docs(0, "q", 1) == [1, 4, 6]


def many(relevant: int) -> Any:
    """A query with so many relevant documents in two versions, ranked human before LLM text,
    document by document.
    """
    sides = ("human", "llm")
    docs = [
        {"id": f"{n:03}-{s}", "text": "x", "source": s, "origin": str(n)}
        for n in range(relevant + 1)
        for s in sides
    ]
    grades = {f"{n:03}-{s}": 1 for n in range(relevant) for s in ("human", "llm")}
    collection = collection_of(docs, {"q": "x"}, {"q": grades})
    order = [row["id"] for row in docs]
    return collection, {"q": {name: -float(rank) for rank, name in enumerate(order)}}


def test_only_the_best_ranked_of_very_many_relevant_documents_are_listed() -> None:
    collection, scores = many(80)
    view = explored(toy_opened(collection, [scores]), depth=3)
    # 3 first results, 100 further ones, of which the last is a human document whose twin comes
    # along.
    assert view.docs(0, "q")[-2:] == ["051-human", "051-llm"]
    assert len(view.docs(0, "q")) == 3 + FURTHER + 1
    assert view.list(0, "q")["more"] == 160 - 104
    assert (
        "Of the relevant documents further down, each query shows the 100 best ranked."
        in view.block.description
    )


NAN = float("nan")
QUERY = st.dictionaries(st.sampled_from(tuple(toy().ids)), st.integers(0, 3), max_size=6)


@settings(max_examples=15)
@given(st.lists(QUERY, min_size=3, max_size=3), st.integers(1, 4))
def test_lists_hold_what_their_definition_says(
    scores_of_queries: list[dict[str, int]], depth: int
) -> None:
    collection = toy()
    scores = {
        f"q{i}": {doc: float(score) for doc, score in query.items()}
        for i, query in enumerate(scores_of_queries, start=1)
    }
    run = run_of(collection, scores, ranker="r")
    content = explored(toy_opened(collection, runs=[run]), depth=depth)
    frame = run.frame()
    for query, grades in QRELS.items():
        mine = frame.filter(pl.col("query_id") == query)
        ranked, score = (
            mine["doc_id"].to_list(),
            dict(zip(mine["doc_id"], mine["score"], strict=True)),
        )
        relevant = {f"{d}-{s}": g for d, g in grades.items() if g for s in ("human", "llm")}
        listed = {*ranked[:depth], *relevant}
        listed |= {f"{d[:2]}-{s}" for d in listed for s in ("human", "llm")} & set(ranked)
        above = {d: sum(s > score[d] for s in score.values()) for d in ranked}
        ties = {d: sum(s == score[d] for s in score.values()) for d in ranked}
        expected = {
            d: (
                above[d] + 1,
                above[d] + ties[d],
                score[d],
                relevant.get(d, 0),
                int(d in ranked[:depth]),
            )
            if d in score
            else (None, None, None, relevant[d], 0)
            for d in listed
        }
        entries = content.list(0, query)["entries"]
        names = [content.lists["docs"]["id"][e[0]] for e in entries]
        assert dict(zip(names, [tuple(e[1:]) for e in entries], strict=True)) == expected
        assert len(set(names)) == len(names)
        assert [d for d in names if d in score] == [d for d in ranked if d in listed]


def test_documents_of_no_group_have_no_twins_and_many_are_cut() -> None:
    collection = toy()
    docs = collection.docs.with_columns(side=pl.Series(["x", "x", "x", None, "y", "y"]))
    collection = Collection(docs, collection.queries, collection.qrels)
    twins = twins_of(collection, grouping(collection, "side"), np.arange(6))
    assert sorted(twins.rows()) == [(1, 4), (2, 5), (4, 1), (5, 2)]
    number = 40
    docs = [{"id": "h", "text": "x", "source": "human", "origin": "o"}]
    docs += [{"id": f"g{n}", "text": "x", "source": "llm", "origin": "o"} for n in range(number)]
    collection = collection_of(docs, {"q": "x"}, {"q": {"h": 1}})
    twins = twins_of(collection, grouping(collection, "source"), np.arange(number + 1))
    assert twins.filter(pl.col("doc") == 0)["twin"].to_list() == [1, 2, 3]
    assert twins.filter(pl.col("doc") > 0)["twin"].to_list() == [0] * number


def order(a: list[list[float]], b: list[list[float]]) -> list[int]:
    """Order of the queries where run r has the values a[r] and b[r]."""
    runs = [f"run{i}" for i in range(len(a))]
    audit = audit_of([[[[0.0] * len(x), x, y]] for x, y in zip(a, b, strict=True)], runs=runs)
    return Numbers.from_audit(audit, runs).order().tolist()


def test_queries_that_pull_most_come_first() -> None:
    assert order([[0.5, 0.9, 0.0]], [[0.4, 0.9, 0.8]]) == [2, 0, 1]  # whichever way they pull
    assert order([[0.5, 1.0, 0.5, 0.0]], [[0.0, 0.5, 0.0, 0.5]]) == [
        0,
        1,
        2,
        3,
    ]  # equal ones in the audit's order
    # The second ranker's queries pull half as far, but all that pulls on it is one query: that one
    # comes first.
    assert order([[0.8, 0.6, 0.0], [0.1, 0.1, 0.5]], [[0.0, 0.0, 0.0], [0.1, 0.1, 0.1]]) == [
        2,
        0,
        1,
    ]
    assert order([[NAN, 0.2, 1.0]], [[1.0, 0.1, NAN]]) == [
        1,
        0,
        2,
    ]  # what does not count pulls nothing
    audit = audit_of(np.full((1, 1, 6, 3), 0.5), groups=tuple("abcde"))
    assert (
        len(Numbers.from_audit(audit, ["run"]).pairs) == MOST_PAIRS < len(audit.pairs)
    )  # of very many the first ones


def test_without_measures_the_margin_of_wins_decides() -> None:
    collection = toy()
    bare = Collection(collection.docs, collection.queries, collection.qrels.clear())
    scores = {
        "q1": {"d1-human": 2.0, "d1-llm": 1.0, "d2-llm": 1.0},
        "q2": {"d1-human": 2.0, "d2-human": 2.0, "d3-human": 2.0},
        "q3": {"d1-llm": 2.0, "d2-llm": 2.0},
    }
    audit = toy_opened(bare, [scores], measures=None, card=True).audit
    numbers = Numbers.from_audit(audit, ["first"])
    assert numbers.heads[0, 0].tolist() == [[1, 1, 0], [3, 0, 0], [0, 2, 0]]
    assert numbers.order().tolist() == [1, 2, 0]


def test_nan_stays_and_nothing_is_minus_0() -> None:
    out = rounded(np.array([NAN, -0.0, -0.000123456789]))
    assert np.isnan(out[0])
    assert json.dumps(out[1:].tolist()) == "[0.0, -0.00012346]"
    assert unpacked(pack({"v": np.array([[1.5, NAN]])})) == {"v": [[1.5, None]]}


@pytest.mark.parametrize("grade", [2, 0.25])
def test_a_grade_may_be_a_fraction(grade: float) -> None:
    collection = twins(2)
    qrels = collection.qrels.with_columns(grade=pl.lit(grade))
    collection = Collection(collection.docs, collection.queries, qrels)
    view = explored(toy_opened(collection, [{"q0": {"0-human": 2.0, "0-llm": 1.0}}]))
    assert view.docs(0, "q0", 4) == [grade, grade]
