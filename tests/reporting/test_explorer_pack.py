"""What fits into a page: rounding, packing, and how many queries."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt import Collection
from ranktilt.auditing.groups import grouping
from ranktilt.auditing.judged_rankings import Judgments
from ranktilt.reporting.explorer.lists import ranked_lists
from ranktilt.reporting.explorer.numbers import Numbers
from ranktilt.reporting.explorer.pack import DIGITS, Material, pack, rounded, shortened
from tests.reporting.audits import twins
from tests.reporting.explored import opened, unpacked

NAN = float("nan")


def test_nan_stays_and_nothing_is_minus_0() -> None:
    out = rounded(np.array([NAN, -0.0, -0.000123456789]))
    assert np.isnan(out[0])
    assert json.dumps(out[1:].tolist()) == "[0.0, -0.00012346]"


@settings(max_examples=200)
@given(st.floats(1e-8, 1e8) | st.floats(-1e8, -1e-8))
def test_rounded_numbers_are_near_and_short(value: float) -> None:
    (out,) = rounded(np.array([value])).tolist()
    assert out == pytest.approx(value, rel=5.1 * 10**-DIGITS)
    mantissa = repr(out).split("e")[0].replace(".", "").replace("-", "").strip("0")
    assert len(mantissa) <= DIGITS


def test_nan_is_packed_as_null_and_arrays_as_lists() -> None:
    assert unpacked(pack({"v": np.array([[1.5, NAN]])})) == {"v": [[1.5, None]]}


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
    judgments, order = Judgments.of(collection, groups), np.arange(queries)[::-1]
    made = ranked_lists(collection, groups, judgments, found.runs, order=order, depth=10, ties="expected")
    return Material(found.audit, collection, groups, ("first",), order, Numbers.of(found.audit, ["first"]), made, 10)


@pytest.mark.parametrize(("budget", "letters"), [(3_000, 10), (3_000, 500), (40_000, 10), (40_000, 500)])
def test_as_many_queries_and_texts_are_carried_as_fit(budget: int, letters: int) -> None:
    whole = material(120, letters)
    found = whole.fitted(budget)
    assert found.size <= budget
    if found.queries < 120:
        assert 0.4 * budget < len(found.lists)
    if found.documents < whole.needed(found.queries):
        assert found.size > 0.9 * budget
    else:
        assert whole.packed(found.queries).texts == found.texts


def test_texts_are_those_of_the_first_queries() -> None:
    whole = material(30, 2_000)
    found = whole.fitted(60_000)
    assert (found.queries, whole.needed(30)) == (30, 60)
    assert unpacked(found.texts) == whole.docs["text"].to_list()[: found.documents]
    assert 0 < found.documents < 60


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
