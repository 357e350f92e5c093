"""Rankers that tell copies apart, each in a way of its own."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl

from ranktilt.collection import Collection
from ranktilt.rankers.base import Ranker
from ranktilt.rankers.lexical.bm25 import BM25
from ranktilt.run import Run


@dataclass(frozen=True, kw_only=True)
class Unfair(Ranker):
    """BM25 with a fault.

    Parameters
    ----------
    k : int
        Depth.
    fault : {"id", "row", "noise", "source", "none"}
        A cut through a tie keeps the lower id, or the earlier row; scores differ in the last digits; human text
        gets a bonus.
    """

    name: ClassVar[str] = "unfair"
    k: int = 1000
    fault: str = "none"

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        """Rank everything, spoil the scores or the order, and cut."""
        whole = BM25(k=collection.docs.height).rank(collection)
        row = {name: n for n, name in enumerate(collection.ids)}
        source = dict(collection.docs.select("id", "source").iter_rows())
        frame = whole.frame().with_columns(
            row=pl.col("doc_id").replace_strict(row), human=pl.col("doc_id").replace_strict(source) == "human"
        )
        if self.fault == "noise":
            frame = frame.with_columns(score=pl.col("score") + np.random.default_rng(0).random(frame.height) * 1e-9)
        if self.fault == "source":
            frame = frame.with_columns(score=pl.col("score") + pl.col("human") * 0.1)
        last = {"id": ["doc_id"], "row": ["row"]}.get(self.fault, [])
        frame = frame.sort("query_id", "score", *last, descending=[False, True, *([False] * len(last))])
        if self.fault != "none":
            frame = frame.group_by("query_id", maintain_order=True).head(self.k)
        return Run.from_frame(frame, queries=whole.queries, spec={"ranker": repr(self)})
