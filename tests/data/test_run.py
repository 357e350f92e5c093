"""The run: its arrays, its file format, and how each fault in a file is named."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ranktilt.data.collection import Collection
from ranktilt.data.files import sidecar
from ranktilt.data.runs.run import Run, codes, collection_rows, named_apart
from ranktilt.errors import DataError, DataWarning, UserError
from tests.refusals import refused
from tests.toy import collection_of, run_of, toy, write

LINE = "q1 Q0 d1 1 2.5 tag\n"


def table(*rows: tuple[str, str, float], **spec: Any) -> Run:
    schema = {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}
    return Run.from_frame(
        pl.DataFrame(rows, schema=schema, orient="row"), spec=spec, score_order="score"
    )


def entries(run: Run) -> list[tuple[str, str, int, float]]:
    return run.frame().rows()


def run_with(**changes: Any) -> Run:
    """Two queries, three entries; any part changed."""
    parts = {
        "queries": ["q1", "q2"],
        "offsets": [0, 2, 3],
        "docs": [1, 0, 1],
        "scores": [2.0, 1.0, 0.5],
        "ids": pl.Series(["a", "b"]),
    }
    return Run(**{**parts, **changes})


def test_a_run_is_a_slice_of_entries_per_query_of_which_one_may_have_none() -> None:
    run = run_with()
    assert run.frame().columns == ["query_id", "doc_id", "rank", "score"]
    assert entries(run) == [("q1", "b", 1, 2.0), ("q1", "a", 2, 1.0), ("q2", "b", 1, 0.5)]
    assert run.entry_queries.tolist() == [0, 0, 1]
    assert run.queries == ("q1", "q2")
    run = run_with(
        queries=["q1", "q2", "q3"], offsets=[0, 2, 2, 3], spec={"ranker": "bm25(k1=0.9)"}
    )
    assert [e[0] for e in entries(run)] == ["q1", "q1", "q3"]
    assert repr(run) == "Run('bm25(k1=0.9)': 3 queries, 3 entries)"
    assert run_with().name == "run"


def test_no_array_can_be_written_to_and_the_callers_stay_writable() -> None:
    scores, docs = np.array([2.0, 1.0, 0.5]), np.array([1, 0, 1], dtype=np.int32)
    run = run_with(scores=scores, docs=docs)
    assert (scores.flags.writeable, docs.flags.writeable) == (True, True)
    for array in (run.offsets, run.docs, run.scores):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_runs_are_equal_by_their_entries_alone() -> None:
    renamed = run_with(
        docs=[0, 1, 0], ids=pl.Series(["b", "a", "unused"]), spec={"ranker": "other"}
    )
    assert run_with() == renamed
    assert hash(run_with()) == hash(renamed)
    for changes in (
        {"scores": [2, 1, 0.25]},
        {"docs": [0, 1, 1]},
        {"queries": ["q1", "q3"]},
        {"offsets": [0, 1, 3]},
    ):
        assert run_with() != run_with(**changes)
    assert run_with().__eq__("run") is NotImplemented


def test_a_table_is_sorted_by_falling_score_within_each_query_and_ties_keep_its_order() -> None:
    run = table(
        ("q2", "c", 3.0), ("q1", "b", -1.0), ("q2", "a", 1.0), ("q1", "a", 0.5), ("q2", "d", 3.0)
    )
    assert run.queries == ("q2", "q1")
    assert run.ids.to_list() == ["c", "b", "a", "d"]
    ranked = [("q2", "c", 1), ("q2", "d", 2), ("q2", "a", 3), ("q1", "a", 1), ("q1", "b", 2)]
    assert [e[:3] for e in entries(run)] == ranked
    run = table(("q", "b", 1.0), ("q", "a", 1.0), ("q", "c", 2.0), ("q", "d", 1.0))
    assert [e[1] for e in entries(run)] == ["c", "b", "a", "d"]


def test_document_that_comes_twice_is_refused_by_every_constructor() -> None:
    pandas = pytest.importorskip("pandas")
    rows = [("q1", "a", 3.0), ("q1", "b", 2.0), ("q2", "a", 2.0), ("q1", "a", 1.0)]
    frame = pl.DataFrame(rows, schema=["query_id", "doc_id", "score"], orient="row")
    table = pandas.DataFrame(rows, columns=["qid", "docno", "score"])
    mixed = pandas.DataFrame({"qid": [1, "1"], "docno": ["a", "a"], "score": [2.0, 1.0]})
    message = "run 'run': document 'a' occurs twice for query"
    with refused(f"{message} 'q1'"):
        Run.from_frame(frame)
    with refused(f"{message} 'q1'"):
        Run.from_pandas(table)
    with refused(f"{message} '1'"):  # an id is one, written as a number or as text
        Run.from_pandas(mixed)
    with refused("document 'b' occurs twice for query 'q1'"):
        run_with(docs=[1, 1, 1])
    with refused("'Score' and 'score' name the same column; keep one of them"):
        Run.from_pandas(table.assign(Score=1.0)[["qid", "docno", "Score", "score"]])


def test_a_table_may_come_with_all_its_queries() -> None:
    frame = pl.DataFrame({"query_id": ["b", "a"], "doc_id": ["x", "x"], "score": [1.0, 2.0]})
    run = Run.from_frame(frame, queries=["a", "none", "b"])
    assert (run.queries, run.offsets.tolist(), run.scores.tolist()) == (
        ("a", "none", "b"),
        [0, 1, 1, 2],
        [2.0, 1.0],
    )
    with refused("run 'run': a run's queries must include all of its table's, 'a' is missing"):
        Run.from_frame(frame, queries=["b"])


def test_the_file_has_six_fields_and_a_spec_beside_it_which_comes_back_with_its_name(
    tmp_path: Path,
) -> None:
    path = run_with(spec={"ranker": "bm25", "file": Path("a/b")}).save(
        tmp_path / "new" / "run.trec"
    )
    assert path == tmp_path / "new" / "run.trec"
    assert (
        path.read_text()
        == "q1 Q0 b 1 2.0 ranktilt\nq1 Q0 a 2 1.0 ranktilt\nq2 Q0 b 1 0.5 ranktilt\n"
    )
    assert json.loads((tmp_path / "new" / "run.trec.json").read_text()) == {
        "ranker": "bm25",
        "file": "a/b",
    }
    assert Run.load(path).spec == {"ranker": "bm25", "file": str(path)}


def test_queries_without_a_document_come_back_from_beside_the_file(tmp_path: Path) -> None:
    run = run_with(
        queries=("p", "q", "r"),
        offsets=[0, 0, 2, 2],
        docs=[1, 0],
        scores=[2.0, 1.0],
        spec={"ranker": "bm25"},
    )
    path = run.save(tmp_path / "run.trec")
    assert path.read_text() == "q Q0 b 1 2.0 ranktilt\nq Q0 a 2 1.0 ranktilt\n"
    assert json.loads(sidecar(path).read_text())["queries_without_documents"] == ["p", "r"]
    loaded = Run.load(path)
    assert loaded.queries == ("q", "p", "r")
    assert np.diff(loaded.offsets).tolist() == [2, 0, 0]
    assert loaded.spec == {"ranker": "bm25", "file": str(path)}
    assert Run.load(loaded.save(tmp_path / "again.trec")).queries == ("q", "p", "r")
    write(sidecar(path), '{"queries_without_documents": ["q", "r"]}')
    assert Run.load(path).queries == ("q", "r"), "one that has some is there once"


def test_a_run_is_called_by_its_tag_or_its_file_and_those_of_one_name_by_their_files(
    tmp_path: Path,
) -> None:
    for file, tags, name in (
        ("engine.trec.gz", ("ranktilt", "ranktilt"), "engine"),
        ("engine.trec", ("a1", "b2"), "engine"),
        ("engine.run", ("my-engine.v2", "my-engine.v2"), "my-engine.v2"),
        ("engine", ("1.5", "1.5"), "engine"),
        ("e.v2.json", (), "e.v2"),
    ):
        lines = "".join(f"q{n} Q0 d {n} 1 {tag}\n" for n, tag in enumerate(tags))
        assert Run.load(write(tmp_path / file, lines or '{"q": {"d": 1}}')).name == name
    paths = [
        write(tmp_path / name, "q Q0 d 1 1 engine\n")
        for name in ("a/x.trec", "b/x.trec", "y.trec", "z.run")
    ]
    runs = [Run.load(path) for path in paths]
    assert [run.name for run in named_apart(runs)] == [str(paths[0]), str(paths[1]), "y", "z"]
    assert [run.name for run in named_apart(runs[:1])] == ["engine"]


def test_the_spec_beside_a_run_is_read_and_a_json_run_beside_it_is_no_spec(tmp_path: Path) -> None:
    path = write(tmp_path / "run.trec", LINE)
    named_spec = {"ranker": str(path), "name": "run", "file": str(path)}
    assert Run.load(path).spec == named_spec
    write(sidecar(path), '{"q1": {"d1": 2.5}}')
    assert Run.load(path).spec == named_spec
    assert Run.load(sidecar(path)) == Run.load(path)
    path = write(tmp_path / "run.json", '{"q": {"a": 1, "b": 2.5}, "none": {}}')
    write(sidecar(path), '{"ranker": "engine 7"}')
    run = Run.load(path)
    assert entries(run) == [("q", "b", 1, 2.5), ("q", "a", 2, 1.0)]
    assert (run.queries, run.spec) == (("q", "none"), {"ranker": "engine 7", "file": str(path)})


def test_scores_decide_on_the_order_and_ranks_only_where_they_are_asked_to(tmp_path: Path) -> None:
    path = write(tmp_path / "f", "q 0 a 1 0.1 t\nq 0 b 2 0.3 t\nq 0 c 3 0.2 t\n")
    with pytest.warns(DataWarning, match="the ranks contradict the scores in 1 of 1 query"):
        run = Run.load(path)
    assert [e[1:3] for e in entries(run)] == [("b", 1), ("c", 2), ("a", 3)]
    run = Run.load(path, score_order="rank")
    assert [e[1] for e in entries(run)] == ["a", "b", "c"]
    again = Run.load(run.save(tmp_path / "again"))
    assert again == run
    assert again.spec["score_order"] == "rank"


def test_an_id_that_the_format_cannot_hold_is_refused(tmp_path: Path) -> None:
    for kind, run in {
        "query": run_with(queries=["", "q2"]),
        "document": run_with(ids=pl.Series(["", "c"])),
    }.items():
        with refused(f"a {kind} id is empty, which the TREC format cannot hold"):
            run.save(tmp_path / "run.trec")
    assert os.listdir(tmp_path) == []


def test_blanks_in_ids_are_escaped_and_the_sidecar_says_so(tmp_path: Path) -> None:
    ids = pl.Series(["a\tb %20 50%", "\ufeffc\u00a0d"])
    run = run_with(queries=["q 1", "q%31"], ids=ids, spec={"ranker": "bm25"})
    path = run.save(tmp_path / "run.trec")
    fields = [line.split(" ") for line in path.read_text(encoding="utf-8").splitlines()]
    assert {(len(row), row[0]) for row in fields} == {(6, "q%201"), (6, "q%2531")}
    assert "a%09b%20%2520%2050%25" in {row[2] for row in fields}
    assert json.loads(sidecar(path).read_text())["ids_percent_encoded"] is True
    back = Run.load(path)
    assert back == run
    assert back.spec == {"ranker": "bm25", "file": str(path)}
    plain = run_with(queries=["q%201", "q2"]).save(tmp_path / "plain.trec")
    assert plain.read_text().startswith("q%201 Q0 ")
    assert "percent" not in sidecar(plain).read_text()
    assert "q%201" in Run.load(plain).queries


def test_where_the_spec_cannot_be_written_the_run_is_not(tmp_path: Path) -> None:
    sidecar(tmp_path / "run.trec").mkdir()
    with pytest.raises(UserError, match=r"/run\.trec\.json: cannot be written: Is a directory"):
        run_with().save(tmp_path / "run.trec")
    assert os.listdir(tmp_path) == ["run.trec.json"]


BLANKS = " \t\n\x0b\x0c\r"
ID = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from(BLANKS + "%\ufeff"),
    min_size=1,
    max_size=5,
)
SCORE = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=60)
@given(
    st.dictionaries(ID, st.dictionaries(ID, SCORE, min_size=1, max_size=5), min_size=1, max_size=4),
    st.booleans(),
)
@example({"[[": {"0": 0.0}}, False)  # an id that begins as JSON does
@example({'{"': {"d": 1.5}, "q": {"d": 0.5}}, True)
def test_what_is_saved_loads_equal_with_exact_scores(
    tmp_path_factory: pytest.TempPathFactory, scores: dict[str, dict[str, float]], packed: bool
) -> None:
    run = table(*((q, d, s) for q, documents in scores.items() for d, s in documents.items()))
    path = run.save(tmp_path_factory.mktemp("run") / ("f.gz" if packed else "f"))
    loaded = Run.load(path, score_order="score")  # which passes over lists of one score
    assert loaded == run
    assert loaded.scores.tobytes() == run.scores.tobytes()
    again = loaded.save(path.with_name("again.gz" if packed else "again"))
    assert again.read_bytes() == path.read_bytes()


def test_ids_are_joined_by_name_shared_ones_are_their_own_rows() -> None:
    collection = toy()
    shared = run_of(collection, {"q1": {"d1-human": 1.0, "d2-llm": 3.0}, "q2": {}}, ranker="toy")
    assert shared.ids is collection.ids
    assert entries(shared) == [("q1", "d2-llm", 1, 3.0), ("q1", "d1-human", 2, 1.0)]
    assert collection_rows(shared, collection).tolist() == list(range(6))
    run = table(("q1", "d3-llm", 3.0), ("q1", "elsewhere", 2.0), ("q1", "d1-human", 1.0))
    assert collection_rows(run, collection).tolist() == [5, -1, 0]
    assert codes(pl.Series(["b", "x", "a", "b"]), pl.Series(["a", "b"])).tolist() == [1, -1, 0, 1]
    assert codes(pl.Series([], dtype=pl.String), pl.Series(["a"])).tolist() == []


def test_a_bare_id_of_several_sources_is_refused_and_one_of_a_single_source_is_unknown(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "run.trec", "q1 Q0 d1-human 1 2 t\nq1 Q0 d2 2 1 t\n")
    with pytest.raises(DataError) as caught:
        collection_rows(Run.load(path), toy())
    message = f"{path}: several sources share document id 'd2': 'd2-human' and 'd2-llm'; "
    assert str(caught.value).startswith(message)
    human = Collection(toy().docs[:3], toy().queries, toy().qrels)
    assert collection_rows(table(("q1", "d1", 1.0)), human).tolist() == [-1]


def test_an_id_that_is_there_is_not_bare() -> None:
    docs = [
        {"id": "a", "text": ""},
        {"id": "a-human", "text": "", "origin": "a-human"},
        {"id": "a-llm", "text": "", "source": "llm", "origin": "a-human"},
    ]
    collection = collection_of(docs, {"q": ""}, {"q": {"a": 1}})
    assert collection_rows(table(("q", "a", 1.0)), collection).tolist() == [0]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"scores": [1.0, 2.0, 1.0]}, "scores must fall within each query"),
        ({"scores": [2.0, 1.0, np.nan]}, "scores must be finite"),
        ({"queries": ["q1", "q1"]}, "must name each query once"),
        ({"docs": [0, 1, 2]}, "rows of its id table, which has 2"),
        ({"docs": [0, -1, 1]}, "rows of its id table, which has 2"),
        ({"offsets": [0, 3]}, "offsets must have one entry more than queries"),
        ({"scores": [1.0]}, "a run needs one score per document, got 1 for 3"),
        (
            {"queries": ["e", "q", "f", "g"], "offsets": [0, 0, 2, 2, 3], "scores": [1, 2, 1]},
            "must fall",
        ),
    ],
)
def test_a_run_is_checked_when_it_is_made(fields: dict[str, Any], message: str) -> None:
    assert len(run_with(scores=[2.0, 1.0, 5.0]).docs) == 3, "a new query may start higher"
    with pytest.raises(UserError, match=message):
        run_with(**fields)


def test_what_stages_did_not_read_is_told_from_the_last_to_the_first() -> None:
    first = {"ranker": "dense:a@50", "truncated": {"limit": 256, "share": {"human": 0.5}}}
    second = {"ranker": "dense:a@50>>cross-encoder:b", "candidates": first}
    third = {**second, "truncated": {"limit": 128, "share": {"human": 0.25}}}
    assert (
        run_with(spec=first).truncated
        == run_with(spec=second).truncated
        == [("dense:a@50", first["truncated"])]
    )
    assert [name for name, _ in run_with(spec=third).truncated] == [second["ranker"], "dense:a@50"]
    assert run_with(spec={"ranker": "bm25"}).truncated == []
