"""Label files: which are read, what becomes of them, and how each fault in one is named."""

import datetime
import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt.auditing.groups import grouping
from ranktilt.collection import Collection
from ranktilt.datasets.labels import from_labels, no_overlap, read_labels
from ranktilt.errors import DataError, UserError
from ranktilt.io import files
from ranktilt.rankers.replay import Replay
from tests.toy import write

EMPTY_QUERIES = pl.DataFrame(schema={"id": pl.String, "text": pl.String})
EMPTY_QRELS = pl.DataFrame(schema={"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32})
TABLE = {"doc_id": ["d1", "d2", "d3"], "source": ["human", "llm", None], "origin": ["d1", "d1", None]}


def fault(path: Path, **options: Any) -> str:
    """Return the message of a file that is refused, without its folder."""
    with pytest.raises(DataError) as caught:
        read_labels(path, **options)
    return str(caught.value).removeprefix(f"{path.parent}/")


def labels(**columns: list[Any]) -> pl.DataFrame:
    return pl.DataFrame({"doc_id": [f"d{i}" for i in range(len(next(iter(columns.values()))))], **columns})


# What is read


@pytest.mark.parametrize("name", ["l.tsv", "l.csv", "l.tsv.gz", "l.csv.gz", "L.TSV", "l.parquet"])
def test_the_ending_tells_the_format(tmp_path: Path, name: str) -> None:
    frame = pl.DataFrame(TABLE)
    if name.endswith("parquet"):
        frame.write_parquet(tmp_path / name)
    else:
        write(tmp_path / name, frame.write_csv(separator="\t" if "tsv" in name.lower() else ","))
    assert read_labels(tmp_path / name).to_dict(as_series=False) == TABLE


@pytest.mark.parametrize(
    ("name", "content", "rows"),
    [
        (
            "l.csv",
            'doc_id,source\n"a,b","the ""best"""\nc,"two\nlines"\n',
            [("a,b", 'the "best"'), ("c", "two\nlines")],
        ),
        ("l.tsv", 'doc_id\tsource\n"a\t"b" c\n', [('"a', '"b" c')]),
        ("l.tsv", "doc_id\tsource\torigin\na\t\u00a0\tx\nb\thuman\t \n", [("a", None, "x"), ("b", "human", None)]),
        ("l.csv", ",doc_id,source,text,id,title\n0,a,human,words,9,T\n", [("a", "human")]),
    ],
)
def test_rows_are_read(tmp_path: Path, name: str, content: str, rows: list[tuple[str | None, ...]]) -> None:
    assert read_labels(write(tmp_path / name, content)).rows() == rows


def test_labels_and_ids_stay_as_they_are_written_and_other_numbers_are_numbers(tmp_path: Path) -> None:
    content = "year,doc_id,label,origin,score,mixed,none\n2001,007,01,06,0.5,1,\n,8,1,1e3,2,x,\n"
    found = read_labels(write(tmp_path / "l.csv", content), by="label")
    assert found.columns == ["doc_id", "label", "origin", "year", "score", "mixed", "none"]
    assert found.rows() == [("007", "01", "06", 2001, 0.5, "1", None), ("8", "1", "1e3", None, 2.0, "x", None)]
    assert read_labels(tmp_path / "l.csv", by="year:2")["year"].to_list() == [2001, None]
    assert read_labels(tmp_path / "l.csv", by="year")["year"].to_list() == ["2001", None]


def test_parquet_of_other_types(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "doc_id": [1, 2, 3],
            "kind": pl.Series(["x", "y", "x"], dtype=pl.Categorical),
            "score": [0.5, float("nan"), 2.0],
            "vector": [[1.0], [2.0], [3.0]],
            "raw": [b"\xff", b"2", b"3"],
            "lasted": [datetime.timedelta(1)] * 3,
            "text": ["none", "of", "it"],
            "line of the file": [7, 8, 9],
            "day": pl.Series(["2020-01-02"] * 3).str.to_date(),
        }
    )
    frame.write_parquet(tmp_path / "l.parquet")
    found = read_labels(tmp_path / "l.parquet", by="kind")
    assert found.columns == ["doc_id", "kind", "score", "day"]
    assert found.rows() == [
        ("1", "x", 0.5, "2020-01-02"),
        ("2", "y", None, "2020-01-02"),
        ("3", "x", 2.0, "2020-01-02"),
    ]
    assert read_labels(tmp_path / "l.parquet", by="score")["score"].to_list() == ["0.5", None, "2.0"]


FIELD = st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"]), min_size=1, max_size=4)
PADDED = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=4)


@settings(max_examples=60)
@given(st.dictionaries(FIELD, st.tuples(FIELD, PADDED), min_size=1, max_size=6), st.sampled_from(["tsv", "csv"]))
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, table: dict[str, tuple[str, str]], form: str
) -> None:
    columns = {
        "doc_id": list(table),
        "source": [a for a, _ in table.values()],
        "origin": [b for _, b in table.values()],
    }
    separator, style = ("\t", "never") if form == "tsv" else (",", "necessary")
    text = pl.DataFrame(columns).write_csv(separator=separator, quote_style=style)
    path = write(tmp_path_factory.mktemp("labels") / f"l.{form}", text)
    expected = [(doc, source, origin.strip() or None) for doc, (source, origin) in table.items()]
    assert read_labels(path).rows() == expected


# What is refused


IDS, LIST = "; name that of ids: FILE:id=COLUMN", "; of a bare list of ids say what all others are: --rest LABEL"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("l.tsv", "", ": the file is empty"),
        ("l.tsv", "docid\tsource\na\th\n", ":1: expected a column doc_id, got 'docid, source'; a label file begins wi"),
        ("l.tsv", "human\thuman\nb\tllm\n", ":1: column 'human' is named twice; "),
        ("l.tsv", "doc_id\tsuorce\tx\na\th\ten\n", ": unknown column 'source'; did you mean 'suorce'? (valid: suorce,"),
        ("l.tsv", "doc_id\tsource\n\na\th\n \th\n", ":4: doc_id is empty"),
        ("l.tsv", "doc_id\tsource\na\t\nb\t \n", ": column 'source' is blank in every row"),
        ("l.tsv", "doc_id\tsource\na\th\n\nb\th\tx\n", ":4: expected 2 fields as in the first line, got 3: 'b\\th\\tx"),
        ("l.tsv", "doc_id\tsource\na\th\nb\th\n\na\tl\n", ":5: document 'a' has two values of 'source': 'h' (line 2) "),
        ("l.csv", 'doc_id,source\n"a,h\nb,l\n', ":3: cannot be read as CSV: unexpected end of data"),
        ("l.csv", 'doc_id,source\n"a","h\nx"\n\n"a",l\n', ":5: document 'a' has two values of 'source': 'h\\nx' "),
        ("labels.txt", "doc_id\tsource\n", ": expected a label file that ends in .tsv, .tsv.gz, .csv, .csv.gz, .jsonl"),
    ],
)  # fmt: skip
def test_a_fault_is_named_by_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: str, message: str
) -> None:
    monkeypatch.setattr(files, "CHUNK", 3)
    assert fault(write(tmp_path / name, content)).startswith(name + message)


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ("length:3", "--by length:3 needs texts: name a collection DIR, without --groups (a column of numbers can be "),
        ("title", "'title' cannot be grouped by (valid: source)"),
        ("origin", "'origin' cannot be grouped by (valid: source)"),
    ],
)
def test_what_no_label_file_holds_is_refused(tmp_path: Path, by: str, message: str) -> None:
    path = write(tmp_path / "l.tsv", "doc_id\ttitle\tsource\torigin\na\tt\th\ta\n")
    with pytest.raises(UserError, match="^" + re.escape(message)):
        read_labels(path, by=by)


def test_faults_in_parquet_have_no_line(tmp_path: Path) -> None:
    path = tmp_path / "l.parquet"
    pl.DataFrame({"doc_id": ["a", "b", "a"], "source": ["h", "l", "l"]}).write_parquet(path)
    assert fault(path) == "l.parquet: document 'a' has two values of 'source': 'h' and 'l'"
    pl.DataFrame({"doc_id": ["a", None], "source": ["h", "l"]}).write_parquet(path)
    assert fault(path) == "l.parquet: doc_id is empty in row 2"
    write(path, "no parquet")
    assert fault(path).startswith("l.parquet: cannot be read as Parquet: ")


# Nothing in common with a run


@pytest.mark.parametrize(
    ("documents", "spec", "message"),
    [
        (["d1", "d2"], {"labels": "l.tsv"}, "2 documents is in l.tsv (first: 'd1'; its ids look like 'x1')"),
        (["d1"], {}, "1 document is in the collection (first: 'd1'; its ids look like 'x1')"),
        (
            ["d1"] * 1234,
            {"path": "dir", "labels": "l.tsv"},
            "1,234 documents is in the collection (first: 'd1'; its ids",
        ),
    ],
)
def test_no_overlap_shows_an_id_of_both(documents: list[str], spec: dict[str, str], message: str) -> None:
    docs = pl.DataFrame({"id": ["x1"], "text": [""], "source": ["human"]})
    found = no_overlap(documents, Collection(docs, EMPTY_QUERIES, EMPTY_QRELS, spec))
    assert found.startswith(f"no overlap: none of its {message}")


# A collection of them


def test_a_collection_without_texts() -> None:
    frame = labels(source=["human", "llm", "llm"], origin=["d0", "d0", None], year=[1, 2, None])
    qrels = pl.DataFrame({"query_id": ["q2", "q3"], "doc_id": ["d1", "unknown"], "grade": [2, 1], "line": [1, 2]})
    found = from_labels(frame, queries=["q1", "q2", "q1"], qrels=qrels, labels_file=Path("a/l.tsv"), qrels_file="q.txt")
    assert found.docs.columns == ["id", "title", "text", "source", "origin", "year"]
    assert found.docs.rows() == [
        ("d0", "", "", "human", "d0", 1),
        ("d1", "", "", "llm", "d0", 2),
        ("d2", "", "", "llm", "d2", None),
    ]
    assert found.queries.rows() == [("q1", ""), ("q2", ""), ("q3", "")]
    assert found.qrels.rows() == [("q2", "d1", 2), ("q3", "unknown", 1)]
    assert found.spec == {
        "labels": "a/l.tsv", "qrels": "q.txt", "files": ["a/l.tsv", "q.txt"], "by": "source", "unlabelled": 0,
    }  # fmt: skip


def test_nobody_becomes_human_by_default() -> None:
    assert from_labels(labels(gender=["f", "m"]), queries=["q"], by="gender").sources == ("unknown",)
    other = from_labels(labels(gender=["f", None, "m"]), queries=["q"], by="gender")
    assert grouping(other, "gender").code.tolist() == [0, -1, 1]
    assert grouping(other, "gender").unlabelled == other.spec["unlabelled"] == 1
    found = from_labels(labels(gender=["f", "m"], source=["human", None]), queries=["q"], by="gender")
    assert found.docs["source"].to_list() == ["human", "unknown"]
    found = from_labels(labels(source=["human", None, "llm", None]), queries=["q"])
    assert found.docs.select("id", "source").rows() == [("d0", "human"), ("d2", "llm")]
    assert found.spec["unlabelled"] == 2


def test_bins_of_a_column() -> None:
    for name in ("year", "of:year"):  # a colon may be part of a column's name
        found = from_labels(labels(**{name: [2001, 1999, None, 2003]}), queries=["q"], by=f"{name}:3")
        assert grouping(found, f"{name}:3").names == ("1999", "2001", "2003")
        assert found.spec["unlabelled"] == 1


# With a run


@pytest.mark.data
def test_real_scores_of_twins_as_run_and_labels(shared_data: Path, tmp_path: Path) -> None:
    """ANCE's published head-to-head on SciDocs: LLM above human in 56.87 % of 4,739 pairs, by .0881 on average."""
    lines = (shared_data / "perplexity-trap-scidocs" / "pos_rel_ance.jsonl").read_text().splitlines()
    pairs = [json.loads(line) for line in lines]
    names = {f"{p['doc_id']}/{side}": side for p in pairs for side in ("human", "llm")}
    content = "doc_id\tsource\torigin\n" + "".join(f"{n}\t{s}\t{n.partition('/')[0]}\n" for n, s in names.items())
    entries = [f"{p['query_id']} 0 {p['doc_id']}/{side} 0 {p[side]!r}" for p in pairs for side in ("human", "llm")]
    collection = from_labels(read_labels(write(tmp_path / "l.tsv", content)), queries=[])
    run = Replay(str(write(tmp_path / "run.trec", "\n".join(entries)))).rank(collection)
    table = run.frame().join(collection.docs.select("id", "source", "origin"), left_on="doc_id", right_on="id")
    sides = table.pivot("source", index=["query_id", "origin"], values="score")
    gaps = sides["llm"] - sides["human"]
    assert len(gaps) == 4739
    assert round(100 * (gaps > 0).sum() / len(gaps), 2) == 56.87
    assert gaps.mean() == pytest.approx(0.0881, abs=5e-5)
