"""Which documents are learned from together: a function of seed and step, so that any step can be made again."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ranktilt.training.training_set import Ints, TrainingSet

_MEGA = 32  # batches among which lengths are sorted


@dataclass(frozen=True)
class Batch:
    """Groups of one positive and its negatives, by their places in a `TrainingSet`."""

    queries: Ints
    documents: Ints
    """Shape (n_groups, 1 + negatives); the positive comes first."""


@dataclass(frozen=True, eq=False)
class Batches:
    """Batches without end: epoch after epoch, each with positives, negatives and order drawn anew from the seed."""

    training_set: TrainingSet
    query_tokens: Ints
    document_tokens: Ints
    positives: int
    """Most positives of one query in an epoch."""
    negatives: int
    """Negatives of each positive; drawn with repeats where a query has fewer."""
    groups: int
    """Groups in a batch."""
    seed: int

    @cached_property
    def per_epoch(self) -> int:
        """Batches in an epoch."""
        groups = sum(min(len(e.positives), self.positives) for e in self.training_set.queries)
        return -(-groups // self.groups)

    def epoch(self, number: int) -> list[Batch]:
        """Return all batches of an epoch: groups of like length share one, and the batches are in random order."""
        rng = np.random.default_rng([self.seed, number])
        queries, documents = self._groups(rng)
        lengths = self.query_tokens[queries] + self.document_tokens[documents].max(axis=1)
        order = rng.permutation(len(queries))
        batches = []
        for start in range(0, len(order), self.groups * _MEGA):
            mega = order[start : start + self.groups * _MEGA]
            mega = mega[np.argsort(-lengths[mega], kind="stable")]
            parts = [mega[first : first + self.groups] for first in range(0, len(mega), self.groups)]
            batches += [Batch(queries[parts[i]], documents[parts[i]]) for i in rng.permutation(len(parts))]
        return batches

    def _groups(self, rng: np.random.Generator) -> tuple[Ints, Ints]:
        queries, documents = [], []
        for number, query in enumerate(self.training_set.queries):
            few = len(query.negatives) < self.negatives
            for positive in rng.permutation(query.positives)[: self.positives]:
                chosen = rng.choice(query.negatives, self.negatives, replace=few)
                queries.append(number)
                documents.append([positive, *chosen])
        return np.array(queries, dtype=np.int64), np.array(documents, dtype=np.int64)

    def size(self, batch: Batch) -> int:
        """Tokens of a batch, padding included."""
        longest = (self.query_tokens[batch.queries] + self.document_tokens[batch.documents].max(axis=1)).max()
        return int(longest) * batch.documents.size

    def halves(self, batch: Batch) -> list[Batch]:
        """Split a batch's groups in two."""
        middle = -(-len(batch.queries) // 2)
        parts = (slice(None, middle), slice(middle, None))
        return [Batch(batch.queries[p], batch.documents[p]) for p in parts if len(batch.queries[p])]
