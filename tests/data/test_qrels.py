"""Judgments: BEIR's tab-separated files and TREC's, and how each fault in them is named."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt.data import files
from ranktilt.data.formats.judgments.qrels import read_qrels, to_tsv
from ranktilt.data.runs.rank_llm import read_candidates
from ranktilt.errors import DataError, DataWarning, UserError
from tests.toy import write

pytestmark = pytest.mark.usefixtures("chunks")

HEADER = "query-id\tcorpus-id\tscore\n"
THREE = "expected query-id, corpus-id, score (3 tab-separated fields)"
SEVERAL = "to take the first, use FILE:several=first"
RUN = "expected judgments, got a run (query, document, rank, score); name runs with --run"


def read(folder: Path, content: str | bytes) -> list[tuple[str, str, int, int]]:
    return (
        read_qrels(write(folder / "test.tsv", content))
        .select("query_id", "doc_id", "grade", "line")
        .rows()
    )


def fault(folder: Path, content: str | bytes) -> str:
    with pytest.raises(DataError) as caught:
        read(folder, content)
    return str(caught.value).removeprefix(f"{folder}/")


def frame(*rows: tuple[str, str, int]) -> pl.DataFrame:
    return pl.DataFrame(
        rows, schema={"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32}, orient="row"
    )


def test_a_header_is_passed_over_a_repetition_kept_once_and_the_first_line_tells_the_format(
    tmp_path: Path,
) -> None:
    for header in (
        "query-id corpus-id score",
        "query_id doc_id rel",
        "Query-ID X Y",
        "qid d label",
        "query d s",
    ):
        header = header.replace(" ", "\t")
        assert read(tmp_path, f"{header}\nq1\td1\t1\n") == [("q1", "d1", 1, 2)]
    assert read(tmp_path, "q\td\t1\nq\te\t1\nq\td\t1\n") == [("q", "d", 1, 1), ("q", "e", 1, 2)]
    for line, rows in (
        ("q1\td 2\t1", [("q1", "d 2", 1, 1)]),  # three fields by tabs, four by blanks: BEIR
        ("query-id\tcorpus id\t1\nq\td\t2", [("query-id", "corpus id", 1, 1), ("q", "d", 2, 2)]),
        ("q1\t0\td\t1", [("q1", "d", 1, 1)]),
        ("q1\t0\td 1", [("q1", "d", 1, 1)]),  # TREC's four, of which tabs part three
        ("q1 d 1\nq2  e\t0.5", [("q1", "d", 1.0, 1), ("q2", "e", 0.5, 2)]),  # BEIR, split by blanks
        ("query-id corpus-id score\nq d 1", [("q", "d", 1, 2)]),
        ("qid\titer\tdocno\trel\nq\t0\td\t1", [("q", "d", 1, 2)]),
        ("query_id 0 doc grade\nq 0 d 1.0", [("q", "d", 1, 2)]),
        ("q 0 1 2\nq 0 2 0", [("q", "1", 2, 1), ("q", "2", 0, 2)]),  # documents 1 and 2, not ranks
        ("\nq1\tQ0\td1\t2\r\n\n ü   0 \t d-3  -1 ", [("q1", "d1", 2, 2), ("ü", "d-3", -1, 4)]),
    ):
        assert read(tmp_path, line) == rows


@pytest.mark.parametrize("form", ["{q}\t{d}\t{g}", "{q} 0 {d} {g}"], ids=["beir", "trec"])
@pytest.mark.parametrize(
    ("written", "grades", "kind"),
    [
        (
            ("0", "-1", "+3", " 2 ", "007", "2147483647", "-2147483648"),
            (0, -1, 3, 2, 7, 2**31 - 1, -(2**31)),
            pl.Int32,
        ),
        (("1.0", "0", "2.", "1e3"), (1, 0, 2, 1000), pl.Int32),
        (
            ("1", "0.5", ".25", "-1.5", "5E-1", "100.5"),
            (1.0, 0.5, 0.25, -1.5, 0.5, 100.5),
            pl.Float64,
        ),
    ],
    ids=["whole", "with a point", "fractions"],
)
def test_grades_are_whole_numbers_or_fractions(
    tmp_path: Path, form: str, written: Any, grades: Any, kind: Any
) -> None:
    lines = [form.format(q="q", d=f"d{n}", g=grade) for n, grade in enumerate(written)]
    read_grades = read_qrels(write(tmp_path / "f.tsv", "\n".join(lines)))["grade"]
    assert (read_grades.dtype, tuple(read_grades)) == (kind, grades)


BEIR, TREC = HEADER + "1\t2\t1\r\n\r\n{}\n3\t4\t1\n", "a 0 b 1\n\n\n{}\nc 0 d 1\n"
FOUR = "expected query-id, iteration, document-id, grade (4 fields)"


@pytest.mark.parametrize(
    ("form", "line", "message"),
    [
        (BEIR, "7\t12\t1\tx", rf"{THREE}, got 4: '7\t12\t1\tx'"),
        (BEIR, "7 0 12 1", f"{THREE}, got 1: '7 0 12 1'"),
        (BEIR, "7\t12\tnan", "expected a number as score, got 'nan'"),
        (BEIR, "7\t12\t2147483648", "expected a number as score, got '2147483648'"),
        (TREC, "q 0 d -2147483649", "expected a number as grade, got '-2147483649'"),
        (BEIR, "1\t2\t2", f"a second grade (2) for query '1', document '2'; {SEVERAL}"),
        (TREC, "q d 1", f"{FOUR}, got 3: 'q d 1'"),
        (TREC, "q 0 d 1 x", f"{FOUR}, got 5: 'q 0 d 1 x'"),
        (TREC, "q 0 d high", "expected a number as grade, got 'high'"),
        (TREC, "q 0 d 0.5.1", "expected a number as grade, got '0.5.1'"),
        (TREC, "a 0 b 2", f"a second grade (2) for query 'a', document 'b'; {SEVERAL}"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, form: str, line: str, message: str) -> None:
    assert fault(tmp_path, form.format(line)) == f"test.tsv:4: {message}"


def test_rows_without_ids_are_left_out_and_counted(tmp_path: Path) -> None:
    message = "test.tsv: left out 1 judgment without a query, a document or a grade"
    with pytest.warns(DataWarning, match=message):
        assert read(tmp_path, "a\tb\t1\n\tc\t1\n") == [("a", "b", 1, 1)]


def test_a_header_alone_and_a_run_are_refused(tmp_path: Path) -> None:
    for content in (HEADER, HEADER.strip(), "\ufeff" + HEADER + "\r\n"):
        assert fault(tmp_path, content) == "test.tsv: expected judgments, got a header only"
    for content in ("q a 1 12.5\nq b 2 3.5\nr a 1 9.25\n", "q\ta\t0\t12\nq\tb\t1\t3\n"):
        assert fault(tmp_path, content) == f"test.tsv:1: {RUN}"
    line = (
        "test.tsv:1: expected judgments (query, document and grade), got a run (TREC run); "
        "name a run with --run"
    )
    assert fault(tmp_path, "q Q0 d 1 2.5 t\n") == line


@pytest.mark.data
@pytest.mark.parametrize(
    ("file", "judgments", "queries", "relevant"),
    [("dl19/qrels.dl19-passage.txt", 9260, 43, 4102), ("scifact/qrels/test.tsv", 339, 300, 339)],
)
def test_real_files(
    shared_data: Path, file: str, judgments: int, queries: int, relevant: int
) -> None:
    qrels = read_qrels(shared_data / file)
    assert (qrels.height, qrels["query_id"].n_unique(), (qrels["grade"] > 0).sum()) == (
        judgments,
        queries,
        relevant,
    )


def test_judgments_are_written_with_a_header_and_no_id_that_the_format_cannot_hold() -> None:
    written = to_tsv(frame(("q1", "d1", 2), ("ü", "d 2", -1)))
    assert written.decode() == "query-id\tcorpus-id\tscore\nq1\td1\t2\nü\td 2\t-1\n"
    for row in (("q\t1", "d", 1), ("q", "d\n", 1), ("q", "d\r1", 1)):
        with pytest.raises(
            UserError, match="contains a tab or line end, which a qrels file cannot hold"
        ):
            to_tsv(frame(row))


ID = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\t\r\n"), min_size=1, max_size=4
)
JUDGMENTS = st.dictionaries(
    st.tuples(ID, ID), st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=6
)


@settings(max_examples=40)
@given(JUDGMENTS, st.integers(1, 40))
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, grades: dict[tuple[str, str], int], size: int
) -> None:
    rows = [(q, d, g) for (q, d), g in grades.items()]
    path = write(tmp_path_factory.getbasetemp() / "written.tsv", to_tsv(frame(*rows)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "CHUNK", size)
        assert read_qrels(path).drop("line").rows() == rows


def test_judgments_of_candidates_name_their_file_alone(tmp_path: Path) -> None:
    hits = '[{"qid": 1, "docid": "d", "content": "tea"}]'
    candidates = write(tmp_path / "candidates.json", f'[{{"query": "cold", "hits": {hits}}}]')
    file = write(tmp_path / "own.csv", "q,url,stars\n1,d,2\n")
    collection, _run = read_candidates(candidates, qrels=f"{file}:query=q,id=url,grade=stars")
    assert collection.qrels.rows() == [("1", "d", 2)]
    assert collection.spec["files"] == [str(candidates), str(file)]
