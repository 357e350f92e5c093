"""Simulated rankers that favour one side by a known amount."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run
from ranktilt.rankers.base import Ranker, cut, reranked_run
from ranktilt.rankers.candidates import Candidates

PAIRS, DEPTH = 30, 40
SIDES = ("human", "llm")


@dataclass(frozen=True)
class Simulated:
    """Queries over the same twins, ranked by scores that lift one side by `tilt` standard
    deviations of their noise.
    """

    collection: Collection
    run: Run

    @classmethod
    def drawn(
        cls, rng: np.random.Generator, queries: int, tilt: float, prefix: str = "q"
    ) -> Simulated:
        """Rank the best 40 of 30 twins; one to five pairs are relevant, and score higher."""
        relevant = rng.permuted(np.arange(PAIRS) < rng.integers(1, 6, (queries, 1)), axis=1)
        shared = rng.normal(0, 1, (queries, PAIRS)) + 1.5 * relevant
        scores = shared[:, :, None] + rng.normal(0, 0.7, (queries, PAIRS, 2))
        scores[:, :, 0] += tilt
        collection = _collection(relevant, prefix)
        every = np.arange(2 * PAIRS)
        parts = cut(
            ((every, row) for row in scores.reshape(queries, -1)), collection.tie_keys(), DEPTH
        )
        return cls(
            collection,
            Run(
                tuple(collection.queries_with_judgments["id"]),
                *parts,
                collection.ids,
                {"ranker": "simulated"},
            ),
        )


def _collection(relevant: np.ndarray, prefix: str) -> Collection:
    names = [f"{prefix}{n}" for n in range(len(relevant))]
    docs = [
        {"id": f"{n}-{side}", "text": "", "source": side, "origin": f"{n}-human"}
        for n in range(PAIRS)
        for side in SIDES
    ]
    query, pair = np.nonzero(relevant)
    qrels = pl.DataFrame(
        {
            "query_id": pl.Series(names).gather(np.repeat(query, 2)),
            "doc_id": pl.Series([doc["id"] for doc in docs]).gather(
                (2 * pair[:, None] + np.arange(2)).ravel()
            ),
            "grade": np.ones(2 * len(query), dtype=np.int32),
        }
    )
    return Collection(pl.DataFrame(docs), pl.DataFrame({"id": names, "text": ""}), qrels)


@dataclass(frozen=True, eq=False, repr=False)
class Planted(Ranker):
    """Ranks, or re-ranks, by a table of scores: a row a query, a column a document."""

    name = "planted"
    table: np.ndarray
    k: int

    def __repr__(self) -> str:
        return self.name

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        """Cut the table's rows at depth `k`, or read the candidates' scores."""
        if run is not None:
            candidates = Candidates.from_run(collection, run, self)
            scores = self.table[candidates.query, candidates.rows]
            return reranked_run(self, collection, candidates, scores=scores, spec={})
        parts = cut(
            ((np.arange(row.size), row) for row in self.table), collection.tie_keys(), self.k
        )
        return Run(
            tuple(collection.queries_with_judgments["id"]),
            *parts,
            collection.ids,
            {"ranker": self.name},
        )


def half_length_half_source(
    seed: int, pairs: int, queries: int, k: int
) -> tuple[Collection, Planted]:
    """Draw twins, and a ranker whose mean gap goes with length by one half and with the source by
    the other.
    """
    generator = np.random.default_rng(seed)
    human, longer = generator.integers(200, 260, pairs), generator.normal(0, 40, pairs)
    lengths = np.stack([human, human + 10 + longer - longer.mean()], axis=1).round().astype(int)
    docs = [
        {"id": f"{n}-{side}", "text": "o " * length, "source": side, "origin": f"{n}-human"}
        for n, pair in enumerate(lengths.tolist())
        for side, length in zip(SIDES, pair, strict=True)
    ]
    names = [f"q{n}" for n in range(queries)]
    unjudged = pl.DataFrame(schema={"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32})
    scores = generator.normal(size=(queries, pairs)).repeat(2, axis=1) + generator.normal(
        0, 0.3, (queries, 2 * pairs)
    )
    scores += 0.025 * lengths.ravel() + 0.25 * (np.arange(2 * pairs) % 2)
    return Collection(
        pl.DataFrame(docs), pl.DataFrame({"id": names, "text": names}), unjudged
    ), Planted(scores, k)
