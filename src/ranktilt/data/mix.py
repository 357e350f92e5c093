"""Unite several collections into one, so that a ranker ranks all their documents together."""

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
    parts = [first, *others]
    if _shares_ids(parts):
        tables = _new_ids(parts)
        parts = [
            _renamed(part, pl.concat([table, *tables]))
            for part, table in zip(parts, tables, strict=True)
        ]
    docs = _without_copies(stack([part.docs for part in parts]).rechunk())
    queries = stack([part.queries for part in parts]).unique(maintain_order=True)
    qrels = pl.concat([part.qrels for part in parts], how="vertical_relaxed")
    qrels = qrels.unique(maintain_order=True)
    _refuse_clash("document", docs, ["id"])
    _refuse_clash("query", queries, ["id"])
    _refuse_clash("judgment", qrels, ["query_id", "doc_id"])
    specs = [dict(collection.spec) for collection in (first, *others)]
    spec: dict[str, Any] = {"mix": specs}
    splits = {spec["split"] for spec in specs if "split" in spec}
    if len(splits) == 1:
        spec["split"] = splits.pop()
    mixed = Collection(docs, queries, _inherit(docs, qrels), spec)
    _warn_of_missing_versions(mixed)
    return mixed


def _refuse_clash(noun: str, frame: pl.DataFrame, key: list[str]) -> None:
    """Refuse rows with the same key: they differ, because equal rows were merged before."""
    clash = frame.filter(pl.struct(key).is_duplicated())
    if not clash.height:
        return
    name = ", ".join(repr(value) for value in clash.select(key).row(0))
    hint = ""
    if noun == "document" and clash["source"].null_count():
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


def _shares_ids(parts: list[Collection]) -> bool:
    """Return whether several sources have the same bare id, and some document has it as its id.

    The bare id is the id without ``-<source>``. If no document has a bare id, all ids were made
    unique before.
    """
    docs = pl.concat([part.docs.select("id", "source", bare=part.bare_ids()) for part in parts])
    has_bare_id = (pl.col("id") == pl.col("bare")).any()
    ids = docs.group_by("bare").agg(is_shared=has_bare_id & (pl.col("source").n_unique() > 1))
    return bool(ids["is_shared"].any())


def _new_ids(parts: list[Collection]) -> list[pl.DataFrame]:
    """Return a table for each part: the former ``id``, the ``new`` one, and ``origin``."""
    docs = pl.concat([part.docs.select("id", "source") for part in parts])
    names = version_names(docs, pl.concat([part.bare_ids() for part in parts]))
    table = docs.select("id").with_columns(names["id"].alias("new"), names["origin"])
    ends = np.cumsum([part.docs.height for part in parts]).tolist()
    return [table[end - part.docs.height : end] for part, end in zip(parts, ends, strict=True)]


def _renamed(part: Collection, table: pl.DataFrame) -> Collection:
    """Replace ids and origins in the documents and judgments of a part.

    `table` has the former ``id``, the ``new`` one and ``origin``. It begins with the part's own
    documents: if an id occurs in several parts, its first row counts.
    """
    table = table.unique("id", keep="first", maintain_order=True)
    names = dict(table.select("id", "new").iter_rows())
    origins = dict(table.select("id", "origin").iter_rows())
    docs = part.docs.with_columns(pl.col("id").replace(names), pl.col("origin").replace(origins))
    return Collection(
        docs, part.queries, part.qrels.with_columns(pl.col("doc_id").replace(names)), part.spec
    )


def _inherit(docs: pl.DataFrame, qrels: pl.DataFrame) -> pl.DataFrame:
    """Return the judgments, and further ones for unjudged versions of judged documents."""
    table = docs.select(doc_id="id", origin="origin")
    judged = qrels.join(table, on="doc_id", how="inner", maintain_order="left")
    is_origin = (pl.col("doc_id") == pl.col("origin")).cast(pl.Int8)
    judged = judged.with_columns(is_origin=is_origin)
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
        lone = mixed.unpaired(reference, source)
        for side, opposite in ((reference, source), (source, reference)):
            ids = lone.filter(pl.col("source") == side)["id"]
            if len(ids):
                examples = ", ".join(ids.head(3)) + (", …" if len(ids) > 3 else "")
                message = f"{len(ids)} {side!r} documents have no {opposite!r} version: {examples}"
                warnings.warn(message, DataWarning, stacklevel=3)
