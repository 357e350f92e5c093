"""Mine negatives for a retriever, query by query.

A mined negative is a document that a search finds for the query and that is not relevant to it:
harder to tell from a positive than a random one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ranktilt.data.cache import StoredVectors, Vectors
from ranktilt.data.runs.run import collection_rows
from ranktilt.errors import UserError
from ranktilt.rankers.dense.search import search
from ranktilt.rankers.lexical.bm25 import BM25
from ranktilt.training.batches import Ints, Rows, draw_rows
from ranktilt.training.matched_negatives import TextProperties
from ranktilt.training.options import RetrieverTraining
from ranktilt.training.training_set import TrainingSet


@dataclass(frozen=True, eq=False, kw_only=True)
class EncodedTexts:
    """Vectors of queries and documents, by the model in its current state."""

    queries: Vectors
    """Vectors of queries, a row each."""
    documents: Vectors
    """Vectors of documents, a row each."""
    cosine: bool
    """Whether they are compared by cosine; otherwise by dot product."""


@dataclass(eq=False, kw_only=True)
class Miner:
    """Finds negatives by the scheme of the options; see `RetrieverTraining.negatives`.

    Results of BM25 are kept with the collection, for later epochs and other trainings.
    """

    training_set: TrainingSet
    """Material to learn from."""
    options: RetrieverTraining
    """Options of the training."""
    encode: Callable[[], EncodedTexts] | None = None
    """Function that encodes all texts with the model in training; None if none is needed."""

    def rows(self, epoch: int) -> Rows:
        """Draw an epoch's positives and their negatives."""
        mined, count = self.mined(), self.options.mined_negatives
        properties = self.properties

        def draw_negatives(rng: np.random.Generator, query: int, position: int) -> list[int]:
            if not count:
                return []
            candidates = mined[query] if len(mined[query]) else self._not_relevant(query)
            if properties is not None:
                positive = int(self.training_set.positives[query][position])
                candidates = properties.matched(positive, candidates, count)
            negatives = rng.choice(candidates, count, replace=len(candidates) < count)
            return [int(row) for row in negatives]

        return draw_rows(
            np.random.default_rng([self.options.seed, epoch]),
            self.training_set.positives,
            draw_negatives,
            positives_per_query=self.options.positives_per_query,
            negatives_per_positive=count,
        )

    @cached_property
    def properties(self) -> TextProperties | None:
        """Properties that negatives are matched on; None if they are not matched."""
        if self.options.negatives != "controlled":
            return None
        return TextProperties.from_collection(self.training_set.part)

    def imbalance(self) -> dict[str, dict[str, float]]:
        """Return how positives and negatives of the first epoch differ in each property.

        ``matched`` is of the negatives that are learned from, and ``unmatched`` of those that BM25
        alone would give. Empty if negatives are not matched.
        """
        if self.properties is None:
            return {}
        unmatched = replace(self, options=replace(self.options, negatives="bm25"))
        return {
            "matched": dict(self.properties.imbalance(self.rows(0).documents)),
            "unmatched": dict(self.properties.imbalance(unmatched.rows(0).documents)),
        }

    def _not_relevant(self, query: int) -> Ints:
        """Return all documents that are not relevant to a query, for queries without mined ones."""
        every_row = np.arange(self.training_set.part.docs.height)
        rows = np.setdiff1d(every_row, self.training_set.barred[query])
        if not len(rows):
            raise UserError(
                "training: a query to which every document is relevant has no negatives; use "
                "negatives=in-batch"
            )
        return rows

    def mined(self) -> tuple[Ints, ...]:
        """Return the documents to draw negatives from for each query, best first, as rows.

        They are for the epoch that begins; in-batch negatives need none, so that they are empty.
        """
        part = self.training_set.part
        if self.options.negatives == "in-batch":
            return ()
        if self.options.negatives in ("bm25", "controlled"):
            return part.memo((__name__, self.options.depth, self.options.text), self._from_bm25)
        return self._from_model()

    def _from_bm25(self) -> tuple[Ints, ...]:
        """Return BM25's best documents of each query, without relevant ones."""
        part = self.training_set.part
        run = BM25(k=self.options.depth, text=self.options.text).rank(part)
        rows_of_queries = np.split(collection_rows(run, part)[run.docs], run.offsets[1:-1])
        return self._without_relevant(rows_of_queries)

    def _from_model(self) -> tuple[Ints, ...]:
        """Return the model's best documents of each query, without relevant ones."""
        if self.encode is None:
            raise UserError(
                "training: negatives=ann searches with the model in training, and there is none"
            )
        texts = self.encode()
        results = search(
            texts.queries,
            StoredVectors(texts.documents, np.arange(len(texts.documents))),
            self.options.depth,
            cosine=texts.cosine,
            label="train retriever: mining",
        )
        # Ties go by row, so that the same model mines the same negatives.
        return self._without_relevant(rows[np.lexsort((rows, -scores))] for rows, scores in results)

    def _without_relevant(self, rows_of_queries: Iterable[Ints]) -> tuple[Ints, ...]:
        """Leave out documents that are relevant to the query."""
        return tuple(
            rows[~np.isin(rows, barred)]
            for rows, barred in zip(rows_of_queries, self.training_set.barred, strict=True)
        )
