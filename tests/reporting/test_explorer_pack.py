"""What fits into a page: rounding, packing, and how many queries."""

import json
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt import Collection
from ranktilt.auditing.groups import grouping
from ranktilt.auditing.judged_rankings import Judgments
from ranktilt.reporting.explorer.lists import lists
from ranktilt.reporting.explorer.numbers import Numbers
from ranktilt.reporting.explorer.pack import DIGITS, Material, pack, rounded, shortened, strings
from tests.reporting.audits import twins
from tests.reporting.explored import opened, unpacked

NAN = float("nan")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (12.345678, 12.346),
        (-0.000123456789, -0.00012346),
        (123456789.0, 123460000.0),
        (99999.6, 100000.0),
        (0.1 + 0.2, 0.3),
        (0.0, 0.0),
        (1e300, 1e300),
        (5e-324, 0.0),
    ],
)
def test_numbers_keep_five_digits(value: float, expected: float) -> None:
    assert rounded(np.array([value])).tolist() == [expected]


def test_nan_stays_and_nothing_is_minus_0() -> None:
    out = rounded(np.array([NAN, -0.0, -1e-320]))
    assert np.isnan(out[0])
    assert json.dumps(out[1:].tolist()) == "[0.0, 0.0]"


@settings(max_examples=200)
@given(st.floats(1e-12, 1e12) | st.floats(-1e12, -1e-12))
def test_rounded_numbers_are_near_and_short(value: float) -> None:
    (out,) = rounded(np.array([value])).tolist()
    assert out == pytest.approx(value, rel=5.1 * 10**-DIGITS)
    mantissa = repr(out).split("e")[0].replace(".", "").replace("-", "").strip("0")
    assert len(mantissa) <= DIGITS


@pytest.mark.parametrize("content", [{"a": [1, None, "é</script>"]}, [], ["x" * 100_000]])
def test_what_is_packed_reads_back(content: Any) -> None:
    assert unpacked(pack(content)) == content


def test_nan_is_packed_as_null_and_arrays_as_lists() -> None:
    assert unpacked(pack({"v": np.array([[1.5, NAN]])})) == {"v": [[1.5, None]]}


def test_equal_contents_are_equal_bytes() -> None:
    assert pack(["a"]) == pack(["a"])


def test_strings_are_empty_beyond_the_end() -> None:
    column = pl.Series(["a", "b"])
    assert strings(column, np.array([1, 5, 0, 2])).to_list() == ["b", "", "a", ""]
    assert strings(column, np.array([1, 1])).to_list() == ["b", "b"]
    assert strings(column.clear(), np.array([0, 3])).to_list() == ["", ""]


def test_long_strings_end_in_an_ellipsis() -> None:
    texts = ["é" * 300, "é" * 301, "a"]
    assert shortened(pl.Series(texts), "id") == ["é" * 300, "é" * 300 + "…", "a"]


def material(queries: int, letters: int, grade: float = 1) -> Material:
    """One run over so many queries, each with one document in two versions of so many random letters."""
    rng = np.random.default_rng(0)
    collection = twins(queries)
    drawn = ["".join(map(chr, rng.integers(97, 123, letters))) for _ in range(2 * queries)]
    qrels = collection.qrels.with_columns(grade=pl.lit(grade))
    collection = Collection(collection.docs.with_columns(text=pl.Series(drawn)), collection.queries, qrels)
    scores = {f"q{n}": {f"{n}-human": 2.0, f"{n}-llm": 1.0} for n in range(queries)}
    found = opened(collection, [scores])
    groups = grouping(collection, "source")
    judgments = Judgments.of(collection, groups)
    order = np.arange(queries)[::-1]
    made = lists(collection, groups, judgments, found.runs, queries=order, depth=10, ties="expected")
    numbers = Numbers.of(found.audit, ["first"])
    return Material(found.audit, collection, groups, judgments, ("first",), order, numbers, made, 10)


@pytest.mark.parametrize("budget", [3_000, 10_000, 40_000, 100_000])
@pytest.mark.parametrize("letters", [10, 500])
def test_as_many_queries_are_carried_as_fit(budget: int, letters: int) -> None:
    whole = material(120, letters)
    found = whole.fitted(budget)
    assert found.size <= budget
    if found.queries < 120 and found.size < 0.95 * budget:
        assert whole.packed(found.queries + 1).size > budget


@pytest.mark.parametrize("grade", [2, 0.25])
def test_a_grade_may_be_a_fraction(grade: float) -> None:
    (found,) = unpacked(material(2, 5, grade).packed(1).lists)["lists"]
    assert [entry[4] for entry in found[0]["entries"]] == [grade, grade]


def test_all_queries_are_carried_where_they_fit_exactly() -> None:
    whole = material(30, 50)
    assert whole.fitted(whole.packed(30).size).queries == 30


def test_the_first_of_the_order_are_carried() -> None:
    told = unpacked(material(30, 50).packed(3).lists)
    assert [query["id"] for query in told["queries"]] == ["q29", "q28", "q27"]
    assert told["docs"]["id"] == ["29-human", "29-llm", "28-human", "28-llm", "27-human", "27-llm"]


def test_only_documents_of_carried_queries_are_carried() -> None:
    found = material(30, 50).packed(2)
    assert len(unpacked(found.texts)) == len(unpacked(found.lists)["docs"]["id"]) == 4
    assert found.cut == 0


def test_documents_stand_beside_their_twins() -> None:
    docs = unpacked(material(12, 5).packed(12).lists)["docs"]
    assert [twin for (twin,) in docs["twins"]] == [n + 1 if n % 2 == 0 else n - 1 for n in range(24)]
