"""Mine negatives for a retriever, query by query.

A *positive* is a relevant document of a query. A *mined negative* is a document that a search
returns for the query although it is not relevant, so it is harder to tell from a positive than a
random document is. Documents are given as rows of the collection.
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
    """Vectors of queries, a row for each."""
    documents: Vectors
    """Vectors of documents, a row for each."""
    cosine: bool
    """Whether the vectors are compared by cosine; otherwise by dot product."""


@dataclass(eq=False, kw_only=True)
class Miner:
    """Mines negatives by the scheme of the options.

    The option `negatives` is ``in-batch`` (none are mined), ``bm25`` (BM25's top documents),
    ``controlled`` (those of them that are like the positive in perplexity and specificity) or
    ``ann`` (the top documents of the model in training). Results of BM25 are kept with the
    collection, for later epochs and other trainings.
    """

    training_set: TrainingSet
    """Queries and documents to learn from."""
    options: RetrieverTraining
    """Options of the training."""
    encode: Callable[[], EncodedTexts] | None = None
    """Function that encodes all texts with the model in training; only ``ann`` needs it."""

    def rows(self, epoch: int) -> Rows:
        """Draw an epoch's positives and their negatives."""
        mined_rows, negative_count = self.mine(), self.options.mined_negatives
        properties = self.properties

        def draw_negatives(rng: np.random.Generator, query: int, position: int) -> list[int]:
            if not negative_count:
                return []
            candidates = mined_rows[query]
            if not len(candidates):
                candidates = self._all_not_relevant(query)
            if properties is not None:
                positive = int(self.training_set.positives[query][position])
                candidates = properties.match(positive, candidates, negative_count)
            has_too_few = len(candidates) < negative_count
            negatives = rng.choice(candidates, negative_count, replace=has_too_few)
            return [int(row) for row in negatives]

        return draw_rows(
            np.random.default_rng([self.options.seed, epoch]),
            self.training_set.positives,
            draw_negatives,
            positives_per_query=self.options.positives_per_query,
            negatives_per_positive=negative_count,
        )

    @cached_property
    def properties(self) -> TextProperties | None:
        """Properties that negatives are matched on; None if they are not matched."""
        if self.options.negatives != "controlled":
            return None
        return TextProperties.from_collection(self.training_set.subset)

    def imbalance(self) -> dict[str, dict[str, float]]:
        """Return how positives and negatives of the first epoch differ in each property.

        The differences are means of positives minus means of negatives, in standard deviations:
        ``matched`` for the negatives that are learned from, and ``unmatched`` for those that the
        scheme ``bm25`` would draw. Empty if negatives are not matched.
        """
        if self.properties is None:
            return {}
        unmatched = replace(self, options=replace(self.options, negatives="bm25"))
        return {
            "matched": dict(self.properties.imbalance(self.rows(0).documents)),
            "unmatched": dict(self.properties.imbalance(unmatched.rows(0).documents)),
        }

    def _all_not_relevant(self, query: int) -> Ints:
        """Return all documents that are not relevant to a query."""
        all_rows = np.arange(self.training_set.subset.docs.height)
        rows = np.setdiff1d(all_rows, self.training_set.barred[query])
        if not len(rows):
            raise UserError(
                "training: a query to which every document is relevant has no negatives; use "
                "negatives=in-batch"
            )
        return rows

    def mine(self) -> tuple[Ints, ...]:
        """Return the documents to draw negatives from for each query, best first.

        They are for the next epoch, because the model's own results change with it. The result is
        empty if negatives are those of the batch.
        """
        subset = self.training_set.subset
        if self.options.negatives == "in-batch":
            return ()
        if self.options.negatives in ("bm25", "controlled"):
            return subset.memo((__name__, self.options.depth, self.options.text), self._from_bm25)
        return self._from_model()

    def _from_bm25(self) -> tuple[Ints, ...]:
        """Return BM25's top documents of each query, without relevant ones."""
        subset = self.training_set.subset
        run = BM25(k=self.options.depth, text=self.options.text).rank(subset)
        rows_of_queries = np.split(collection_rows(run, subset)[run.docs], run.offsets[1:-1])
        return self._without_relevant(rows_of_queries)

    def _from_model(self) -> tuple[Ints, ...]:
        """Return the model's top documents of each query, without relevant ones."""
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
        # Ties are broken by row, so that the same model mines the same negatives.
        return self._without_relevant(rows[np.lexsort((rows, -scores))] for rows, scores in results)

    def _without_relevant(self, rows_of_queries: Iterable[Ints]) -> tuple[Ints, ...]:
        """Leave out documents that are relevant to the query."""
        return tuple(
            rows[~np.isin(rows, barred)]
            for rows, barred in zip(rows_of_queries, self.training_set.barred, strict=True)
        )
