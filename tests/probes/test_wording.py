"""What a validation says in words: numbers as they are, and never equivalence where there is only no difference."""

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from ranktilt.auditing.effects import Equivalence
from ranktilt.collection import Collection
from ranktilt.datasets.check import check
from ranktilt.probes.distribution import Cosines, Distribution
from ranktilt.probes.overlap import Overlap, terms_sentence
from ranktilt.probes.similarity import Separation, vectors_sentence
from ranktilt.probes.validation import effectiveness_sentences, notes
from tests.probes.lexical_vectors import LetterVectors
from tests.probes.validations import toy_effectiveness, toy_similarity
from tests.toy import collection_of, toy

NOTHING = Distribution("x", np.array([math.nan]))


def test_terms() -> None:
    half = Overlap("llm", Distribution("Jaccard", np.array([0.25, 0.5])), Distribution("overlap", np.array([0.5, 1.0])))
    assert terms_sentence(half, "human") == (
        "rewrites keep 75.0 % of the terms of human text; Jaccard 0.38 (means over 2 pairs)"
    )


def test_terms_of_nothing() -> None:
    assert terms_sentence(Overlap("llm", NOTHING, NOTHING), "human") == (
        "terms cannot be compared: no text of human with a twin has a term"
    )


def test_one_pair_is_one_pair() -> None:
    one = Distribution("x", np.array([1.0]))
    assert terms_sentence(Overlap("llm", one, one), "human").endswith("(means over 1 pair)")


def test_vectors() -> None:
    found = toy_similarity()
    text = vectors_sentence(replace(found, cosine=Cosines("twins", np.array([0.9, 0.96, 0.98]))))
    assert text.startswith("twins have a cosine of 0.96 in the median, 66.7 % above 0.95; a text and the rewrite of")
    assert "for 96.2 % of documents the nearest of all is their own twin" in text
    assert text.endswith("the sources can be told apart well by their vectors (AUC 0.87) (dense:minilm)")


@pytest.mark.parametrize(
    ("auc", "words"),
    [
        (0.599, "can hardly be told apart"),
        (0.6, "told apart in part"),
        (0.749, "told apart in part"),
        (0.75, "told apart well"),
    ],
)
def test_the_area_in_a_word(auc: float, words: str) -> None:
    found = toy_similarity()
    assert f"{words} by their vectors (AUC {auc:.2f})" in vectors_sentence(
        replace(found, separation=replace(found.separation, auc=auc))
    )


def test_vectors_without_an_area_or_other_pairs() -> None:
    nothing = Separation(math.nan, math.nan, math.nan, 0, math.nan, 0, 2)
    found = replace(toy_similarity(), baseline=NOTHING, separation=nothing)
    text = vectors_sentence(found)
    assert text.startswith("twins have a cosine of ")
    assert text.endswith("% above 0.95 (dense:minilm)")


def test_vectors_of_nothing() -> None:
    assert vectors_sentence(replace(toy_similarity(), cosine=NOTHING)) == (
        "vectors of dense:minilm cannot be compared: no pair has a vector on both sides"
    )


class TestEffectiveness:
    def test_a_sentence_for_each_outcome(self) -> None:
        found = [text.split(" on each side alone, nDCG@10: ") for text in effectiveness_sentences(toy_effectiveness())]
        assert found == [
            ["bm25", "equivalent within ±0.02, shown down to ±0.010"],
            ["tfidf", "different (+0.011), but within ±0.02"],
            ["dense:minilm", "different (−0.064)"],
            ["bm25@5", "inconclusive; no difference is shown, but one of 0.035 is not excluded"],
            ["tfidf@1", "not tested; it takes two queries with a relevant document on both sides"],
        ]

    def test_rankers_of_one_outcome_share_a_sentence(self) -> None:
        first = toy_effectiveness()[0]
        second = replace(first, run="tfidf", smallest=0.0123)
        assert effectiveness_sentences([first, second]) == [
            "bm25, tfidf on each side alone, nDCG@10: equivalent within ±0.02, shown down to ±0.012"
        ]

    def test_measures_stand_apart(self) -> None:
        rows = [*toy_effectiveness()[:1], *toy_effectiveness(measure="nDCG@1")[:1]]
        assert [text.split(": ")[0].split()[-1] for text in effectiveness_sentences(rows)] == ["nDCG@10", "nDCG@1"]

    def test_only_what_is_shown_reads_as_equivalence(self) -> None:
        for row in toy_effectiveness():
            (text,) = effectiveness_sentences([row])
            assert ("equivalent" in text) is (row.outcome == "equivalent")


def said(collection: Collection, rows: tuple[Equivalence, ...] = (), *, encoder: LetterVectors | None = None) -> str:
    others = len(collection.sources) > 1
    return "\n".join(notes(collection, "human", rows, check(collection) if others else None, encoder))


def test_a_sound_collection_needs_no_notes() -> None:
    rows = tuple(replace(row, left_out=0, excluded=0) for row in toy_effectiveness()[:4])
    assert said(toy(), rows) == ""


def test_one_source() -> None:
    whole = toy()
    alone = Collection(whole.docs.filter(pl.col("source") == "human"), whole.queries, whole.qrels)
    assert said(alone) == ("only source 'human': there is nothing to compare, so that only its statistics are given")


def test_a_source_without_twins() -> None:
    whole = toy()
    apart = Collection(whole.docs.with_columns(origin="id"), whole.queries, whole.qrels)
    assert said(apart) == "llm has no document of the same origin as one of human: nothing of it can be compared"


@pytest.mark.parametrize("grade", [None, 0])
def test_nothing_judged(grade: int | None) -> None:
    whole = toy()
    qrels = whole.qrels.head(0) if grade is None else whole.qrels.with_columns(grade=pl.lit(grade))
    assert (
        said(Collection(whole.docs, whole.queries, qrels))
        == "no document is judged relevant: effectiveness is left out"
    )


def test_what_is_without_a_twin_is_counted_once() -> None:
    rows = tuple(replace(row, excluded=0) for row in toy_effectiveness()[:4])
    assert said(toy(), rows) == (
        "effectiveness of human and llm is that of a search among the 40 pairs: 3 documents without a twin are on "
        "neither side"
    )


def test_a_pool_is_named() -> None:
    whole = toy()
    pooled = Collection(whole.docs.with_columns(pool=pl.col("id") != "d1-human"), whole.queries, whole.qrels)
    rows = tuple(replace(row, left_out=1, excluded=0) for row in toy_effectiveness()[:4])
    assert "queries chose the documents that were rewritten (a pool)" in said(pooled, rows)
    assert "pool" not in said(pooled)
    assert "pool" not in said(pooled, tuple(replace(row, left_out=0) for row in rows))
    other = Collection(whole.docs.with_columns(pool=pl.lit("deep")), whole.queries, whole.qrels)
    assert "pool" not in said(other, rows)


def test_excluded_and_few_queries() -> None:
    few = replace(toy_effectiveness()[0], left_out=0, excluded=5, queries=12)
    assert said(toy(), (few,)) == (
        "up to 5 of 17 queries excluded: no relevant document on both sides\n"
        "warning: only 12 queries are compared; t tests of fewer than 30 are not to rely on"
    )


def test_shared_titles_that_the_vectors_read() -> None:
    text = said(toy(), encoder=LetterVectors(text="title+text"))
    assert text.startswith("100.0 % of the twins of llm share their title, which letters")
    assert said(toy(), encoder=LetterVectors(text="text")) == ""


def test_what_the_encoder_cuts_off() -> None:
    class Cutting(LetterVectors):
        def about(self, collection: Collection) -> dict[str, object]:
            return {"truncated": {"limit": 2, "share": {"human": 1.0, "llm": 0.25}}}

    text = said(toy(), encoder=Cutting(text="text"))
    assert "reads 2 tokens: what stands beyond them is in no vector (100.0 % of human, 25.0 % of llm is longer)" in text


def test_nothing_cut_off_is_not_mentioned() -> None:
    class Whole(LetterVectors):
        def about(self, collection: Collection) -> dict[str, object]:
            return {"truncated": {"limit": 512, "share": {"human": 0.0, "llm": 0.0}}}

    assert said(toy(), encoder=Whole(text="text")) == ""


def test_documents_of_a_third_source_are_not_asked_for() -> None:
    docs = [
        {"id": f"{n}-{s}", "text": f"text {n}.", "source": s, "origin": str(n)}
        for s in ("human", "llm", "b")
        for n in "12"
    ]
    assert said(collection_of(docs, {"q": "text"}, {"q": {"1-human": 1}})) == ""
