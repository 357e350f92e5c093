"""What an epoch shows: rows of a query and documents, drawn anew from the seed, as a trainer's data set and batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktilt.optional import need

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Cut = Callable[[list[str]], list[str]]
Negatives = Callable[[np.random.Generator, int, int], list[int]]
"""Negatives of a query's positive, by its place."""
_MEGA = 32  # batches among which lengths are sorted


@dataclass(frozen=True)
class Rows:
    """Rows of an epoch, by places of texts."""

    queries: Ints
    documents: Ints
    """Shape (n_rows, n_documents), the relevant one first."""
    labels: Floats | None = None
    """Whether each row's document is relevant, 1 or 0, where rows are pairs."""

    def pairs(self) -> Rows:
        """Return each document as a row of its own, with 1 or 0 for relevant or not."""
        count = self.documents.shape[1]
        labels = (np.arange(self.documents.size) % count == 0).astype(np.float64)
        return Rows(np.repeat(self.queries, count), self.documents.reshape(-1, 1), labels)


def draw_rows(
    rng: np.random.Generator,
    positives: Sequence[Ints],
    most: int | None,
    negatives: Negatives,
    count: int,
) -> Rows:
    """Draw an epoch's positives, at most so many of each query, and `count` negatives of each."""
    queries, documents = list[int](), list[list[int]]()
    for query, rows in enumerate(positives):
        for place in rng.permutation(len(rows))[:most].tolist():
            queries.append(query)
            documents.append([int(rows[place]), *negatives(rng, query, place)])
    shape = (len(queries), 1 + count)
    return Rows(
        np.array(queries, dtype=np.int64), np.array(documents, dtype=np.int64).reshape(shape)
    )


@dataclass(eq=False)
class EpochRows:
    """The rows of one epoch after another."""

    draw: Callable[[int], Rows]
    """The rows of an epoch, as many in each."""
    count: int
    queries: list[str]
    documents: list[str]
    twins: Ints | None
    """Where each document's twin stands in `documents`, its own place where it has none; None without a constraint."""
    seed: int
    cut_queries: Cut = list
    cut_documents: Cut = list
    barred: Sequence[frozenset[int]] | None = None
    """Documents that may share no batch with each query, where there is room for that."""

    def __post_init__(self) -> None:
        self.lengths = np.array([len(text) for text in self.documents], dtype=np.int64)
        self.of_epoch = lru_cache(maxsize=1)(self.draw)
        self.epoch = 0

    def dataset(self) -> Any:
        """Return the rows of the current epoch as a trainer reads them: columns of text, and a label."""
        datasets = need("datasets", extra="train", for_="training")
        return datasets.Dataset.from_dict({"row": range(self.count)}).with_transform(self.columns)

    def columns(self, batch: dict[str, list[int]]) -> dict[str, list[Any]]:
        """Return some rows as the losses take them: query, document, its twin where there is a constraint, negatives.

        A document that is not relevant, or has no twin, has an empty text in its place.
        """
        rows, chosen = self.of_epoch(self.epoch), np.array(batch["row"])
        documents, pairs = rows.documents[chosen], rows.documents.shape[1] == 1
        labels = None if rows.labels is None else rows.labels[chosen]
        columns = {"query": self.cut_queries([self.queries[q] for q in rows.queries[chosen]])}
        columns["document"] = self.cut_documents([self.documents[d] for d in documents[:, 0]])
        if self.twins is not None:
            found = self.twins[documents[:, 0]]
            has = found != documents[:, 0]
            has &= (labels == 1) if labels is not None and pairs else True
            twins = [self.documents[d] if one else "" for d, one in zip(found, has, strict=True)]
            columns["twin"] = self.cut_documents(twins)
        for number, side in enumerate(documents[:, 1:].T, start=1):
            columns[f"negative{number}"] = self.cut_documents([self.documents[d] for d in side])
        return columns if labels is None else {**columns, "label": labels.tolist()}


@dataclass(eq=False)
class BatchSampler:
    """Batches in random order; rows of like length share one, and rows that would disturb each other do not."""

    rows: EpochRows
    sampler: Any
    """The data set; accelerate reads this and `drop_last`."""
    batch_size: int
    drop_last: bool = False

    def __len__(self) -> int:
        return -(-self.rows.count // self.batch_size)

    def set_epoch(self, epoch: int) -> None:
        """Draw the rows of an epoch; the trainer calls it before each."""
        self.rows.epoch = epoch
        self.rows.of_epoch(epoch)

    def __iter__(self) -> Iterator[list[int]]:
        drawn, size = self.rows.of_epoch(self.rows.epoch), self.batch_size
        rng = np.random.default_rng([self.rows.seed, self.rows.epoch, 1])
        lengths = self.rows.lengths[drawn.documents].max(axis=1)
        order = rng.permutation(len(lengths))
        for start in range(0, len(order), size * _MEGA):
            mega = order[start : start + size * _MEGA]
            parts = self._apart(mega[np.argsort(-lengths[mega], kind="stable")], drawn)
            yield from (parts[number] for number in rng.permutation(len(parts)))

    def _apart(self, order: Ints, drawn: Rows) -> list[list[int]]:
        """Share rows out, each to the first batch with room that it does not disturb, else to the emptiest one."""
        size, every = self.batch_size, self.rows.barred
        if every is None:
            return [order[start : start + size].tolist() for start in range(0, len(order), size)]
        parts = [list[int]() for _ in range(-(-len(order) // size))]
        held, closed = [set[int]() for _ in parts], [set[int]() for _ in parts]
        for row in order.tolist():
            own, barred = set(drawn.documents[row].tolist()), every[drawn.queries[row]]
            free = [number for number, part in enumerate(parts) if len(part) < size]
            fits = (n for n in free if own.isdisjoint(closed[n]) and barred.isdisjoint(held[n]))
            chosen = next(fits, min(free, key=lambda n: len(parts[n])))
            parts[chosen].append(row)
            held[chosen] |= own
            closed[chosen] |= barred
        return parts
