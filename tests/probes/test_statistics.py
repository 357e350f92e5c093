"""What a collection holds, source by source; expectations are counted by hand or with Python's own `split`."""

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ranktilt.collection import Collection
from ranktilt.datasets.load import load
from ranktilt.probes.text_probes import QueryStatistics, SourceStatistics, statistics
from tests.toy import collection_of, toy

DOCS = [
    {"id": "a-h", "title": "many words of a title", "text": "one two three", "source": "human", "origin": "a-h"},
    {"id": "b-h", "text": "one", "source": "human", "origin": "b-h"},
    {"id": "c-h", "text": " \n", "source": "human", "origin": "c-h"},
    {"id": "a-l", "text": "one\ttwo  three four five", "source": "llm", "origin": "a-h"},
]
QUERIES = {"q1": "who is it", "q2": "what", "q3": "where and when is that"}


def by_name(collection: Collection) -> dict[str, SourceStatistics]:
    return {row.source: row for row in statistics(collection).sources}


def test_each_source_has_its_documents_and_their_words() -> None:
    found = by_name(collection_of(DOCS, QUERIES, {}))
    assert list(found) == ["human", "llm"]
    assert (found["human"].documents, found["human"].empty, found["human"].words) == (3, 1, pytest.approx(4 / 3))
    assert (found["llm"].documents, found["llm"].empty, found["llm"].words) == (1, 0, 5.0)


def test_quartiles_are_those_of_the_words() -> None:
    assert by_name(collection_of(DOCS, QUERIES, {}))["human"].quartiles == (0.5, 1.0, 2.0)


def test_judged_documents_twins_and_duplicates() -> None:
    docs = [
        *DOCS,
        {"id": "d-h", "text": "one", "source": "human", "origin": "d-h"},
        {"id": "a2-l", "text": "one", "source": "llm", "origin": "a-h"},
    ]
    rows = by_name(collection_of(docs, QUERIES, {"q1": {"a-h": 1, "b-h": 0, "gone": 1}, "q2": {"a-h": 1}}))
    human, llm = rows["human"], rows["llm"]
    assert (human.judged, human.twins, human.duplicates) == (2, 1, 1)  # d-h repeats b-h
    assert (llm.judged, llm.twins, llm.duplicates) == (0, 2, 0), "of one source alone are texts compared"


def test_titles_are_not_counted() -> None:
    untitled = [{**row, "title": ""} for row in DOCS]
    assert by_name(collection_of(DOCS, {}, {})) == by_name(collection_of(untitled, {}, {}))


def test_relevant_documents_are_counted_on_their_own_side() -> None:
    qrels = {"q1": {"a-h": 2, "b-h": 1, "a-l": 1}, "q2": {"a-h": 1, "c-h": 0}, "q3": {"b-h": -1}}
    found = by_name(collection_of(DOCS, QUERIES, qrels))
    assert (found["human"].queries, found["human"].relevant) == (2, 1.5)
    assert (found["llm"].queries, found["llm"].relevant) == (1, 1.0)


def test_judgments_of_what_is_not_there_do_not_count() -> None:
    found = by_name(collection_of(DOCS, QUERIES, {"q1": {"gone": 1, "a-h": 1}, "q9": {"a-h": 1}}))
    assert (found["human"].queries, found["human"].relevant) == (1, 1.0)


def test_without_a_relevant_document_the_mean_is_undefined() -> None:
    found = by_name(collection_of(DOCS, QUERIES, {"q1": {"a-h": 1}}))["llm"]
    assert found.queries == 0
    assert math.isnan(found.relevant)


def test_all_queries_and_the_judged_ones_stand_apart() -> None:
    found = statistics(collection_of(DOCS, QUERIES, {"q3": {"a-h": 1}, "q1": {"b-h": 0}}))
    assert found.queries == (QueryStatistics("all", 3, pytest.approx(3.0)), QueryStatistics("judged", 2, 4.0))


def test_without_judgments_there_is_one_row_of_queries() -> None:
    assert [row.which for row in statistics(collection_of(DOCS, QUERIES, {})).queries] == ["all"]


def test_without_queries_their_length_is_undefined() -> None:
    (row,) = statistics(collection_of(DOCS, {}, {})).queries
    assert row.queries == 0
    assert math.isnan(row.words)


def test_the_split_is_named() -> None:
    whole = toy()
    assert statistics(whole).split is None
    assert statistics(Collection(whole.docs, whole.queries, whole.qrels, {"split": "dev"})).split == "dev"


@pytest.mark.data
def test_nfcorpus_has_the_published_lengths(shared_data: Path) -> None:
    found = statistics(load(shared_data / "cocktail-nfcorpus"))
    assert [row.documents for row in found.sources] == [3633, 3633]
    assert [row.words for row in found.sources] == [pytest.approx(220.98, abs=0.01), pytest.approx(179.76, abs=0.01)]
    assert [(row.which, row.queries) for row in found.queries] == [("all", 3237), ("judged", 323)]


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
    lengths = [
        len(text.split()) for text in whole.queries.filter(pl.col("id").is_in(whole.judged["id"].implode()))["text"]
    ]
    assert (judged.queries, judged.words) == (300, pytest.approx(np.mean(lengths)))
