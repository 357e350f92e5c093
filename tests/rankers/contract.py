"""What every ranker keeps to, as one test class that a ranker's author subclasses."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl
import pytest

from ranktilt import Collection, Ranker, Run, UserError, ranker
from ranktilt.rankers.base import cut
from tests.toy import QUERIES, collection_of, toy

Make = Callable[..., Ranker]

TEXTS = (
    "red apples grow on old trees",
    "the river carries cold water to the sea",
    "an old clock shows the hour by its bell",
    "cold water and old apples",
    "",
)


def entries(run: Run) -> dict[str, list[tuple[str, float]]]:
    """Return documents and scores of each query, best first."""
    by_query: dict[str, list[tuple[str, float]]] = {query: [] for query in run.queries}
    for query, document, _, score in run.frame().iter_rows():
        by_query[query].append((document, score))
    return by_query


def scores(run: Run) -> dict[str, dict[str, float]]:
    """Return each query's scores by document."""
    return {query: dict(ranked) for query, ranked in entries(run).items()}


def ids(run: Run) -> dict[str, list[str]]:
    """Return each query's documents, best first."""
    return {query: [document for document, _ in ranked] for query, ranked in entries(run).items()}


def rows_of(run: Run, collection: Collection) -> dict[str, list[tuple[int, float]]]:
    """Return rows of the collection and scores of each query, best first, whatever table of ids the
    run has.
    """
    row = {name: number for number, name in enumerate(collection.ids)}
    return {
        query: [(row[document], score) for document, score in ranked]
        for query, ranked in entries(run).items()
    }


def copies(sources: tuple[str, ...], *, ids: str = "{text}-{source}") -> Collection:
    """Every text once a source, word for word; all copies of a text share an origin that no id
    repeats.
    """
    docs = [
        {
            "id": ids.format(text=n, source=source),
            "text": text,
            "source": source,
            "origin": f"text {n}",
        }
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


@dataclass(frozen=True, kw_only=True)
class Counting(Ranker):
    """Scores a candidate by how many of its words the query has."""

    name: ClassVar[str] = "counting"
    k: int | None = None

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        """Score the candidates; see `Ranker.rank`."""
        if run is None:
            raise UserError(
                f"{self!r} re-ranks candidates; put a first stage before it, such as "
                f"bm25@100>>{self!r}"
            )
        query_texts = dict(collection.queries.select("id", "text").iter_rows())
        texts = collection.texts().str.to_lowercase().str.split(" ").to_list()
        scored = []
        for number, query in enumerate(run.queries):
            words, docs = (
                set(query_texts[query].split()),
                run.docs[run.offsets[number] : run.offsets[number + 1]],
            )
            scores = [float(sum(word in words for word in texts[doc])) for doc in docs]
            scored.append((docs.astype(np.int64), np.array(scores)))
        return Run(
            run.queries,
            *cut(scored, collection.tie_keys(), self.k),
            run.ids,
            {"ranker": repr(self)},
        )


class RankerContract:
    """The tests. Each makes the ranker anew for its own collection."""

    @pytest.fixture
    def make(self) -> Make:
        """A function of a collection, and of options by name (only ``k`` is asked for), that
        returns the ranker.
        """
        raise NotImplementedError

    def test_every_judged_query_is_in_the_run_in_order_without_words_too_and_no_other_is(
        self, make: Make
    ) -> None:
        texts = {
            "b": "red apples",
            "other": "river",
            "empty": "",
            "blank": " ",
            "signs": "?!",
            "a": "zyzzyva qwrk",
        }
        collection = with_queries(texts, ["a", "blank", "signs", "empty", "b"])
        run = make(collection).rank(collection)
        assert run.queries == ("b", "empty", "blank", "signs", "a")
        assert entries(run)["b"]

    def test_scores_are_finite_and_fall_documents_come_once_and_the_collection_stays(
        self, make: Make
    ) -> None:
        collection = copies(("human", "llm"))
        frames, spec = (
            [collection.docs, collection.queries, collection.qrels],
            dict(collection.spec),
        )
        before = [pl.DataFrame({s.name: s.to_list() for s in f}, schema=f.schema) for f in frames]
        run = make(collection).rank(collection)
        after = [collection.docs, collection.queries, collection.qrels]
        assert all(frame.equals(usual) for frame, usual in zip(after, before, strict=True))
        assert dict(collection.spec) == spec
        assert np.isfinite(run.scores).all()
        for ranked in entries(run).values():
            documents, scores = zip(*ranked, strict=True)
            assert list(scores) == sorted(scores, reverse=True)
            assert len(set(documents)) == len(documents)
            assert set(documents) <= set(collection.ids)

    def test_the_same_answer_twice(self, make: Make) -> None:
        first, second = toy(), toy()
        first_ranker = make(first)
        runs = [first_ranker.rank(first), first_ranker.rank(first), make(second).rank(second)]
        assert runs[0] == runs[1] == runs[2]
        assert len({run.scores.tobytes() for run in runs}) == 1

    def test_a_depth_keeps_the_best_and_one_beyond_the_collection_finds_no_more_than_there_is(
        self, make: Make
    ) -> None:
        collection = toy()
        run, deep = (
            make(collection).rank(collection),
            make(collection, k=1_000_000).rank(collection),
        )
        assert deep == run
        best = entries(make(collection, k=2).rank(collection))
        for query, ranked in entries(run).items():
            assert len(ranked) <= collection.docs.height
            assert [score for _, score in best[query][:2]] == [score for _, score in ranked[:2]]

    def test_a_depth_of_one_keeps_copies_together(self, make: Make) -> None:
        collection = copies(("human", "llm"))
        everything = rows_of(make(collection).rank(collection), collection)
        for query, entries in rows_of(make(collection, k=1).rank(collection), collection).items():
            rows = [row for row, _ in entries]
            assert len({collection.docs["origin"][row] for row in rows}) == 1
            assert {collection.docs["source"][row] for row in rows} == {"human", "llm"}
            assert {score for _, score in entries} == {everything[query][0][1]}

    def test_its_text_makes_it_again_and_names_its_run(self, make: Make) -> None:
        collection = toy()
        for subject in (make(collection), make(collection, k=7)):
            assert ranker(repr(subject)) == subject
            assert repr(ranker(repr(subject))) == repr(subject)
        run = subject.rank(collection)
        assert run.name == run.spec.get("name", repr(subject))
        assert run.spec["ranker"] == repr(subject)

    def test_identical_texts_get_identical_scores(self, make: Make) -> None:
        collection = copies(("human", "llm", "other"))
        for ranked in rows_of(make(collection).rank(collection), collection).values():
            scores: dict[str, list[float]] = {}
            for row, score in ranked:
                scores.setdefault(collection.docs["text"][row], []).append(score)
            assert all(len(same) == 3 and len(set(same)) == 1 for same in scores.values())

    def test_what_sources_and_ids_are_called_does_not_matter(self, make: Make) -> None:
        for renamed, options in (
            (copies(("llm", "human")), {"k": 1}),
            (copies(("human", "llm"), ids="{source}+{text}"), {"k": 3}),
            (copies(("z", "a"), ids="x{source}x{text}"), {}),
        ):
            usual = copies(("human", "llm"))
            expected = rows_of(make(usual, **options).rank(usual), usual)
            got = rows_of(make(renamed, **options).rank(renamed), renamed)
            assert {q: sorted(e) for q, e in got.items()} == {
                q: sorted(e) for q, e in expected.items()
            }
