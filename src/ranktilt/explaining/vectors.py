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


def require_encoder(ranker: Ranker | None, for_: str = "similarity") -> Any:
    """Return a ranker that has an encoder, such as `Dense`; `UserError` if it has none or its model is not there."""
    if ranker is None:
        raise UserError(
            f"{for_} needs the vectors of an encoder; choose one: --encoder dense:minilm (ranker=)"
        )
    if not (hasattr(type(ranker), "encoder") and hasattr(ranker, "text")):
        raise UserError(
            f"{for_} needs the vectors of an encoder, such as dense:minilm; {ranker!r} makes none"
        )
    ranker.check()
    return ranker


@dataclass(frozen=True, eq=False)
class DocumentVectors:
    """Vectors of all documents of a collection, by row; they lie in the cache's files, one a distinct text."""

    stored: Any
    row: Rows
    store: str = "float32"
    """How the numbers are kept, which bounds what can be known of them."""

    @classmethod
    def from_ranker(
        cls, collection: Collection, ranker: Ranker | None, for_: str = "similarity"
    ) -> DocumentVectors:
        """Encode a collection's documents as a dense ranker does; what is cached is not computed again."""
        dense = require_encoder(ranker, for_)
        texts = collection.texts(dense.text)
        stored, row = dense.encoder.encode(texts, "document", f"{dense!r}: encoding documents")
        return cls(stored, row, getattr(dense, "store", "float32"))

    def unit(self, documents: Rows) -> Floats:
        """Read documents' vectors, each divided by its length; NaN for a vector of zeros."""
        found = self.stored.take(self.row[documents]).astype(np.float64)
        length = np.sqrt(np.vecdot(found, found))[:, None]
        unit: Floats = np.divide(found, length, out=np.full_like(found, np.nan), where=length > 0)
        return unit

    def cosines(self, a: Rows, b: Rows) -> Floats:
        """Compute the cosine of each pair of documents, given by rows; NaN where a vector is zero."""
        out = np.empty(len(a))
        for part in parts(len(a)):
            out[part] = np.vecdot(self.unit(a[part]), self.unit(b[part]))
        return np.clip(out, -1.0, 1.0)


def parts(count: int) -> Iterator[slice]:
    """Cut so many rows into slices of which one fits the memory."""
    for start in range(0, count, _AT_ONCE):
        yield slice(start, min(start + _AT_ONCE, count))


def one_thread() -> AbstractContextManager[Any]:
    """Compute on one thread within the ``with`` block: the same result to the last bit on any machine.

    Sums over several threads depend on how many there are, and threads that wait for each other
    take ten times as long while other work shares the processor.
    """
    limits: AbstractContextManager[Any] = need(
        "threadpoolctl", extra="neural", for_="comparing vectors"
    ).threadpool_limits(1)
    return limits
