"""Vectors of a collection's documents, read a part at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktilt.data.collection import Collection
from ranktilt.errors import UserError
from ranktilt.optional import need
from ranktilt.rankers.base import Ranker

Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_AT_ONCE = 2_048
"""Number of vectors that are read together."""


def require_encoder(ranker: Ranker | None, for_: str = "similarity") -> Any:
    """Return a ranker that has an encoder, such as `Dense`.

    `UserError` if it has none, or its model is not there.
    """
    if ranker is None:
        raise UserError(
            f"{for_} needs vectors from an encoder; choose one: --encoder dense:minilm (ranker=)"
        )
    if not (hasattr(type(ranker), "encoder") and hasattr(ranker, "text")):
        raise UserError(
            f"{for_} needs vectors from an encoder, such as dense:minilm; {ranker!r} makes none"
        )
    ranker.check()
    return ranker


@dataclass(frozen=True, kw_only=True, eq=False)
class DocumentVectors:
    """Vectors of all documents of a collection, read from the cache's files."""

    stored: Any
    """The cache's vectors: one for each distinct text."""
    row: Rows
    """The stored row of each document."""
    store: str = "float32"
    """Type of the stored numbers, which bounds how exact they are."""

    @classmethod
    def from_ranker(
        cls, collection: Collection, ranker: Ranker | None, for_: str = "similarity"
    ) -> DocumentVectors:
        """Encode a collection's documents as a dense ranker does, except those in the cache."""
        dense = require_encoder(ranker, for_)
        texts = collection.texts(dense.text)
        stored, row = dense.encoder.encode(texts, "document", f"{dense!r}: encoding documents")
        return cls(stored=stored, row=row, store=getattr(dense, "store", "float32"))

    def unit(self, documents: Rows) -> Floats:
        """Read documents' vectors, each divided by its length; NaN for a vector of zeros."""
        vectors = self.stored.take(self.row[documents]).astype(np.float64)
        length = np.sqrt(np.vecdot(vectors, vectors))[:, None]
        undefined = np.full_like(vectors, np.nan)
        unit: Floats = np.divide(vectors, length, out=undefined, where=length > 0)
        return unit

    def cosines(self, a: Rows, b: Rows) -> Floats:
        """Compute the cosine of each pair of documents, by rows; NaN where a vector is zero."""
        cosines = np.empty(len(a))
        for part in parts(len(a)):
            cosines[part] = np.vecdot(self.unit(a[part]), self.unit(b[part]))
        return np.clip(cosines, -1.0, 1.0)


def parts(count: int) -> Iterator[slice]:
    """Yield slices of at most `_AT_ONCE` rows, which together are `count` rows."""
    for start in range(0, count, _AT_ONCE):
        yield slice(start, min(start + _AT_ONCE, count))


def one_thread() -> AbstractContextManager[Any]:
    """Compute on one thread within the ``with`` block.

    The result is then the same to the last bit on any machine: sums over several threads depend on
    how many there are. Threads that wait for each other also take ten times as long while other
    work shares the processor.
    """
    limits: AbstractContextManager[Any] = need(
        "threadpoolctl", extra="neural", for_="comparing vectors"
    ).threadpool_limits(1)
    return limits
