"""The rows of an epoch as a trainer's data set, and the batches that they are put into.

A *row* is a query and its documents: a *positive*, which is relevant, and *negatives*, which are
not. Or it is a pair of a query and one document, with a label. Rows are drawn anew for each epoch,
from the seed. A *twin* is a language model's version of a positive; the *constraint*, an option of
a training, is a penalty for scoring a twin above its positive. A trainer reads a row as *columns*
of texts: query, document, and so on.
"""

from __future__ import annotations

import math
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
"""Function that cuts texts to the number of tokens that a model reads."""
DrawNegatives = Callable[[np.random.Generator, int, int], list[int]]
"""Function that draws negatives.

It takes a generator, the index of a query, and the index of a positive among the query's positives.
"""
_BATCHES_IN_CHUNK = 32
"""Number of batches whose rows are sorted by length together.

A batch is padded to its longest text, so its rows should be of similar length. But if all rows were
sorted together, every epoch would have the same batches.
"""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Rows of an epoch, as indices of texts."""

    queries: Ints
    """Query of each row."""
    documents: Ints
    """Documents of each row, of shape (n_rows, n_documents).

    The positive comes first, unless rows are pairs with labels.
    """
    labels: Floats | None = None
    """1 if the document of a pair is relevant, else 0; None if rows are no pairs."""

    def pairs(self) -> Rows:
        """Return each document as a separate row, labelled 1 (relevant) or 0."""
        documents_per_row = self.documents.shape[1]
        is_first = np.arange(self.documents.size) % documents_per_row == 0
        return Rows(
            queries=np.repeat(self.queries, documents_per_row),
            documents=self.documents.reshape(-1, 1),
            labels=is_first.astype(np.float64),
        )


def draw_rows(
    rng: np.random.Generator,
    positives: Sequence[Ints],
    draw_negatives: DrawNegatives,
    *,
    positives_per_query: int | None,
    negatives_per_positive: int,
) -> Rows:
    """Draw an epoch's positives in random order for each query, and the negatives of each.

    Parameters
    ----------
    rng : Generator
        Random generator of the epoch.
    positives : sequence of arrays
        Relevant documents of each query, as indices of texts.
    draw_negatives : callable
        Function of a generator, the index of a query, and the index of a positive among the query's
        positives.
    positives_per_query : int or None
        Maximum number of positives of a query; None for all.
    negatives_per_positive : int
        Number of negatives that `draw_negatives` returns.

    Returns
    -------
    Rows
        One row for each positive, without labels.
    """
    queries, documents = list[int](), list[list[int]]()
    for query, relevant in enumerate(positives):
        for position in rng.permutation(len(relevant))[:positives_per_query].tolist():
            negatives = draw_negatives(rng, query, position)
            queries.append(query)
            documents.append([int(relevant[position]), *negatives])
    # The shape is explicit because an epoch may be empty.
    shape = (len(queries), 1 + negatives_per_positive)
    return Rows(
        queries=np.array(queries, dtype=np.int64),
        documents=np.array(documents, dtype=np.int64).reshape(shape),
    )


@dataclass(eq=False, kw_only=True)
class EpochRows:
    """The rows of one epoch after another; `epoch` is the number of the current one."""

    draw: Callable[[int], Rows]
    """Function that draws the rows of an epoch by its number."""
    count: int
    """Number of rows, the same in every epoch."""
    queries: list[str]
    """Texts of the queries."""
    documents: list[str]
    """Texts of the documents."""
    twins: Ints | None
    """Index of each document's twin in `documents`, or its own if it has none; None without a
    constraint."""
    seed: int
    """Random seed of the batches."""
    cut_queries: Cut = list
    """Function that cuts queries; by default they stay whole."""
    cut_documents: Cut = list
    """Function that cuts documents; by default they stay whole."""
    barred: Sequence[frozenset[int]] | None = None
    """For each query, the documents relevant to it, which may not be its negatives.

    A query's negatives include the documents of the other rows in its batch. None for losses that
    use the negatives of the row alone.
    """

    def __post_init__(self) -> None:
        self.lengths = np.array([len(text) for text in self.documents], dtype=np.int64)
        # A trainer asks for rows batch by batch; the cache draws each epoch only once.
        self.rows_of_epoch = lru_cache(maxsize=1)(self.draw)
        self.epoch = 0

    def dataset(self) -> Any:
        """Return the current epoch's rows as a data set of texts and labels, made when read."""
        datasets = need("datasets", extra="train", for_="training")
        return datasets.Dataset.from_dict({"row": range(self.count)}).with_transform(self.columns)

    def columns(self, batch: dict[str, list[int]]) -> dict[str, list[Any]]:
        """Return the texts of some rows, in the columns that the losses take.

        The columns are query, document, its twin where there is a constraint, negatives, and the
        label where rows are pairs. In the column of twins, a text is empty if the document is not
        relevant or has no twin. `batch` holds the indices of the rows in its list ``row``.
        """
        rows, indices = self.rows_of_epoch(self.epoch), np.array(batch["row"])
        queries, documents = rows.queries[indices], rows.documents[indices]
        labels = None if rows.labels is None else rows.labels[indices]
        columns: dict[str, list[Any]] = {
            "query": self.cut_queries([self.queries[query] for query in queries]),
            "document": self._document_texts(documents[:, 0]),
        }
        if self.twins is not None:
            columns["twin"] = self._twin_texts(self.twins, documents, labels)
        for number, negatives in enumerate(documents[:, 1:].T, start=1):
            columns[f"negative{number}"] = self._document_texts(negatives)
        if labels is not None:
            columns["label"] = labels.tolist()
        return columns

    def _document_texts(self, documents: Ints) -> list[str]:
        """Return the cut texts of documents."""
        return self.cut_documents([self.documents[document] for document in documents])

    def _twin_texts(self, twins: Ints, documents: Ints, labels: Floats | None) -> list[str]:
        """Return the text of the twin of each row's first document.

        It is empty if the document has no twin or is not relevant.
        """
        first = documents[:, 0]
        twins = twins[first]
        has_twin = twins != first  # a document without a twin has its own index there
        if labels is not None and documents.shape[1] == 1:
            # Rows are pairs, and the constraint compares only relevant documents with their twins.
            has_twin &= labels == 1
        texts = [
            self.documents[twin] if is_present else ""
            for twin, is_present in zip(twins, has_twin, strict=True)
        ]
        return self.cut_documents(texts)


@dataclass(eq=False, kw_only=True)
class BatchSampler:
    """Batches in random order, of rows of similar length that do not disturb each other.

    In a batch, the documents of all other rows are negatives of a query too. A row *disturbs* a
    query if one of the row's documents is relevant to that query.
    """

    rows: EpochRows
    """Rows to put into batches."""
    sampler: Any
    """The data set. It is not used here, but the accelerate package expects this field."""
    batch_size: int
    """Number of rows in a batch."""
    drop_last: bool = False
    """Whether a last batch with too few rows is left out; accelerate expects this field too."""

    def __len__(self) -> int:
        return math.ceil(self.rows.count / self.batch_size)

    def set_epoch(self, epoch: int) -> None:
        """Draw the rows of an epoch; the trainer calls it before each."""
        self.rows.epoch = epoch
        self.rows.rows_of_epoch(epoch)

    def __iter__(self) -> Iterator[list[int]]:
        drawn, size = self.rows.rows_of_epoch(self.rows.epoch), self.batch_size
        # The 1 keeps these draws apart from those of the rows, which have the seed and the epoch.
        rng = np.random.default_rng([self.rows.seed, self.rows.epoch, 1])
        lengths = self.rows.lengths[drawn.documents].max(axis=1)
        order = rng.permutation(len(lengths))
        for start in range(0, len(order), size * _BATCHES_IN_CHUNK):
            chunk = order[start : start + size * _BATCHES_IN_CHUNK]
            longest_first = chunk[np.argsort(-lengths[chunk], kind="stable")]
            batches = self._batches(longest_first, drawn)
            yield from (batches[number] for number in rng.permutation(len(batches)))

    def _batches(self, order: Ints, drawn: Rows) -> list[list[int]]:
        """Put each row into the first batch with room where no query is disturbed.

        If there is no such batch, the row goes into the batch with the fewest rows. `order` holds
        the indices of the rows to put into batches, `drawn` all rows of the epoch.
        """
        size, barred_documents = self.batch_size, self.rows.barred
        if barred_documents is None:
            return [order[start : start + size].tolist() for start in range(0, len(order), size)]
        batch_count = math.ceil(len(order) / size)
        batches = [_Batch() for _ in range(batch_count)]
        for row in order.tolist():
            documents = set(drawn.documents[row].tolist())
            barred = barred_documents[drawn.queries[row]]
            with_room = [batch for batch in batches if len(batch.rows) < size]
            undisturbed = (batch for batch in with_room if batch.accepts(documents, barred))
            emptiest = min(with_room, key=lambda batch: len(batch.rows))
            next(undisturbed, emptiest).add(row, documents, barred)
        return [batch.rows for batch in batches]


class _Batch:
    """A batch that is being filled."""

    def __init__(self) -> None:
        self.rows = list[int]()
        self._documents = set[int]()
        self._barred = set[int]()

    def accepts(self, documents: set[int], barred: frozenset[int]) -> bool:
        """Return whether a row disturbs no query of the batch, nor the batch the row's query.

        `barred` are the documents that are relevant to the row's query.
        """
        return documents.isdisjoint(self._barred) and barred.isdisjoint(self._documents)

    def add(self, row: int, documents: set[int], barred: frozenset[int]) -> None:
        """Add a row, with its documents and those that are relevant to its query."""
        self.rows.append(row)
        self._documents |= documents
        self._barred |= barred
