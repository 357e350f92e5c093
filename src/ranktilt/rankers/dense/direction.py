"""A direction in which the vectors of two sources differ, which a search can ignore.

For twins (two versions of one text by two sources) it is the mean difference of their vectors,
scaled to length 1. `ranktilt mitigate` learns it, and a search without it no longer sees the
difference between the sources that it stands for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.data.artifact import Result
from ranktilt.data.collection import Collection
from ranktilt.errors import UserError
from ranktilt.rankers.fit_provenance import named_keys, same_names, text_key

Floats = npt.NDArray[np.float64]
Vectors = npt.NDArray[np.float32]
"""Vectors of texts, shape (n, dimension)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Direction(
    Result, format="ranktilt-direction", version=1, noun="a direction", command="ranktilt mitigate"
):
    """A vector of length 1 that points from texts of one source to their twins of another."""

    vector: Floats
    """The vector."""
    spec: Mapping[str, Any]
    """Model, sources, number of twins, and the test of its length."""
    origins: tuple[str, ...]
    """Origins of the twins that it was learned from."""
    keys: tuple[str, ...] = ()
    """`text_key` of each origin's reference document, which identifies it in other collections."""

    def remove(self, vectors: Vectors, strength: float = 1.0) -> Vectors:
        """Return vectors without their part along the direction, in float32.

        With u the direction and s the `strength`, each row v becomes v − s(v·u)u. A strength of 1
        removes the part whole. A row's result depends on that row alone.

        It is enough to do this to the queries: it changes every score as if the direction were
        removed from the documents, because q·(v − s(v·u)u) = (q − s(q·u)u)·v. So documents are read
        from the cache as they are.
        """
        if vectors.shape[1] != len(self.vector):
            raise UserError(
                f"a direction of {len(self.vector)} numbers, by {self.spec['model']}, does not fit "
                f"vectors of {vectors.shape[1]}"
            )
        wide = vectors.astype(np.float64)
        along = np.vecdot(wide, self.vector)[:, None]
        removed: Vectors = (wide - strength * along * self.vector).astype(np.float32)
        return removed

    def queries(self, collection: Collection) -> list[str]:
        """Return the judged queries that the direction may have learned from.

        These are the queries with a relevant document that is a version of one of its twins. An
        audit leaves them out.
        """
        learned = named_keys(self.origins, self.keys or [""] * len(self.origins))
        relevant = collection.qrels.filter(pl.col("grade") > 0)
        origins = collection.docs.select("origin", doc_id="id")
        relevant = relevant.join(origins, on="doc_id", how="inner")
        candidates = [*self.origins, *relevant["origin"].unique()]
        versions = collection.docs.filter(pl.col("origin").is_in(candidates))
        present = named_keys(versions["origin"], map(text_key, versions["text"]))
        same = pl.Series(sorted(same_names(learned, present)), dtype=pl.String)
        known = relevant.filter(pl.col("origin").is_in(same.implode()))
        queries = collection.queries_with_judgments
        is_known = pl.col("id").is_in(known["query_id"].implode())
        return queries.filter(is_known)["id"].to_list()
