"""Negatives for retrievers, and the batches they are learned from: each a function of seed and step."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.errors import DataError, UserError
from ranktilt.io.cache import Stored, Vectors
from ranktilt.io.files import write_files
from ranktilt.rankers.base import Ranker
from ranktilt.rankers.dense.search import search
from ranktilt.rankers.lexical.bm25 import BM25
from ranktilt.run import Run, collection_rows
from ranktilt.training.options import RetrieverTraining
from ranktilt.training.retriever_set import RetrieverSet
from ranktilt.training.training_set import Ints

Floats = npt.NDArray[np.float64]
_MEGA = 32  # batches among which lengths are sorted


@dataclass(frozen=True)
class Mined:
    """Negatives of each query, best first; of a teacher also what it gives them and the query's positives."""

    negatives: tuple[Ints, ...]
    scores: tuple[Floats, ...] = ()
    of_positives: tuple[Floats, ...] = ()


@dataclass(eq=False)
class Miner:
    """Finds negatives by one scheme; what BM25 and a teacher find stays the same over epochs and trainings."""

    found: RetrieverSet
    asked: RetrieverTraining
    teacher: Ranker | None = None
    encode: Callable[[], tuple[Vectors, Vectors, bool]] | None = None
    """Vectors of queries and documents by the model as it is now, and whether they are compared by cosine."""
    folder: Path | None = None
    """Where negatives of an epoch are kept: the weights that found them are gone after its first step."""

    def epoch(self, number: int) -> Mined:
        """Negatives for an epoch."""
        if self.asked.mine == "in-batch":
            return Mined(tuple(np.empty(0, np.int64) for _ in self.found.positives))
        if self.asked.mine == "ann":
            return self._searched(number)
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

    def _searched(self, number: int) -> Mined:
        if self.encode is None or self.folder is None:
            raise UserError("training: mine=ann searches with the model that is trained, and there is none")
        file = self.folder / f"negatives-{number}.npz"
        if not file.is_file():
            queries, documents, cosine = self.encode()
            label = f"train retriever: mining for epoch {number + 1}"
            stored = Stored([documents], np.zeros(len(documents), np.int32), np.arange(len(documents)))
            every = search(queries, stored, self.asked.depth, cosine=cosine, label=label)
            mined = self._without_relevant(rows[np.lexsort((rows, -scores))] for rows, scores in every)
            buffer = io.BytesIO()
            ends = np.cumsum([len(rows) for rows in mined.negatives])
            np.savez_compressed(buffer, rows=np.concatenate(mined.negatives), ends=ends)
            write_files({file: buffer.getvalue()})
        try:
            with np.load(file) as kept:
                return Mined(tuple(np.split(kept["rows"], kept["ends"][:-1])))
        except (OSError, ValueError, KeyError) as error:
            raise DataError(file, "cannot be read; remove its folder to start anew") from error


@dataclass(frozen=True)
class RetrieverBatch:
    """Rows of one query, one positive, and its negatives."""

    queries: Ints
    """Places in `RetrieverSet.queries`."""
    documents: Ints
    """Shape (n_rows, 1 + negatives); the positive comes first."""
    scores: Floats | None = None
    """What a teacher gives them."""


@dataclass(frozen=True, eq=False)
class RetrieverBatches:
    """Batches without end; each epoch draws positives, negatives and order anew from the seed.

    Rows whose documents are relevant to each other's queries are kept apart where there is room, because a batch's
    other documents are negatives too. Rows of like length share a batch.
    """

    found: RetrieverSet
    miner: Miner
    asked: RetrieverTraining
    lengths: tuple[Ints, Ints]
    """Characters of each query and of each document."""

    @cached_property
    def negatives(self) -> int:
        """Negatives of each row."""
        return 0 if self.asked.mine == "in-batch" else self.asked.negatives_per_positive

    @cached_property
    def per_epoch(self) -> int:
        """Batches in an epoch."""
        rows = sum(len(rows[: self.asked.positives_per_query]) for rows in self.found.positives)
        return -(-rows // self.asked.batch)

    @cached_property
    def _barred(self) -> list[frozenset[int]]:
        return [frozenset(rows.tolist()) for rows in self.found.barred]

    def size(self, batch: RetrieverBatch) -> int:
        """Characters of a batch's documents, padding included."""
        return int(self.lengths[1][batch.documents].max()) * batch.documents.size

    def halves(self, batch: RetrieverBatch) -> list[RetrieverBatch]:
        """Split a batch's rows in two."""
        middle = -(-len(batch.queries) // 2)
        found = []
        for part in (slice(None, middle), slice(middle, None)):
            scores = None if batch.scores is None else batch.scores[part]
            found.append(RetrieverBatch(batch.queries[part], batch.documents[part], scores))
        return [half for half in found if len(half.queries)]

    def epoch(self, number: int) -> list[RetrieverBatch]:
        """Return all batches of an epoch, in random order."""
        mined = self.miner.epoch(number)
        rng = np.random.default_rng([self.asked.seed, number])
        queries, documents, scores = self._rows(rng, mined)
        lengths = self.lengths[1][documents].max(axis=1)
        order = rng.permutation(len(queries))
        batches, size = list[RetrieverBatch](), self.asked.batch
        for start in range(0, len(order), size * _MEGA):
            mega = order[start : start + size * _MEGA]
            mega = mega[np.argsort(-lengths[mega], kind="stable")]
            parts = self._apart(mega, queries, documents)
            chosen = (np.array(parts[i], dtype=np.int64) for i in rng.permutation(len(parts)))
            batches += [RetrieverBatch(queries[c], documents[c], None if scores is None else scores[c]) for c in chosen]
        return batches

    def _rows(self, rng: np.random.Generator, mined: Mined) -> tuple[Ints, Ints, Floats | None]:
        queries, documents, scores = list[int](), list[list[int]](), list[list[float]]()
        for number, positives in enumerate(self.found.positives):
            for place in rng.permutation(len(positives))[: self.asked.positives_per_query]:
                negatives, taught = self._draw(rng, mined, number, int(place))
                queries.append(number)
                documents.append([int(positives[place]), *negatives])
                scores.append(taught)
        rows = np.array(documents, dtype=np.int64).reshape(len(queries), 1 + self.negatives)
        return np.array(queries, dtype=np.int64), rows, np.array(scores) if mined.scores else None

    def _draw(self, rng: np.random.Generator, mined: Mined, query: int, place: int) -> tuple[list[int], list[float]]:
        """Negatives of one positive, with a teacher's scores of it and them."""
        rows, count = mined.negatives[query], self.negatives
        if not mined.scores:
            if count and not len(rows):
                return self._at_random(rng, query), []
            return rng.choice(rows, count, replace=len(rows) < count).tolist() if count else [], []
        score, scores = mined.of_positives[query][place], mined.scores[query]
        if not len(rows):
            return self._at_random(rng, query), [score, *[min(map(np.min, mined.of_positives))] * count]
        below = np.flatnonzero(scores < score)
        below = below if len(below) else np.argsort(scores, kind="stable")[:count]
        chosen = rng.choice(below, count, replace=len(below) < count)
        return rows[chosen].tolist(), [score, *scores[chosen].tolist()]

    def _at_random(self, rng: np.random.Generator, query: int) -> list[int]:
        """Any documents that are not relevant to the query, where none was mined."""
        n, barred = self.found.part.docs.height, self._barred[query]
        if len(barred) >= n:
            raise UserError("training: a query to which every document is relevant has no negatives; mine=in-batch")
        drawn = (int(row) for row in iter(lambda: rng.integers(n), None))
        return [next(row for row in drawn if row not in barred) for _ in range(self.negatives)]

    def _apart(self, order: Ints, queries: Ints, documents: Ints) -> list[list[int]]:
        """Share rows out, each to the first batch with room that it does not disturb, else to the emptiest one."""
        size = self.asked.batch
        parts = [list[int]() for _ in range(-(-len(order) // size))]
        held, closed = [set[int]() for _ in parts], [set[int]() for _ in parts]
        for row in order.tolist():
            own, barred = set(documents[row].tolist()), self._barred[queries[row]]
            free = [i for i, part in enumerate(parts) if len(part) < size]
            fits = (i for i in free if not (own & closed[i]) and barred.isdisjoint(held[i]))
            chosen = next(fits, None)
            chosen = min(free, key=lambda i: len(parts[i])) if chosen is None else chosen
            parts[chosen].append(row)
            held[chosen] |= own
            closed[chosen] |= barred
        return parts


def character_lengths(texts: Sequence[str], most: int) -> Ints:
    """Characters of each text, as far as it is read: four a token."""
    return np.minimum(np.array([len(text) for text in texts], dtype=np.int64), 4 * most)
