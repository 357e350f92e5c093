"""A run made elsewhere ranks as it did."""

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ranktilt import Collection, DataError, Run, UserError, audit, ranker
from ranktilt.errors import DataWarning
from ranktilt.rankers.lexical.bm25 import BM25
from ranktilt.rankers.replay import Replay
from ranktilt.reporting.sentences.notes import note_sentences
from tests.rankers.contract import entries
from tests.refusals import refused
from tests.toy import collection_of, toy, write, write_run

SCORES = {
    "q1": {"d1-human": 3.5, "d3-llm": 2.0, "d1-llm": 1.0},
    "q2": {"d2-llm": -1.0, "d2-human": -2.0},
    "q3": {"d3-human": 0.1},
}


def replayed(
    tmp_path: Path, scores: dict[str, dict[str, float]], collection: Collection | None = None
) -> Run:
    return Replay(str(write_run(tmp_path / "a.trec", scores))).rank(collection or toy())


def test_a_saved_run_comes_back_score_for_score(tmp_path: Path) -> None:
    collection = toy()
    original = BM25(k1=0.9).rank(collection)
    file = original.save(tmp_path / "bm25.trec.gz")
    run = Replay(str(file)).rank(collection)
    assert gzip.decompress(file.read_bytes()).startswith(b"q1 Q0 ")
    assert entries(run) == entries(original)
    assert run.spec["made_by"] == "bm25(k1=0.9)"
    assert (run.spec["ranker"], run.name, run.spec["file"]) == (f"replay:{file}", "bm25", str(file))


def test_ranks_decide_where_asked_to_and_a_depth_cuts_each_query_and_keeps_twins_together(
    tmp_path: Path,
) -> None:
    file = write(
        tmp_path / "a.trec", "q1 Q0 d1-human 2 9 x\nq1 Q0 d1-llm 1 3 x\nq2 Q0 d2-llm 1 5 x\n"
    )
    run = ranker(f"replay:{file}(score_order=rank)").rank(toy())
    assert entries(run) == {"q1": [("d1-llm", -1.0), ("d1-human", -2.0)], "q2": [("d2-llm", -1.0)]}
    assert (run.spec["score_order"], run.name) == ("rank", "a")
    file = write_run(tmp_path / "a.trec", SCORES)
    run = Replay(str(file), k=2).rank(toy())
    assert entries(run) == {query: list(docs.items())[:2] for query, docs in SCORES.items()}
    write_run(
        file,
        {
            "q1": {
                f"{doc}-{source}": 1.0 for source in ("human", "llm") for doc in ("d1", "d2", "d3")
            }
        },
    )
    with pytest.warns(DataWarning, match="all scores are equal"):
        first, second = (doc for doc, _ in entries(Replay(str(file), k=1).rank(toy()))["q1"])
    assert first.partition("-")[0] == second.partition("-")[0]


def test_which_queries_are_in_the_run_and_those_that_only_judgments_know_count(
    tmp_path: Path,
) -> None:
    run = replayed(tmp_path, {"zz": {"d1-human": 1.0}, "q2": {"d2-llm": 1.0}})
    assert entries(run) == {"q2": [("d2-llm", 1.0)]}
    result = audit(toy(), run, ["RR"])
    assert result.values[0, 0, 0].tolist() == [0.0, 1.0, 0.0]
    assert f"{run.name}: 2 judged queries not in the run, counted as 0" in note_sentences(
        result.notes
    )
    for queries, expected in ((("q3", "none", "q1"), ("q3", "q1")), ((), tuple(SCORES))):
        texts = {query: f"text of {query}" for query in queries}
        run = replayed(tmp_path, SCORES, collection_of(toy().docs.to_dicts(), texts, {}))
        assert entries(run) == {query: list(SCORES[query].items()) for query in expected}
    plain = toy()
    more = pl.DataFrame(
        {"query_id": ["x"], "doc_id": ["d1-llm"], "grade": [1]}, schema=plain.qrels.schema
    )
    collection = replace(plain, qrels=pl.concat([plain.qrels, more]))
    scores = {"q1": {"d1-llm": 2.0}, "x": {"d1-llm": 1.0}, "unjudged": {"d1-llm": 1.0}}
    run = replayed(tmp_path, scores, collection)
    assert run.queries == ("q1", "x")
    result = audit(collection, run, ["RR"])
    every, *groups = result.values[0, 0, :, result.queries.index("x")]
    assert every == 1.0
    assert np.isnan(groups).all()


def test_a_run_or_a_collection_may_be_empty(tmp_path: Path) -> None:
    table = pl.DataFrame({"id": ["d"], "text": ["d"]})
    for docs, content, message in (
        (
            table,
            '{"q1": {"x": 1}}',
            "1 document is in the collection (first: 'x'; its ids look like 'd')",
        ),
        (table.clear(), '{"q1": {}}', "0 documents is in the collection"),
    ):
        file = write(tmp_path / "a.json", content)
        with refused(f"{file}: no overlap: none of its {message}", DataError):
            Replay(str(file)).rank(Collection(docs, toy().queries, toy().qrels))


OWN = {query: {"a": 3.0, "b": 2.0, "c": 1.0} for query in ("a", "b")}
WITHOUT_OWN = {"a": [("b", 2.0), ("c", 1.0)], "b": [("a", 3.0), ("c", 1.0)]}


@pytest.mark.parametrize(
    ("words", "judged", "dropped"),
    [(("A", "B"), True, True), (("", ""), True, False), (("", ""), False, False)],
)
def test_a_querys_own_document_is_dropped(
    tmp_path: Path, words: tuple[str, str], judged: bool, dropped: bool
) -> None:
    docs = [{"id": name, "text": name} for name in ("a", "b", "c")]
    qrels = {"a": {"b": 1}, "b": {"c": 1}} if judged else {}
    collection = collection_of(docs, dict(zip("ab", words, strict=True)), qrels)
    all_queries = {query: list(ranked.items()) for query, ranked in OWN.items()}
    run = replayed(tmp_path, OWN, collection)
    assert entries(run) == (WITHOUT_OWN if dropped else all_queries)
    assert run.spec.get("own_documents_dropped") == (2 if dropped else None)
    assert entries(Replay(run.spec["file"], exclude_self=False).rank(collection)) == all_queries
    assert entries(Replay(run.spec["file"], exclude_self=True).rank(collection)) == WITHOUT_OWN


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (
            {"q1": {"x": 2.0, "y": 1.0}},
            "no overlap: none of its 2 documents is in the collection .first: 'x'",
        ),
        (
            {"7": {"d1-human": 1.0}, "8": {"d1-human": 1.0}},
            "no overlap: none of its 2 queries has a judgment",
        ),
        (
            {"q1": {"d1-human": 2.0, "d2": 1.0}},
            "several sources share document id 'd2': 'd2-human' and",
        ),
    ],
)
def test_a_run_of_another_collection_is_an_error(
    tmp_path: Path, scores: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        replayed(tmp_path, scores)
    with pytest.raises(UserError, match=r"replays a whole run and cannot re-rank; put it first$"):
        Replay("a").rank(toy(), BM25().rank(toy()))
