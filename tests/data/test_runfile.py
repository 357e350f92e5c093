"""Run files: their formats, the order of a query's documents, and the message for each fault."""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt import audit
from ranktilt.data import files
from ranktilt.data.formats.runs.runfile import read_run_file
from ranktilt.data.runs.run import Run
from ranktilt.errors import DataError, DataWarning, UserError
from tests.refusals import refused
from tests.toy import run_of, toy, write

pytestmark = pytest.mark.usefixtures("chunks")

FIVE = "query-id, Q0, document-id, rank, score"
SIX = "tag (6 fields, as in the first line)"
THREE = (
    "expected a run, got 'q a 2': three columns of whole numbers that do not count ranks are "
    "judgments"
)
WHERE = ": query 'q', document 'd': expected a finite number as score, got"
SHAPE = "expected one JSON value"
Row = tuple[str, str, float]


def rows(folder: Path, content: str | bytes, *, name: str = "run", **options: Any) -> list[Row]:
    frame = read_run_file(write(folder / name, content), **options).frame
    return frame.select("query_id", "doc_id", "score").rows()


def ranked(folder: Path, content: str) -> list[Row]:
    return Run.load(write(folder / "run", content), score_order="rank").frame().drop("rank").rows()


def fault(folder: Path, content: str | bytes, **options: Any) -> str:
    with pytest.raises(DataError) as caught:
        Run.load(write(folder / "run", content), **options)
    return str(caught.value).removeprefix(f"{folder}/")


def test_a_tag_may_be_anything_or_missing_and_four_columns_have_none(tmp_path: Path) -> None:
    for tag in ("", " 0", " 17", " engine", ' "q'):
        content = f"q1 Q0 d1 1 2.5{tag}\nq1 Q0 d2 2 1{tag}\n"
        assert rows(tmp_path, content) == [("q1", "d1", 2.5), ("q1", "d2", 1.0)]
    for blank in (" ", "\t", " \t "):
        content = "\n".join(
            blank.join(row.split()) for row in ("q 7 1 2.5", "q 0 2 1", "{r 7 1 -3")
        )
        assert rows(tmp_path, content) == [("q", "7", 2.5), ("q", "0", 1.0), ("{r", "7", -3.0)]
        assert ranked(tmp_path, content) == [("q", "7", -1.0), ("q", "0", -2.0), ("{r", "7", -1.0)]


@pytest.mark.parametrize("name", ["run", "run.json", "run.txt.gz"])
def test_the_name_does_not_tell_the_format(tmp_path: Path, name: str) -> None:
    assert rows(tmp_path, "q Q0 d 1 2 t\n", name=name) == [("q", "d", 2.0)]
    assert read_run_file(tmp_path / name).has_lines
    assert rows(tmp_path, '{"q": {"d": 2}}', name=name) == [("q", "d", 2.0)]
    assert not read_run_file(tmp_path / name).has_lines


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("q Q0 a 1 2 t\n\nq Q0 b 2 1\n", f":3: expected {FIVE}, {SIX}, got 5: 'q Q0 b 2 1'"),
        ("q Q0 a 1 2 t\nq Q0 b 2 1\nq Q0 c 3 0 t x\n", f":2: expected {FIVE}, {SIX}, got 5: "),
        (
            "q a 1 2\nq b 1\n",
            f":2: expected {FIVE.replace(' Q0,', '')} (4 fields, as in the first line), got 3: ",
        ),
        ("\n  \nq a 2\n", f":3: {THREE} (--qrels)"),
        (
            "q Q0 a 2\n\nq Q0 7 2\n",
            ":1: expected a run, got judgments (query, 0, document, grade): 'q Q0 a 2'",
        ),
        ("q x a 2\n", ":1: expected a whole number as rank, got 'a'"),
        ("q Q0 a 1 2\n\n\nq Q0 b 2 inf\n", ":4: expected a finite number as score, got 'inf'"),
        ("q Q0 a 1 2\nr Q0 a 1 2\n \nq Q0 a 2 1\n", ":4: document 'a' occurs twice for query 'q'"),
        ("{}", ": expected {query: {document: score}}, got no query"),
        (
            '{"q": {}, "r": {"d": {}}}',
            ": query 'r', document 'd': expected a finite number as score, got {}",
        ),
        (
            '{"q": {"d": 1}, "r": [["d", 1]]}',
            ": query 'r': expected {document: score}, got [['d', 1]]",
        ),
        ('{"q": {"d": "' + "x" * 80 + '"}}', f"{WHERE} '{'x' * 80}'"),
        ('{"q": {"d": 1e999}}', f":1: {SHAPE}, got broken JSON (number is infinity"),
        ('{"q": {"": 1}}', ": no document id in 1 entry of 1; name its column: FILE:id=COLUMN"),
        ('\n\n\n\n\n{"q":\n{"d" 1}}', ":7: expected one JSON value"),
        ('{"q": ' * 100_000, f":1: {SHAPE}, got broken JSON (depth limit exceeded)"),
    ],
    ids=range(16),
)
def test_what_is_wrong_is_named_by_line_or_by_query_and_document(
    tmp_path: Path, content: str, message: str
) -> None:
    error_message = fault(tmp_path, content)
    assert error_message.startswith(f"run{message}")
    assert "\n" not in error_message


# No field is cut or unquoted, whatever is in it: commas, quotes, other scripts' blanks; a first
# brace would be JSON.
ID = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters=" \t\n\x0b\x0c\r\ufeff"),
    min_size=1,
    max_size=4,
).filter(lambda text: not text.startswith(("{", "[")))
BLANK = st.text(" \t\x0b\x0c", min_size=1, max_size=3)


@settings(max_examples=40)
@given(
    st.lists(st.tuples(ID, ID, st.booleans()), min_size=1, max_size=6),
    BLANK,
    st.sampled_from([3, 10**6]),
)
def test_ids_of_any_characters_between_any_blanks(
    tmp_path_factory: pytest.TempPathFactory,
    ids: list[tuple[str, str, bool]],
    blank: str,
    size: int,
) -> None:
    lines = [
        blank.join(
            (
                *([""] if padded else []),
                *(query, "Q0", doc, "1", "0.5", "tag"),
                *([] if padded else [""]),
            )
        )
        for query, doc, padded in ids
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "CHUNK", size)
        read_rows = rows(tmp_path_factory.getbasetemp(), "\n".join(lines))
    assert read_rows == [(query, doc, 0.5) for query, doc, _ in ids]


@pytest.mark.parametrize("rank", ["1.0", "first", "1e3", "-", "99999999999"])
def test_a_rank_that_is_no_whole_number_is_refused_only_where_it_is_read(
    tmp_path: Path, rank: str
) -> None:
    content = f"q Q0 a 1 2 t\nq Q0 b {rank} 1 t\n"
    assert (
        fault(tmp_path, content, score_order="rank")
        == f"run:2: expected a whole number as rank, got '{rank}'"
    )
    assert rows(tmp_path, content) == [("q", "a", 2.0), ("q", "b", 1.0)]


@pytest.mark.parametrize(
    ("lines", "queries"),
    [
        (["q Q0 a 1 1 t", "q Q0 b 2 2 t"], "1 of 1 query"),
        (["q Q0 b 2 2 t", "q Q0 a 1 1 t", "r Q0 a 1 1 t"], "1 of 2 queries"),
        (["q Q0 a 1 1 t", "r Q0 a 1 1 t", "q Q0 b 2 2 t", "r Q0 b 2 2 t"], "2 of 2 queries"),
        (["q Q0 a 1 1 t", "q Q0 b 1 5 t", "q Q0 c 2 3 t"], "1 of 1 query"),
    ],
)
def test_ranks_that_contradict_the_scores_are_said_once(
    tmp_path: Path, lines: list[str], queries: str
) -> None:
    path = write(tmp_path / "run", "\n".join(lines))
    with pytest.warns(DataWarning) as caught:
        Run.load(path)
    (warning,) = caught
    assert str(warning.message).startswith(
        f"{path}: the ranks contradict the scores in {queries}; the scores count (for the "
        "ranks, use --score-order "
    )


def test_ranks_that_fit_the_scores_are_not_mentioned_and_with_one_score_for_all_warned_of(
    tmp_path: Path,
) -> None:
    for lines in (
        ["q Q0 b 2 1 t", "q Q0 a 1 2 t"],  # falling in rank order, whatever the file's
        ["q Q0 a 1 1 t", "q Q0 b 2 1 t"],  # a tie
        ["q Q0 a 1 1 t", "q Q0 b 1 2 t"],  # equal ranks say nothing
        ["q Q0 a x 1 t", "q Q0 b y 2 t"],  # nor do words
        ["q Q0 a 1 1 t", "r Q0 b 2 2 t"],  # of two queries
        ["q Q0 a 1 5 t", "r Q0 a 1 1 t", "q Q0 b 2 4 t", "r Q0 b 2 0 t"],
    ):
        assert len(Run.load(write(tmp_path / "run", "\n".join(lines))).docs) == len(lines)
    lines = [f"q{q} Q0 d{d} {d} 1.5 tag\n" for q in (1, 2) for d in (1, 2, 3)]
    with pytest.warns(
        DataWarning, match=r"run: all scores are equal in 2 of 2 queries, although ranks differ"
    ):
        Run.load(write(tmp_path / "run", "".join([*lines, "q3 Q0 d1 1 0.5 tag"])))


def test_json_holds_an_object_of_documents_a_query_or_none(tmp_path: Path) -> None:
    for mark in ("", "\ufeff", " \r\n\t"):
        content = '{"q 1": {"d\\u00fc": 3, "e": -1.5e-2},\r\n "q2": {"dü": 0.1}}\n'
        assert rows(tmp_path, mark + content) == [
            ("q 1", "dü", 3.0),
            ("q 1", "e", -0.015),
            ("q2", "dü", 0.1),
        ]
    run = Run.load(write(tmp_path / "run", '{"none": {}, "q": {"a": 1, "b": 2}, "more": {}}'))
    assert run.queries == ("none", "q", "more")
    assert run.offsets.tolist() == [0, 0, 2, 2]
    assert Run.load(write(tmp_path / "run", '{"none": {}}')).frame().height == 0


def test_orders_that_cannot_be_are_refused_and_ranks_are_read_where_asked_for(
    tmp_path: Path,
) -> None:
    assert ranked(tmp_path, '{"q": {"b": 1, "a": "no score"}}') == [
        ("q", "b", -1.0),
        ("q", "a", -2.0),
    ]
    assert ranked(tmp_path, "q Q0 b 0 1 t\nq Q0 a 0 nan t\n") == [
        ("q", "b", -1.0),
        ("q", "a", -2.0),
    ]
    with refused(
        "unknown score order 'ranks'; did you mean 'rank'? (valid: score, ascending, rank)"
    ):
        Run.load(tmp_path / "run", score_order="ranks")
    path = write(tmp_path / "run", '{"q": [{"id": "a", "score": 1}, {"id": "b", "score": 2}]}')
    assert Run.load(path, score_order="rank").frame()["doc_id"].to_list() == ["a", "b"]
    with pytest.warns(DataWarning, match="the ranks contradict the scores in 1 of 1 query"):
        Run.load(path)


@pytest.mark.parametrize(
    "content", ['{"q1": {"d1": 1,\n"d2": 2}}', "q1 Q0 d2 1 2 t\nq1 Q0 d1 2 1 t\n"]
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_run_is_read_once_from_start_to_end(content: str, packed: bool) -> None:
    out, into = os.pipe()
    with open(out, "rb"), open(into, "wb") as stream:
        stream.write(gzip.compress(content.encode()) if packed else content.encode())
        stream.close()
        frame = Run.load(f"/dev/fd/{out}").frame()
    assert frame.select("query_id", "doc_id", "score").rows() == [
        ("q1", "d2", 2.0),
        ("q1", "d1", 1.0),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "expected the run's spec as JSON: "),
        (
            '{"ranker": 5}',
            "expected the run's spec as JSON: Expected `str`, got `int` - at `$.ranker`",
        ),
        (
            '{"x": 1, "queries_without_documents": [5]}',
            "expected the run's spec as JSON: Expected `str`, got `int`",
        ),
    ],
)
def test_a_sidecar_of_another_kind_is_one_line(
    tmp_path: Path, content: str | bytes, message: str
) -> None:
    write(tmp_path / "run.json", content)
    line = fault(tmp_path, "q Q0 d 1 2 t")
    assert line.startswith(f"run.json: {message}")
    assert "\n" not in line


@pytest.mark.parametrize(
    "spec", [{1: 2}, {"x": 2**64}, {"x": "\udcff"}, {"x": json.loads("[" * 260 + "]" * 260)}]
)
def test_a_run_whose_spec_cannot_be_written_is_refused(
    tmp_path: Path, spec: dict[Any, Any]
) -> None:
    run = run_of(toy(), {"q1": {"d1-human": 1.0}}, ranker="mine", **{"spec": spec})
    for use in (lambda: run.save(tmp_path / "run"), lambda: audit(toy(), run)):
        with pytest.raises(UserError, match="run 'mine': its spec: expected what JSON can hold: "):
            use()
    assert not list(tmp_path.iterdir())


def response(*hits: tuple[str, float | None]) -> dict[str, Any]:
    listed = [{"_index": "i", "_id": d, "_score": s} for d, s in hits]
    return {"took": 1, "hits": {"total": {"value": 9}, "hits": listed}}


TWO = {"took": 2, "responses": [response(("a", 2.5), ("b", 1)), response()]}
UNSCORED = {"responses": [response(("b", None), ("a", None)), response(("a", None))]}
ERROR = {"error": {"type": "x", "reason": "no such index [i]"}, "status": 404}
CSV = '\ufeffQuery-ID,query,Doc_ID,Score,rank\nq,"what,\nthen",a,2.5,1\n\nq,"what,\nthen",b,1,2\n'


@pytest.mark.parametrize(
    ("content", "lists", "read_as"),
    [
        (
            TWO,
            {"q": [("a", 2.5), ("b", 1)], "r": []},
            "responses of Elasticsearch or OpenSearch: _id, _score",
        ),
        (
            UNSCORED,
            {"q": [("b", -1), ("a", -2)], "r": [("a", -1)]},
            "responses of Elasticsearch or OpenSearch: _id, in their order",
        ),
        (
            {"x": response(("a", 7)), "y": response()},
            {"x": [("a", 7)], "y": []},
            "responses of Elasticsearch or OpenSearch: _id, _score",
        ),
        (
            {"x": [], "y": ["b", 7]},
            {"x": [], "y": [("b", -1), ("7", -2)]},
            "JSON lists: id, in their order",
        ),
        (
            {"x": [{"id": "n", "Doc-ID": "a", "score": 2}]},
            {"x": [("a", 2)]},
            "JSON lists: Doc-ID, score",
        ),
        (
            [
                {"qid": 1, "query": "t", "docid": "a", "rank": 2},
                {"qid": 1, "docid": "b", "rank": 1},
            ],
            {"1": [("b", -1), ("a", -2)]},
            "JSON records: qid, docid, rank",
        ),
        (CSV, {"q": [("a", 2.5), ("b", 1)]}, "CSV: Query-ID, Doc_ID, Score"),
        (
            "\tqid\tdocid\tdocno\n0\tx\t1\tb\n1\ty\t1\tb\n2\tx\t2\ta\n",
            {"x": [("b", -1), ("a", -2)], "y": [("b", -1)]},
            "TSV: qid, docno, in their order",
        ),
    ],
)
def test_what_engines_give_is_read_and_said(
    tmp_path: Path, content: Any, lists: dict[str, list[tuple[str, float]]], read_as: str
) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    run = Run.load(write(tmp_path / "run", text), queries=["q", "r"])
    frame = run.frame()
    documents = {
        query: frame.filter(query_id=query).select("doc_id", "score").rows()
        for query in run.queries
    }
    assert (documents, run.spec["read_as"]) == (lists, read_as)
    ordered = any(score == -1 for entries in lists.values() for _, score in entries)
    assert run.spec.get("score_order", "score") == ("rank" if ordered else "score")
    assert "read_as" not in Run.load(run.save(tmp_path / "saved.trec")).spec


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            {"responses": [response()]},
            ": expected responses to searches and an id for each, got 1 response and 2 ids",
        ),
        (
            {"responses": [response(), ERROR]},
            (
                ": 1 of 2 queries failed, max_failures=5 % allows 0 of 2 (--max-failures): 'r': "
                "x: "
                "no "
                "such index"
            ),
        ),
        ({"x": ["a", "b", "a"]}, ": document 'a' occurs twice for query 'x'"),
        ([{"qid": "x", "id": "a"}, 3], ": document 2: expected a record like the first one, got 3"),
        (
            "qid,score\nx,1\n",
            (
                ": CSV: expected a column for the document (docno, doc_id, docid, corpus_id, …), "
                "got "
                "qid"
            ),
        ),
        ("qid,docid,score\nx,a,2\n\nx,a,1\n", ":4: document 'a' occurs twice for query 'x'"),
        (
            "qid,docid,score,Score\nx,a,2,1\n",
            ": 'score' and 'Score' name the same column; keep one of them",
        ),
        (
            "qid,docid,score\nx,a,2\n\nx,b,\n",
            ":4: expected a finite number as score (of all documents, or of none)",
        ),
        ('"qid","docid"\nx,"a\n', ":2: cannot be read as CSV: unexpected end of data"),
        (
            "query-id\tcorpus-id\tscore\nq\ta\t1\n",
            ": expected a run, got judgments (whole numbers); name them wi",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, content: Any, message: str) -> None:
    path = write(tmp_path / "run", content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(DataError) as caught:
        Run.load(path, queries=["q", "r"])
    assert str(caught.value).startswith(f"{path}{message}")


def test_blanks_that_do_not_break_are_part_of_an_id_in_every_format(tmp_path: Path) -> None:
    trec = write(tmp_path / "run.trec", "q Q0 \u00a0d 1 2.0 t\nq Q0 d 2 1.0 t\n")
    table = write(tmp_path / "run.csv", "qid,docno,score\nq,\u00a0d,2.0\nq, d ,1.0\n")
    for path in (trec, table):
        assert Run.load(path).frame()["doc_id"].to_list() == ["\u00a0d", "d"]
