"""A direction in which two sources' vectors differ, which a search can leave out of account."""

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


@dataclass(frozen=True, eq=False)
class Direction(
    Result, format="ranktilt-direction", version=1, noun="a direction", command="ranktilt mitigate"
):
    """A vector of length 1: where the vectors of one source lie, seen from their twins of another."""

    vector: Floats
    spec: Mapping[str, Any]
    """How it was learned: model, sources, how many twins, and the test of its length."""
    origins: tuple[str, ...]
    """Of the twins that it was learned from."""
    keys: tuple[str, ...] = ()
    """The `text_key` of each origin's document of the reference, by which it is known in another collection."""

    def remove(self, vectors: Vectors, strength: float = 1.0) -> Vectors:
        """Return v − s(v·u)u for each row v, in float32; each row depends on that row only.

        Done to queries, this changes every score as if it were done to the documents: q·(v −
        s(v·u)u) = (q − s(q·u)u)·v. So documents are read as they lie in the cache, and nothing is
        computed for each.
        """
        if vectors.shape[1] != len(self.vector):
            raise UserError(
                f"a direction of {len(self.vector)} numbers, by {self.spec['model']}, does not fit vectors of "
                f"{vectors.shape[1]}"
            )
        wide = vectors.astype(np.float64)
        along = np.vecdot(wide, self.vector)[:, None]
        removed: Vectors = (wide - strength * along * self.vector).astype(np.float32)
        return removed

    def queries(self, collection: Collection) -> list[str]:
        """Return the judged queries to which a version of a document is relevant that it was learned from."""
        docs, learned = (
            collection.docs,
            named_keys(self.origins, self.keys or [""] * len(self.origins)),
        )
        relevant = collection.qrels.filter(pl.col("grade") > 0)
        relevant = relevant.join(docs.select("origin", doc_id="id"), on="doc_id", how="inner")
        versions = docs.filter(
            pl.col("origin").is_in([*self.origins, *relevant["origin"].unique()])
        )
        same = same_names(learned, named_keys(versions["origin"], map(text_key, versions["text"])))
        used = relevant.filter(
            pl.col("origin").is_in(pl.Series(sorted(same), dtype=pl.String).implode())
        )
        return collection.queries_with_judgments.filter(
            pl.col("id").is_in(used["query_id"].implode())
        )["id"].to_list()
