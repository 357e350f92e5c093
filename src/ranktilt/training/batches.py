"""Which documents are learned from together: a function of seed and step, so that any step can be made again."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ranktilt.training.options import RerankerTraining
from ranktilt.training.training_set import Bools, Ints, TrainingSet

_MEGA = 32  # batches among which lengths are sorted


@dataclass(frozen=True)
class Batch:
    """Groups of one positive and its negatives, or single pairs, by their places in a `TrainingSet`."""

    queries: Ints
    documents: Ints
    """Shape (n_groups, 1 + negatives), the positive first; or (n_pairs, 1)."""
    relevant: Bools
    """Which of the documents are positives."""


@dataclass(frozen=True, eq=False)
class Batches:
    """Batches without end: epoch after epoch, each with positives, negatives and order drawn anew from the seed."""

    training_set: TrainingSet
    query_tokens: Ints
    document_tokens: Ints
    options: RerankerTraining
    """Of which count: positives of a query, negatives of a positive, rows of a batch, and the seed."""

    @cached_property
    def per_epoch(self) -> int:
        """Batches in an epoch."""
        rows = sum(len(query.positives[: self.options.positives_per_query]) for query in self.training_set.queries)
        if self.options.mixed_pairs:
            rows *= 1 + self.options.negatives_per_positive
        return -(-rows // self.options.rows)

    def epoch(self, number: int) -> list[Batch]:
        """Return all batches of an epoch: rows of like length share one, and the batches are in random order."""
        rng = np.random.default_rng([self.options.seed, number])
        queries, documents, relevant = self._rows(rng)
        lengths = self.query_tokens[queries] + self.document_tokens[documents].max(axis=1)
        order, size = rng.permutation(len(queries)), self.options.rows
        batches = []
        for start in range(0, len(order), size * _MEGA):
            mega = order[start : start + size * _MEGA]
            mega = mega[np.argsort(-lengths[mega], kind="stable")]
            parts = [mega[first : first + size] for first in range(0, len(mega), size)]
            chosen = (parts[i] for i in rng.permutation(len(parts)))
            batches += [Batch(queries[rows], documents[rows], relevant[rows]) for rows in chosen]
        return batches

    def _rows(self, rng: np.random.Generator) -> tuple[Ints, Ints, Bools]:
        """Queries, documents, and which of these are positives."""
        queries, documents = self._groups(rng)
        relevant = np.zeros(documents.shape, dtype=np.bool_)
        relevant[:, 0] = True
        if not self.options.mixed_pairs:
            return queries, documents, relevant
        return np.repeat(queries, documents.shape[1]), documents.reshape(-1, 1), relevant.reshape(-1, 1)

    def _groups(self, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Negatives are drawn with repeats where a positive has fewer than it is learned against."""
        queries, documents, count = [], [], self.options.negatives_per_positive
        for number, query in enumerate(self.training_set.queries):
            for place in rng.permutation(len(query.positives))[: self.options.positives_per_query]:
                pool = query.negatives[place]
                queries.append(number)
                documents.append([query.positives[place], *rng.choice(pool, count, replace=len(pool) < count)])
        return np.array(queries, dtype=np.int64), np.array(documents, dtype=np.int64)

    def size(self, batch: Batch) -> int:
        """Tokens of a batch, padding included."""
        longest = (self.query_tokens[batch.queries] + self.document_tokens[batch.documents].max(axis=1)).max()
        return int(longest) * batch.documents.size

    def halves(self, batch: Batch) -> list[Batch]:
        """Split a batch's groups in two."""
        middle = -(-len(batch.queries) // 2)
        parts = (slice(None, middle), slice(middle, None))
        return [Batch(batch.queries[p], batch.documents[p], batch.relevant[p]) for p in parts if len(batch.queries[p])]
