"""Negatives for retrievers, and the rows that they make: each a function of seed and epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from ranktilt.errors import UserError
from ranktilt.io.cache import Stored, Vectors
from ranktilt.rankers.dense.search import search
from ranktilt.rankers.lexical.bm25 import BM25
from ranktilt.run import collection_rows
from ranktilt.training.batches import Ints, Rows, draw_rows
from ranktilt.training.options import RetrieverTraining
from ranktilt.training.training_set import TrainingSet


@dataclass(eq=False)
class Miner:
    """Finds negatives by one scheme; what BM25 finds stays the same over epochs and trainings."""

    training_set: TrainingSet
    options: RetrieverTraining
    encode: Callable[[], tuple[Vectors, Vectors, bool]] | None = None
    """Vectors of queries and documents by the model as it is now, and whether they are compared by cosine."""

    def rows(self, epoch: int) -> Rows:
        """Draw an epoch's positives and their negatives."""
        mined, count = self.mined(), 0 if self.options.mine == "in-batch" else self.options.negatives_per_positive

        def negatives(rng: np.random.Generator, query: int, _: int) -> list[int]:
            rows = mined[query] if count else np.empty(0, np.int64)
            if count and not len(rows):
                return self._at_random(rng, query, count)
            return [int(row) for row in rng.choice(rows, count, replace=len(rows) < count)] if count else []

        rng = np.random.default_rng([self.options.seed, epoch])
        return draw_rows(rng, self.training_set.positives, self.options.positives_per_query, negatives, count)

    def _at_random(self, rng: np.random.Generator, query: int, count: int) -> list[int]:
        """Any documents that are not relevant to the query, where none was mined."""
        others = np.setdiff1d(np.arange(self.training_set.part.docs.height), self.training_set.barred[query])
        if not len(others):
            raise UserError("training: a query to which every document is relevant has no negatives; mine=in-batch")
        return [int(row) for row in rng.choice(others, count)]

    def mined(self) -> tuple[Ints, ...]:
        """Find the negatives of each query, best first, for the epoch that begins."""
        part = self.training_set.part
        if self.options.mine == "in-batch":
            return ()
        if self.options.mine == "bm25":
            return part.memo((__name__, self.options.depth, self.options.text), self._retrieved)
        if self.encode is None:
            raise UserError("training: mine=ann searches with the model that is trained, and there is none")
        queries, documents, cosine = self.encode()
        stored = Stored(documents, np.arange(len(documents)))
        every = search(queries, stored, self.options.depth, cosine=cosine, label="train retriever: mining")
        return self._without_relevant(rows[np.lexsort((rows, -scores))] for rows, scores in every)

    def _retrieved(self) -> tuple[Ints, ...]:
        part = self.training_set.part
        run = BM25(k=self.options.depth, text=self.options.text).rank(part)
        return self._without_relevant(np.split(collection_rows(run, part)[run.docs], run.offsets[1:-1]))

    def _without_relevant(self, lists: Iterable[Ints]) -> tuple[Ints, ...]:
        return tuple(rows[~np.isin(rows, barred)] for rows, barred in zip(lists, self.training_set.barred, strict=True))
