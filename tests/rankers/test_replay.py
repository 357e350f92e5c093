"""A run made elsewhere ranks as it did."""

import gzip
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ranktilt import Collection, DataError, Run, UserError, audit, ranker
from ranktilt.rankers.lexical import BM25
from ranktilt.rankers.replay import Replay
from tests.toy import collection_of, toy, write, write_run

SCORES = {
    "q1": {"d1-human": 3.5, "d3-llm": 2.0, "d1-llm": 1.0},
    "q2": {"d2-llm": -1.0, "d2-human": -2.0},
    "q3": {"d3-human": 0.1},
}


def entries(run: Run) -> dict[str, list[tuple[str, float]]]:
    out: dict[str, list[tuple[str, float]]] = {query: [] for query in run.queries}
    for query, doc, _, score in run.frame().iter_rows():
        out[query].append((doc, score))
    return out


def replayed(tmp_path: Path, scores: dict[str, dict[str, float]], collection: Collection | None = None) -> Run:
    return Replay(str(write_run(tmp_path / "a.trec", scores))).rank(collection or toy())


def test_a_run_is_given_back_as_it_is(tmp_path: Path) -> None:
    expected = {query: list(found.items()) for query, found in SCORES.items()}
    assert entries(replayed(tmp_path, SCORES)) == expected


def test_a_saved_run_comes_back_score_for_score(tmp_path: Path) -> None:
    collection = toy()
    made = BM25(k1=0.9).rank(collection)
    file = made.save(tmp_path / "bm25.trec.gz")
    run = Replay(str(file)).rank(collection)
    assert gzip.decompress(file.read_bytes()).startswith(b"q1 Q0 ")
    assert entries(run) == entries(made)
    assert run.spec["made_by"] == "bm25(k1=0.9)"
    assert run.spec["ranker"] == run.name == f"replay:{file}"
    assert run.spec["file"] == str(file)
    assert "judged_queries_missing" not in run.spec
    assert audit(collection, run).values.tolist() == audit(collection, made).values.tolist()


def test_the_order_of_lines_and_the_ranks_they_name_do_not_matter(tmp_path: Path) -> None:
    lines = ["q2 Q0 d2-human 1 -2.0 x", "q1\tQ0\td1-llm\t7\t1e0\tx", "q2 0 d2-llm 9 -1 x", "q1 Q0 d1-human 8 3.5 x"]
    file = write(tmp_path / "a.trec", "\r\n".join(lines))
    assert entries(Replay(str(file)).rank(toy())) == {
        "q1": [("d1-human", 3.5), ("d1-llm", 1.0)],
        "q2": [("d2-llm", -1.0), ("d2-human", -2.0)],
        "q3": [],
    }


def test_queries_without_judgments_are_left_out_and_those_missing_are_empty(tmp_path: Path) -> None:
    run = replayed(tmp_path, {"zz": {"d1-human": 1.0}, "q2": {"d2-llm": 1.0}})
    assert run.queries == ("q1", "q2", "q3")
    assert entries(run) == {"q1": [], "q2": [("d2-llm", 1.0)], "q3": []}
    assert run.spec["judged_queries_missing"] == 2


def test_unknown_documents_keep_their_places(tmp_path: Path) -> None:
    run = replayed(tmp_path, {"q1": {"web-1": 9.0, "d1-llm": 5.0, "web-2": 2.0, "d1-human": 1.0}})
    assert [doc for doc, _ in entries(run)["q1"]] == ["web-1", "d1-llm", "web-2", "d1-human"]
    result = audit(toy(), run, ["RR@10"])
    assert result.values[0, 0, :, 0].tolist() == [0.5, 0.25, 0.5]
    assert "2 entries of 2 documents not in the collection (first: 'web-1')" in result.notes[1]


def test_a_depth_cuts_each_query(tmp_path: Path) -> None:
    file = write_run(tmp_path / "a.trec", SCORES)
    run = Replay(str(file), k=2).rank(toy())
    assert {query: len(found) for query, found in entries(run).items()} == {"q1": 2, "q2": 2, "q3": 1}
    assert run.name == f"replay:{file}@2"


def test_a_cut_through_a_tie_keeps_twins_together(tmp_path: Path) -> None:
    tied = {f"{doc}-{source}": 1.0 for source in ("human", "llm") for doc in ("d1", "d2", "d3")}
    file = write_run(tmp_path / "a.trec", {"q1": tied})
    names = [doc for doc, _ in entries(Replay(str(file), k=1).rank(toy()))["q1"]]
    assert len(names) == 2
    assert {name.partition("-")[2] for name in names} == {"human", "llm"}
    assert len({name.partition("-")[0] for name in names}) == 1


def test_a_querys_own_document_is_dropped(tmp_path: Path) -> None:
    docs = [{"id": name, "text": name} for name in ("a", "b", "c")]
    collection = collection_of(docs, {"a": "x", "b": "y"}, {"a": {"b": 1}, "b": {"c": 1}})
    scores = {query: {"a": 3.0, "b": 2.0, "c": 1.0} for query in ("a", "b")}
    run = replayed(tmp_path, scores, collection)
    assert entries(run) == {"a": [("b", 2.0), ("c", 1.0)], "b": [("a", 3.0), ("c", 1.0)]}
    assert run.spec["own_documents_dropped"] == 2
    kept = Replay(str(tmp_path / "a.trec"), exclude_self=False).rank(collection)
    assert [doc for doc, _ in entries(kept)["a"]] == ["a", "b", "c"]


def test_no_document_in_common_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        replayed(tmp_path, {"q1": {"x": 1.0, "y": 2.0}})
    assert str(caught.value) == (
        f"{tmp_path / 'a.trec'}: no overlap: none of its 2 documents is in the collection "
        "(first: 'x'; the collection's ids look like 'd1-human')"
    )


def test_no_query_in_common_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        replayed(tmp_path, {"7": {"d1-human": 1.0}, "8": {"d1-human": 1.0}})
    assert str(caught.value) == (
        f"{tmp_path / 'a.trec'}: no overlap: none of its 2 queries has a judgment (first: '7')"
    )


def test_an_id_that_two_sources_share_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        replayed(tmp_path, {"q1": {"d1-human": 2.0, "d2": 1.0}})
    assert str(caught.value) == (
        f"{tmp_path / 'a.trec'}: document id 'd2' is shared by several sources: 'd2-human' and 'd2-llm'; "
        "the run must say which"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("q1 Q0 d1-human 1 0.5\n", ":1: expected query-id, Q0, document-id, rank, score, tag (6 fields), got 5: "),
        ("q1 Q0 d1-human 1 2 x\nq1 Q0 d1-llm 2 nan x\n", ":2: expected a finite number as score, got 'nan'"),
        ("q1 Q0 d1-human 1 2 x\n\nq1 Q0 d1-human 2 1 x\n", ":3: document 'd1-human' comes twice for query 'q1'"),
        ("", ": the file is empty"),
    ],
)
def test_a_broken_file_is_named_with_its_line(tmp_path: Path, content: str, message: str) -> None:
    file = write(tmp_path / "a.trec", content)
    with pytest.raises(DataError) as caught:
        Replay(str(file)).rank(toy())
    assert str(caught.value).startswith(f"{file}{message}")


def test_a_missing_file_is_named() -> None:
    with pytest.raises(DataError, match=r"^no/such.trec: cannot be read: No such file or directory$"):
        Replay("no/such.trec").rank(toy())


def test_a_run_cannot_be_re_ranked(tmp_path: Path) -> None:
    file = write_run(tmp_path / "a.trec", SCORES)
    collection = toy()
    with pytest.raises(UserError, match=r"replays a whole run and re-ranks nothing; put it first$"):
        Replay(str(file)).rank(collection, BM25().rank(collection))


def test_a_depth_below_one_is_refused() -> None:
    with pytest.raises(UserError, match=r"^replay: expected a depth of at least 1, got @0$"):
        ranker("replay:a.trec@0")


def test_a_query_that_only_judgments_and_run_know_counts_where_nothing_is_grouped(tmp_path: Path) -> None:
    plain = toy()
    qrels = pl.concat(
        [plain.qrels, pl.DataFrame({"query_id": ["x"], "doc_id": ["d1-llm"], "grade": [1]}).cast(plain.qrels.schema)]
    )
    collection = Collection(plain.docs, plain.queries, qrels)
    file = write_run(tmp_path / "a.trec", {"q1": {"d1-llm": 2.0}, "x": {"d1-llm": 1.0}, "unjudged": {"d1-llm": 1.0}})
    run = Replay(str(file)).rank(collection)
    assert run.queries == ("q1", "q2", "q3", "x")
    found = audit(collection, run, ["RR"])
    assert found.values[0, 0, 0, found.queries.index("x")] == 1.0
    assert np.isnan(found.values[0, 0, 1:, found.queries.index("x")]).all()
