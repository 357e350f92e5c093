"""What every ranker keeps to, as one test class that a ranker's author subclasses.

A subclass gives one fixture, `make`: a function of a collection, and of options by name (only ``k`` is asked for),
that returns the ranker. For most rankers that is::

    class TestMine(RankerContract):
        @pytest.fixture
        def make(self) -> Make:
            return lambda collection, **options: Mine(**options)
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from ranktilt import Collection, Ranker, Run, ranker
from tests.toy import QUERIES, collection_of, toy

Make = Callable[..., Ranker]
Found = dict[str, list[tuple[int, float]]]
"""Query id -> rows and scores, best first."""

TEXTS = (
    "red apples grow on old trees",
    "the river carries cold water to the sea",
    "an old clock shows the hour by its bell",
    "cold water and old apples",
    "",
)


def found(run: Run, collection: Collection) -> Found:
    """Take a run apart by query; rows are the collection's, whatever table of ids the run has."""
    row = {name: number for number, name in enumerate(collection.ids)}
    entries: Found = {query: [] for query in run.queries}
    for query, doc, _, score in run.frame().iter_rows():
        entries[query].append((row[doc], score))
    return entries


def copies(sources: tuple[str, ...], *, ids: str = "{text}-{source}") -> Collection:
    """Every text once a source, word for word; all copies of a text share an origin that no id repeats."""
    docs = [
        {"id": ids.format(text=n, source=source), "text": text, "source": source, "origin": f"text {n}"}
        for source in sources
        for n, text in enumerate(TEXTS)
    ]
    grades = {docs[0]["id"]: 1}
    return collection_of(docs, QUERIES, dict.fromkeys(QUERIES, grades))


def with_queries(queries: dict[str, str], judged: list[str]) -> Collection:
    """The toy's documents under other queries."""
    documents = toy().docs
    grades = {query: {documents["id"][0]: 1} for query in judged}
    return collection_of(documents.to_dicts(), queries, grades)


class RankerContract:
    """The tests. Each makes the ranker anew for its own collection."""

    @pytest.fixture
    def make(self) -> Make:
        """How to make the ranker; see the top of this file."""
        raise NotImplementedError

    def test_every_judged_query_is_in_the_run_in_order_and_no_other_is(self, make: Make) -> None:
        collection = with_queries({"b": "red apples", "unjudged": "river water", "a": "old clock"}, ["a", "b"])
        assert make(collection).rank(collection).queries == ("b", "a")

    def test_scores_are_finite_and_fall_and_documents_come_once(self, make: Make) -> None:
        collection = copies(("human", "llm"))
        run = make(collection).rank(collection)
        assert np.isfinite(run.scores).all()
        for entries in found(run, collection).values():
            scores, rows = [score for _, score in entries], {row for row, _ in entries}
            assert entries
            assert scores == sorted(scores, reverse=True)
            assert len(rows) == len(scores)
        assert set(run.frame()["doc_id"]) <= set(collection.ids)

    def test_the_same_answer_twice(self, make: Make) -> None:
        first, second = toy(), toy()
        made = make(first)
        runs = [made.rank(first), made.rank(first), make(second).rank(second)]
        assert runs[0] == runs[1] == runs[2]
        assert len({run.scores.tobytes() for run in runs}) == 1

    def test_a_query_without_words_is_in_the_run(self, make: Make) -> None:
        texts = {"empty": "", "blank": " ", "signs": "?!", "q1": "red apples", "unknown": "zyzzyva qwrk"}
        collection = with_queries(texts, list(texts))
        run = make(collection).rank(collection)
        assert run.queries == tuple(texts)
        assert found(run, collection)["q1"]

    def test_a_depth_keeps_the_best_and_one_beyond_the_collection_finds_no_more_than_there_is(self, make: Make) -> None:
        collection = toy()
        run, deep = make(collection).rank(collection), make(collection, k=1_000_000).rank(collection)
        assert deep == run
        cut = found(make(collection, k=2).rank(collection), collection)
        for query, entries in found(run, collection).items():
            assert len(entries) <= collection.docs.height
            assert [score for _, score in cut[query][:2]] == [score for _, score in entries[:2]]

    def test_a_depth_of_one_keeps_copies_together(self, make: Make) -> None:
        collection = copies(("human", "llm"))
        everything = found(make(collection).rank(collection), collection)
        for query, entries in found(make(collection, k=1).rank(collection), collection).items():
            rows = [row for row, _ in entries]
            assert len({collection.docs["origin"][row] for row in rows}) == 1
            assert {collection.docs["source"][row] for row in rows} == {"human", "llm"}
            assert {score for _, score in entries} == {everything[query][0][1]}

    def test_its_text_makes_it_again_and_names_its_run(self, make: Make) -> None:
        collection = toy()
        for made in (make(collection), make(collection, k=7)):
            assert ranker(repr(made)) == made
            assert repr(ranker(repr(made))) == repr(made)
        run = made.rank(collection)
        assert run.name == run.spec.get("name", repr(made))
        assert run.spec["ranker"] == repr(made)

    def test_identical_texts_get_identical_scores(self, make: Make) -> None:
        collection = copies(("human", "llm", "other"))
        for entries in found(make(collection).rank(collection), collection).values():
            scores: dict[str, list[float]] = {}
            for row, score in entries:
                scores.setdefault(collection.docs["text"][row], []).append(score)
            for same in scores.values():
                assert len(same) == 3
                assert same[0] == same[1] == same[2]

    @pytest.mark.parametrize(
        ("sources", "ids", "k"),
        [
            pytest.param(("llm", "human"), "{text}-{source}", 1, id="sources swapped"),
            pytest.param(("human", "llm"), "{source}+{text}", 3, id="ids renamed"),
            pytest.param(("z", "a"), "x{source}x{text}", None, id="both renamed"),
        ],
    )
    def test_what_sources_and_ids_are_called_does_not_matter(
        self, make: Make, sources: tuple[str, ...], ids: str, k: int | None
    ) -> None:
        options: dict[str, Any] = {} if k is None else {"k": k}
        before, after = copies(("human", "llm")), copies(sources, ids=ids)
        expected = found(make(before, **options).rank(before), before)
        got = found(make(after, **options).rank(after), after)
        assert {q: sorted(e) for q, e in got.items()} == {q: sorted(e) for q, e in expected.items()}

    def test_the_collection_is_left_as_it_was(self, make: Make) -> None:
        collection = copies(("human", "llm"))
        frames = [collection.docs, collection.queries, collection.qrels]
        before = [pl.DataFrame({s.name: s.to_list() for s in f}, schema=f.schema) for f in frames]
        spec = dict(collection.spec)
        make(collection).rank(collection)
        after = [collection.docs, collection.queries, collection.qrels]
        assert all(one.equals(two) for one, two in zip(before, after, strict=True))
        assert dict(collection.spec) == spec
