"""Gaps between twins in a run: how far the reference is ahead of its twin, query by query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.run import Run, codes, collection_rows
from ranktilt.explaining.base import Rows

FEWEST_PAIRS = 30
"""Pairs of twins that a regression needs."""


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
    """Return a row for each pair of twins that a run holds both of, by query.

    Columns are the rows of `query`, `reference` and `twin` in the collection, and how far the
    reference is ahead: in standard deviations of the query's scores (`score`), and in ranks
    (`rank`). The signs are those of the card's score gap and rank gap.
    """
    docs = collection.docs.select("source", "origin", reference=pl.int_range(pl.len()))
    query_codes = codes(pl.Series(run.queries, dtype=pl.String), collection.queries["id"])
    entries = pl.DataFrame(
        {
            "query": query_codes[run.entry_queries],
            "reference": collection_rows(run, collection)[run.docs],
            "score": run.scores,
        }
    )
    scored = (
        entries.with_columns(
            spread=pl.col("score").std(ddof=0).over("query"),
            position=pl.col("score").rank("average", descending=True).over("query"),
        )
        .filter(pl.col("query") >= 0)
        .join(docs, on="reference", maintain_order="left")
    )
    of_reference = scored.filter(pl.col("source") == reference)
    of_source = scored.filter(pl.col("source") == source)
    twins = of_reference.join(
        of_source, on=["query", "origin"], suffix="_twin", maintain_order="left"
    )
    ahead = (pl.col("score") - pl.col("score_twin")) / pl.col("spread")
    return twins.select(
        "query",
        "reference",
        twin="reference_twin",
        rank=pl.col("position_twin") - pl.col("position"),
        score=pl.when(pl.col("spread") > 0).then(ahead).otherwise(0.0),
    )


def judged_gaps(collection: Collection, pair_gaps: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """Keep the judged pairs where they are enough, and say which pairs these are."""
    origin = collection.origin_codes()[pair_gaps["reference"].to_numpy()]
    pair = pair_gaps["query"].to_numpy() * collection.docs.height + origin
    is_judged = np.isin(pair, judged_origins(collection))
    if is_judged.sum() < FEWEST_PAIRS:
        return pair_gaps, "all"
    return pair_gaps.filter(is_judged), "judged"


def judged_origins(collection: Collection) -> Rows:
    """Return a number for each judged pair of query and origin.

    It is the query's row · documents + the origin's number.
    """
    query = codes(collection.qrels["query_id"], collection.queries["id"])
    row = codes(collection.qrels["doc_id"], collection.ids)
    known = (query >= 0) & (row >= 0)
    return np.unique(query[known] * collection.docs.height + collection.origin_codes()[row[known]])
