"""Properties of texts that need no model, each by hand."""

import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import ranktilt as rt
from ranktilt.collection import Collection
from ranktilt.datasets.load import load
from ranktilt.probes.base import TextProbe
from ranktilt.probes.perplexity import PerplexityProbe
from ranktilt.probes.text_probes import (
    OverlapProbe,
    QueryStatistics,
    QueryWordsProbe,
    ReadabilityProbe,
    SentenceLengthProbe,
    SourceStatistics,
    SpecificityProbe,
    TypeTokenProbe,
    shared_terms,
    statistics,
)
from ranktilt.reporting.output import table
from tests.house.tree import ROOT
from tests.toy import collection_of, toy, versions

PROBES = [PerplexityProbe, ReadabilityProbe, SentenceLengthProbe, SpecificityProbe, TypeTokenProbe, QueryWordsProbe]


def measured(probe: TextProbe, human: Sequence[str], llm: Sequence[str] = ()) -> list[float]:
    return probe.measure(collection_of(versions({"human": human, "llm": llm}), {}, {}), "human", None).tolist()


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
    docs = versions({"human": texts, "llm": texts})
    grades = {"q": {row["id"]: 1 for row in docs}}
    found = kind()(collection_of(docs, {"q": "cat mat fox"}, grades))
    (effect,) = found.effects
    assert effect.pairs == 4
    assert effect.source_mean == effect.reference_mean
    assert math.isnan(effect.g) or effect.g == 0
    assert not effect.shown


def twin_texts(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    texts = dict(zip(("human", "llm"), zip(*pairs, strict=True), strict=True))
    return [{**row, "title": "same title"} for row in versions(texts)]


def test_the_toy_by_hand() -> None:
    found = shared_terms(toy(), "human", "llm")
    # d1: red apples grow on old trees in autumn (8) | apples are red fruits that grow on trees (8): 5 in common
    # d2: the river carries cold water to sea (7) | a river transports water toward the sea (7): 4
    # d3: an old clock shows the hour by its bell (9) | a clock indicates the hour with bell (7, "a" once): 4
    assert found.source == "llm"
    assert found.jaccard.values.tolist() == [pytest.approx(v) for v in (5 / 11, 4 / 10, 4 / 12)]
    assert found.overlap.values.tolist() == [pytest.approx(v) for v in (5 / 8, 4 / 7, 4 / 9)]


def test_the_overlap_is_that_of_the_reference_in_the_order_of_the_pairs() -> None:
    whole = collection_of(list(reversed(twin_texts(("a b c d", "a b"), ("x", "y"), ("e", "e")))), {}, {})
    order = whole.pairs("human", "llm")["a"].to_list()
    there, back = shared_terms(whole, "human", "llm"), shared_terms(whole, "llm", "human")
    assert dict(zip(order, there.overlap.values, strict=True)) == {"0-human": 0.5, "1-human": 0.0, "2-human": 1.0}
    assert sorted(back.overlap.values) == [0.0, 1.0, 1.0]
    assert there.jaccard.values.tolist() == back.jaccard.values.tolist()  # titles are the same, and not compared


def test_a_side_without_terms_is_undefined() -> None:
    found = shared_terms(collection_of(twin_texts(("a", "a"), ("—", "b"), ("", "")), {}, {}), "human", "llm")
    assert found.overlap.values[0] == 1.0
    assert [math.isnan(v) for v in found.overlap.values] == [False, True, True]
    assert [math.isnan(v) for v in found.jaccard.values] == [False, False, True]
    assert found.overlap.undefined == 2
    assert OverlapProbe()(collection_of(twin_texts(("—", "—")), {}, {})).summary == (
        "llm: terms cannot be compared: no text of human with a twin has a term."
    )


DOCS = [
    {"id": "a-h", "title": "many words of a title", "text": "one two three", "source": "human", "origin": "a-h"},
    {"id": "b-h", "text": "one", "source": "human", "origin": "b-h"},
    {"id": "c-h", "text": " \n", "source": "human", "origin": "c-h"},
    {"id": "a-l", "text": "one\ttwo  three four five", "source": "llm", "origin": "a-h"},
]
QUERIES = {"q1": "who is it", "q2": "what", "q3": "where and when is that"}


def by_name(collection: Collection) -> dict[str, SourceStatistics]:
    return {row.source: row for row in statistics(collection).sources}


def test_each_source_has_its_documents_and_their_words_without_titles() -> None:
    found = by_name(collection_of(DOCS, QUERIES, {}))
    assert list(found) == ["human", "llm"]
    assert (found["human"].documents, found["human"].empty, found["human"].words) == (3, 1, pytest.approx(4 / 3))
    assert found["human"].quartiles == (0.5, 1.0, 2.0)
    assert (found["llm"].documents, found["llm"].empty, found["llm"].words) == (1, 0, 5.0)


def test_judged_documents_twins_and_duplicates() -> None:
    docs = [*DOCS, {**DOCS[1], "id": "d-h", "origin": "d-h"}, {**DOCS[3], "id": "a2-l", "text": "one"}]
    rows = by_name(collection_of(docs, QUERIES, {"q1": {"a-h": 1, "b-h": 0, "gone": 1}, "q2": {"a-h": 1}}))
    human, llm = rows["human"], rows["llm"]
    assert (human.judged, human.twins, human.duplicates) == (2, 1, 1)  # d-h repeats b-h
    assert (llm.judged, llm.twins, llm.duplicates) == (0, 2, 0), "of one source alone are texts compared"


def test_relevant_documents_are_counted_on_their_own_side() -> None:
    qrels = {"q1": {"a-h": 2, "b-h": 1, "a-l": 1, "gone": 1}, "q2": {"a-h": 1, "c-h": 0}, "q3": {"b-h": -1}}
    found = by_name(collection_of(DOCS, QUERIES, {**qrels, "q9": {"a-h": 1}}))
    assert (found["human"].queries, found["human"].relevant) == (2, 1.5)
    assert (found["llm"].queries, found["llm"].relevant) == (1, 1.0)
    nothing = by_name(collection_of(DOCS, QUERIES, {"q1": {"a-h": 1}}))["llm"]
    assert nothing.queries == 0
    assert math.isnan(nothing.relevant)


def test_all_queries_and_the_judged_ones_stand_apart() -> None:
    whole = collection_of(DOCS, QUERIES, {"q3": {"a-h": 1}, "q1": {"b-h": 0}})
    found = statistics(whole)
    assert found.queries == (QueryStatistics("all", 3, pytest.approx(3.0)), QueryStatistics("judged", 2, 4.0))
    assert found.split is None
    assert statistics(Collection(whole.docs, whole.queries, whole.qrels, {"split": "dev"})).split == "dev"
    (row,) = statistics(collection_of(DOCS, {}, {})).queries
    assert (row.which, row.queries) == ("all", 0)
    assert math.isnan(row.words)


@pytest.mark.data
def test_scifact_has_the_row_of_the_paper_s_table(shared_data: Path) -> None:
    whole = load(shared_data / "scifact")
    found = statistics(whole)
    (human,) = found.sources
    assert (human.documents, human.queries) == (5183, 300)
    assert human.words == pytest.approx(201.81, abs=0.01)
    assert human.relevant == pytest.approx(1.13, abs=0.01)
    every, judged = found.queries
    assert (every.queries, every.words) == (1109, pytest.approx(12.38, abs=0.01))
    lengths = [len(text.split()) for text in whole.judged["text"]]
    assert (judged.queries, judged.words) == (300, pytest.approx(np.mean(lengths)))


def test_it_holds_the_statistics_and_comes_back_from_its_file(tmp_path: Path) -> None:
    rt.save(toy(), tmp_path / "toy")
    collection = rt.load(tmp_path / "toy")
    described = rt.describe(collection)
    assert described.statistics == statistics(collection)
    assert described.spec["path"] == str(tmp_path / "toy")
    assert rt.Description.load(described.save(tmp_path / "d.json")) == described
    assert described.frame("statistics.sources")["twins"].to_list() == [3, 3]


def test_a_collection_without_documents_is_refused() -> None:
    whole = toy()
    empty = Collection(whole.docs.filter(pl.lit(False)), whole.queries, whole.qrels, {})
    with pytest.raises(rt.UserError, match="holds no document"):
        rt.describe(empty)


CHEAP = ["statistics", "overlap", "type-token", "specificity", "query-words", "sentences", "readability"]


@pytest.mark.data
@pytest.mark.long
def test_the_documented_numbers_are_those_of_the_probes(shared_data: Path) -> None:
    found = rt.explain(rt.load(shared_data / "cocktail-nfcorpus"), CHEAP)
    page = (ROOT / "docs" / "audit" / "explain.md").read_text(encoding="utf-8")
    documented = {line.split(" | ")[0][2:]: line for line in page.splitlines() if line.startswith("| ") and "[" in line}
    printed = [line.split(" | ") for line in table(found, "markdown").splitlines() if line.startswith("| llama")]
    effects = [cells for cells in printed if len(cells) == len(printed[0])][:7]
    assert [cells[1] for cells in effects][:2] == ["distinct terms", "words"]
    for _, what, g, pairs, *means in effects:
        size, interval = g.replace("\\", "").split(" ", 1)
        assert documented[what] == " | ".join([f"| {what}", size, interval, *means])
        assert pairs == ("3,128" if what == "share of query words" else "3,633")
    overlap = found.results[1]
    assert [round(row["mean"], 2) for row in overlap.rows] == [0.58, 0.69]
    assert re.search(r"mean overlap 0\.69, Jaccard 0\.58", page)
    assert found.notes == ("llama-2-7b-chat-tmp0.2: 2 twins are identical to those of human",)
