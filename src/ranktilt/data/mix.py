"""Unite collections into one that a ranker meets at once."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl

from ranktilt.data.assemble import version_names
from ranktilt.data.collection import Collection
from ranktilt.data.formats.jsonl import stack
from ranktilt.errors import DataWarning, UserError


def mix(first: Collection, *others: Collection) -> Collection:
    """Unite collections: documents and queries side by side, copies inheriting judgments.

    Parameters
    ----------
    first, *others : Collection
        Where several sources share ids, these are twins: every id becomes ``<id>-<source>`` and the
        origins ``<id>-human``, as in Cocktail's own collections (ids that are so already stay).
        Documents without a source keep their ids, which are then the origins of their twins.
        Otherwise ids stay.

    Returns
    -------
    Collection
        A document without a judgment for a query takes that of its origin, or else the highest of
        its other versions. Documents given twice word for word are kept once, and those without a
        version in another source are warned of. `UserError` if one id stands for two documents or
        queries, or a pair has two grades.
    """
    parts = [first, *others]
    if _shared_ids(parts):
        tables = _new_ids(parts)
        parts = [
            _renamed(part, pl.concat([own, *tables]))
            for part, own in zip(parts, tables, strict=True)
        ]
    docs = _without_copies(stack([p.docs for p in parts]).rechunk())
    queries = stack([p.queries for p in parts]).unique(maintain_order=True)
    qrels = pl.concat([p.qrels for p in parts], how="vertical_relaxed").unique(maintain_order=True)
    for noun, frame, key in (
        ("document", docs, ["id"]),
        ("query", queries, ["id"]),
        ("judgment", qrels, ["query_id", "doc_id"]),
    ):
        clash = frame.filter(pl.struct(key).is_duplicated())
        if clash.height:
            name = ", ".join(repr(v) for v in clash.select(key).row(0))
            sourceless = noun == "document" and bool(clash["source"].null_count())
            hint = (
                "; versions of one document need a source each, in the field source"
                if sourceless
                else ""
            )
            raise UserError(f"cannot mix: {noun} {name} differs between the collections{hint}")
    specs = [dict(c.spec) for c in (first, *others)]
    split = {s["split"] for s in specs if "split" in s}
    spec = {"mix": specs, **({"split": split.pop()} if len(split) == 1 else {})}
    mixed = Collection(docs, queries, _inherit(docs, qrels), spec)
    _say_missing(mixed)
    return mixed


def _without_copies(docs: pl.DataFrame) -> pl.DataFrame:
    """Leave out documents that are an earlier one of their id word for word: only these are compared."""
    rows = (
        docs.select("id")
        .with_row_index("row")
        .select("row", first=pl.col("row").first().over("id"))
    )
    rows = rows.filter(pl.col("row") != pl.col("first"))
    one, two = docs[rows["row"]], docs[rows["first"]]
    same = one.select(
        pl.all_horizontal(one[name].eq_missing(two[name]) for name in docs.columns)
    ).to_series()
    return docs.filter(~pl.int_range(pl.len()).is_in(rows["row"].filter(same).implode()))


def _shared_ids(parts: list[Collection]) -> bool:
    """Whether an id stands for documents of several sources, in whichever part it has its source already."""
    docs = pl.concat([p.docs.select("id", "source", bare=p.bare_ids()) for p in parts])
    plain = (pl.col("id") == pl.col("bare")).any()
    ids = docs.group_by("bare").agg(plain & (pl.col("source").n_unique() > 1))
    return bool(ids["id"].any())


def _new_ids(parts: list[Collection]) -> list[pl.DataFrame]:
    """Name the documents of each part anew: ``id`` as it was, ``new``, and ``origin``."""
    docs = pl.concat([part.docs.select("id", "source") for part in parts])
    names = version_names(docs, pl.concat([part.bare_ids() for part in parts]))
    table = docs.select("id").with_columns(names["id"].alias("new"), names["origin"])
    ends = np.cumsum([part.docs.height for part in parts]).tolist()
    return [table[end - part.docs.height : end] for part, end in zip(parts, ends, strict=True)]


def _renamed(part: Collection, table: pl.DataFrame) -> Collection:
    """Ids, origins and judgments by their new names; the part's own documents come first in the table."""
    table = table.unique("id", keep="first", maintain_order=True)
    names = dict(table.select("id", "new").iter_rows())
    origins = dict(table.select("id", "origin").iter_rows())
    docs = part.docs.with_columns(pl.col("id").replace(names), pl.col("origin").replace(origins))
    return Collection(
        docs, part.queries, part.qrels.with_columns(pl.col("doc_id").replace(names)), part.spec
    )


def _inherit(docs: pl.DataFrame, qrels: pl.DataFrame) -> pl.DataFrame:
    """Judgments plus those that versions of a judged document take over."""
    table = docs.select(doc_id="id", origin="origin")
    judged = qrels.join(table, on="doc_id", how="inner", maintain_order="left")
    own = (pl.col("doc_id") == pl.col("origin")).cast(pl.Int8)
    best = judged.with_columns(own.alias("own")).sort(
        "own", "grade", descending=True, maintain_order=True
    )
    best = best.unique(["query_id", "origin"], keep="first", maintain_order=True).select(
        "query_id", "origin", "grade"
    )
    taken = best.join(table, on="origin", how="inner", maintain_order="left_right")
    taken = taken.select("query_id", "doc_id", "grade").join(
        qrels, on=["query_id", "doc_id"], how="anti", maintain_order="left"
    )
    return pl.concat([qrels, taken])


def _say_missing(mixed: Collection) -> None:
    sources = mixed.sources
    if not sources:
        return
    mixed.require_few_sources()
    reference = "human" if "human" in sources else sources[0]
    for other in (name for name in sources if name != reference):
        lone = mixed.unpaired(reference, other)
        for here, there in ((reference, other), (other, reference)):
            missing = lone.filter(pl.col("source") == here)["id"]
            if len(missing):
                shown = ", ".join(missing.head(3)) + (", …" if len(missing) > 3 else "")
                message = f"{len(missing)} {here!r} documents have no {there!r} version: {shown}"
                warnings.warn(message, DataWarning, stacklevel=3)
