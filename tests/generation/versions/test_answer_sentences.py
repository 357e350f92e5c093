"""Sentences that answer: which they are, where they go, and how often they are stated."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from ranktilt.data.collection import Collection
from ranktilt.errors import DataWarning, UserError
from ranktilt.explaining.factors.effects import factor_effects
from ranktilt.generation.versions.answer_sentences import (
    answering_sentences,
    measure_answers,
    move_answers,
    repeat_answers,
    sought_texts,
)
from ranktilt.generation.versions.factors import read_factors
from ranktilt.generation.versions.make import DesignedVersions, versions
from ranktilt.generation.versions.rules import RuleContext
from ranktilt.rankers.lexical.bm25 import BM25

COLDS = "Rest helps. Zinc cures most colds. Drink water! Sleep well"
ZINC = RuleContext(id="d1", sought=("does zinc cure colds?",))


@pytest.mark.parametrize(
    ("sentences", "sought", "expected"),
    [
        (["Rest helps.", "Zinc cures colds."], ["zinc for colds"], [1]),
        (["Zinc is it.", "Zinc is here now."], ["what is zinc"], [0]),
        (["Zinc is here now.", "Zinc is it."], ["what is zinc"], [1]),
        (["What is it?", "A metal."], ["what is zinc"], []),
        (["Zinc.", "Rest.", "Colds."], ["colds", "zinc", "zinc"], [0, 2]),
        (["Zinc."], [], []),
        ([], ["zinc"], []),
    ],
)
def test_answer_is_the_sentence_with_most_query_words(
    sentences: list[str], sought: list[str], expected: list[int]
) -> None:
    assert answering_sentences(sentences, sought) == expected


@pytest.mark.parametrize(
    ("text", "part", "expected"),
    [
        (COLDS, "beginning", "Zinc cures most colds. Rest helps. Drink water! Sleep well"),
        (COLDS, "middle", "Rest helps. Drink water! Zinc cures most colds. Sleep well"),
        (COLDS, "end", "Rest helps. Drink water! Sleep well. Zinc cures most colds."),
        ("Zinc cures colds.", "end", "Zinc cures colds."),
        ("Rest helps. Sleep.", "end", "Rest helps. Sleep."),
        ("Rest.\n\nZinc works. Sleep.", "beginning", "Zinc works.\n\nRest. Sleep."),
        ("", "end", ""),
    ],
)
def test_answer_is_moved(text: str, part: str, expected: str) -> None:
    assert move_answers(text, ZINC, part) == expected


@pytest.mark.parametrize(
    ("text", "times", "expected"),
    [
        ("Rest.\n\nZinc works. Sleep.", 2, "Rest.\n\nZinc works. Zinc works. Sleep."),
        ("Rest. Zinc works", 3, "Rest. Zinc works. Zinc works. Zinc works"),
        ("Rest. Sleep.", 3, "Rest. Sleep."),
        ("", 2, ""),
    ],
)
def test_answer_is_repeated_in_its_place(text: str, times: int, expected: str) -> None:
    assert repeat_answers(text, ZINC, times) == expected


def test_stated_answer_is_looked_for_sentence_by_sentence() -> None:
    queries = ("q1", "q2", "q3", "q4")
    assert sought_texts("", queries) == ("q1", "q2", "q3")
    assert sought_texts("Zinc works. Sleep", queries) == ("Zinc works.", "Sleep")


def test_position_and_count_are_measured_on_different_sentences() -> None:
    docs = pl.DataFrame(
        {
            "text": [
                "Rest. Sleep. Zinc cures.",
                "Rest. Sleep. Zinc cures. Zinc cures.",
                "Rest. Zinc cures. Sleep. zinc zinc.",
                "Zinc cures.",
                "Rest. Sleep.",
            ],
            "origin": "d1",
        }
    )
    has_added_words = [False, False, True, False, False]
    measured = measure_answers(docs, {"d1": ["zinc cures"]}, has_added_words)
    assert measured["answer-position"].tolist()[:3] == [1.0, 1.0, 0.5]
    assert measured["answer-off-centre"].tolist()[:3] == [1.0, 1.0, 0.0]
    assert measured["answer-count"].tolist()[:4] == [1.0, 2.0, 1.0, 1.0]
    assert np.isnan(measured["answer-position"][3:]).all()
    assert np.isnan(measured["answer-count"][4])


def judged_texts(answers: dict[int, str] | None = None) -> Collection:
    """Return twelve documents of four sentences, the second of which answers a query."""
    rows, queries, qrels = [], [], []
    for number in range(12):
        answer = f"Metal{number} cures illness{number} fast."
        text = f"Rest is good for all. {answer} Some drink tea{number}. Then they sleep."
        rows.append((f"d{number}", text, (answers or {}).get(number)))
        queries.append((f"q{number}", f"metal{number} illness{number}"))
        qrels.append((f"q{number}", f"d{number}", 1))
    docs = pl.DataFrame(rows, schema=["id", "text", "answer"], orient="row")
    return Collection(
        docs.with_columns(pl.col("answer").cast(pl.String)),
        pl.DataFrame(queries, schema=["id", "text"], orient="row"),
        pl.DataFrame(qrels, schema=["query_id", "doc_id", "grade"], orient="row"),
    )


def texts_by_id(designed: DesignedVersions) -> dict[str, str]:
    """Return the text of each version."""
    return dict(designed.collection.docs.select("id", "text").iter_rows())


def test_position_and_repetition_cross() -> None:
    factors = ["position:beginning", "repetition:3"]
    designed = versions(judged_texts(), factors, by_rule=True)
    texts = texts_by_id(designed)
    rest = "Rest is good for all. Some drink tea0. Then they sleep."
    stated = "Metal0 cures illness0 fast."
    assert texts["d0+position"] == f"{stated} {rest}"
    assert texts["d0+position+repetition"] == f"{stated} {stated} {stated} {rest}"
    assert designed.checks.failed == ()
    assert designed.checks.changed == {"position": 1.0, "repetition": 1.0}
    design = designed.collection.spec["design"]
    assert design["low_high"] == {
        "position": ["as is", "beginning"],
        "repetition": ["as is", "3 times"],
    }


def test_a_ranker_that_counts_words_does_not_see_position() -> None:
    designed = versions(judged_texts(), ["position", "repetition"], by_rule=True)
    effects = factor_effects(designed.collection, [BM25()])
    scores = {row.effect: row for row in effects.of("score gap")}
    assert scores["position"].is_idle
    assert scores["position × repetition"].is_idle
    assert scores["repetition"].value > 0
    assert scores["repetition"].is_shown


def test_stated_answers_are_moved() -> None:
    collection = judged_texts({0: "some drink tea0", 1: "Nothing zebra."})
    with pytest.warns(DataWarning, match=r"1 document states an answer .*first: 'd1'"):
        designed = versions(collection, ["position"], by_rule=True)
    texts = texts_by_id(designed)
    assert texts["d0+position"].endswith("Then they sleep. Some drink tea0.")
    assert texts["d1+position"] == texts["d1"]
    assert texts["d2+position"].endswith("Metal2 cures illness2 fast.")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("position:top", "unknown place of the answer 'top' (valid: beginning, middle, end)"),
        ("repetition:1", "factor 'repetition:1': expected how often the answer is stated, 2 to 5"),
        ("repetition:x", "factor 'repetition:x': expected how often"),
        ("repetition:²", "factor 'repetition:²': expected how often"),
        ("repetition:", "factor 'repetition:': expected how often"),
    ],
)
def test_unknown_levels_are_refused(name: str, message: str) -> None:
    with pytest.raises(UserError) as refusal:
        read_factors([name])
    assert str(refusal.value).startswith(message)


def test_two_levels_of_one_factor_are_refused() -> None:
    with pytest.raises(UserError, match="'position'"):
        read_factors(["position:beginning", "position:end"])
