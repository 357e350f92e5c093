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
    """Return the rows of the documents to leave out, by the number of the judged query.

    These are the query's own document and all documents of the same origin. Ids are compared with
    and without the source at their end. With `exclude_self` True, every equal id counts; with False
    none. With None, equal ids count where at least half of the judged queries have a document of
    their id, and at least half of these a document with three in four of their words. Otherwise
    none counts, because numbers that are used as ids are equal by chance.
    """
    if exclude_self is False:
        return {}
    return collection.memo(
        ("self documents", exclude_self), lambda: _self_documents(collection, exclude_self)
    )


def _self_documents(
    collection: Collection, exclude_self: bool | None
) -> dict[int, npt.NDArray[np.int64]]:
    """Find the own documents of queries; see `self_documents`."""
    pairs = _pairs_of_equal_id(collection)
    if not pairs.height:
        return {}
    if not exclude_self:
        query_count = pairs["number"].n_unique()
        is_most = 2 * query_count >= collection.queries_with_judgments.height
        if not (is_most and _words_coincide(pairs)):
            return {}
    docs = collection.docs.select("origin").with_row_index("row")
    versions = pairs.select("number", "origin").unique().join(docs, on="origin")
    groups = versions.sort("number", "row").group_by("number", maintain_order=True).agg("row")
    return {int(number): np.asarray(rows, dtype=np.int64) for number, rows in groups.iter_rows()}


def _pairs_of_equal_id(collection: Collection) -> pl.DataFrame:
    """Join judged queries with documents of their id, with or without the source at its end."""
    queries = collection.queries_with_judgments.select("id", query="text").with_row_index("number")
    docs = collection.docs.select("id", "title", "text", "origin")
    docs = docs.with_columns(collection.bare_ids().alias("bare"))
    by_bare_id = docs.filter(pl.col("bare") != pl.col("id")).with_columns(id=pl.col("bare"))
    return queries.join(pl.concat([docs, by_bare_id]), on="id", how="inner")


def _words_coincide(pairs: pl.DataFrame) -> bool:
    """Tell whether most queries share three in four of their words with a document of their id."""
    table = pairs.select(
        "number",
        query=_words(pl.col("query")),
        document=_words(pl.concat_str("title", "text", separator=" ")),
    )
    word_count = pl.col("query").list.len()
    shared_count = pl.col("query").list.set_intersection("document").list.len()
    is_alike = (word_count > 0) & (4 * shared_count >= 3 * word_count)
    has_alike = table.group_by("number").agg(is_alike.any().alias("has_alike"))["has_alike"]
    return 2 * int(has_alike.sum()) >= len(has_alike)


def _words(text: pl.Expr) -> pl.Expr:
    """Return the distinct lower-case words of a text."""
    return text.str.to_lowercase().str.extract_all(r"\w+").list.unique()


def exclusion_spec(excluded: Mapping[int, npt.NDArray[np.int64]]) -> dict[str, int]:
    """Return, for a run's spec, how many queries' own documents are left out."""
    return {"own_documents_dropped": len(excluded)} if excluded else {}


def exclusion_notes(run: str, spec: Mapping[str, Any]) -> Iterator[OwnDocumentsLeftOut]:
    """Note how many queries' own documents a run leaves out."""
    if spec.get("own_documents_dropped"):
        yield OwnDocumentsLeftOut(run=run, queries=int(spec["own_documents_dropped"]))
