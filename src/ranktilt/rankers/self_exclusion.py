"""Queries that are documents themselves, as in ArguAna and Quora: a query must not find itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.notes.runs import OwnDocumentsLeftOut


def self_documents(
    collection: Collection, exclude_self: bool | None
) -> dict[int, npt.NDArray[np.int64]]:
    """Rows to leave out by number of the judged query: its own document and all documents of the same origin.

    Ids are compared, with or without the source behind them. With `exclude_self` True, every
    coinciding id counts; with False none. With None all count where at least half of the judged
    queries have a document of their id, and at least half of these a document that holds three in
    four of their words; otherwise none, because numbers used as ids coincide by chance.
    """
    if exclude_self is False:
        return {}
    return collection.memo(
        ("self documents", exclude_self), lambda: _find(collection, exclude_self)
    )


def _find(collection: Collection, exclude_self: bool | None) -> dict[int, npt.NDArray[np.int64]]:
    pairs = _of_equal_id(collection)
    coincide = 2 * pairs[
        "number"
    ].n_unique() >= collection.queries_with_judgments.height and _words_coincide(pairs)
    if not pairs.height or not (exclude_self or coincide):
        return {}
    docs = collection.docs.select("origin").with_row_index("row")
    groups = pairs.select("number", "origin").unique().join(docs, on="origin")
    groups = groups.sort("number", "row").group_by("number", maintain_order=True).agg("row")
    return {int(n): np.asarray(rows, dtype=np.int64) for n, rows in groups.iter_rows()}


def _of_equal_id(collection: Collection) -> pl.DataFrame:
    """Judged queries beside the documents of their id, with or without the source behind it."""
    queries = collection.queries_with_judgments.select("id", query="text").with_row_index("number")
    docs = collection.docs.select("id", "title", "text", "origin").with_columns(
        collection.bare_ids().alias("bare")
    )
    named = pl.concat(
        [docs, docs.filter(pl.col("bare") != pl.col("id")).with_columns(id=pl.col("bare"))]
    )
    return queries.join(named, on="id", how="inner")


def _words_coincide(pairs: pl.DataFrame) -> bool:
    """Whether most queries have nearly all of their words in a document of their id."""
    words = {
        name: expression.str.to_lowercase().str.extract_all(r"\w+").list.unique()
        for name, expression in (
            ("query", pl.col("query")),
            ("held", pl.concat_str("title", "text", separator=" ")),
        )
    }
    table = pairs.select("number", **words)
    number, both = (
        pl.col("query").list.len(),
        pl.col("query").list.set_intersection("held").list.len(),
    )
    alike = table.group_by("number").agg(
        ((number > 0) & (4 * both >= 3 * number)).any().alias("alike")
    )["alike"]
    return 2 * int(alike.sum()) >= len(alike)


def exclusion_spec(excluded: Mapping[int, npt.NDArray[np.int64]]) -> dict[str, int]:
    """What a run's spec says of excluded documents: how many queries' own ones are left out."""
    return {"own_documents_dropped": len(excluded)} if excluded else {}


def exclusion_notes(run: str, spec: Mapping[str, Any]) -> Iterator[OwnDocumentsLeftOut]:
    """Note what a run's spec says of own documents."""
    if spec.get("own_documents_dropped"):
        yield OwnDocumentsLeftOut(run=run, queries=int(spec["own_documents_dropped"]))
