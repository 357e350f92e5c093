"""The collection: defaults, types, immutability, twins and the keys that break ties."""

import datetime
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt.auditing.sources.sources_apart import take_apart
from ranktilt.data.collection import Collection
from ranktilt.errors import UserError, unknown_name
from ranktilt.explaining.check import check
from ranktilt.explaining.explain import explain
from tests.refusals import refused
from tests.toy import collection_of, toy

NO_QUERIES = pl.DataFrame({"id": [], "text": []}, schema={"id": pl.String, "text": pl.String})
NO_QRELS = pl.DataFrame(schema={"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32})


def of(**columns: Any) -> Collection:
    """A collection of documents only; ids are "a", "b", ... and texts empty where not given."""
    height = len(next(iter(columns.values())))
    ids = list("abcdefghij"[:height])
    frame = pl.DataFrame({"id": ids, "text": [""] * height, **columns}, strict=False)
    return Collection(frame, NO_QUERIES, NO_QRELS)


def toy_with(which: str, change: Any) -> Collection:
    parts = {name: getattr(toy(), name) for name in ("docs", "queries", "qrels")}
    return Collection(**{**parts, which: change(parts[which])})


def judged(*grades: Any, dtype: Any = None) -> Collection:
    """A collection that judges document "a", "b", ... for query "q"."""
    docs = list("abcdefghij"[: len(grades)])
    qrels = pl.DataFrame({"query_id": "q", "doc_id": docs, "grade": pl.Series(grades, dtype=dtype)})
    return Collection(
        pl.DataFrame({"id": docs, "text": docs}), pl.DataFrame({"id": ["q"], "text": ["?"]}), qrels
    )


def test_title_source_and_origin_have_defaults_and_document_columns_come_first() -> None:
    assert of(text=["one", "two"]).docs.to_dict(as_series=False) == {
        "id": ["a", "b"],
        "title": ["", ""],
        "text": ["one", "two"],
        "source": [None, None],
        "origin": ["a", "b"],
    }
    docs = of(year=[1999], origin=["o"], gender=["f"], title=["T"]).docs
    assert docs.columns == ["id", "title", "text", "source", "origin", "year", "gender"]


def test_numeric_ids_become_strings_and_judgments_keep_three_columns() -> None:
    docs = pl.DataFrame({"id": [7], "text": ["x"]})
    queries = pl.DataFrame({"id": [1], "text": ["q"]})
    qrels = pl.DataFrame({"line": [2, 3], "grade": [1, 0], "doc_id": [7, 9], "query_id": [1, 8]})
    collection = Collection(docs, queries, qrels)
    assert collection.docs["id"].to_list() == collection.docs["origin"].to_list() == ["7"]
    assert collection.queries["id"].to_list() == ["1"]
    assert collection.qrels.schema == {
        "query_id": pl.String,
        "doc_id": pl.String,
        "grade": pl.Int32,
    }
    assert collection.qrels.rows() == [("1", "7", 1), ("8", "9", 0)]


def emptied(column: str, value: str | None, row: int) -> Any:
    """Put a value into one row of a column."""
    there = (
        pl.when(pl.int_range(pl.len()) == row)
        .then(pl.lit(value))
        .otherwise(pl.col(column))
        .alias(column)
    )
    return lambda frame: frame.with_columns(there)


@pytest.mark.parametrize(
    ("which", "change", "message"),
    [
        ("docs", lambda frame: frame.drop("id"), "docs: expected columns id, text; missing: id"),
        (
            "queries",
            lambda frame: frame.drop("text"),
            "queries: expected columns id, text; missing: text",
        ),
        (
            "qrels",
            lambda frame: frame.drop("grade"),
            "expected columns query_id, doc_id, grade; missing: grade",
        ),
        ("docs", emptied("text", None, 1), "docs: column 'text' has no value in row 1"),
        ("queries", emptied("text", None, 1), "queries: column 'text' has no value in row 1"),
        (
            "qrels",
            lambda frame: emptied("grade", None, 1)(frame).cast(frame.schema),
            "column 'grade' has no value in",
        ),
        ("docs", emptied("id", "", 0), "docs: column 'id' is empty in row 0"),
        ("queries", emptied("id", "", 0), "queries: column 'id' is empty in row 0"),
        ("qrels", emptied("query_id", "", 0), "qrels: column 'query_id' is empty in row 0"),
        ("qrels", emptied("doc_id", "", 0), "qrels: column 'doc_id' is empty in row 0"),
        (
            "docs",
            lambda frame: pl.concat([frame, frame[:1]]),
            "document 'd1-human' occurs more than once; ids must",
        ),
        (
            "qrels",
            lambda frame: pl.concat([frame, frame[:1]]),
            "judgment 'q1', 'd1-human' occurs more than once",
        ),
    ],
)
def test_missing_empty_or_repeated_values_are_refused_by_row(
    which: str, change: Any, message: str
) -> None:
    with pytest.raises(UserError) as caught:
        toy_with(which, change)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("grades", "dtype"),
    [
        ([1, 0, -1], pl.Int8),
        ([1, 2], pl.UInt64),
        ([1.0, -2.0], pl.Float64),
        ([2**31 - 1, -(2**31)], pl.Int64),
    ],
)
def test_whole_numbers_are_grades_in_any_type_and_so_are_fractions(
    grades: list[Any], dtype: Any
) -> None:
    assert judged(*grades, dtype=dtype).qrels["grade"].to_list() == [int(g) for g in grades]
    grades_column = judged(1.0, 0.25, dtype=pl.Float64).qrels["grade"]
    assert (grades_column.dtype, grades_column.to_list()) == (pl.Float64, [1.0, 0.25])


@pytest.mark.parametrize(
    ("grade", "dtype"),
    [
        (float("nan"), pl.Float64),
        (float("inf"), pl.Float64),
        (2**31, pl.Int64),
        ("1", pl.String),
        (True, pl.Boolean),
    ],
)
def test_other_grades_are_refused(grade: Any, dtype: Any) -> None:
    with pytest.raises(UserError, match=r"^qrels: expected numbers in column 'grade', got "):
        judged(grade, dtype=dtype)


@pytest.mark.parametrize(
    ("series", "dtype", "values"),
    [
        (pl.Series(["x", None]), pl.String, ["x", None]),
        (pl.Series([1, 2], dtype=pl.UInt8), pl.Int64, [1, 2]),
        (pl.Series([0.5, None], dtype=pl.Float32), pl.Float64, [0.5, None]),
        (pl.Series([True, False]), pl.Boolean, [True, False]),
        (pl.Series(["x", "y"], dtype=pl.Categorical), pl.String, ["x", "y"]),
        (pl.Series([1.5, float("nan"), float("inf")]), pl.Float64, [1.5, None, None]),
        (pl.Series([b'{"a": [1, 2]}', b'"x"']), pl.Binary, [b'{"a":[1,2]}', b'"x"']),
        (pl.Series([b"[]", b"null"]), pl.Binary, [b"[]", None]),
        (pl.Series([b'"x"', b' "y" ']), pl.String, ["x", "y"]),
        (pl.Series([b"1", b"2.5"]), pl.Float64, [1.0, 2.5]),
        (pl.Series([b"1", None]), pl.Int64, [1, None]),
        (
            pl.Series([b"18446744073709551615", b"true"]),
            pl.Binary,
            [b"18446744073709551615", b"true"],
        ),
    ],
)
def test_further_columns_take_the_types_that_files_keep(
    series: pl.Series, dtype: Any, values: list[Any]
) -> None:
    column = of(text=[""] * len(series), extra=series).docs["extra"]
    assert (column.dtype, column.to_list()) == (dtype, values)


def test_a_column_without_any_value_is_dropped() -> None:
    numbers = pl.Series([None, None], dtype=pl.Int64)
    for values in ([None, None], numbers, [float("nan"), float("inf")], [b"null", None]):
        assert "extra" not in of(text=["", ""], extra=values).docs.columns


@pytest.mark.parametrize(
    "series",
    [
        pl.Series([datetime.date(2024, 1, 1)]),
        pl.Series([[1, 2]]),
        pl.Series([{"a": 1}]),
        pl.Series([b"no json"]),
        pl.Series([2**64 - 1], dtype=pl.UInt64),
        pl.Series([b"\xff"]),
        pl.Series([b"[" * 400 + b"]" * 400]),
    ],
)
def test_a_column_that_no_file_keeps_is_refused(series: pl.Series) -> None:
    with pytest.raises(UserError) as caught:
        of(extra=series)
    assert str(caught.value).startswith(
        f"docs: cannot keep column 'extra' of type {series.dtype}; use strings, "
    )


def test_changed_tables_of_the_caller_do_not_reach_the_collection() -> None:
    docs = pl.DataFrame({"id": ["a"], "text": ["x"]})
    collection = Collection(docs, NO_QUERIES, NO_QRELS)
    docs[0, "text"] = "changed"
    assert collection.docs["text"].to_list() == ["x"]
    assert repr(toy()) == "Collection(3 human, 3 llm; 3 queries, 10 judgments)"


def test_collections_are_equal_in_any_order_of_rows_and_columns() -> None:
    plain = toy()
    docs = plain.docs.with_columns(n=pl.int_range(6), m=pl.int_range(6))
    turned = docs.reverse().select("m", "n", "origin", "source", "text", "title", "id")
    qrels = plain.qrels.sample(fraction=1, shuffle=True, seed=1)
    first = Collection(docs, plain.queries, plain.qrels)
    second = Collection(turned, plain.queries.reverse(), qrels, {"path": "elsewhere"})
    assert first == second
    assert hash(first) == hash(second)


def test_collections_differ_by_value_and_missing_values_equal_themselves() -> None:
    for column in ("text", "title", "source", "origin", "id"):
        assert toy_with("docs", emptied(column, "other", 0)) != toy()
    assert toy_with("queries", emptied("text", "other", 0)) != toy()
    assert toy_with("qrels", emptied("doc_id", "other", 0)) != toy()
    assert toy_with("qrels", lambda frame: frame.with_columns(grade=pl.col("grade") + 1)) != toy()
    assert of(n=[1, None]) == of(n=[1, None])
    assert of(n=[1, None]) != of(n=[1, 0])


def test_ids_are_one_object_and_sources_come_in_order_of_appearance() -> None:
    collection = toy()
    assert collection.ids.to_list() == [
        "d1-human",
        "d2-human",
        "d3-human",
        "d1-llm",
        "d2-llm",
        "d3-llm",
    ]
    assert collection.ids is collection.ids
    assert of(source=["llm", "human", "llm", "b"]).sources == ("llm", "human", "b")


def test_a_query_with_any_judgment_is_judged() -> None:
    grades = {"q4": {"a": 1}, "q2": {"a": 0}, "q9": {"a": 1}, "q1": {"elsewhere": 1}}
    collection = collection_of(
        [{"id": "a", "text": ""}], dict.fromkeys(["q1", "q2", "q3", "q4"], ""), grades
    )
    assert collection.queries_with_judgments["id"].to_list() == ["q1", "q2", "q4"]


def test_the_text_that_is_ranked_is_a_choice() -> None:
    collection = of(title=["T", "", "T3", ""], text=["one", "two", "", ""])
    assert collection.texts("title+text").to_list() == ["T one", "two", "T3", ""]
    assert collection.texts("text").to_list() == ["one", "two", "", ""]
    assert collection.texts("title").to_list() == ["T", "", "T3", ""]
    with pytest.raises(UserError, match="unknown text choice 'titel'; did you mean 'title'"):
        collection.texts("titel")


def test_twins_share_an_origin_in_order_of_the_first_source() -> None:
    twins = [(f"d{n}-human", f"d{n}-human", f"d{n}-llm") for n in (1, 2, 3)]
    assert toy().pairs("human", "llm").rows() == twins
    collection = of(source=["h", "x", "x", "h", "x"], origin=["1", "1", "1", "2", "3"])
    assert collection.pairs("h", "x").rows() == [("1", "a", "b"), ("1", "a", "c")]
    collection = of(source=["x", "h", "x", "h"], origin=["1", "2", "2", "1"])
    assert collection.pairs("h", "x").rows() == [("2", "b", "c"), ("1", "d", "a")]


def test_twins_need_two_known_sources() -> None:
    for pair in (("human", "lln"), ("lln", "human")):
        with refused("unknown source 'lln'; did you mean 'llm'? (valid: human, llm)"):
            toy().pairs(*pair)
    with refused("twins need two different sources, got 'llm' twice"):
        toy().pairs("llm", "llm")


def test_documents_without_a_twin() -> None:
    collection = of(source=["h", "x", "h", "x", "y"], origin=["1", "1", "2", "3", "2"])
    assert collection.unpaired("h", "x").rows() == [("c", "h"), ("d", "x")]
    assert collection.unpaired("h", "y").rows() == [("a", "h")]


@pytest.mark.parametrize(
    ("name", "source", "origin", "bare"),
    [
        ("x-human", "human", "x-human", "x"),
        ("x-llm", "llm", "x-human", "x"),
        ("x-llm", "llm", "x", "x-llm"),
        ("x-llm", "human", "x-human", "x-llm"),
        ("x-llm", "llm", "y-human", "x-llm"),
        ("x-human-human", "human", "x-human-human", "x-human"),
        ("größe-ß", "ß", "größe-human", "größe"),
        ("-human", "human", "-human", "-human"),
    ],
)
def test_the_bare_id_is_what_loading_added_to(
    name: str, source: str, origin: str, bare: str
) -> None:
    assert of(id=[name], source=[source], origin=[origin]).bare_ids().to_list() == [bare]


def keys(**columns: Any) -> list[int]:
    return [int(key) for key in of(**columns).tie_keys()]


def test_lone_texts_share_a_key_by_words_alone() -> None:
    first, second, third, fourth = keys(text=["x", "x", "y", "x"], title=["", "", "", "T"])
    assert first == second
    assert len({second, third, fourth}) == 3
    assert keys(text=["x"], id=["a"], source=["human"]) == keys(
        text=["x"], id=["z"], source=["llm"]
    )


def test_a_key_of_twins_depends_on_their_origin_alone() -> None:
    human_and_llm = keys(origin=["o", "o"], id=["a", "b"], source=["human", "llm"], text=["x", "y"])
    other_sources = keys(origin=["o", "o"], id=["c", "d"], source=["p", "q"], text=["v", "w"])
    assert human_and_llm == other_sources
    assert len(set(human_and_llm)) == 1
    alone = keys(id=["b"], origin=["a"], text=["y"])
    both = keys(id=["a", "b"], origin=["a", "a"], text=["x", "y"])
    assert alone == both[1:], "a rewrite without its original too"


def test_a_key_is_the_same_in_every_process() -> None:
    # blake2b("ranktilt-tie-0" + "od1-human", digest_size=8), little-endian
    tie_keys = toy().tie_keys()
    assert tie_keys[0] == int.from_bytes(bytes.fromhex("0049fdb52158a26e"), "little")
    assert (tie_keys.dtype, len(set(tie_keys.tolist()))) == (np.uint64, 3), (
        "one key for each of three twins"
    )


@settings(max_examples=10)
@given(st.permutations(range(6)))
def test_a_key_does_not_depend_on_the_order_of_rows(order: list[int]) -> None:
    shuffled = toy_with("docs", lambda docs: docs[order])
    assert shuffled.tie_keys().tolist() == toy().tie_keys()[order].tolist()


def many_sources(count: int) -> Collection:
    """A collection of a document a source: writer 0, writer 1, ..."""
    names = [f"writer {number}" for number in range(count)]
    docs = pl.DataFrame({"id": names, "text": names, "source": names})
    return Collection(docs, NO_QUERIES, NO_QRELS)


def test_too_many_sources_are_refused_before_any_is_separated() -> None:
    collection = many_sources(51)
    came = (
        "the documents name 51 sources ('writer 0', 'writer 1', 'writer 2', …); expected at "
        "most 50: "
    )
    for verb in (check, explain):
        with refused(
            f"{came}use the field source for the sides to compare, such as human and llm, and …"
        ):
            verb(collection)
    with refused(
        f"{came}choose some (--source), rank all as one (--mixed), or group by another column "
        "(--by COLUMN)"
    ):
        take_apart(collection)
    assert len(take_apart(many_sources(50)).collections) == 49


def test_sources_are_listed_once_however_many_are_chosen() -> None:
    collection = many_sources(3_000)
    listed = collection.sources
    assert collection.sources is listed
    assert collection.only_queries([]).sources is listed
    assert collection.only_sources(listed) is collection
    assert collection.only_sources(listed[1:]).spec["without_sources"] == ["writer 0"]
    with refused("unknown source 'writer'; did you mean 'writer 9'? (valid: writer 0, writer 1, …"):
        collection.only_sources(["writer"])


def test_unknown_name_is_answered_with_a_hundred_at_most() -> None:
    names = [f"n{number}" for number in range(6_000)]
    message = str(unknown_name("source", "N77", names))
    assert message.startswith("unknown source 'N77'; did you mean 'n77'? (valid: n0, n1, ")
    assert message.endswith(", n98, n99 and 5,900 more)")
