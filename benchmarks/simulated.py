"""Simulated rankers that favour one side by a known amount."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ranktilt.collection import Collection
from ranktilt.rankers.base import cut
from ranktilt.run import Run

PAIRS, DEPTH = 30, 40
SIDES = ("human", "llm")


@dataclass(frozen=True)
class Simulated:
    """Queries over the same twins, ranked by scores that lift one side by `tilt` standard deviations of their noise."""

    collection: Collection
    run: Run

    @classmethod
    def drawn(cls, rng: np.random.Generator, queries: int, tilt: float, prefix: str = "q") -> Simulated:
        """Rank the best 40 of 30 twins; one to five pairs are relevant, and score higher."""
        relevant = rng.permuted(np.arange(PAIRS) < rng.integers(1, 6, (queries, 1)), axis=1)
        shared = rng.normal(0, 1, (queries, PAIRS)) + 1.5 * relevant
        scores = shared[:, :, None] + rng.normal(0, 0.7, (queries, PAIRS, 2))
        scores[:, :, 0] += tilt
        collection = _collection(relevant, prefix)
        every = np.arange(2 * PAIRS)
        parts = cut(((every, row) for row in scores.reshape(queries, -1)), collection.tie_keys(), DEPTH)
        return cls(collection, Run(tuple(collection.judged["id"]), *parts, collection.ids, {"ranker": "simulated"}))


LISTED, RELEVANT = 100, 10


def labelled(
    rng: np.random.Generator, queries: int, documents: int, tilt: float = 0.0, *, fresh: bool = False
) -> Simulated:
    """Draw queries that each rank 100 of the documents, whose ``side`` a coin tosses; ten are relevant.

    A document keeps its quality in all lists, and that of one side is lifted by `tilt` standard deviations of it. With
    `fresh` no document stands in two lists.
    """
    first = rng.permutation(documents) < documents // 2
    quality = rng.normal(size=documents) + tilt * first
    size = min(LISTED, documents)
    if fresh:
        drawn = rng.permutation(documents)[: queries * size].reshape(queries, size)
    else:
        drawn = rng.random((queries, documents)).argpartition(size - 1, axis=1)[:, :size]
    scores = quality[drawn] + rng.normal(size=drawn.shape)
    order = np.argsort(-scores, axis=1)
    drawn, scores = np.take_along_axis(drawn, order, 1), np.take_along_axis(scores, order, 1)
    hits = rng.permuted(np.tile(np.arange(size) < RELEVANT, (queries, 1)), axis=1)
    ids = pl.Series("id", [f"d{n}" for n in range(documents)])
    docs = pl.DataFrame({"id": ids, "text": "", "source": "human", "side": np.where(first, "first", "second")})
    names = pl.Series("id", [f"q{n}" for n in range(queries)])
    query, at = np.nonzero(hits)
    qrels = pl.DataFrame({"query_id": names.gather(query), "doc_id": ids.gather(drawn[query, at]), "grade": 1})
    collection = Collection(docs, pl.DataFrame({"id": names, "text": ""}), qrels)
    offsets = np.arange(queries + 1) * size
    run = Run(tuple(names), offsets, drawn.ravel(), scores.ravel(), collection.ids, {"ranker": "simulated"})
    return Simulated(collection, run)


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
            "doc_id": pl.Series([doc["id"] for doc in docs]).gather((2 * pair[:, None] + np.arange(2)).ravel()),
            "grade": np.ones(2 * len(query), dtype=np.int32),
        }
    )
    return Collection(pl.DataFrame(docs), pl.DataFrame({"id": names, "text": ""}), qrels)
