"""List citations that differ in one thing only: the version, the position, or the label.

A language model answers a query from the documents of a *context*, and cites some of them. A
document has two *versions*, by group a and group b; the text of which both are versions is its
*origin*. A document may be shown with a *label*, the group that is said to be its author: the true
one, or *swapped* for the other group.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from ranktilt.citing.experiment.paired import PairedCitations
from ranktilt.citing.making.twins import Pair

_CONDITION = ("query", "repeat", "shown_label")
"""Columns that two answers have in common if only the positions of versions differ."""
_IS_CITED = pl.col("citation_rank").is_not_null()
"""Whether the document of a row is cited; the rank is null where it is not."""


def version_table(documents: pl.DataFrame, pair: Pair) -> pl.DataFrame:
    """Return a row for each document of each answer, with which of its versions was cited.

    Each context is asked in two orders, in which the versions have exchanged their positions. Only
    contexts that were answered in both orders count, so that position favours neither version.

    Parameters
    ----------
    documents : polars.DataFrame
        A row for each document of each answer, with the columns of `DOCUMENT_SCHEMA` in
        `ranktilt.citing.making.session`.
    pair : (str, str)
        Groups a and b.

    Returns
    -------
    polars.DataFrame
        ``answer``, ``query``, ``repeat``, ``shown_label``, ``origin``, and whether versions are
        cited: ``cited_a`` and ``cited_b`` (of group a and b), ``cited_first`` and ``cited_second``
        (the one shown first, and the one after it).
    """
    orders = documents.group_by(_CONDITION).agg(orders=pl.col("is_swapped").n_unique())
    complete = orders.filter(pl.col("orders") == 2).drop("orders")
    rows = documents.join(complete, on=_CONDITION, maintain_order="left")
    rows = rows.with_columns(is_cited=_IS_CITED)
    keys = ["answer", *_CONDITION, "origin"]
    versions_a, versions_b = (
        rows.filter(pl.col("group") == group).select(*keys, "is_cited", "position")
        for group in pair
    )
    table = versions_a.join(versions_b, on=keys, suffix="_b", maintain_order="left")
    is_a_first = pl.col("position") < pl.col("position_b")
    first = pl.when(is_a_first).then("is_cited").otherwise("is_cited_b")
    second = pl.when(is_a_first).then("is_cited_b").otherwise("is_cited")
    return table.select(
        "answer",
        *_CONDITION,
        "origin",
        cited_a="is_cited",
        cited_b="is_cited_b",
        cited_first=first,
        cited_second=second,
    )


def label_table(documents: pl.DataFrame, pair: Pair) -> pl.DataFrame:
    """Return a row for each document whose context was answered with both labels.

    Each context is asked with the true labels and with swapped ones; both must have an answer.
    `documents` and `pair` are those of `version_table`. Columns are ``answer``, ``query``,
    ``origin``, ``cited_a`` (whether the document is cited if its label says group a) and
    ``cited_b`` (if its label says group b).
    """
    # `is_swapped` is about the positions of versions, which must be the same for both labels.
    keys = ["query", "repeat", "is_swapped", "id"]
    rows = documents.filter(pl.col("group").is_in(list(pair))).with_columns(is_cited=_IS_CITED)
    with_true_label, with_swapped_label = (
        rows.filter(pl.col("shown_label") == label) for label in ("true", "swapped")
    )
    swapped_citations = with_swapped_label.select(*keys, is_cited_swapped="is_cited")
    table = with_true_label.join(swapped_citations, on=keys, maintain_order="left")
    is_a = pl.col("group") == pair[0]
    as_a = pl.when(is_a).then("is_cited").otherwise("is_cited_swapped")
    as_b = pl.when(is_a).then("is_cited_swapped").otherwise("is_cited")
    return table.select("answer", "query", "origin", cited_a=as_a, cited_b=as_b)


def paired_citations(table: pl.DataFrame, columns: Sequence[str]) -> PairedCitations:
    """Return the comparisons of two columns of a table as arrays.

    `table` comes from `version_table` or `label_table`, and `columns` are two that say whether a
    version is cited. Each answer weighs 1 / the number of answers to its query, so that every query
    counts equally.
    """
    answers = pl.col("answer").n_unique().over("query")
    weights = table.select(weight=1.0 / answers)["weight"]
    is_cited_a, is_cited_b = (table[name].to_numpy().astype(bool) for name in columns)
    return PairedCitations(
        query=_numbers(table["query"]),
        origin=_numbers(table["origin"]),
        weight=weights.to_numpy().astype(np.float64),
        is_cited_a=is_cited_a,
        is_cited_b=is_cited_b,
    )


def _numbers(names: pl.Series) -> np.ndarray:
    """Return the number of each name, from 0, in their sorted order."""
    return names.rank("dense").to_numpy().astype(np.int64) - 1
