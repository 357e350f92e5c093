"""Turn tables of pages into arrays: queries and units as numbers, labels as group a or not.

A table has a row for each page of an answer. Two groups of pages are compared, a and b; a *unit* is
pages that are labelled together, such as those of a domain.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from ranktilt.measures.citations.base import CitationRows, Ints

_UNCHANGED_COLUMNS = (
    "weight",
    "is_cited",
    "is_first",
    "is_consulted",
    "retrieval_rank",
    "cited_words",
)
"""Columns of a table that become arrays of the same name without a change."""
PART = "label_part"
"""Column with the number of a page's part, if labels of some parts are wrong more often."""


def pair_frame(rows: pl.DataFrame, a: str, b: str) -> pl.DataFrame:
    """Return the rows of a table whose pages are of group a or group b."""
    return rows.filter(pl.col("label").is_in([a, b]))


def citation_rows(
    frame: pl.DataFrame,
    a: str,
    *,
    queries: pl.Series | None = None,
    units: pl.Series | None = None,
) -> CitationRows:
    """Return the rows of a table as arrays; every page that is not of group a counts as group b.

    Parameters
    ----------
    frame : polars.DataFrame
        A table with the columns of `CitationInputs.rows`.
    a : str
        The label of group a.
    queries, units : polars.Series, optional
        Names of all queries and units, whose positions are their numbers. Two engines that are
        compared need the same numbers. By default the names that the table holds, sorted.
    """
    columns = {name: frame[name].to_numpy() for name in _UNCHANGED_COLUMNS}
    if PART in frame.columns:
        columns["part"] = frame[PART].to_numpy()
    return CitationRows(
        question=numbers_of(frame["query"], queries),
        cluster=numbers_of(frame["unit"], units),
        is_a=(frame["label"] == a).to_numpy(),
        **columns,
    )


def numbers_of(names: pl.Series, known: pl.Series | None = None) -> Ints:
    """Return the number of each name, from 0: its position in `known`.

    Without `known`, names are numbered in their sorted order.
    """
    distinct = names.unique().sort() if known is None else known
    numbers = pl.DataFrame(
        {"name": distinct, "number": np.arange(len(distinct))}, schema_overrides={"name": pl.String}
    )
    frame = names.alias("name").to_frame()
    numbered = frame.join(numbers, on="name", how="left", maintain_order="left")
    return numbered["number"].to_numpy().astype(np.int64)


def joined_rows(first: CitationRows, second: CitationRows) -> CitationRows:
    """Return the rows of two engines, those of the first one before those of the second.

    Their queries and units must have the same numbers. A column that the first one lacks, such as
    `membership`, is left out.
    """
    columns = {
        name: np.concatenate([getattr(first, name), getattr(second, name)])
        for name in CitationRows.__dataclass_fields__
        if getattr(first, name) is not None
    }
    return CitationRows(**columns)
