"""Probes: properties of texts by hand, Hedges' g, and what is said of a collection, as a result and
as a file.
"""

import csv
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import ranktilt as rt
from ranktilt.data.collection import Collection
from ranktilt.data.faults.contents import QueryContents, contents_of
from ranktilt.data.loading.load import load
from ranktilt.errors import UserError
from ranktilt.explaining.base import Distribution, effect_size
from ranktilt.explaining.explain import explain
from ranktilt.explaining.explanation import Explanation
from ranktilt.explaining.probe_table import probe
from ranktilt.explaining.similarity import SimilarityProbe
from ranktilt.explaining.text_probes import (
    OverlapProbe,
    QueryWordsProbe,
    TypeTokenProbe,
    shared_terms,
)
from ranktilt.reporting.output import table
from ranktilt.reporting.sentences.notes import note_sentences
from tests.explaining.checks import LetterVectors, exclaiming
from tests.house.tree import ROOT
from tests.refusals import refused
from tests.toy import collection_of, toy, versions

LETTERS = LetterVectors("abcdefghijklmnopqrstuvwxyz")


def test_each_probe_says_what_its_function_finds() -> None:
    pytest.importorskip("sklearn")
    collection = exclaiming()
    explanation = rt.explain(collection, ["words", "overlap", "similarity"], LETTERS)
    counted, terms, near = explanation.results
    assert [row["source"] for row in counted.rows] == ["human", "llm"]
    assert [row["mean"] for row in counted.rows] == [
        row.words for row in contents_of(collection).sources
    ]
    shared = shared_terms(collection, "human", "llm")
    means = [("Jaccard", shared.jaccard.mean), ("overlap", shared.overlap.mean)]
    assert [(row["of"], row["mean"]) for row in terms.rows] == means
    (vectors,) = SimilarityProbe().measure(collection, "human", LETTERS)
    means = [("twins", vectors.twins.mean), ("other pairs", vectors.other_pairs.mean)]
    assert [(row["of"], row["mean"]) for row in near.rows] == means
    assert not near.effects, "a cosine belongs to both twins"
    assert [(e.source, e.pairs) for result in (counted, terms) for e in result.effects] == [
        ("llm", 12)
    ] * 2
    for result in explanation.results:
        assert (result.summary[-1], result.question[-1]) == (".", "?")
        for figure in result.figures:
            assert all(sum(shares) == pytest.approx(100) for shares in figure.series.values())
            assert {len(shares) + 1 for shares in figure.series.values()} == {len(figure.edges)}


def test_the_effect_of_a_property_of_texts_by_hand_and_by_default_all_that_can_run(
    tmp_path: Path,
) -> None:
    (words,) = rt.explain(exclaiming(), ["words"]).results
    (effect,) = words.effects
    assert (effect.quantity, effect.reference_mean, effect.source_mean) == ("words", 13.0, 17.0)
    assert effect.g == pytest.approx(4 / np.std(2.0 * np.arange(12), ddof=1) * (1 - 3 / 43))
    assert words.summary == (
        "llm: 17.00 words against 13.00 for human, g = +0.52 [+0.30, +0.73] over 12 pairs."
    )
    explanation = rt.explain(exclaiming())
    names = "words overlap type-token specificity query-words sentences readability perplexity"
    assert [result.probe for result in explanation.results] == names.split()
    left_out = [
        note.partition(" is left out: it needs an encoder, such as ")[0]
        for note in note_sentences(explanation.notes)
    ]
    assert left_out == ["similarity", "spectrum", "truncation"]
    assert Explanation.load(explanation.save(tmp_path / "explanation.json")) == explanation


def test_sources_without_twins_are_noted_and_an_absent_model_is_said_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    docs = exclaiming().docs
    llm = docs.filter(pl.col("source") == "llm")
    third = llm.with_columns(
        id=pl.col("id") + "-gpt", source=pl.lit("gpt"), origin=pl.col("id") + "-gpt"
    )
    explanation = rt.explain(
        Collection(pl.concat([docs, third]), exclaiming().queries, exclaiming().qrels),
        ["words"],
    )
    assert [effect.pairs for effect in explanation.results[0].effects] == [0, 12]
    assert note_sentences(explanation.notes) == (
        "gpt has no twins in human, so it cannot be compared",
    )
    alone = Collection(llm, exclaiming().queries, exclaiming().qrels.clear())
    with refused(
        "nothing to explain: no other source has twins of llm (documents with the same origin); "
        "to relate a ranker's gap to properties without twins: --attribution -r RANKER"
    ):
        rt.explain(alone)
    assert (
        OverlapProbe()(alone).summary == "no other source has twins: there is nothing to compare."
    )

    def measured(*_: object) -> None:
        raise AssertionError("measured before all was checked")

    monkeypatch.setattr(TypeTokenProbe, "measure", measured)
    with pytest.raises(UserError, match="model 'no-such-folder' is not a folder"):
        explain(rt.bundled(), ["type-token", "perplexity"], lm=["no-such-folder"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: rt.explain(c, ["overlp"]), "unknown probe 'overlp'; did you mean 'overlap'?"),
        (lambda c: rt.explain(c, ["overlap", "overlap"]), "probe 'overlap' is given twice"),
        (
            lambda c: rt.explain(c, ["similarity"]),
            "similarity needs vectors from an encoder; choose one",
        ),
        (
            lambda c: rt.explain(c, ["similarity"], rt.ranker("bm25")),
            "similarity needs vectors from an encoder, su",
        ),
        (lambda c: rt.explain(c, reference="gpt"), "unknown source 'gpt'"),
        (lambda _: probe("perplexity:"), "probe 'perplexity:': expected name"),
        (
            lambda _: probe("perplexity(kind=masked)"),
            "perplexity: context and kind are options of a model of transfor",
        ),
        (
            lambda _: probe("perplexity:x(kind=mask)"),
            "unknown kind of language model 'mask'; did you mean 'masked'?",
        ),
        (
            lambda _: probe("perplexity:x(context=twin)"),
            "perplexity: context must be origin, got 'twin'",
        ),
        (
            lambda _: probe("perplexity:x(evry=2)"),
            "unknown option of probe perplexity 'evry'; did you mean 'every'?",
        ),
        (lambda _: probe("overlap:x"), "probe overlap:x: overlap takes no argument"),
        (lambda _: probe("overlap(x=1)"), "unknown option of probe overlap 'x' (valid: none)"),
        (
            lambda _: probe("spectrum(value=3)"),
            "unknown option of probe spectrum 'value'; did you mean 'values'?",
        ),
        (
            lambda _: probe("spectrum(values=x)"),
            "spectrum: values must be a whole number of at least 1, got x",
        ),
        (lambda _: probe("spectrum@3"), "probe 'spectrum@3': expected name"),
    ],
)
def test_what_cannot_be_explained_is_said(call: Callable[[Collection], Any], message: str) -> None:
    with pytest.raises(UserError, match="^" + re.escape(message)):
        call(exclaiming())


@pytest.mark.data
def test_twins_by_gender(shared_data: Path) -> None:
    """Grep-BiasIR: each text for women, for men and for both; probes and attribution take the
    column for the source.
    """
    collection = gendered(shared_data / "grep-bias-ir")
    explanation = rt.explain(
        collection,
        ["specificity", "perplexity"],
        by="gender",
        reference="N",
        attribute=[rt.ranker("bm25")],
    )
    assert explanation.sources == ("F", "M")
    assert [effect.pairs for effect in explanation.results[0].effects] == [232, 232]
    assert [note.partition(":")[2].split()[0] for note in note_sentences(explanation.notes)] == [
        "67",
        "67",
    ]
    assert {row["property"] for row in explanation.results[-1].rows} == {
        "what remains",
        "specificity",
        "perplexity",
    }
    with pytest.raises(
        rt.UserError, match=r"unknown column to group by 'gendr'; did you mean 'gender'\?"
    ):
        rt.explain(collection, by="gendr")


def gendered(folder: Path) -> Collection:
    rows = []
    for file in sorted(folder.glob("queries-*.csv")):
        with file.open(encoding="utf-8-sig", newline="") as stream:
            rows += csv.DictReader(stream)
    docs = [
        {
            "id": f"d{row['d_id']}",
            "title": row["doc_title"],
            "text": row["document"],
            "gender": row["content_gender"],
            "origin": f"d{int(row['d_id']) // 3}",
        }
        for row in rows
        if row["content_gender"] in "FMN"
    ]
    qrels = {
        row["q_id"]: {
            f"d{judgment['d_id']}": int(judgment["relevant"])
            for judgment in rows
            if judgment["q_id"] == row["q_id"]
        }
        for row in rows
    }
    return collection_of(docs, {row["q_id"]: row["query"] for row in rows}, qrels)


CHEAP = [
    "words",
    "overlap",
    "type-token",
    "specificity",
    "query-words",
    "sentences",
    "readability",
]


def measured(name: str, human: Sequence[str], llm: Sequence[str] = ()) -> list[float]:
    texts = collection_of(versions({"human": human, "llm": llm}), {}, {})
    values = probe(name).measure(texts, "human", None)  # type: ignore[attr-defined]
    return values.tolist()  # type: ignore[no-any-return]


def test_specificity_sentences_readability_repeated_terms_and_query_words_by_hand() -> None:
    values = measured("specificity", ["a b", "a c", "a d d", ""], ["a", "x a b B", "x"])
    idf = {
        term: math.log(4 / (1 + df))
        for term, df in {"a": 3, "b": 1, "c": 1, "d": 1, "x": 0}.items()
    }
    assert values[0] == pytest.approx((idf["a"] + idf["b"]) / 2)
    assert math.isnan(values[3])
    assert values[4:] == pytest.approx([idf["a"], idf["b"], idf["x"]])
    texts = [
        "One two. Three four five!",
        "no stop at all",
        "3.5 is a number?!",
        "",
        "He said “go.” Then (so.) on…",
    ]
    assert measured("sentences", texts) == pytest.approx([2.5, 4, 4, math.nan, 3], nan_ok=True)
    grade = 5.88 * 19 / 5 - 29.6 * 2 / 5 - 15.8
    assert measured("readability", texts)[0] == pytest.approx(grade)
    values = measured("type-token", ["a A b", "x y z", "—"])
    assert values == pytest.approx([2 / 3, 1, math.nan], nan_ok=True)
    # Only in q1 is more than one document relevant: "red apples" in d1, and neither word in d3.
    values = QueryWordsProbe().measure(toy(), "human", None)
    # d1: q1 (both words); d2: q2 "river water" (both); d3: q1 (none), q3 "old clock bell" (3 of 3;
    # the LLM's: 2 of 3)
    assert values == pytest.approx([1, 1, 0.5, 1, 1, 1 / 3])


@pytest.mark.parametrize("name", [*CHEAP[2:], "perplexity"])
def test_identical_twins_do_not_differ(name: str) -> None:
    texts = [
        f"the {word} sat on a mat. It {word} again, and again!"
        for word in ("cat", "dog", "hen", "fox")
    ]
    docs = versions({"human": texts, "llm": texts})
    (result,) = explain(
        collection_of(docs, {"q": "cat mat fox"}, {"q": {row["id"]: 1 for row in docs}}), [name]
    ).results
    (effect,) = result.effects
    assert (effect.pairs, effect.source_mean) == (4, effect.reference_mean)
    assert math.isnan(effect.g) or effect.g == 0
    assert not effect.is_shown


def twin_texts(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    texts = dict(zip(("human", "llm"), zip(*pairs, strict=True), strict=True))
    return [{**row, "title": "same title"} for row in versions(texts)]


def test_shared_terms_of_the_toy_by_hand_of_the_reference_in_the_order_of_the_pairs() -> None:
    terms = shared_terms(toy(), "human", "llm")
    # d1: red apples grow on old trees in autumn (8) | apples are red fruits that grow on trees (8):
    # 5 in common d2: the river carries cold water to sea (7) | a river transports water toward the
    # sea (7): 4 d3: an old clock shows the hour by its bell (9) | a clock indicates the hour with
    # bell (7, "a" once): 4
    assert terms.source == "llm"
    assert terms.jaccard.values.tolist() == [pytest.approx(v) for v in (5 / 11, 4 / 10, 4 / 12)]
    assert terms.overlap.values.tolist() == [pytest.approx(v) for v in (5 / 8, 4 / 7, 4 / 9)]
    collection = collection_of(
        list(reversed(twin_texts(("a b c d", "a b"), ("x", "y"), ("e", "e")))), {}, {}
    )
    order = collection.pairs("human", "llm")["a"].to_list()
    there, back = shared_terms(collection, "human", "llm"), shared_terms(collection, "llm", "human")
    assert dict(zip(order, there.overlap.values, strict=True)) == {
        "0-human": 0.5,
        "1-human": 0.0,
        "2-human": 1.0,
    }
    assert sorted(back.overlap.values) == [0.0, 1.0, 1.0]
    assert (
        there.jaccard.values.tolist() == back.jaccard.values.tolist()
    )  # titles are the same, and not compared
    terms = shared_terms(
        collection_of(twin_texts(("a", "a"), ("—", "b"), ("", "")), {}, {}), "human", "llm"
    )
    assert terms.overlap.values[0] == 1.0
    assert [math.isnan(v) for v in terms.overlap.values] == [False, True, True]
    assert [math.isnan(v) for v in terms.jaccard.values] == [False, False, True]
    assert terms.overlap.undefined == 2
    assert OverlapProbe()(collection_of(twin_texts(("—", "—")), {}, {})).summary == (
        "llm: terms cannot be compared, as no human text with a twin has any."
    )


DOCS = [
    {
        "id": "a-h",
        "title": "many words of a title",
        "text": "one two three",
        "source": "human",
        "origin": "a-h",
    },
    {"id": "b-h", "text": "one", "source": "human", "origin": "b-h"},
    {"id": "c-h", "text": " \n", "source": "human", "origin": "c-h"},
    {"id": "a-l", "text": "one\ttwo  three four five", "source": "llm", "origin": "a-h"},
]
QUERIES = {"q1": "who is it", "q2": "what", "q3": "where and when is that"}


def test_documents_words_twins_duplicates_relevant_documents_and_queries_are_counted() -> None:
    human, llm = contents_of(collection_of(DOCS, QUERIES, {})).sources
    assert (human.source, llm.source) == ("human", "llm")
    assert (human.documents, human.empty, human.words) == (3, 1, pytest.approx(4 / 3))
    assert human.quartiles == (0.5, 1.0, 2.0)
    assert (llm.documents, llm.empty, llm.words) == (1, 0, 5.0)
    docs = [
        *DOCS,
        {**DOCS[1], "id": "d-h", "origin": "d-h"},
        {**DOCS[3], "id": "a2-l", "text": "one"},
    ]
    grades = {"q1": {"a-h": 1, "b-h": 0, "gone": 1}, "q2": {"a-h": 1}}
    human, llm = contents_of(collection_of(docs, QUERIES, grades)).sources
    assert (human.judged, human.twins, human.duplicates) == (2, 1, 1)  # d-h repeats b-h
    assert (llm.judged, llm.twins, llm.duplicates) == (0, 2, 0), (
        "of one source alone are texts compared"
    )
    qrels = {
        "q1": {"a-h": 2, "b-h": 1, "a-l": 1, "gone": 1},
        "q2": {"a-h": 1, "c-h": 0},
        "q3": {"b-h": -1},
    }
    human, llm = contents_of(collection_of(DOCS, QUERIES, {**qrels, "q9": {"a-h": 1}})).sources
    assert (human.queries, human.relevant) == (2, 1.5)
    assert (llm.queries, llm.relevant) == (1, 1.0)
    _, nothing = contents_of(collection_of(DOCS, QUERIES, {"q1": {"a-h": 1}})).sources
    assert nothing.queries == 0
    assert math.isnan(nothing.relevant)
    collection = collection_of(DOCS, QUERIES, {"q3": {"a-h": 1}, "q1": {"b-h": 0}})
    contents = contents_of(collection)
    assert contents.queries == (
        QueryContents(which="all", queries=3, words=pytest.approx(3.0)),
        QueryContents(which="judged", queries=2, words=4.0),
    )
    assert (contents.split, contents_of(replace(collection, spec={"split": "dev"})).split) == (
        None,
        "dev",
    )
    (row,) = contents_of(collection_of(DOCS, {}, {})).queries
    assert (row.which, row.queries) == ("all", 0)
    assert math.isnan(row.words)


@pytest.mark.data
def test_scifact_has_the_row_of_the_paper_s_table(shared_data: Path) -> None:
    collection = load(shared_data / "scifact")
    contents = contents_of(collection)
    (human,) = contents.sources
    assert (human.documents, human.queries) == (5183, 300)
    assert human.words == pytest.approx(201.81, abs=0.01)
    assert human.relevant == pytest.approx(1.13, abs=0.01)
    every, judged = contents.queries
    assert (every.queries, every.words) == (1109, pytest.approx(12.38, abs=0.01))
    lengths = [len(text.split()) for text in collection.queries_with_judgments["text"]]
    assert (judged.queries, judged.words) == (300, pytest.approx(np.mean(lengths)))


def test_a_check_comes_back_from_its_file_and_no_documents_are_refused(
    tmp_path: Path,
) -> None:
    rt.save(toy(), tmp_path / "toy")
    collection = rt.load(tmp_path / "toy")
    checked = rt.check(collection)
    assert checked.contents == contents_of(collection)
    assert checked.spec["path"] == str(tmp_path / "toy")
    assert rt.CheckResult.load(checked.save(tmp_path / "d.json")) == checked
    assert checked.frame("contents.sources")["twins"].to_list() == [3, 3]
    with pytest.raises(rt.UserError, match="has no document"):
        rt.check(replace(toy(), docs=toy().docs.clear()))


DOCUMENTED_SIZES = {
    "words": "g of words {}",
    "median idf": "median idf {}",
    "nats per word (trigrams)": "predict ({}",
    "Coleman-Liau grade": "grade {}",
}
"""What the page says of the effect sizes, by the property."""


@pytest.mark.data
@pytest.mark.long
def test_the_documented_numbers_are_those_of_the_probes(shared_data: Path) -> None:
    explanation = rt.explain(rt.load(shared_data / "cocktail-nfcorpus"), [*CHEAP, "perplexity"])
    page = (ROOT / "docs" / "audit" / "explain.md").read_text(encoding="utf-8")
    printed = [
        line.split(" | ")
        for line in table(explanation, "markdown").splitlines()
        if line.startswith("| llama")
    ]
    effects = [cells for cells in printed if len(cells) == len(printed[0])][:8]
    assert [cells[1] for cells in effects][::4] == ["distinct terms", "nats per word (trigrams)"]
    sizes = {cells[1]: cells[2].replace("\\", "").split(" ")[0] for cells in effects}
    for quantity, sentence in DOCUMENTED_SIZES.items():
        assert sentence.format(sizes[quantity]) in page, (quantity, sizes[quantity])
    for _, quantity, _, pairs, *_ in effects:
        assert pairs == ("3,128" if quantity == "share of query words" else "3,633")
    overlap = explanation.results[1]
    assert [round(row["mean"], 2) for row in overlap.rows] == [0.58, 0.69]
    assert note_sentences(explanation.notes) == (
        "llama-2-7b-chat-tmp0.2: 2 twins are identical to the one in human",
    )


def test_pairs_without_a_value_on_both_sides_and_undefined_values_are_left_out() -> None:
    size_of_effect = effect_size(
        "llm", "words", np.array([1.0, 2, 3, np.nan, 5]), np.array([2.0, 3, 4, 9, np.nan])
    )
    assert (
        size_of_effect.pairs,
        size_of_effect.reference_mean,
        size_of_effect.source_mean,
        size_of_effect.g,
    ) == (
        3,
        2.0,
        3.0,
        pytest.approx(4 / 7),
    )
    assert size_of_effect.is_shown
    nothing = effect_size("llm", "words", np.array([np.nan]), np.array([1.0]))
    assert nothing.pairs == 0
    assert math.isnan(nothing.source_mean)
    assert not nothing.is_shown
    size_of_effect = Distribution(
        name="x", values=np.array([0.1, math.nan, 0.2, 0.4, math.nan, 0.9])
    )
    assert (size_of_effect.count, size_of_effect.undefined) == (4, 2)
    assert size_of_effect.mean == pytest.approx(0.4)
    assert size_of_effect.quartiles == tuple(map(pytest.approx, (0.175, 0.3, 0.525)))
    assert (size_of_effect.above(0.2), size_of_effect.above(0.3)) == (0.5, 0.5)  # strictly
    for values in ([], [math.nan]):
        nothing = Distribution(name="x", values=np.array(values))
        assert nothing.count == 0
        assert all(map(math.isnan, (nothing.mean, nothing.above(0.5), *nothing.quartiles)))
