"""Label files: which are read, what becomes of them, and how each fault in one is named."""

import datetime
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt.auditing.audit import audit
from ranktilt.auditing.grouping.labels import grouping
from ranktilt.data import files
from ranktilt.data.collection import Collection
from ranktilt.data.labels.label_file import LabelFile
from ranktilt.data.labels.label_table import read_labels
from ranktilt.data.labels.labels import from_labels, labelled, no_overlap, with_labels, with_names
from ranktilt.data.runs.run import Run
from ranktilt.data.text.label_values import NO_LABEL
from ranktilt.errors import DataError, DataWarning, UserError
from ranktilt.explaining.check import check
from ranktilt.reporting.sentences.notes import note_sentences
from tests.refusals import refused
from tests.toy import QRELS, TEXTS, Table, collection_of, toy, tsv, write, write_run

TABLE = {
    "doc_id": ["d1", "d2", "d3"],
    "source": ["human", "llm", None],
    "origin": ["d1", "d1", None],
}


def fault(path: Path, **options: Any) -> str:
    with pytest.raises(DataError) as caught:
        read_labels(path, **options)
    return str(caught.value).removeprefix(f"{path.parent}/")


def table_of(**columns: list[Any]) -> pl.DataFrame:
    return pl.DataFrame(
        {"doc_id": [f"d{i}" for i in range(len(next(iter(columns.values()))))], **columns}
    )


def test_the_ending_tells_the_format_and_rows_are_read(tmp_path: Path) -> None:
    for name in ("l.csv", "l.tsv.gz", "L.TSV", "l.parquet"):
        frame = pl.DataFrame(TABLE)
        if name.endswith("parquet"):
            frame.write_parquet(tmp_path / name)
        else:
            write(
                tmp_path / name, frame.write_csv(separator="\t" if "tsv" in name.lower() else ",")
            )
        assert read_labels(tmp_path / name).to_dict(as_series=False) == TABLE
    for name, content, rows in (
        (
            "l.csv",
            'doc_id,source\n"a,b","the ""best"""\nc,"2\nlines"\n',
            [("a,b", 'the "best"'), ("c", "2\nlines")],
        ),
        ("l.tsv", 'doc_id\tsource\n"a\t"b" c\n', [('"a', '"b" c')]),
        (
            "l.tsv",
            "doc_id\tsource\torigin\na\t\u00a0\tx\nb\thuman\t \n",
            [("a", None, "x"), ("b", "human", None)],
        ),
        ("l.csv", ",doc_id,source,text,id,title\n0,a,human,words,9,T\n", [("a", "human")]),
    ):
        assert read_labels(write(tmp_path / name, content)).rows() == rows


def test_labels_and_ids_stay_as_written_other_numbers_are_numbers_and_parquet_has_types(
    tmp_path: Path,
) -> None:
    content = "year,doc_id,label,origin,score,mixed,none\n2001,007,01,06,0.5,1,\n,8,1,1e3,2,x,\n"
    labels = read_labels(write(tmp_path / "l.csv", content), by="label")
    assert labels.columns == ["doc_id", "label", "origin", "year", "score", "mixed", "none"]
    assert labels.rows() == [
        ("007", "01", "06", 2001, 0.5, "1", None),
        ("8", "1", "1e3", None, 2.0, "x", None),
    ]
    assert read_labels(tmp_path / "l.csv", by="year:2")["year"].to_list() == [2001, None]
    assert read_labels(tmp_path / "l.csv", by="year")["year"].to_list() == ["2001", None]
    columns = {
        "doc_id": [1, 2],
        "kind": pl.Series(["x", "y"], dtype=pl.Categorical),
        "score": [2.0, float("nan")],
        "vector": [[1.0], [2.0]],
        "raw": [b"\xff", b"2"],
        "lasted": [datetime.timedelta(1)] * 2,
        "text": ["none", "of"],
        "line of the file": [7, 8],
        "day": [datetime.date(2020, 1, 2)] * 2,
    }
    pl.DataFrame(columns).write_parquet(tmp_path / "l.parquet")
    labels = read_labels(tmp_path / "l.parquet", by="kind")
    assert labels.columns == ["doc_id", "kind", "score", "day"]
    assert labels.rows() == [("1", "x", 2.0, "2020-01-02"), ("2", "y", None, "2020-01-02")]
    assert read_labels(tmp_path / "l.parquet", by="score")["score"].to_list() == ["2.0", None]


FIELD = st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"]), min_size=1, max_size=4)
LABEL = FIELD.filter(lambda label: label not in NO_LABEL)
PADDED = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=4)


@settings(max_examples=60)
@given(
    st.dictionaries(FIELD, st.tuples(LABEL, PADDED), min_size=1, max_size=6),
    st.sampled_from(["tsv", "csv"]),
)
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, table: dict[str, tuple[str, str]], form: str
) -> None:
    columns = {
        "doc_id": [*table],
        "source": [a for a, _ in table.values()],
        "origin": [b for _, b in table.values()],
    }
    separator, style = ("\t", "never") if form == "tsv" else (",", "necessary")
    text = pl.DataFrame(columns).write_csv(separator=separator, quote_style=style)
    path = write(tmp_path_factory.mktemp("labels") / f"l.{form}", text)
    origins = [origin.strip() for origin in columns["origin"]]
    known = [None if origin in NO_LABEL else origin for origin in origins]
    expected = [*zip(columns["doc_id"], columns["source"], known, strict=True)]
    assert read_labels(path).rows() == expected


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("l.tsv", "", ": the file is empty"),
        (
            "l.tsv",
            "address\tsource\na\th\n",
            ":1: expected a column doc_id, got 'address, source'; a label file begins wi",
        ),
        ("l.tsv", "human\thuman\nb\tllm\n", ":1: column 'human' occurs twice; "),
        (
            "l.tsv",
            "doc_id\tsuorce\tx\na\th\ten\n",
            ": unknown column 'source'; did you mean 'suorce'? (valid: suorce,",
        ),
        (
            "l.csv",
            "url;kind;size\na;h;5\n",
            ":1: expected a column doc_id, got 'url, kind, size'; a label file begins with column "
            "names; name its columns: FILE:id=COLUMN,source=COLUMN",
        ),
        ("l.tsv", "doc_id\tsource\n\na\th\n \th\n\th\n", ":4: doc_id is empty in 2 rows of 3"),
        ("l.tsv", "doc_id\tsource\n \th\na\th\n \th\n", ":2: doc_id is empty in 2 rows of 3"),
        ("l.tsv", "doc_id\tsource\na\t\nb\t \n", ": column 'source' is blank or nan in every row"),
        (
            "l.tsv",
            "doc_id\tsource\na\th\n\nb\th\tx\n",
            ":4: expected 2 fields as in the first line, got 3: 'b\\th\\tx",
        ),
        (
            "l.tsv",
            "doc_id\tsource\na\th\nb\th\n\na\tl\n",
            ":5: document 'a' has two values of 'source': 'h' (line 2) ",
        ),
        (
            "l.csv",
            'doc_id,source\n"a,h\nb,l\n',
            ":3: cannot be read as CSV: unexpected end of data",
        ),
        (
            "l.csv",
            'doc_id,source\n"a","h\nx"\n\n"a",l\n',
            ":5: document 'a' has two values of 'source': 'h\\nx' ",
        ),
        (
            "labels.txt",
            "q1 0 d1 1\n",
            (
                ":1: expected labels (doc_id and source), got judgments (TREC judgments); "
                "name judgments with"
            ),
        ),
    ],
)
def test_a_fault_is_named_by_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: str, message: str
) -> None:
    monkeypatch.setattr(files, "CHUNK", 3)
    assert fault(write(tmp_path / name, content)).startswith(name + message)


def test_what_no_label_file_holds_is_refused_and_faults_in_parquet_have_no_line(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "l.tsv", "doc_id\ttitle\tsource\torigin\na\tt\th\ta\n")
    for by in ("title", "origin"):
        with pytest.raises(UserError, match=rf"^cannot group by '{by}' \(valid: source\)"):
            read_labels(path, by=by)
    with pytest.raises(
        UserError, match=r"^--by length:3 needs texts: name a collection DIR, without --groups \("
    ):
        read_labels(path, by="length:3")
    path = tmp_path / "l.parquet"
    pl.DataFrame({"doc_id": ["a", "b", "a"], "source": ["h", "l", "l"]}).write_parquet(path)
    assert fault(path) == (
        "l.parquet: document 'a' has two values of 'source': 'h' and 'l'; to take the first, "
        "use FILE:several=first"
    )
    pl.DataFrame({"doc_id": ["a", None], "source": ["h", "l"]}).write_parquet(path)
    with pytest.warns(DataWarning, match=r"l\.parquet: left out 1 row without a doc_id"):
        assert read_labels(path).rows() == [("a", "h")]
    write(path, "no parquet")
    assert fault(path).startswith("l.parquet:1: expected labels (doc_id and source), got ")
    write(path, "PAR1 and no more")
    assert fault(path).startswith("l.parquet: cannot be read as Parquet: ")


def test_json_of_labels_in_one_value_and_nested_keys_are_read(tmp_path: Path) -> None:
    rows = [("a", "human"), ("b", "llm")]
    for content in (
        '{"a": "human", "b": "llm"}',
        '[{"doc_id": "a", "source": "human"}, {"doc_id": "b", "source": "llm"}]',
    ):
        assert read_labels(write(tmp_path / "l.json", content)).rows() == rows
    nested = (
        '{"doc": {"url": "a"}, "by": {"kind": "human"}}\n'
        '{"doc": {"url": "b"}, "by": {"kind": "llm"}}\n'
    )
    path = write(tmp_path / "l.jsonl", nested)
    labels = read_labels(f"{path}:id=doc.url,source=by.kind")
    assert labels.select("doc_id", "source").rows() == rows


def test_several_first_and_other_names_of_ids(tmp_path: Path) -> None:
    path = write(tmp_path / "l.csv", "url;source\na;human\nb;llm\na;llm\n")
    with refused(f"{path}:4: document 'a' has two values of 'source': …", DataError):
        read_labels(path)
    assert read_labels(f"{path}:several=first").rows() == [("a", "human"), ("b", "llm")]
    assert LabelFile.from_text(f"{path}:several=first").words == [
        "--groups",
        f"{path}:several=first",
    ]


@pytest.mark.parametrize(
    ("spec", "where"),
    [
        ({"labels": "l.tsv"}, "l.tsv"),
        ({}, "the collection"),
        ({"path": "dir", "labels": "l.tsv"}, "the collection"),
    ],
)
def test_no_overlap_shows_an_id_of_both(spec: dict[str, str], where: str) -> None:
    collection = replace(collection_of([{"id": "x1", "text": ""}], {}, {}), spec=spec)
    message = (
        f"no overlap: none of its 1,234 documents is in {where} (first: 'd1'; its ids look "
        "like 'x1')"
    )
    assert no_overlap(["d1"] * 1234, collection).startswith(message)


def test_a_collection_without_texts() -> None:
    frame = table_of(source=["human", "llm", "llm"], origin=["d0", "d0", None], year=[1, 2, None])
    qrels = pl.DataFrame(
        {"query_id": ["q2", "q3"], "doc_id": ["d1", "unknown"], "grade": [2, 1], "line": [1, 2]}
    )
    collection = from_labels(
        frame,
        queries=["q1", "q2", "q1"],
        qrels=qrels,
        labels_file=Path("a/l.tsv"),
        qrels_file="q.txt",
    )
    assert collection.docs.columns == ["id", "title", "text", "source", "origin", "year"]
    docs = [
        ("d0", "", "", "human", "d0", 1),
        ("d1", "", "", "llm", "d0", 2),
        ("d2", "", "", "llm", "d2", None),
    ]
    assert collection.docs.rows() == docs
    assert collection.queries.rows() == [("q1", ""), ("q2", ""), ("q3", "")]
    assert collection.qrels.rows() == [("q2", "d1", 2), ("q3", "unknown", 1)]
    assert collection.spec == {
        "labels": "a/l.tsv",
        "qrels": "q.txt",
        "files": ["a/l.tsv", "q.txt"],
        "by": "source",
        "unlabelled": 0,
    }


def test_nobody_has_a_source_by_default_and_bins_are_of_a_column_whose_name_may_have_a_colon() -> (
    None
):
    assert from_labels(table_of(gender=["f", "m"]), queries=["q"], by="gender").sources == ()
    partial = from_labels(table_of(gender=["f", None, "m"]), queries=["q"], by="gender")
    assert grouping(partial, "gender").code.tolist() == [0, -1, 1]
    assert grouping(partial, "gender").unlabelled == partial.spec["unlabelled"] == 1
    collection = from_labels(
        table_of(gender=["f", "m"], source=["human", None]), queries=["q"], by="gender"
    )
    assert collection.docs["source"].to_list() == ["human", None]
    collection = from_labels(table_of(source=["human", None, "llm", None]), queries=["q"])
    assert collection.docs["source"].to_list() == ["human", None, "llm", None]
    assert collection.spec["unlabelled"] == 2
    collection = from_labels(
        table_of(**{"of:year": [2001, 1999, None, 2003]}), queries=["q"], by="of:year:3"
    )
    assert grouping(collection, "of:year:3").names == tuple(
        f"of:year {year}" for year in (1999, 2001, 2003)
    )
    assert collection.spec["unlabelled"] == 1


SCORES = {
    "q1": {"d1-human": 3.0, "d1-llm": 2.0, "d3-llm": 2.0, "d2-human": 1.0, "d3-human": 1.0},
    "q2": {"d1-llm": 5.0, "d2-llm": 4.0, "d2-human": 3.0},
    "q3": {"d3-human": 2.0, "d3-llm": 2.0, "d1-human": 1.0},
}


def label_file(folder: Path, *, origin: bool = True) -> Path:
    rows = [("doc_id", "source", "origin")]
    rows += [(f"{d}-{s}", s, f"{d}-human") for s, texts in TEXTS.items() for d in texts]
    return write(
        folder / "labels.tsv", "".join("\t".join(row[: 3 if origin else 2]) + "\n" for row in rows)
    )


def run(folder: Path, scores: Table = SCORES, name: str = "my.trec") -> Run:
    return Run.load(write_run(folder / name, scores))


def judgments(folder: Path, *more: tuple[str, str, int]) -> Path:
    rows = [
        (q, f"{d}-{s}", g) for q, grades in QRELS.items() for d, g in grades.items() for s in TEXTS
    ]
    return write(folder / "qrels.tsv", tsv([*rows, *more]))


def test_a_run_and_labels_give_what_the_texts_give_and_nobody_has_a_twin_without_origins(
    tmp_path: Path,
) -> None:
    mine = run(tmp_path)
    bare = labelled(label_file(tmp_path), [mine], qrels=judgments(tmp_path))
    labels, texts = (
        audit(c, mine, ["nDCG@3", "AP"], card=True, resamples=200) for c in (bare, toy())
    )
    assert labels.tilts == texts.tilts
    assert labels.card == texts.card
    assert labels.pair_counts.equals(texts.pair_counts)
    assert (labels.confounds, bool(texts.confounds)) == ((), True)
    mine = run(tmp_path)
    audited = audit(
        labelled(label_file(tmp_path, origin=False), [mine]), mine, card=True, resamples=200
    )
    assert [e.estimand.key for e in audited.card] == ["page", "Share"]
    assert audited.pair_counts.height == 0
    text = label_file(tmp_path).read_text()
    straight = audit(labelled(tmp_path / "labels.tsv", [mine]), mine, card=True, resamples=200).card
    turned = (
        text.replace("\thuman\t", "\t?\t")
        .replace("\tllm\t", "\thuman\t")
        .replace("\t?\t", "\tllm\t")
    )
    turned_file = write(tmp_path / "turned.tsv", turned)
    estimates = audit(labelled(turned_file, [mine]), mine, card=True, resamples=200).card
    assert [e.value for e in estimates] == [-e.value for e in straight]


def test_queries_of_all_runs_and_judgments_are_known_and_a_run_without_a_judged_one_is_refused(
    tmp_path: Path,
) -> None:
    runs = [run(tmp_path, {q: SCORES[q]}, f"{q}.trec") for q in ("q1", "q3")]
    collection = labelled(label_file(tmp_path), runs, qrels=judgments(tmp_path))
    assert collection.queries["id"].to_list() == ["q1", "q3", "q2"]
    runs = [run(tmp_path), run(tmp_path, {"7": SCORES["q1"], "8": SCORES["q2"]}, "other.trec")]
    with pytest.raises(
        DataError, match=r"other\.trec: no overlap: none of its 2 queries has a judgment \(first: '"
    ):
        labelled(label_file(tmp_path), runs, qrels=judgments(tmp_path))


def test_an_unlabelled_document_is_counted_keeps_its_rank_and_counts_in_the_row_all(
    tmp_path: Path,
) -> None:
    mine = run(tmp_path, {"q1": {"web-7": 9.0, **SCORES["q1"]}, "q2": SCORES["q2"]})
    audited = audit(labelled(label_file(tmp_path), [mine]), mine, card=True, depth=1, resamples=200)
    note = (
        f"{mine.name}: 1 entry for 1 document without a label (first: 'web-7'); it keeps "
        "its rank, in no group"
    )
    assert [text for text in note_sentences(audited.notes) if text.startswith(note)]
    assert audited.card[0].value == pytest.approx((0 - 1) / 2)
    mine = run(tmp_path)
    collection = labelled(
        label_file(tmp_path), [mine], qrels=judgments(tmp_path, ("q2", "web-7", 1))
    )
    values = audit(collection, mine, "R@5", resamples=200).by_group()
    assert values["mean"].to_list() == pytest.approx([(1 + 2 / 3 + 1) / 3, 1, 1])


def test_a_column_is_added_and_sources_and_origins_come_from_the_file(tmp_path: Path) -> None:
    file = write(
        tmp_path / "side.csv", "doc_id,side\nd1-human,east\nd1-llm,west\nd2-llm,east\nzz,west\n"
    )
    collection = with_labels(toy(), file, by="side")
    assert collection.docs.select("id", "side").rows() == [
        ("d1-human", "east"),
        ("d2-human", None),
        ("d3-human", None),
        ("d1-llm", "west"),
        ("d2-llm", "east"),
        ("d3-llm", None),
    ]
    assert collection.docs.drop("side").equals(toy().docs)
    assert collection.qrels.equals(toy().qrels)
    docs = toy().docs.with_columns(source=pl.lit("human"), origin=pl.col("id"))
    bare = replace(toy(), docs=docs, spec={"files": ["x"]})
    collection = with_labels(bare, label_file(tmp_path), by="source")
    assert collection == toy()
    assert (collection.spec["files"], collection.spec["labels"]) == (
        ["x", str(tmp_path / "labels.tsv")],
        collection.spec["files"][1],
    )
    assert with_labels(toy(), label_file(tmp_path, origin=False), by="source") == toy()
    file = write(tmp_path / "side.tsv", "doc_id\tside\torigin\nd1-human\tx\tX\nd2-human\ty\t\n")
    origins = with_labels(toy(), file, by="side").docs["origin"].to_list()
    assert origins == ["X", "d2-human", "d3-human", "d1-human", "d2-human", "d3-human"]


@pytest.mark.parametrize(
    ("column", "rows", "message"),
    [
        (
            "title",
            "d1-human\tx\n",
            "--groups cannot replace the column 'title' of a collection; give it",
        ),
        ("id", "d1-human\tx\n", "--groups cannot replace the column 'id' of a collection; give it"),
        ("side", "zz\tx\n", "{file}: names none of the collection's 6 documents"),
        (
            "source",
            "d1-human\tme\nd1-llm\tit\n",
            "{file}: no source for 4 documents in the collection (first: 'd2-",
        ),
    ],
)
def test_labels_that_do_not_fit_the_texts_are_refused(
    tmp_path: Path, column: str, rows: str, message: str
) -> None:
    file = write(tmp_path / "x.tsv", f"doc_id\t{column}\n{rows}")
    with pytest.raises(UserError, match="^" + re.escape(message.format(file=file))):
        with_labels(toy(), file, by=column)


LABELS = [("d1", "ai"), ("d2", "nan"), ("d3", "AI"), ("d4", "NA"), ("d5", "human")]


@pytest.mark.parametrize("name", ["l.csv", "l.tsv", "l.jsonl", "l.parquet"])
def test_missing_values_and_spellings_are_one_rule_for_every_format(
    name: str, tmp_path: Path
) -> None:
    frame, path = pl.DataFrame(LABELS, schema=["doc_id", "source"], orient="row"), tmp_path / name
    if name.endswith("parquet"):
        frame.write_parquet(path)
    elif name.endswith("jsonl"):
        frame.write_ndjson(path)
    else:
        frame.write_csv(path, separator="\t" if "tsv" in name else ",")
    read = read_labels(path)
    assert read["source"].to_list() == ["ai", None, "AI", "NA", "human"]
    groups = grouping(from_labels(read, queries=["q"]), "source")
    assert groups.names == ("human", "AI", "NA", "ai")
    assert [text.split(",")[0] for text in note_sentences(groups.remarks)] == [
        "warning: source 'ai' and 'AI' differ only in case",
        "warning: source 'NA' is read as a group: 1 document has it",
    ]
    alike = replace(groups.remarks[0], has_remedy=True)
    assert note_sentences([alike])[0].endswith("; to merge them: --name AI=ai")
    renamed = read_labels(replace(LabelFile(str(path)), names={"AI": "ai"}))
    assert renamed["source"].to_list() == ["ai", None, "ai", "NA", "human"]


def test_missing_values_of_tables_and_origins_name_nothing() -> None:
    table = table_of(source=["ai", "human", "nan", "NaT"], origin=["nan", "nan", "d0", None])
    collection = from_labels(table, queries=["q"])
    assert collection.docs.select("id", "source", "origin").rows() == [
        ("d0", "ai", "d0"),
        ("d1", "human", "d1"),
        ("d2", None, "d0"),
        ("d3", None, "d3"),
    ]
    scores = from_labels(table_of(score=[0.2, float("nan"), 0.7]), queries=["q"], by="score:.5")
    assert grouping(scores, "score:.5").code.tolist() == [0, -1, 1]


def test_labels_of_a_collection_can_be_named() -> None:
    docs = [
        {"id": f"d{n}", "text": "x", "source": label}
        for n, label in enumerate(["ai", "AI ", "human"])
    ]
    collection = collection_of(docs, {"q": "x"}, {})
    renamed = with_names(collection, {"AI ": "ai"}, by="source")
    assert renamed.sources == ("ai", "human")
    assert (renamed.spec["label_names"], renamed.spec["labels_named"]) == ({"AI ": "ai"}, "source")
    with refused("unknown value of 'source' to name 'Ai'…"):
        with_names(collection, {"Ai": "ai"}, by="source")
    with refused("unknown column to name the labels of 'text'…"):
        with_names(collection, {"x": "y"}, by="text")


def test_every_door_says_that_sources_differ_in_case_only() -> None:
    """Also where a result has no notes."""
    docs = {
        "id": ["d1", "d2", "d3"],
        "text": ["one", "two", "three"],
        "source": ["ai", "AI", "human"],
    }
    queries = pl.DataFrame({"id": ["q"], "text": ["one"]})
    qrels = pl.DataFrame({"query_id": ["q"], "doc_id": ["d1"], "grade": [1]})
    collection = Collection(pl.DataFrame(docs), queries, qrels)
    remark = "source 'ai' and 'AI' differ only in case, and are separate groups"
    assert any(remark in note for note in note_sentences(check(collection).notes))
