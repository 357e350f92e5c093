"""Mixing: twins keep apart by their source, inherit judgments, and what is missing or differs is said."""

import warnings
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt.collection import Collection
from ranktilt.datasets.load import load
from ranktilt.datasets.mix import mix
from ranktilt.datasets.save import save
from ranktilt.errors import DataWarning
from tests.refusals import refused
from tests.toy import QRELS, QUERIES, TEXTS, TITLES, Table, collection_of, toy, write_beir


def docs(source: str, *names: str, **fields: Any) -> list[dict[str, Any]]:
    return [{"id": name, "text": f"{source} {name}", "source": source, **fields} for name in names]


def part(source: str, *names: str, qrels: Table | None = None, **fields: Any) -> Collection:
    return collection_of(docs(source, *names, **fields), {"q": "?"}, qrels or {})


def side(source: str, *, judged: bool = True) -> Collection:
    """One side of the toy, under bare ids."""
    rows = [{"id": d, "title": TITLES[d], "text": text, "source": source} for d, text in TEXTS[source].items()]
    return collection_of(rows, QUERIES, QRELS if judged else {})


def judgments(collection: Collection) -> dict[tuple[str, str], int]:
    return {(q, d): g for q, d, g in collection.qrels.iter_rows()}


def quietly(*parts: Collection) -> Collection:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return mix(*parts)


def test_unique_ids_stay() -> None:
    mixed = quietly(part("human", "a", "b"), part("llm", "c", "d", origin="a"), part("human", "e"))
    assert mixed.docs.select("id", "origin").rows() == [("a", "a"), ("b", "b"), ("c", "a"), ("d", "a"), ("e", "e")]


def test_where_any_id_is_shared_every_id_gets_its_source() -> None:
    mixed = quietly(part("human", "a", "b"), part("llm", "a", "c"))
    origins = [("a-human", "a-human"), ("b-human", "b-human"), ("a-llm", "a-human"), ("c-llm", "c-human")]
    assert mixed.docs.select("id", "origin").rows() == origins


@pytest.mark.parametrize("other", [toy(), side("llm"), side("human")], ids=["both", "llm", "human"])
def test_ids_that_have_their_source_already_get_it_once(other: Collection) -> None:
    assert mix(toy(), other) == mix(other, toy()) == toy()
    assert quietly(toy(), part("human", "e")).ids.to_list() == [*toy().ids, "e"]


def test_an_origin_in_another_collection_is_renamed_with_it() -> None:
    rewrites = collection_of([*docs("llm", "a"), *docs("llm", "r7", origin="b")], {"q": "?"}, {})
    mixed = mix(part("human", "a", "b"), rewrites)
    assert mixed.pairs("human", "llm").rows() == [("a-human", "a-human", "a-llm"), ("b-human", "b-human", "r7-llm")]


def test_a_third_version_joins_twins_that_were_saved(tmp_path: Path) -> None:
    saved = load(save(mix(side("human"), side("llm")), tmp_path))
    mixed = mix(saved, part("gpt", "d1", "d2", "d3"))
    assert mixed.pairs("human", "gpt")["b"].to_list() == ["d1-gpt", "d2-gpt", "d3-gpt"]
    assert judgments(mixed)["q1", "d1-gpt"] == 2


def test_further_columns_are_kept_side_by_side() -> None:
    mixed = mix(part("human", "a", year=1999), part("llm", "b", origin="a", model="m", year=0.5))
    assert mixed.docs.select("year", "model").rows() == [(1999.0, None), (0.5, "m")]


def test_the_spec_says_what_was_mixed(tmp_path: Path) -> None:
    human = load(write_beir(tmp_path / "h", split="dev"))
    llm = load(write_beir(tmp_path / "l", split="dev", docs=[{"_id": d, "text": "", "source": "x"} for d in TITLES]))
    spec = mix(human, llm).spec
    assert spec == {"mix": [dict(human.spec), dict(llm.spec)], "split": "dev"}


@pytest.mark.parametrize("order", [("human", "llm"), ("llm", "human")])
@pytest.mark.parametrize("judged", ["human", "llm"])
def test_an_unjudged_side_inherits_whichever_comes_first(order: tuple[str, str], judged: str) -> None:
    assert mix(*(side(source, judged=source == judged) for source in order)) == toy()


@pytest.mark.parametrize(
    ("grades", "expected"),
    [
        ({"human": 2, "x": 0}, {"human": 2, "x": 0, "y": 2}),  # its own judgment is not overruled
        ({"human": 1, "x": 3}, {"human": 1, "x": 3, "y": 1}),  # the origin's comes before a higher one
        ({"x": 1, "y": 3}, {"human": 3, "x": 1, "y": 3}),  # without it, the highest one
    ],
)
def test_which_grade_is_inherited(grades: dict[str, int], expected: dict[str, int]) -> None:
    sources = ("human", "x", "y")
    mixed = mix(*(part(s, "a", qrels={"q": {"a": grades[s]}} if s in grades else {}) for s in sources))
    assert judgments(mixed) == {("q", f"a-{source}"): grade for source, grade in expected.items()}


def test_grades_may_be_whole_in_one_part_and_fractions_in_another(tmp_path: Path) -> None:
    human, llm = part("human", "a", "b", qrels={"q": {"a": 1, "b": 2}}), part("llm", "a", "b")
    halves = Collection(llm.docs, llm.queries, human.qrels.with_columns(grade=pl.col("grade") / 4))
    mixed = quietly(human, halves)
    assert judgments(mixed) == {("q", "a-human"): 1, ("q", "b-human"): 2, ("q", "a-llm"): 0.25, ("q", "b-llm"): 0.5}
    assert load(save(mixed, tmp_path / "c")) == mixed


def test_judgments_of_what_is_not_in_the_part() -> None:
    mixed = mix(part("human", "a", qrels={"q": {"gone": 1, "a": 1}}), part("llm", "a"))
    assert judgments(mixed) == {("q", "gone"): 1, ("q", "a-human"): 1, ("q", "a-llm"): 1}
    mixed = quietly(part("human", "a", "b"), part("llm", "a", qrels={"q": {"b": 1}}))
    assert judgments(mixed) == {("q", "b-human"): 1}


@settings(max_examples=10)
@given(st.permutations([0, 1, 2]), st.lists(st.sampled_from([None, 0, 1, 2]), min_size=6, max_size=6))
def test_the_order_makes_no_difference(order: list[int], grades: list[int | None]) -> None:
    parts = []
    for i, source in enumerate(("human", "x", "y")):
        found = {name: g for name, g in zip("ab", grades[2 * i : 2 * i + 2], strict=True) if g is not None}
        parts.append(part(source, "a", "b", qrels={"q": found}))
    assert mix(*(parts[i] for i in order)) == mix(*parts)


@pytest.mark.parametrize(
    ("sides", "messages"),
    [
        (
            {"human": "abcde", "llm": "ax"},
            [
                "4 'human' documents have no 'llm' version: b-human, c-human, d-human, …",
                "1 'llm' documents have no 'human' version: x-llm",
            ],
        ),
        ({"x": "ab", "human": "a", "y": "a"}, ["1 'x' documents have no 'human' version: b-x"]),
        ({"x": "ab", "y": "a"}, ["1 'x' documents have no 'y' version: b-x"]),  # without a human one: the first
    ],
)
def test_missing_sides_are_counted_and_the_first_are_named(sides: dict[str, str], messages: list[str]) -> None:
    with pytest.warns(DataWarning) as caught:
        mix(*(part(source, *names) for source, names in sides.items()))
    assert {warning.filename for warning in caught} == {__file__}
    assert [str(warning.message) for warning in caught] == messages


@pytest.mark.parametrize(
    ("one", "two", "message"),
    [
        (part("human", "a"), part("human", "a", title="other"), "cannot mix: document 'a' differs"),
        (part("human", "a"), collection_of(docs("human", "b"), {"q": "two"}, {}), "cannot mix: query 'q' differs"),
        (
            part("human", "a", qrels={"q": {"a": 1}}),
            part("human", "a", qrels={"q": {"a": 2}}),
            "cannot mix: judgment 'q', 'a' differs",
        ),
    ],
)
def test_what_differs_is_named(one: Collection, two: Collection, message: str) -> None:
    with refused(f"{message} between the collections"):
        mix(one, two)
