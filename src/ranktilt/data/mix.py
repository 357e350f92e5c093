"""Unite several collections into one, so that a ranker ranks all their documents together.

The *source* of a document is who wrote it, and its *origin* is the document that it was rewritten
from. Documents with the same origin are *versions* of one document, written by different sources.
The *reference* is the source whose documents the others rewrote, usually human text. *Judgments*
(*qrels*) are grades of how relevant a document is to a query.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.formats.jsonl import stack
from ranktilt.data.loading.assemble import version_names
from ranktilt.errors import DataWarning, UserError


def mix(first: Collection, *others: Collection) -> Collection:
    """Unite collections: all their documents, queries and judgments in one.

    Parameters
    ----------
    first, *others : Collection
        The collections. If several sources use the same ids, the documents with one id are twins:
        every id becomes ``<id>-<source>``, and the origin ``<id>-human``, as in Cocktail's own
        collections. Ids that have this form already stay. A document without a source keeps its id,
        which is then the origin of its twins. If no id is shared, all ids stay.

    Returns
    -------
    Collection
        If a document has no judgment for a query, it gets that of its origin, or else the highest
        of its other versions. A document that occurs twice word for word is kept once.

    Raises
    ------
    UserError
        If one id stands for two documents or queries, or a pair has two grades.

    Warns
    -----
    DataWarning
        If documents have no version in another source.
    """
    collections = [first, *others]
    if _share_ids(collections):
        tables = _new_ids(collections)
        # Judgments of one collection may be of documents of another, so that each gets all tables.
        collections = [
            _with_new_ids(collection, pl.concat([table, *tables]))
            for collection, table in zip(collections, tables, strict=True)
        ]
    docs = _without_copies(stack([collection.docs for collection in collections]).rechunk())
    queries = stack([collection.queries for collection in collections]).unique(maintain_order=True)
    qrels = pl.concat([collection.qrels for collection in collections], how="vertical_relaxed")
    qrels = qrels.unique(maintain_order=True)
    _refuse_clash("document", docs, ["id"])
    _refuse_clash("query", queries, ["id"])
    _refuse_clash("judgment", qrels, ["query_id", "doc_id"])
    specs = [dict(collection.spec) for collection in (first, *others)]
    spec: dict[str, Any] = {"mix": specs}
    splits = {spec["split"] for spec in specs if "split" in spec}
    if len(splits) == 1:
        spec["split"] = splits.pop()
    mixed = Collection(docs, queries, _with_inherited_judgments(docs, qrels), spec)
    _warn_of_missing_versions(mixed)
    return mixed


def _refuse_clash(noun: str, frame: pl.DataFrame, key: list[str]) -> None:
    """Refuse rows with the same values in the columns `key`; `noun` is what a row is.

    Such rows differ in other columns, because equal rows were merged before.
    """
    clashing = frame.filter(pl.struct(key).is_duplicated())
    if not clashing.height:
        return
    name = ", ".join(repr(value) for value in clashing.select(key).row(0))
    hint = ""
    if noun == "document" and clashing["source"].null_count():
        hint = "; each version of a document needs its own source, in the field source"
    raise UserError(f"cannot mix: {noun} {name} differs between the collections{hint}")


def _without_copies(docs: pl.DataFrame) -> pl.DataFrame:
    """Leave out documents that are equal to an earlier one with the same id."""
    # Only documents with a repeated id are compared, so that no other text is read.
    first_row = pl.col("row").first().over("id")
    rows = docs.select("id").with_row_index("row").select("row", first=first_row)
    rows = rows.filter(pl.col("row") != pl.col("first"))
    later, earlier = docs[rows["row"]], docs[rows["first"]]
    columns_equal = [later[name].eq_missing(earlier[name]) for name in docs.columns]
    is_copy = later.select(pl.all_horizontal(columns_equal)).to_series()
    copies = rows["row"].filter(is_copy)
    return docs.filter(~pl.int_range(pl.len()).is_in(copies.implode()))


def _share_ids(collections: list[Collection]) -> bool:
    """Return whether several sources have the same bare id, and some document has it as its id.

    The bare id is the id without ``-<source>``. If no document of these sources has the bare id
    itself, their ids were made unique before.
    """
    tables = [
        collection.docs.select("id", "source", bare=collection.bare_ids())
        for collection in collections
    ]
    docs = pl.concat(tables)
    has_bare_id = (pl.col("id") == pl.col("bare")).any()
    ids = docs.group_by("bare").agg(is_shared=has_bare_id & (pl.col("source").n_unique() > 1))
    return bool(ids["is_shared"].any())


def _new_ids(collections: list[Collection]) -> list[pl.DataFrame]:
    """Return a table for each collection: the former ``id``, the ``new`` one, and ``origin``."""
    docs = pl.concat([collection.docs.select("id", "source") for collection in collections])
    bare_ids = pl.concat([collection.bare_ids() for collection in collections])
    names = version_names(docs, bare_ids)
    table = docs.select("id").with_columns(names["id"].alias("new"), names["origin"])
    heights = [collection.docs.height for collection in collections]
    ends = np.cumsum(heights).tolist()
    return [table[end - height : end] for height, end in zip(heights, ends, strict=True)]


def _with_new_ids(collection: Collection, table: pl.DataFrame) -> Collection:
    """Replace ids and origins in the documents and judgments of a collection.

    `table` has the former ``id``, the ``new`` one and ``origin``. It begins with the collection's
    own documents: if an id occurs in several collections, its first row counts.
    """
    table = table.unique("id", keep="first", maintain_order=True)
    new_ids = dict(table.select("id", "new").iter_rows())
    origins = dict(table.select("id", "origin").iter_rows())
    docs = collection.docs.with_columns(
        pl.col("id").replace(new_ids), pl.col("origin").replace(origins)
    )
    qrels = collection.qrels.with_columns(pl.col("doc_id").replace(new_ids))
    return Collection(docs, collection.queries, qrels, collection.spec)


def _with_inherited_judgments(docs: pl.DataFrame, qrels: pl.DataFrame) -> pl.DataFrame:
    """Return the judgments, and further ones for unjudged versions of judged documents.

    Such a version gets the grade of its origin, or else the highest of its other versions.
    """
    table = docs.select(doc_id="id", origin="origin")
    judged = qrels.join(table, on="doc_id", how="inner", maintain_order="left")
    is_origin = (pl.col("doc_id") == pl.col("origin")).cast(pl.Int8)
    judged = judged.with_columns(is_origin=is_origin)
    # The origin comes first, then the versions by falling grade.
    best = judged.sort("is_origin", "grade", descending=True, maintain_order=True)
    best = best.unique(["query_id", "origin"], keep="first", maintain_order=True)
    best = best.select("query_id", "origin", "grade")
    inherited = best.join(table, on="origin", how="inner", maintain_order="left_right")
    inherited = inherited.select("query_id", "doc_id", "grade").join(
        qrels, on=["query_id", "doc_id"], how="anti", maintain_order="left"
    )
    return pl.concat([qrels, inherited])


def _warn_of_missing_versions(mixed: Collection) -> None:
    """Warn of documents that lack a version by another source.

    The reference, ``human`` or else the first source, is compared with each other source.
    """
    sources = mixed.sources
    if not sources:
        return
    mixed.require_few_sources()
    reference = "human" if "human" in sources else sources[0]
    for source in sources:
        if source == reference:
            continue
        unpaired = mixed.unpaired(reference, source)
        for side, opposite in ((reference, source), (source, reference)):
            ids = unpaired.filter(pl.col("source") == side)["id"]
            if len(ids):
                examples = ", ".join(ids.head(3)) + (", …" if len(ids) > 3 else "")
                message = f"{len(ids)} {side!r} documents have no {opposite!r} version: {examples}"
                warnings.warn(message, DataWarning, stacklevel=3)
