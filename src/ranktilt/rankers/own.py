"""Queries that are documents themselves, as in ArguAna and Quora: a query must not find itself."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.collection import Collection

_WORD = re.compile(r"\w+")


def own_documents(collection: Collection, exclude_self: bool | None) -> dict[int, npt.NDArray[np.int64]]:
    """Find each judged query's own document and all documents of the same origin.

    Parameters
    ----------
    collection : Collection
        Its judged queries and documents are compared by id (with or without the source behind it).
    exclude_self : bool or None
        True: every coinciding id counts. False: none. None: all count where at least half of the judged
        queries have a document of their id; otherwise only those whose text is the document's too,
        because numbers used as ids coincide by chance.

    Returns
    -------
    dict
        Number of the judged query → rows of the documents to leave out.
    """
    if exclude_self is False:
        return {}
    return collection.memo(("own", exclude_self), lambda: _find(collection, exclude_self))


def _find(collection: Collection, exclude_self: bool | None) -> dict[int, npt.NDArray[np.int64]]:
    queries = collection.judged.select("id", query="text").with_row_index("number")
    docs = collection.docs.select("id", "title", "text", "origin").with_row_index("row")
    docs = docs.with_columns(collection.bare_ids().alias("bare"))
    named = pl.concat([docs, docs.filter(pl.col("bare") != pl.col("id")).with_columns(id=pl.col("bare"))])
    own = queries.join(named, on="id", how="inner")
    if exclude_self is None and own["number"].n_unique() * 2 < queries.height:
        own = own.filter(_same_text())
    if not own.height:
        return {}
    groups = own.select("number", "origin").unique().join(docs.select("origin", "row"), on="origin")
    groups = groups.sort("number", "row").group_by("number", maintain_order=True).agg("row")
    return {int(n): np.asarray(rows, dtype=np.int64) for n, rows in groups.iter_rows()}


def own_spec(collection: Collection, own: dict[int, npt.NDArray[np.int64]]) -> dict[str, int | bool]:
    """What a run's spec says of the documents left out: for how many queries, and whether only ids spoke for it.

    Parameters
    ----------
    collection : Collection
        The collection.
    own : dict
        As `own_documents` gives them.

    Returns
    -------
    dict
        Empty where nothing is left out. ``own_documents_differ`` is there where most of these queries share less
        than half of their words with every document left out, as with numbers that coincide by chance.
    """
    if not own:
        return {}
    queries = [set(_WORD.findall(text.lower())) for text in collection.judged["text"].gather(list(own))]
    texts = collection.texts()
    alike = 0
    for query, rows in zip(queries, own.values(), strict=True):
        held = [set(_WORD.findall(text.lower())) for text in texts.gather(rows)]
        alike += any(2 * len(query & words) >= len(query) for words in held)
    spec: dict[str, int | bool] = {"own_documents_dropped": len(own)}
    return {**spec, "own_documents_differ": True} if 2 * alike < len(own) else spec


def _fold(text: pl.Expr | str) -> pl.Expr:
    expression = pl.col(text) if isinstance(text, str) else text
    return expression.str.to_lowercase().str.replace_all(r"\s+", " ").str.strip_chars()


def _same_text() -> pl.Expr:
    both = pl.concat_str("title", "text", separator=" ")
    return (_fold("query") == _fold("text")) | (_fold("query") == _fold("title")) | (_fold("query") == _fold(both))
