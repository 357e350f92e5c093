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
