"""Rows of answers as arrays: queries and units as numbers, labels as sides."""

from __future__ import annotations

import numpy as np
import polars as pl

from ranktilt.measures.citations.base import CitationRows, Ints

_AS_THEY_ARE = (
    "weight",
    "is_cited",
    "is_first",
    "is_consulted",
    "retrieval_rank",
    "cited_words",
)
"""Columns that become arrays without a change."""


def pair_frame(rows: pl.DataFrame, a: str, b: str) -> pl.DataFrame:
    """Return the rows of two groups."""
    return rows.filter(pl.col("label").is_in([a, b]))


def citation_rows(
    frame: pl.DataFrame,
    a: str,
    *,
    queries: pl.Series | None = None,
    units: pl.Series | None = None,
) -> CitationRows:
    """Return rows as arrays, with group a on one side and all others on the other.

    Queries and units are numbered from 0 in the order of `queries` and `units`, or of their names
    where these are not given: two engines that are compared need the same numbers.
    """
    columns = {name: frame[name].to_numpy() for name in _AS_THEY_ARE}
    return CitationRows(
        question=numbers_of(frame["query"], queries),
        cluster=numbers_of(frame["unit"], units),
        is_a=(frame["label"] == a).to_numpy(),
        **columns,
    )


def numbers_of(names: pl.Series, known: pl.Series | None = None) -> Ints:
    """Return the number of each name among the known ones, or in the order of the names."""
    distinct = names.unique().sort() if known is None else known
    numbers = pl.DataFrame(
        {"name": distinct, "number": np.arange(len(distinct))}, schema_overrides={"name": pl.String}
    )
    frame = names.alias("name").to_frame()
    joined = frame.join(numbers, on="name", how="left", maintain_order="left")
    return joined["number"].to_numpy().astype(np.int64)


def joined_rows(first: CitationRows, second: CitationRows) -> CitationRows:
    """Return the rows of two engines after each other; they have the same numbers."""
    pairs = {
        name: np.concatenate([getattr(first, name), getattr(second, name)])
        for name in CitationRows.__dataclass_fields__
    }
    return CitationRows(**pairs)
