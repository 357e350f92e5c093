"""Wrong calls of every public constructor: read as their author means, or refused in one line."""

import datetime
import decimal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ranktilt import Collection, DataError, Run, UserError, judge, labelled, load
from ranktilt.data.formats.ids import plain_float
from ranktilt.data.formats.judgments.qrels import read_qrels
from ranktilt.data.labels.label_table import read_labels
from ranktilt.data.labels.labels import from_labels
from tests.refusals import refused
from tests.toy import write

pandas = pytest.importorskip("pandas")
DAY = datetime.date(2020, 1, 1)
IDS_OR = "expected ids as strings or whole numbers, got"


class Odd:
    """What no constructor knows."""

    def __repr__(self) -> str:
        return "Odd()"


def one_line(call: Callable[[], Any]) -> str:
    """The message of a refusal, which is one line."""
    with pytest.raises(UserError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    assert message
    return message


DOCS = pl.DataFrame({"id": ["d"], "text": ["x"]})
QUERIES = pl.DataFrame({"id": ["q"], "text": ["x"]})
QRELS = pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], "grade": [1]})
LABELS = pl.DataFrame({"doc_id": ["d", "e"], "source": ["human", "llm"]})

CONSTRUCTORS: dict[str, Callable[[Any], Any]] = {
    "Run.from_dict": Run.from_dict,
    "Run.from_pandas": Run.from_pandas,
    "Run.from_frame": Run.from_frame,
    "Run.from_frame, queries": lambda table: Run.from_frame(
        QRELS.rename({"grade": "score"}), queries=table
    ),
    "Run.from_mteb": Run.from_mteb,
    "Run.from_mteb, one split": lambda table: Run.from_mteb({"default": {"test": table}}),
    "Run.from_ranx": Run.from_ranx,
    "Run.load": Run.load,
    "Collection, docs": lambda table: Collection(table, QUERIES, QRELS),
    "Collection, queries": lambda table: Collection(DOCS, table, QRELS),
    "Collection, qrels": lambda table: Collection(DOCS, QUERIES, table),
    "from_labels": lambda table: from_labels(table, queries=["q"]),
    "from_labels, queries": lambda table: from_labels(LABELS, queries=table),
    "from_labels, qrels": lambda table: from_labels(LABELS, queries=["q"], qrels=table),
    "judge": lambda table: judge({"judge": table}, QRELS),
    "judge, human": lambda table: judge({"judge": QRELS}, table),
    "judge, runs": lambda table: judge({"judge": QRELS}, QRELS, runs=table),
    "labelled": lambda table: labelled(table, [Run.from_dict({"q": {"d": 1.0}})]),
    "labelled, runs": lambda table: labelled(__file__, table),
    "load": load,
    "read_labels": read_labels,
    "read_qrels": read_qrels,
}

WRONG: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "int": lambda: 3,
    "str": lambda: "abc",
    "bytes": lambda: b"x",
    "list": lambda: [1.5],
    "list of None": lambda: [None],
    "dict of int": lambda: {"q": 3},
    "dict of None": lambda: {"q": None},
    "dict of list": lambda: {"q": ["a"]},
    "dict of text": lambda: {"q": "ab"},
    "dict of pairs": lambda: {"q": [("a", 1.0)]},
    "too deep": lambda: {"q": {"a": {"b": 1.0}}},
    "list as score": lambda: {"q": {"a": [1.0]}},
    "generator": lambda: ({} for _ in range(2)),
    "object": Odd,
    "class": lambda: Odd,
    "array": lambda: np.zeros((2, 3)),
    "polars": lambda: pl.DataFrame({"other": [1]}),
    "lazy": lambda: DOCS.lazy(),
    "pandas": lambda: pandas.DataFrame({"other": [1]}),
    "pandas series": lambda: pandas.Series([1.5]),
}
MEANT = {
    ("from_labels, qrels", "None"),  # no judgments
    ("Run.from_frame, queries", "None"),  # those of the frame
}


@pytest.mark.parametrize("constructor", CONSTRUCTORS)
@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_no_table_is_refused_in_one_line(constructor: str, wrong: str) -> None:
    if (constructor, wrong) not in MEANT:
        assert one_line(lambda: CONSTRUCTORS[constructor](WRONG[wrong]()))


IDS: list[tuple[str, list[Any], list[str] | str]] = [
    ("text", ["a", "b"], ["a", "b"]),
    ("whole numbers", [1, 20], ["1", "20"]),
    ("whole numbers as floats", [1.0, 20.0], ["1", "20"]),
    ("fractions", [1.5, 2.0], f"{IDS_OR} float: 1.5"),
    ("beyond exact floats", [1e17, 2.0], f"{IDS_OR} float: 1e+17"),
    ("truth values", [True, False], IDS_OR),
    ("dates", [DAY, datetime.date(2021, 1, 1)], IDS_OR),
    ("missing", ["a", None], "has no value in row 1"),
    ("NaN", [1.0, float("nan")], "has no value in row 1"),
    ("empty", ["a", ""], "is empty in row 1"),
    ("lists", [["a"], ["b"]], IDS_OR),
    ("bytes", [b"a", b"b"], ["a", "b"]),
    ("bytes that are no text", [b"\xff", b"b"], ""),
]


@pytest.mark.parametrize(("name", "ids", "expected"), IDS, ids=[case[0] for case in IDS])
def test_ids_are_read_alike_through_every_door(
    name: str, ids: list[Any], expected: list[str] | str
) -> None:
    column = pl.Series(ids, strict=True)
    doors: dict[str, Callable[[], list[str]]] = {
        "run, documents": lambda: (
            Run.from_frame(
                pl.DataFrame({"query_id": ["q", "q"], "doc_id": column, "score": [2.0, 1.0]})
            )
            .frame()["doc_id"]
            .to_list()
        ),
        "run, queries": lambda: list(
            Run.from_frame(
                pl.DataFrame({"query_id": column, "doc_id": ["d", "d"], "score": [2.0, 1.0]})
            ).queries
        ),
        "pandas": lambda: list(
            Run.from_pandas(
                pandas.DataFrame(
                    {
                        "qid": pandas.Series(ids, dtype=object),
                        "docno": ["d", "d"],
                        "score": [2.0, 1.0],
                    }
                )
            ).queries
        ),
        "documents": lambda: (
            Collection(pl.DataFrame({"id": column, "text": ["x", "y"]}), QUERIES, QRELS)
            .docs["id"]
            .to_list()
        ),
        "queries": lambda: (
            Collection(DOCS, pl.DataFrame({"id": column, "text": ["x", "y"]}), QRELS)
            .queries["id"]
            .to_list()
        ),
        "judgments": lambda: (
            Collection(
                DOCS,
                QUERIES,
                pl.DataFrame({"query_id": ["q", "q"], "doc_id": column, "grade": [1, 0]}),
            )
            .qrels["doc_id"]
            .to_list()
        ),
        "labels": lambda: (
            from_labels(LABELS.with_columns(doc_id=column), queries=["q"]).docs["id"].to_list()
        ),
    }
    for door, read in doors.items():
        if door == "pandas" and name == "bytes that are no text":
            continue
        if isinstance(expected, list):
            assert read() == expected, door
        else:
            assert expected in one_line(read), door


SCORES = [
    True,
    "1",
    None,
    float("nan"),
    float("inf"),
    1j,
    [1.0],
    {},
    DAY,
    datetime.timedelta(1),
    10**400,
    Odd(),
    np.datetime64("2020-01-01"),
    np.timedelta64(3, "s"),
    pandas.Timestamp("2020-01-01"),
]


@pytest.mark.parametrize("score", SCORES, ids=repr)
def test_what_is_no_score_is_refused(score: Any) -> None:
    expected = "expected a finite number as score, got "
    assert expected in one_line(lambda: Run.from_dict({"q": {"a": score}}))
    table = pandas.DataFrame(
        {"qid": ["q"], "docno": ["a"], "score": pandas.Series([score], dtype=object)}
    )
    assert expected in one_line(lambda: Run.from_pandas(table))


def test_numbers_of_other_libraries_are_scores() -> None:
    for score in (
        1,
        np.float32(1),
        np.int8(1),
        np.array(1.0),
        decimal.Decimal(1),
        np.longdouble(1),
    ):
        assert Run.from_dict({1: {2.0: score}}).frame().rows() == [("1", "2", 1, 1.0)]


def test_ids_that_become_one_are_refused() -> None:
    with refused("run 'run': query '1' occurs twice"):
        Run.from_dict({1: {"a": 1.0}, "1": {"b": 1.0}})
    with refused("run 'run': document '1' occurs twice for query 'q'"):
        Run.from_dict({"q": {1: 1.0, "1": 2.0}})


def test_ranks_that_are_none_are_refused() -> None:
    frame = pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": [2.0, 1.0]})
    for ranks in (["first", "second"], [DAY, DAY], [[1], [2]], [True, False]):
        assert "expected whole numbers in column 'rank', got " in one_line(
            lambda ranks=ranks: Run.from_frame(frame.with_columns(rank=pl.Series(ranks)))
        )
    assert "got infinity" in one_line(lambda: Run.from_frame(frame.with_columns(rank=float("inf"))))


def test_options_of_other_types_are_refused() -> None:
    for options in (
        {"name": 3},
        {"name": None},
        {"score_order": 3},
        {"score_order": []},
        {"score_order": "up"},
    ):
        assert one_line(lambda options=options: Run.from_dict({"q": {"a": 1.0}}, **options))
    for spec in (3, [1], "x", None):
        assert one_line(lambda spec=spec: Collection(DOCS, QUERIES, QRELS, spec))


@pytest.mark.parametrize("text", ["1_0", "٣", "infinity", "nan", "0x1", "1e", ""])
def test_numbers_are_written_in_digits(text: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected a number"):
        plain_float(text)
    with pytest.raises(DataError, match="expected a finite number as score"):
        Run.load(write(tmp_path / "run.csv", f"qid,docno,score\nq,a,2\nq,b,{text}\n"))


def test_files_hold_the_same_ids(tmp_path: Path) -> None:
    """Whole numbers that pandas wrote as floats, in Parquet and JSON lines."""
    frame = pl.DataFrame({"doc_id": [1.0, 20.0], "source": ["human", "llm"]})
    frame.write_parquet(tmp_path / "labels.parquet")
    frame.write_ndjson(tmp_path / "labels.jsonl")
    for name in ("labels.parquet", "labels.jsonl"):
        assert read_labels(tmp_path / name)["doc_id"].to_list() == ["1", "20"]
    run = pl.DataFrame({"query_id": [1.0, 1.0], "doc_id": [2, 3], "score": [2.0, 1.0]})
    run.write_parquet(tmp_path / "run.parquet")
    assert Run.load(tmp_path / "run.parquet").frame().rows() == [
        ("1", "2", 1, 2.0),
        ("1", "3", 2, 1.0),
    ]


def test_predictions_without_scores_name_their_split(tmp_path: Path) -> None:
    path = write(
        tmp_path / "toy_predictions.json", '{"mteb_model_meta": {}, "default": {"test": null}}'
    )
    with refused(
        f"{path}: default/test: expected {{query: {{document: score}}}}, got None", DataError
    ):
        Run.load(path)
