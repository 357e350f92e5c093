"""Queries that are documents themselves, as in ArguAna and Quora: a query must not find itself.

An *origin* is the text that several documents are versions of, one of each source: ``d7-human`` and
``d7-llm``, for example. A query's *own documents* are the document with the query's id, and all
other versions of its origin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.notes.runs import OwnDocumentsLeftOut

_MOST = 0.5
"""Smallest share of queries that counts as most of them."""
_COMMON_WORDS = 0.75
"""Smallest share of a query's words in a document of its id for both to be one text.

It is below 1 because a version of a text has other words.
"""


def self_documents(
    collection: Collection, exclude_self: bool | None
) -> dict[int, npt.NDArray[np.int64]]:
    """Return the rows of each judged query's own documents, by the index of the query.

    A document has a query's id if its id is equal, with or without the source at its end: the query
    ``d7`` has the documents ``d7``, ``d7-human`` and ``d7-llm``.

    Parameters
    ----------
    collection : Collection
        The queries and documents.
    exclude_self : bool or None
        True: every document with a query's id is the query's own. False: none is. None decides from
        the texts. Then at least half of the judged queries must have a document with their id, and
        at least half of these queries one with three quarters of their words. Otherwise no document
        is a query's own, because ids that are mere numbers are equal by chance.

    Returns
    -------
    dict of int to ndarray of int64
        Rows of own documents in the collection's table. Queries without any are left out.
    """
    if exclude_self is False:
        return {}
    return collection.memo(
        ("self documents", exclude_self), lambda: _self_documents(collection, exclude_self)
    )


def _self_documents(
    collection: Collection, exclude_self: bool | None
) -> dict[int, npt.NDArray[np.int64]]:
    """Compute what `self_documents` returns and remembers."""
    pairs = _pairs_of_equal_id(collection)
    if not pairs.height:
        return {}
    if not exclude_self:
        query_count = pairs["number"].n_unique()
        is_most = query_count >= _MOST * collection.queries_with_judgments.height
        if not (is_most and _words_coincide(pairs)):
            return {}
    docs = collection.docs.select("origin").with_row_index("row")
    versions = pairs.select("number", "origin").unique().join(docs, on="origin")
    own_rows = versions.sort("number", "row").group_by("number", maintain_order=True).agg("row")
    return {int(number): np.asarray(rows, dtype=np.int64) for number, rows in own_rows.iter_rows()}


def _pairs_of_equal_id(collection: Collection) -> pl.DataFrame:
    """Join judged queries with documents of their id, with or without the source at its end.

    The column ``number`` has the index of the query.
    """
    queries = collection.queries_with_judgments.select("id", query="text").with_row_index("number")
    docs = collection.docs.select("id", "title", "text", "origin")
    # Ids without the source at their end. The ids of queries have no source.
    docs = docs.with_columns(collection.bare_ids().alias("bare"))
    by_bare_id = docs.filter(pl.col("bare") != pl.col("id")).with_columns(id=pl.col("bare"))
    return queries.join(pl.concat([docs, by_bare_id]), on="id", how="inner")


def _words_coincide(pairs: pl.DataFrame) -> bool:
    """Tell whether most queries share enough words with a document of their id."""
    table = pairs.select(
        "number",
        query=_words(pl.col("query")),
        document=_words(pl.concat_str("title", "text", separator=" ")),
    )
    word_count = pl.col("query").list.len()
    shared_count = pl.col("query").list.set_intersection("document").list.len()
    is_alike = (word_count > 0) & (shared_count >= _COMMON_WORDS * word_count)
    has_alike = table.group_by("number").agg(is_alike.any().alias("has_alike"))["has_alike"]
    return int(has_alike.sum()) >= _MOST * len(has_alike)


def _words(text: pl.Expr) -> pl.Expr:
    """Return the distinct lower-case words of a text."""
    return text.str.to_lowercase().str.extract_all(r"\w+").list.unique()


def exclusion_spec(excluded: Mapping[int, npt.NDArray[np.int64]]) -> dict[str, int]:
    """Return, for a run's spec, the number of queries whose own documents are left out."""
    return {"own_documents_dropped": len(excluded)} if excluded else {}


def exclusion_notes(run: str, spec: Mapping[str, Any]) -> Iterator[OwnDocumentsLeftOut]:
    """Yield a note on how many queries' own documents a run leaves out, if it leaves out any."""
    if spec.get("own_documents_dropped"):
        yield OwnDocumentsLeftOut(run=run, queries=int(spec["own_documents_dropped"]))
