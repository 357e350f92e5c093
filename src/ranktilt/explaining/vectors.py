"""Vectors of a collection's documents, read in blocks of rows.

A ranker with an *encoder* turns each text into a vector; similar texts have similar vectors.
Vectors are kept in a cache, one for each distinct text.
"""

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
_ROWS_PER_BLOCK = 2_048
"""Number of vectors that are read together."""


def require_encoder(ranker: Ranker | None, for_: str = "similarity") -> Any:
    """Return the ranker if it has an encoder, as `Dense` has.

    Raises
    ------
    UserError
        If it has none, or its model is missing; the message names the feature `for_`.
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
    """Vectors in the cache, one for each distinct text."""
    row: Rows
    """Row in `stored` of each document's vector."""
    store: str = "float32"
    """Type of the stored numbers, which limits how exact they are."""

    @classmethod
    def from_ranker(
        cls, collection: Collection, ranker: Ranker | None, for_: str = "similarity"
    ) -> DocumentVectors:
        """Encode a collection's documents as a dense ranker does; vectors in the cache are read.

        `for_` is the feature that needs them, for messages.
        """
        dense = require_encoder(ranker, for_)
        texts = collection.texts(dense.text)
        stored, row = dense.encoder.encode(texts, "document", f"{dense!r}: encoding documents")
        return cls(stored=stored, row=row, store=getattr(dense, "store", "float32"))

    def unit(self, documents: Rows) -> Floats:
        """Read documents' vectors, each divided by its length; NaN for a vector of zeros."""
        vectors = self.stored.take(self.row[documents]).astype(np.float64)
        lengths = np.sqrt(np.vecdot(vectors, vectors))[:, None]
        undefined = np.full_like(vectors, np.nan)
        unit: Floats = np.divide(vectors, lengths, out=undefined, where=lengths > 0)
        return unit

    def cosines(self, a: Rows, b: Rows) -> Floats:
        """Compute the cosine of each pair of documents, by rows; NaN where a vector is zero."""
        cosines = np.empty(len(a))
        for block in row_slices(len(a)):
            cosines[block] = np.vecdot(self.unit(a[block]), self.unit(b[block]))
        return np.clip(cosines, -1.0, 1.0)  # rounding may leave the range


def row_slices(count: int) -> Iterator[slice]:
    """Yield slices of at most `_ROWS_PER_BLOCK` rows, which together are `count` rows."""
    for start in range(0, count, _ROWS_PER_BLOCK):
        yield slice(start, min(start + _ROWS_PER_BLOCK, count))


def one_thread() -> AbstractContextManager[Any]:
    """Compute on one thread within the ``with`` block.

    The result is then the same to the last bit with any number of cores, because the order of a sum
    over several threads depends on their number. Also, threads that wait for each other take ten
    times as long while other work uses the processor.
    """
    limits: AbstractContextManager[Any] = need(
        "threadpoolctl", extra="neural", for_="comparing vectors"
    ).threadpool_limits(1)
    return limits
