"""Runs of several repeats: how files hold them, how they are joined, and who refuses them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import polars as pl
import pytest

from ranktilt.data.runs.repeats import each_repeat, join_namesakes
from ranktilt.data.runs.run import Run
from ranktilt.errors import DataError, DataWarning
from tests.refusals import refused
from tests.toy import write


@dataclass(frozen=True, kw_only=True)
class Case:
    name: str
    file: str
    content: str


TREC = """\
q1 Q0 d1 1 9 gpt-1
q1 Q0 d2 2 8 gpt-1
q2 Q0 d1 1 7 gpt-1
q1 Q0 d2 1 9 gpt-2
q1 Q0 d1 2 8 gpt-2
q2 Q0 d3 1 7 gpt-2
"""
CSV = """\
qid,docno,score,repeat
q1,d1,9,a
q1,d2,8,a
q2,d1,7,a
q1,d2,9,b
q1,d1,8,b
q2,d3,7,b
"""
RECORDS = """\
{"qid": "q1", "docno": "d1", "score": 9, "repeat": 1}
{"qid": "q1", "docno": "d2", "score": 8, "repeat": 1}
{"qid": "q2", "docno": "d1", "score": 7, "repeat": 1}
{"qid": "q1", "docno": "d2", "score": 9, "repeat": 2}
{"qid": "q1", "docno": "d1", "score": 8, "repeat": 2}
{"qid": "q2", "docno": "d3", "score": 7, "repeat": 2}
"""
ANSWERS = """\
{"qid": "q1", "trial": 1, "results": [{"id": "d1", "score": 9}, {"id": "d2", "score": 8}]}
{"qid": "q2", "trial": 1, "results": [{"id": "d1", "score": 7}]}
{"qid": "q1", "trial": 2, "results": [{"id": "d2", "score": 9}, {"id": "d1", "score": 8}]}
{"qid": "q2", "trial": 2, "results": [{"id": "d3", "score": 7}]}
"""
CASES = [
    Case(name="numbered tags", file="run.trec", content=TREC),
    Case(name="column repeat", file="run.csv", content=CSV),
    Case(
        name="column run of numbers",
        file="run.csv",
        content=CSV.replace("repeat", "run").replace(",a", ",1").replace(",b", ",2"),
    ),
    Case(name="records", file="run.jsonl", content=RECORDS),
    Case(name="answers", file="run.jsonl", content=ANSWERS),
    Case(
        name="ranks",
        file="run.tsv",
        content="qid\tdocno\trepeat\nq1\td1\t1\nq1\td2\t1\n"
        "q2\td1\t1\nq1\td2\t2\nq1\td1\t2\nq2\td3\t2\n",
    ),
]


def lists(run: Run) -> list[tuple[str, str]]:
    return list(run.frame().select("query_id", "doc_id").iter_rows())


FIRST = [("q1", "d1"), ("q1", "d2"), ("q2", "d1")]
SECOND = [("q1", "d2"), ("q1", "d1"), ("q2", "d3")]


def written(folder: Path, file: str, content: str) -> Path:
    path = folder / file
    path.write_text(content, encoding="utf-8")
    return path


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_file_of_repeats(tmp_path: Path, case: Case) -> None:
    run = Run.load(written(tmp_path, case.file, case.content), repeats=True)
    assert [lists(repeat) for repeat in each_repeat(run)] == [FIRST, SECOND]


def test_parquet_of_repeats(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    pl.read_csv(written(tmp_path, "run.csv", CSV)).write_parquet(path)
    run = Run.load(path, repeats=True)
    assert [lists(repeat) for repeat in each_repeat(run)] == [FIRST, SECOND]


def test_saved_run_keeps_repeats(tmp_path: Path) -> None:
    run = Run.load(written(tmp_path, "run.csv", CSV), repeats=True)
    run.save(tmp_path / "saved.trec")
    saved = Run.load(tmp_path / "saved.trec", repeats=True)
    assert [lists(repeat) for repeat in each_repeat(saved)] == [FIRST, SECOND]
    assert [repeat.spec["repeat"] for repeat in (saved, *saved.repeats)] == [1, 2]


def test_saved_run_keeps_repeats_without_a_document(tmp_path: Path) -> None:
    rankings = [Run.from_dict({"q": scores}) for scores in ({}, {"a": 1.0}, {}, {"b": 1.0})]
    Run.from_repeats(rankings).save(tmp_path / "saved.trec")
    saved = Run.load(tmp_path / "saved.trec", repeats=True)
    assert [lists(repeat) for repeat in each_repeat(saved)] == [[], [("q", "a")], [], [("q", "b")]]
    assert {repeat.queries for repeat in each_repeat(saved)} == {("q",)}


def test_response_that_fails_in_one_repeat_is_said(tmp_path: Path) -> None:
    lines = []
    for repeat, query in product((1, 2, 3), ("q1", "q2", "q3")):
        failed = query == "q2" and repeat > 1
        hits = [] if failed else [{"_index": "i", "_id": "d1", "_score": 1.0}]
        results = {"total": {"value": len(hits)}, "hits": hits}
        record = {"query": query, "repeat": repeat, "took": 1, "timed_out": failed, "hits": results}
        lines.append(json.dumps(record))
    path = write(tmp_path / "run.jsonl", "\n".join(lines))
    message = (
        r"1 of 3 queries failed in some repeats, which lack the list \(first: 'q2': timed out\)"
    )
    with pytest.warns(DataWarning, match=message):
        run = Run.load(path, repeats=True, max_failures=25)
    assert ["q2" in repeat.queries for repeat in (run, *run.repeats)] == [True, False, False]
    with pytest.raises(DataError, match="2 of 9 answers failed"):
        Run.load(path, repeats=True, max_failures=20)


def test_repeats_of_distances(tmp_path: Path) -> None:
    rows = [f"q,d{rank},{rank / 10},{repeat}" for repeat in (1, 2) for rank in (1, 2, 3)]
    content = "\n".join(["qid,docno,distance,repeat", *rows])
    run = Run.load(written(tmp_path, "run.csv", content), repeats=True)
    best_first = [("q", "d1"), ("q", "d2"), ("q", "d3")]
    assert [lists(repeat) for repeat in each_repeat(run)] == [best_first, best_first]


def test_repeats_are_refused_unless_read(tmp_path: Path) -> None:
    path = written(tmp_path, "run.csv", CSV)
    with refused(
        f"{path}: 2 repeats of each query, which only an audit averages (ranktilt audit, "
        "Run.load(FILE, repeats=True)); name a file of one repeat",
        DataError,
    ):
        Run.load(path)


AMBIGUOUS = [
    Case(
        name="tag", file="run.trec", content=TREC.replace("gpt-1", "bm25").replace("gpt-2", "gpt")
    ),
    Case(
        name="run",
        file="run.csv",
        content=CSV.replace("repeat", "run").replace(",b", ",gpt").replace(",a", ",bm25"),
    ),
]


@pytest.mark.parametrize("case", AMBIGUOUS, ids=lambda case: case.name)
def test_names_of_systems_are_refused(tmp_path: Path, case: Case) -> None:
    path = written(tmp_path, case.file, case.content)
    with refused(
        f"{path}: {case.name!r} has several values for query 'q1' ('bm25' and 'gpt'); if they are "
        f"repeats of one engine, use FILE:repeat={case.name}; if they are different runs, write a "
        "file for each",
        DataError,
    ):
        Run.load(path, repeats=True)
    run = Run.load(f"{path}:repeat={case.name}", repeats=True)
    assert [lists(repeat) for repeat in each_repeat(run)] == [FIRST, SECOND]


def test_tags_of_other_queries_are_no_repeats(tmp_path: Path) -> None:
    path = written(tmp_path, "run.trec", "q1 Q0 d1 1 9 part-1\nq2 Q0 d1 1 9 part-2\n")
    assert Run.load(path, repeats=True).repeats == ()


def test_repeats_of_other_queries_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "run.csv", "qid,docno,score,repeat\nq1,d1,9,1\nq2,d1,9,2\n")
    with refused(
        f"{path}: repeats must answer the same queries, and no query has two values of 'repeat'; "
        "remove that column if these are no repeats",
        DataError,
    ):
        Run.load(path, repeats=True)


def test_repeat_without_a_value_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "run.csv", CSV.replace("q2,d3,7,b", "q2,d3,7,"))
    with refused(f"{path}: entry 6: no value in column 'repeat', which numbers repeats", DataError):
        Run.load(path, repeats=True)


def test_unknown_column_of_repeats(tmp_path: Path) -> None:
    path = written(tmp_path, "run.trec", TREC)
    with refused(f"{path}: unknown column 'day' (valid: tag)", DataError):
        Run.load(f"{path}:repeat=day", repeats=True)


def test_document_twice_in_one_repeat_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "run.csv", CSV + "q2,d3,6,b\n")
    with refused(
        f"{path}: document 'd3' occurs twice for query 'q2'; to keep the first, use "
        "FILE:keep=first",
        DataError,
    ):
        Run.load(path, repeats=True)
    without_second = Run.load(f"{path}:keep=first", repeats=True)
    assert lists(each_repeat(without_second)[1]) == SECOND


def run_called(name: str, scores: dict[str, dict[str, float]], *, alias: str | None = None) -> Run:
    run = Run.from_dict(scores, name=name)
    return Run.from_repeats([run], name=alias) if alias is not None else run


def test_runs_of_one_alias_are_joined() -> None:
    runs = [
        run_called("a", {"q1": {"d1": 1.0}}, alias="engine"),
        run_called("b", {"q1": {"d1": 1.0}}),
        run_called("c", {"q1": {"d2": 1.0}}, alias="engine"),
    ]
    engine, single = join_namesakes(runs)
    assert (engine.name, len(each_repeat(engine))) == ("engine", 2)
    assert (single.name, single.repeats) == ("b", ())


def test_joined_repeats_are_flat() -> None:
    first = Run.from_repeats(
        [run_called("a", {"q1": {"d1": 1.0}}), run_called("b", {"q1": {"d1": 1.0}})], name="e"
    )
    together = Run.from_repeats([first, run_called("c", {"q1": {"d1": 1.0}})], name="engine")
    assert len(together.repeats) == 2
    assert {repeat.name for repeat in each_repeat(together)} == {"engine"}


def test_no_repeats_to_join() -> None:
    with refused("repeats need at least one run"):
        Run.from_repeats([])
