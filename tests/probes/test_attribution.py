"""Attribution: gaps by hand, known coefficients, a mean that its parts add up to, and what cannot be attributed."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ranktilt.collection import Collection
from ranktilt.errors import UserError
from ranktilt.probes.attribution import RANK_GAP, SCORE_GAP, attribute, gaps
from ranktilt.probes.base import TextProbe
from ranktilt.run import Run
from tests.toy import collection_of, run_of

QUERIES, ORIGINS = 12, 40


def property_of(name: str, value: Callable[[str], float]) -> TextProbe:
    class Property(TextProbe):
        question, what = "What?", name

        def measure(self, collection: Collection, reference: str, ranker: Any) -> np.ndarray[Any, Any]:
            return np.array([value(text) for text in collection.docs["text"]])

    Property.name = name
    return Property()


LONG = property_of("long", len)
ROUND = property_of("round", lambda text: text.count("o"))
SAME = property_of("same", lambda text: 1.0)


def twins(seed: int = 0) -> Collection:
    generator = np.random.default_rng(seed)
    docs = [
        {"id": f"{n}-{source}", "title": "", "text": "o" * generator.integers(0, 5) + "x" * generator.integers(1, 9),
         "source": source, "origin": f"{n}-human"}
        for source in ("human", "llm")
        for n in range(ORIGINS)
    ]  # fmt: skip
    return collection_of(docs, {f"q{n}": f"q{n}" for n in range(QUERIES)}, {})


def scored(whole: Collection, score: Callable[[dict[str, Any]], float], noise: float = 0.0) -> Run:
    generator = np.random.default_rng(1)
    rows = whole.docs.to_dicts()
    table = {f"q{q}": {row["id"]: score(row) + noise * generator.normal() for row in rows} for q in range(QUERIES)}
    return run_of(whole, table, ranker="toy")


def test_gaps_by_hand() -> None:
    docs = [
        {"id": f"{n}-{s}", "title": "", "text": "t", "source": s, "origin": f"{n}-human"}
        for s in ("human", "llm")
        for n in "ab"
    ]
    whole = collection_of(docs, {"q": "q", "r": "r"}, {})
    run = run_of(whole, {"q": {"a-human": 4.0, "a-llm": 2.0, "b-llm": 2.0, "b-human": 0.0}, "r": {"a-llm": 1.0}})
    found = gaps(whole, run, "human", "llm", SCORE_GAP)
    spread = math.sqrt(2)  # of 4, 2, 2, 0
    assert sorted(found.values.tolist()) == pytest.approx([-2 / spread, 2 / spread])
    assert sorted(gaps(whole, run, "human", "llm", RANK_GAP).values.tolist()) == [-1.5, 1.5]
    assert whole.docs["id"].gather(found.reference).to_list() == ["a-human", "b-human"]
    flat = run_of(whole, {"q": {"a-human": 1.0, "a-llm": 1.0}})
    assert gaps(whole, flat, "human", "llm", SCORE_GAP).values.tolist() == [0.0]


def table(found: Any, of: str = SCORE_GAP) -> dict[str, dict[str, Any]]:
    return {row["property"]: row for row in found.rows if row["of"] == of}


def test_a_ranker_that_goes_by_length_is_found_to() -> None:
    whole = twins()
    found = attribute(whole, [scored(whole, lambda row: len(row["text"]), noise=0.1)], [LONG, ROUND])
    rows = table(found)
    assert rows["long"]["R²"] > 0.95
    assert rows["long"]["R² without"] < 0.5
    assert rows["long"]["low"] > 0
    assert rows["round"]["low"] < 0 < rows["round"]["high"]
    assert rows["what remains"]["low"] < 0 < rows["what remains"]["high"]
    assert sum(row["share of R²"] or 0 for row in rows.values()) == pytest.approx(rows["long"]["R²"])


def test_a_ranker_that_goes_by_the_source_leaves_it_unexplained() -> None:
    whole = twins()
    run = scored(whole, lambda row: 3.0 * (row["source"] == "llm") + 0.2 * len(row["text"]), noise=0.5)
    found = attribute(whole, [run], [LONG, ROUND])
    rows = table(found)
    assert rows["what remains"]["low"] > 0
    gap = gaps(whole, run, "human", "llm", SCORE_GAP).values.mean()
    assert sum(row["part"] for row in rows.values()) == pytest.approx(gap)
    assert found.summary.startswith("toy scores llm higher than its twins by +")
    assert " with long" in found.summary
    assert " with none of them (R² " in found.summary


def test_properties_in_which_no_twins_differ_are_left_out() -> None:
    whole = twins()
    found = attribute(whole, [scored(whole, lambda row: len(row["text"]), noise=1)], [SAME, LONG])
    assert list(table(found)) == ["what remains", "long"]


def test_nothing_is_attributed_to_identical_twins() -> None:
    docs = [
        {"id": f"{n}-{s}", "title": "", "text": "x" * (n + 1), "source": s, "origin": f"{n}-human"}
        for s in ("human", "llm")
        for n in range(ORIGINS)
    ]
    whole = collection_of(docs, {f"q{n}": f"q{n}" for n in range(QUERIES)}, {})
    found = attribute(whole, [scored(whole, lambda row: len(row["text"]))], [LONG])
    (row,) = table(found).values()
    assert (row["property"], row["coefficient"], row["low"], row["high"]) == ("what remains", 0, 0, 0)
    assert found.summary.startswith("toy shows no gap between llm and human: +0.000 sd [+0.000, +0.000] over 480 pairs")


def test_what_cannot_be_attributed_is_one_line() -> None:
    whole = twins()
    run = scored(whole, lambda row: len(row["text"]))
    with pytest.raises(UserError, match="expected 1 to 10 properties, got 11"):
        attribute(whole, [run], [LONG] * 11)
    with pytest.raises(UserError, match="attribution needs 30 twins with all properties, toy and llm have 0 pairs"):
        attribute(whole, [run], [property_of("none", lambda text: math.nan)])
    alone = collection_of([{"id": "a", "title": "", "text": "a", "source": "human", "origin": "a"}], {}, {})
    with pytest.raises(UserError, match="nothing to attribute: no source has twins of human"):
        attribute(alone, [run_of(alone, {})], [LONG])
