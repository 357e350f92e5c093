"""Scores that rise along the order of a file are refused in every format, unless named."""

import json
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ranktilt as rt
from ranktilt.data.runs.run import Run
from ranktilt.errors import DataError, UserError
from tests.refusals import refused
from tests.toy import write

DISTANCES = {"q1": {"d1": 0.1, "d2": 0.4, "d3": 0.9}, "q2": {"d4": 0.2, "d5": 0.2, "d6": 0.3}}
"""Two lists, best first: the smaller, the better."""
ROWS = [(query, doc, score) for query, scores in DISTANCES.items() for doc, score in scores.items()]
RANKS = {doc: rank for scores in DISTANCES.values() for rank, doc in enumerate(scores, start=1)}


def hits(scores: dict[str, float]) -> dict[str, Any]:
    return {"hits": {"hits": [{"_id": doc, "_score": score} for doc, score in scores.items()]}}


FILES = {
    "trec": "".join(f"{query} Q0 {doc} {RANKS[doc]} {score} x\n" for query, doc, score in ROWS),
    "trec-by-document": "".join(
        f"{query} Q0 {doc} {RANKS[doc]} {score} x\n"
        for query, doc, score in sorted(ROWS, key=lambda row: row[1][::-1])
    ),
    "trec-without-ranks": "".join(f"{query} Q0 {doc} 0 {score} x\n" for query, doc, score in ROWS),
    "four-columns": "".join(f"{query} {doc} {RANKS[doc]} {score}\n" for query, doc, score in ROWS),
    "csv": "query_id,doc_id,score\n"
    + "".join(f"{query},{doc},{score}\n" for query, doc, score in ROWS),
    "csv-with-ranks": "qid,docno,rank,score\n"
    + "".join(f"{query},{doc},{RANKS[doc]},{score}\n" for query, doc, score in reversed(ROWS)),
    "tsv": "query_id\tdoc_id\tscore\n"
    + "".join(f"{query}\t{doc}\t{score}\n" for query, doc, score in ROWS),
    "json": json.dumps(DISTANCES),
    "lists": json.dumps(
        {
            query: [{"id": doc, "score": score} for doc, score in scores.items()]
            for query, scores in DISTANCES.items()
        }
    ),
    "records": json.dumps(
        [{"query_id": query, "doc_id": doc, "score": score} for query, doc, score in ROWS]
    ),
    "predictions": "\n".join(
        json.dumps(
            {
                "query_id": query,
                "results": [{"corpus_id": doc, "score": score} for doc, score in scores.items()],
            }
        )
        for query, scores in DISTANCES.items()
    ),
    "mteb": json.dumps({"mteb_model_meta": {"model_name": "m"}, "default": {"test": DISTANCES}}),
    "msearch": json.dumps({"responses": [hits(scores) for scores in DISTANCES.values()]}),
    "responses": json.dumps({query: hits(scores) for query, scores in DISTANCES.items()}),
}
MESSAGE = (
    "the scores rise along the given order in 2 of 2 lists; say how to order the results with "
    "--score-order ascending (smaller is better, as with distances), rank (the given order counts) "
    "or score (larger is better); score_order= in Python"
)


def documents(run: Run) -> dict[str, list[str]]:
    frame = run.frame()
    return {query: frame.filter(query_id=query)["doc_id"].to_list() for query in run.queries}


GIVEN = {query: list(scores) for query, scores in DISTANCES.items()}
BY_SCORE = {"q1": ["d3", "d2", "d1"], "q2": ["d6", "d4", "d5"]}


@pytest.mark.parametrize("form", FILES)
def test_distances_are_refused_in_every_format(tmp_path: Path, form: str) -> None:
    path = write(tmp_path / "run", FILES[form])
    if form == "mteb":  # whose scores are similarities, in no order
        assert documents(Run.load(path)) == BY_SCORE
    else:
        with refused(f"{path}: {MESSAGE}", DataError):
            Run.load(path, queries=["q1", "q2"])
    runs = {
        order: Run.load(path, score_order=order, queries=["q1", "q2"])
        for order in ("ascending", "rank", "score")
    }
    if form in (
        "trec-by-document",
        "csv-with-ranks",
    ):  # where ties and queries stand in another order
        assert {query: set(docs) for query, docs in documents(runs["ascending"]).items()} == {
            query: set(docs) for query, docs in GIVEN.items()
        }
        assert documents(runs["rank"]) == {query: GIVEN[query] for query in runs["rank"].queries}
        return
    assert documents(runs["ascending"]) == documents(runs["rank"]) == GIVEN
    assert documents(runs["score"]) == BY_SCORE
    assert runs["ascending"].frame()["score"].to_list() == [-0.1, -0.4, -0.9, -0.2, -0.2, -0.3]
    assert runs["rank"].frame()["score"].to_list() == [-1.0, -2.0, -3.0] * 2
    orders = [run.spec.get("score_order") for run in runs.values()]
    assert orders == ["ascending", "rank", None]


def test_distances_are_refused_in_every_object() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pl.DataFrame(ROWS, schema=["query_id", "doc_id", "score"], orient="row")
    table = pandas.DataFrame(ROWS, columns=["qid", "docno", "score"])
    ranked = table.assign(rank=[RANKS[doc] for doc in table["docno"]]).sort_values(
        "docno", ascending=False
    )
    for make in (
        lambda **order: Run.from_frame(frame, **order),
        lambda **order: Run.from_pandas(table, **order),
        lambda **order: Run.from_pandas(ranked, **order),
        lambda **order: Run.from_dict(DISTANCES, **order),
    ):
        with refused(f"run 'run': {MESSAGE}"):
            make()
        assert {
            query: set(docs) for query, docs in documents(make(score_order="ascending")).items()
        } == {query: set(docs) for query, docs in GIVEN.items()}
        by_rank = make(score_order="rank")
        assert documents(by_rank)["q1"] == GIVEN["q1"]
        assert by_rank.spec["score_order"] == "rank"
        assert documents(make(score_order="score"))["q1"] == BY_SCORE["q1"]


def test_a_table_without_scores_is_a_run_by_the_order_of_its_rows() -> None:
    frame = pl.DataFrame({"query_id": ["q1", "q1"], "doc_id": ["b", "a"]})
    assert documents(Run.from_frame(frame, score_order="rank")) == {"q1": ["b", "a"]}
    with refused("run 'run': table: expected columns query_id, doc_id, score; missing: score…"):
        Run.from_frame(frame)


def test_scores_of_mteb_are_similarities_in_no_order() -> None:
    predictions = {"default": {"test": DISTANCES}}
    assert documents(Run.from_mteb(predictions)) == BY_SCORE
    distances = Run.from_mteb(predictions, score_order="ascending")
    assert documents(distances)["q1"] == GIVEN["q1"]
    assert documents(Run.from_mteb(predictions, score_order="rank"))["q2"] == GIVEN["q2"]


@dataclass(frozen=True, kw_only=True)
class Lists:
    """Lists of scores in the order given, and whether they are refused."""

    name: str
    scores: list[list[float]]
    refused: bool


UP, DOWN, FLAT = [1.0, 2.0, 3.0], [3.0, 2.0, 1.0], [1.0, 1.0, 1.0]
LISTS = [
    Lists(name="nine-of-ten-rise", scores=[UP] * 9 + [DOWN], refused=True),
    Lists(name="eight-of-nine-rise", scores=[UP] * 8 + [DOWN], refused=False),
    Lists(name="unsorted", scores=[[2.0, 1.0, 3.0], [1.0, 3.0, 2.0]], refused=False),
    Lists(name="constant-lists-say-nothing", scores=[UP, FLAT, FLAT], refused=True),
    Lists(name="all-constant", scores=[FLAT, FLAT], refused=False),
    Lists(name="ties-are-no-step", scores=[[1.0, 1.0, 2.0]], refused=True),
    Lists(name="two-results-say-nothing", scores=[[1.0, 2.0]] * 40, refused=False),
    Lists(name="but-not-beside-longer-ones", scores=[[1.0, 2.0]] * 10 + [DOWN], refused=False),
    Lists(name="one-step-in-ten-may-fall", scores=[[*range(10), 8.5]], refused=True),
    Lists(name="two-in-ten-may-not", scores=[[*range(9), 7.5, 7.0]], refused=False),
]


@pytest.mark.parametrize("lists", LISTS, ids=lambda lists: lists.name)
def test_lists_that_rise_are_counted(lists: Lists) -> None:
    scores = {
        f"q{query}": {f"d{position}": float(score) for position, score in enumerate(values)}
        for query, values in enumerate(lists.scores)
    }
    with pytest.raises(UserError, match="the scores rise") if lists.refused else nullcontext():
        Run.from_dict(scores)


def test_ranks_decide_what_the_given_order_is(tmp_path: Path) -> None:
    worst_first = "q Q0 c 3 1 t\nq Q0 b 2 2 t\nq Q0 a 1 3 t\n"
    assert documents(Run.load(write(tmp_path / "run", worst_first))) == {"q": ["a", "b", "c"]}


def test_order_that_the_file_contradicts_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "run.trec", "q Q0 a 1 3 t\nq Q0 b 2 2 t\nq Q0 c 3 1 t\n")
    message = (
        f"{path}: the scores fall along the given order in 1 of 1 list, so smaller is hardly "
        "better; omit --score-order ascending (score_order)"
    )
    with refused(message, DataError):
        Run.load(path, score_order="ascending")
    distances = Run.from_dict(DISTANCES, score_order="ascending", name="faiss")
    saved = distances.save(tmp_path / "saved.trec")
    assert Run.load(saved) == distances
    assert Run.load(saved).spec["score_order"] == "ascending"
    with pytest.raises(DataError, match="the scores fall along the given order in 2 of 2 lists"):
        Run.load(saved, score_order="ascending")


@pytest.mark.parametrize("score", ["high", None, True, float("nan"), float("inf")])
def test_what_is_no_score_is_refused_and_the_order_can_be_taken(score: Any) -> None:
    printed = "None" if score is None else repr(score)
    message = (
        f"run 'run': query 'q', document 'b': expected a finite number as score, got {printed}; "
    )
    with refused(
        f'{message}for the given order instead, use --score-order rank (score_order="rank")'
    ):
        Run.from_dict({"q": {"a": 2.0, "b": score}})
    assert documents(Run.from_dict({"q": {"a": 2.0, "b": score}}, score_order="rank")) == {
        "q": ["a", "b"]
    }


def test_collection_ranks_with_replayed_distances(tmp_path: Path) -> None:
    collection = rt.bundled()
    names = collection.ids.to_list()[:3]
    query = collection.queries_with_judgments["id"][0]
    path = write(
        tmp_path / "run.json", json.dumps({query: dict(zip(names, (0.1, 0.2, 0.3), strict=True))})
    )
    with refused(f"{path}: the scores rise along the given order in 1 of 1 list; …", DataError):
        rt.ranker(f"replay:{path}").rank(collection)
    assert documents(rt.ranker(f"replay:{path}(score_order=ascending)").rank(collection)) == {
        query: names
    }


def test_ranks_that_are_fractions_are_no_ties() -> None:
    columns = {"query_id": "q", "doc_id": ["b", "a", "c"], "rank": [1.5, 1.0, 2.5]}
    run = Run.from_frame(pl.DataFrame(columns), score_order="rank")
    assert run.frame()["doc_id"].to_list() == ["a", "b", "c"]
    assert run.scores.tolist() == [-1, -1.5, -2.5]
