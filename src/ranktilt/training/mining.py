"""Negatives for retrievers, and the rows that they make: each a function of seed and epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl

from ranktilt.errors import UserError
from ranktilt.io.cache import Stored, Vectors
from ranktilt.rankers.base import Ranker
from ranktilt.rankers.dense.search import search
from ranktilt.rankers.lexical.bm25 import BM25
from ranktilt.run import Run, collection_rows
from ranktilt.training.batches import Floats, Ints, Rows, draw_rows
from ranktilt.training.options import RetrieverTraining
from ranktilt.training.training_set import TrainingSet


@dataclass(frozen=True)
class Mined:
    """Negatives of each query, best first; of a teacher also what it gives them and the query's positives."""

    negatives: tuple[Ints, ...]
    scores: tuple[Floats, ...] = ()
    of_positives: tuple[Floats, ...] = ()


@dataclass(eq=False)
class Miner:
    """Finds negatives by one scheme; what BM25 and a teacher find stays the same over epochs and trainings."""

    found: TrainingSet
    asked: RetrieverTraining
    teacher: Ranker | None = None
    encode: Callable[[], tuple[Vectors, Vectors, bool]] | None = None
    """Vectors of queries and documents by the model as it is now, and whether they are compared by cosine."""

    def rows(self, epoch: int) -> Rows:
        """Draw an epoch's positives and their negatives, with what a teacher gives both."""
        mined, count = self.epoch(), 0 if self.asked.mine == "in-batch" else self.asked.negatives_per_positive

        def negatives(rng: np.random.Generator, query: int, place: int) -> tuple[list[int], list[float]]:
            return self._draw(rng, mined, (query, place), count)

        rng = np.random.default_rng([self.asked.seed, epoch])
        return draw_rows(rng, self.found.positives, self.asked.positives_per_query, negatives, count)

    def _draw(
        self, rng: np.random.Generator, mined: Mined, positive: tuple[int, int], count: int
    ) -> tuple[list[int], list[float]]:
        """Negatives of one positive, with a teacher's scores of it and them."""
        query, place = positive
        rows = mined.negatives[query]
        if not mined.scores:
            if count and not len(rows):
                return self._at_random(rng, query, count), []
            return rng.choice(rows, count, replace=len(rows) < count).tolist() if count else [], []
        score, scores = mined.of_positives[query][place], mined.scores[query]
        if not len(rows):
            return self._at_random(rng, query, count), [score, *[min(map(np.min, mined.of_positives))] * count]
        below = np.flatnonzero(scores < score)
        below = below if len(below) else np.argsort(scores, kind="stable")[:count]
        chosen = rng.choice(below, count, replace=len(below) < count)
        return rows[chosen].tolist(), [score, *scores[chosen].tolist()]

    def _at_random(self, rng: np.random.Generator, query: int, count: int) -> list[int]:
        """Any documents that are not relevant to the query, where none was mined."""
        others = np.setdiff1d(np.arange(self.found.part.docs.height), self.found.barred[query])
        if not len(others):
            raise UserError("training: a query to which every document is relevant has no negatives; mine=in-batch")
        return [int(row) for row in rng.choice(others, count)]

    def epoch(self) -> Mined:
        """Find negatives for the epoch that begins."""
        if self.asked.mine == "in-batch":
            return Mined(tuple(np.empty(0, np.int64) for _ in self.found.positives))
        if self.asked.mine == "ann":
            return self._searched()
        key = (__name__, self.asked.depth, self.asked.text, repr(self.teacher))
        return self.found.part.memo(key, self._fixed)

    def _fixed(self) -> Mined:
        part = self.found.part
        run = BM25(k=self.asked.depth, text=self.asked.text).rank(part)
        rows = collection_rows(run, part)[run.docs]
        mined = self._without_relevant(np.split(rows, run.offsets[1:-1]))
        return mined if self.teacher is None else self._taught(self.teacher, mined)

    def _without_relevant(self, lists: Iterable[Ints]) -> Mined:
        pairs = zip(lists, self.found.barred, strict=True)
        return Mined(tuple(rows[~np.isin(rows, barred)] for rows, barred in pairs))

    def _taught(self, teacher: Ranker, mined: Mined) -> Mined:
        """Let the teacher score each query's positives and negatives."""
        part, both = self.found.part, [*zip(self.found.positives, mined.negatives, strict=True)]
        sizes = [len(good) + len(bad) for good, bad in both]
        rows = np.concatenate([side for pair in both for side in pair])
        frame = pl.DataFrame({
            "query_id": part.queries["id"].gather(np.repeat(np.arange(len(both)), sizes)),
            "doc_id": part.ids.gather(rows),
            "score": np.zeros(len(rows)),
        })  # fmt: skip
        run = teacher.rank(part, Run.from_frame(frame, queries=part.queries["id"]))
        scored = frame.drop("score").join(run.frame(), on=["query_id", "doc_id"], how="left", maintain_order="left")
        if scored["score"].null_count():
            raise UserError(f"{teacher!r}: leaves documents without a score; a teacher keeps every candidate")
        parts = np.split(scored["score"].to_numpy(), np.cumsum(sizes)[:-1])
        ends = [len(good) for good, _ in both]
        return Mined(
            mined.negatives, tuple(p[n:] for p, n in zip(parts, ends, strict=True)),
            tuple(p[:n] for p, n in zip(parts, ends, strict=True)),
        )  # fmt: skip

    def _searched(self) -> Mined:
        if self.encode is None:
            raise UserError("training: mine=ann searches with the model that is trained, and there is none")
        queries, documents, cosine = self.encode()
        stored = Stored(documents, np.arange(len(documents)))
        every = search(queries, stored, self.asked.depth, cosine=cosine, label="train retriever: mining")
        return self._without_relevant(rows[np.lexsort((rows, -scores))] for rows, scores in every)
