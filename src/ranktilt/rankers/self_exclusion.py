"""Queries that are documents themselves, as in ArguAna and Quora: a query must not find itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.collection import Collection
from ranktilt.errors import counted

IN_DOUBT = "own_documents_in_doubt"
"""Key of a run's spec: judged queries that have the id of a document with another text, which was not left out."""


def self_documents(collection: Collection, exclude_self: bool | None) -> dict[int, npt.NDArray[np.int64]]:
    """Rows to leave out by number of the judged query: its own document and all documents of the same origin.

    Ids are compared, with or without the source behind them. With `exclude_self` True, every coinciding id counts; with
    False none. With None all count where at least half of the judged queries have a document of their id, and at least
    half of these a document that holds three in four of their words; otherwise only those whose text is the document's
    too, because numbers used as ids coincide by chance.
    """
    if exclude_self is False:
        return {}
    return collection.memo(("self documents", exclude_self), lambda: _find(collection, exclude_self))


def _find(collection: Collection, exclude_self: bool | None) -> dict[int, npt.NDArray[np.int64]]:
    pairs = _of_equal_id(collection)
    if exclude_self is None and not (_ids_coincide(pairs, collection) and _words_coincide(pairs)):
        pairs = pairs.filter(_same_text())
    if not pairs.height:
        return {}
    docs = collection.docs.select("origin").with_row_index("row")
    groups = pairs.select("number", "origin").unique().join(docs, on="origin")
    groups = groups.sort("number", "row").group_by("number", maintain_order=True).agg("row")
    return {int(n): np.asarray(rows, dtype=np.int64) for n, rows in groups.iter_rows()}


def _of_equal_id(collection: Collection) -> pl.DataFrame:
    """Judged queries beside the documents of their id, with or without the source behind it."""

    def joined() -> pl.DataFrame:
        queries = collection.judged.select("id", query="text").with_row_index("number")
        docs = collection.docs.select("id", "title", "text", "origin").with_columns(collection.bare_ids().alias("bare"))
        named = pl.concat([docs, docs.filter(pl.col("bare") != pl.col("id")).with_columns(id=pl.col("bare"))])
        return queries.join(named, on="id", how="inner")

    return collection.memo("documents of a query's id", joined)


def _ids_coincide(pairs: pl.DataFrame, collection: Collection) -> bool:
    return pairs["number"].n_unique() * 2 >= max(collection.judged.height, 1)


def _words_coincide(pairs: pl.DataFrame) -> bool:
    """Whether most queries have nearly all of their words in a document of their id."""
    words = {
        name: expression.str.to_lowercase().str.extract_all(r"\w+").list.unique()
        for name, expression in (("query", pl.col("query")), ("held", pl.concat_str("title", "text", separator=" ")))
    }
    table = pairs.select("number", **words)
    number, both = pl.col("query").list.len(), pl.col("query").list.set_intersection("held").list.len()
    alike = table.group_by("number").agg(((number > 0) & (4 * both >= 3 * number)).any().alias("alike"))["alike"]
    return 2 * int(alike.sum()) >= len(alike)


def exclusion_spec(
    collection: Collection, excluded: dict[int, npt.NDArray[np.int64]], exclude_self: bool | None
) -> dict[str, int | bool]:
    """What a run's spec says of excluded documents: `self_documents`, or those of some queries.

    Empty where no id coincides. ``own_documents_dropped``: queries whose own documents are left out;
    ``own_documents_differ`` where most of these have other words; `IN_DOUBT`: queries of which nothing is left out
    although at least half of all have a document of their id.
    """
    spec: dict[str, int | bool] = {"own_documents_dropped": len(excluded)} if excluded else {}
    if exclude_self is False:
        return spec
    named = _of_equal_id(collection)
    if exclude_self:
        return {**spec, "own_documents_differ": True} if excluded and not _words_coincide(named) else spec
    left = named["number"].n_unique() - len(self_documents(collection, None))
    return {**spec, IN_DOUBT: left} if left > 0 and _ids_coincide(named, collection) else spec


def exclusion_notes(spec: Mapping[str, Any]) -> Iterator[str]:
    """Say what a run's spec says of own documents, and ask where it is in doubt."""
    dropped, doubt = int(spec.get("own_documents_dropped", 0)), int(spec.get(IN_DOUBT, 0))
    if dropped:
        chance = "; their texts differ, as where ids coincide by chance" if spec.get("own_documents_differ") else ""
        yield f"own documents of {counted(dropped, 'query', 'queries')} left out{chance} (--no-exclude-self)"
    if doubt:
        yield (
            f"{counted(doubt, 'query shares its', 'queries share their')} id with a document of other words; nothing "
            "is left out for that. Are these queries documents (--exclude-self), or do ids coincide by chance "
            "(--no-exclude-self)?"
        )


def _same_text() -> pl.Expr:
    """Whether a query has words, and they are those of a document's title, text or both."""
    both = pl.concat_str("title", "text", separator=" ")
    query, *held = (
        one.str.to_lowercase().str.replace_all(r"\s+", " ").str.strip_chars()
        for one in (pl.col("query"), pl.col("title"), pl.col("text"), both)
    )
    return (query != "") & pl.any_horizontal([query == one for one in held])
