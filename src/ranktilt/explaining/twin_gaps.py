"""Gaps between twins in a run: how far the reference is ahead of its twin, query by query.

*Twins* are two documents of the same origin, one by the *reference* and one by another source
(author).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run, codes, collection_rows
from ranktilt.explaining.base import Rows

FEWEST_PAIRS = 30
"""Minimum number of pairs of twins for a regression."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TwinPairRows:
    """Pairs of twins under a query, by their rows in the collection."""

    query: Rows
    """Row of the query."""
    reference: Rows
    """Row of the reference's document."""
    twin: Rows
    """Row of its twin."""

    @classmethod
    def from_gaps(cls, gaps_of_pairs: pl.DataFrame) -> TwinPairRows:
        """Take the rows from a table of `gaps`."""
        return cls(
            query=gaps_of_pairs["query"].to_numpy(),
            reference=gaps_of_pairs["reference"].to_numpy(),
            twin=gaps_of_pairs["twin"].to_numpy(),
        )


def gaps(collection: Collection, run: Run, reference: str, source: str) -> pl.DataFrame:
    """Return a row for each query and each pair of twins that are both in its list.

    The columns ``query``, ``reference`` and ``twin`` are rows in the collection. ``score`` and
    ``rank`` are how far the reference is ahead of its twin: in standard deviations of the query's
    scores (0 if all are tied), and in ranks.
    """
    docs = collection.docs.select("source", "origin", row=pl.int_range(pl.len()))
    query_codes = codes(pl.Series(run.queries, dtype=pl.String), collection.queries["id"])
    entries = pl.DataFrame(
        {
            "query": query_codes[run.entry_queries],
            "row": collection_rows(run, collection)[run.docs],
            "score": run.scores,
        }
    )
    scored = (
        entries.with_columns(
            deviation=pl.col("score").std(ddof=0).over("query"),
            rank=pl.col("score").rank("average", descending=True).over("query"),
        )
        .filter(pl.col("query") >= 0)
        .join(docs, on="row", maintain_order="left")
    )
    reference_entries = scored.filter(pl.col("source") == reference)
    source_entries = scored.filter(pl.col("source") == source)
    twins = reference_entries.join(
        source_entries, on=["query", "origin"], suffix="_twin", maintain_order="left"
    )
    score_gap = (pl.col("score") - pl.col("score_twin")) / pl.col("deviation")
    return twins.select(
        "query",
        reference="row",
        twin="row_twin",
        rank=pl.col("rank_twin") - pl.col("rank"),
        score=pl.when(pl.col("deviation") > 0).then(score_gap).otherwise(0.0),
    )


def judged_gaps(collection: Collection, pair_gaps: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """Return the gaps of judged documents if there are at least `FEWEST_PAIRS`, else all.

    The second value says which: ``judged`` or ``all``.
    """
    origin = collection.origin_codes()[pair_gaps["reference"].to_numpy()]
    # Query and origin as a single number, by the formula of `judged_origins`.
    query_and_origin = pair_gaps["query"].to_numpy() * collection.docs.height + origin
    is_judged = np.isin(query_and_origin, judged_origins(collection))
    if is_judged.sum() < FEWEST_PAIRS:
        return pair_gaps, "all"
    return pair_gaps.filter(is_judged), "judged"


def judged_origins(collection: Collection) -> Rows:
    """Return a number for each query and origin with a judged document, in rising order.

    The number is ``row of the query · number of documents + code of the origin``.
    """
    query = codes(collection.qrels["query_id"], collection.queries["id"])
    row = codes(collection.qrels["doc_id"], collection.ids)
    known = (query >= 0) & (row >= 0)
    return np.unique(query[known] * collection.docs.height + collection.origin_codes()[row[known]])
