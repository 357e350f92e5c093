"""Properties of texts that need no model, each by hand."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from ranktilt.probes.base import TextProbe
from ranktilt.probes.perplexity import PerplexityProbe
from ranktilt.probes.text_probes import (
    QueryWordsProbe,
    ReadabilityProbe,
    SentenceLengthProbe,
    SpecificityProbe,
    TypeTokenProbe,
)
from tests.toy import collection_of, toy

PROBES = [PerplexityProbe, ReadabilityProbe, SentenceLengthProbe, SpecificityProbe, TypeTokenProbe, QueryWordsProbe]


def measured(probe: TextProbe, human: Sequence[str], llm: Sequence[str] = ()) -> list[float]:
    docs = [
        {"id": f"{number}-{source}", "title": "", "text": text, "source": source, "origin": f"{number}-human"}
        for source, texts in (("human", human), ("llm", llm))
        for number, text in enumerate(texts)
    ]
    return probe.measure(collection_of(docs, {}, {}), "human", None).tolist()


def test_specificity_is_the_median_idf_over_distinct_terms() -> None:
    found = measured(SpecificityProbe(), ["a b", "a c", "a d d", ""], ["a", "x a b B", "x"])
    idf = {term: math.log(4 / (1 + df)) for term, df in {"a": 3, "b": 1, "c": 1, "d": 1, "x": 0}.items()}
    assert found[0] == pytest.approx((idf["a"] + idf["b"]) / 2)
    assert math.isnan(found[3])
    assert found[4:] == pytest.approx([idf["a"], idf["b"], idf["x"]])


def test_sentences_and_the_grade_by_letters() -> None:
    texts = ["One two. Three four five!", "no stop at all", "3.5 is a number?!", "", "He said “go.” Then (so.) on…"]
    assert measured(SentenceLengthProbe(), texts) == pytest.approx([2.5, 4, 4, math.nan, 3], nan_ok=True)
    grade = 5.88 * 19 / 5 - 29.6 * 2 / 5 - 15.8
    assert measured(ReadabilityProbe(), texts)[0] == pytest.approx(grade)


def test_repeated_terms() -> None:
    found = measured(TypeTokenProbe(), ["a A b", "x y z", "—"])
    assert found == pytest.approx([2 / 3, 1, math.nan], nan_ok=True)


def test_query_words_of_relevant_documents() -> None:
    """Only in q1 is more than one document relevant: "red apples" in d1, and neither word in d3."""
    found = QueryWordsProbe().measure(toy(), "human", None)
    # d1: q1 (both words); d2: q2 "river water" (both); d3: q1 (none), q3 "old clock bell" (3 of 3; the LLM's: 2 of 3)
    assert found == pytest.approx([1, 1, 0.5, 1, 1, 1 / 3])


@pytest.mark.parametrize("kind", PROBES)
def test_identical_twins_do_not_differ(kind: type[TextProbe]) -> None:
    texts = [f"the {word} sat on a mat. It {word} again, and again!" for word in ("cat", "dog", "hen", "fox")]
    docs = [
        {"id": f"{number}-{source}", "title": "", "text": text, "source": source, "origin": f"{number}-human"}
        for source in ("human", "llm")
        for number, text in enumerate(texts)
    ]
    grades = {"q": {row["id"]: 1 for row in docs}}
    found = kind()(collection_of(docs, {"q": "cat mat fox"}, grades))
    (effect,) = found.effects
    assert effect.pairs == 4
    assert effect.source_mean == effect.reference_mean
    assert math.isnan(effect.g) or effect.g == 0
    assert not effect.shown


def test_every_probe_says_what_it_asks_and_measures() -> None:
    names = [kind().name for kind in PROBES]
    assert len(set(names)) == len(names)
    for kind in PROBES:
        assert kind.question.endswith("?")
        assert kind().what
        assert np.isfinite(kind()(toy()).effects[0].pairs)
