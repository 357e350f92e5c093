"""The documents of a collection as pages with labels, for answers that were written from them."""

from __future__ import annotations

import polars as pl

from ranktilt.citing.unit import DOMAIN
from ranktilt.data.collection import Collection
from ranktilt.data.label_file import LabelFile
from ranktilt.data.page_urls import page_key
from ranktilt.errors import UserError, unknown

_TEXTS = ("title", "text")


def collection_labels(collection: Collection) -> LabelFile:
    """Return the collection in the place of a label file, for what a result says of its labels."""
    return LabelFile(str(collection.spec.get("path", "the collection")))


def collection_pages(collection: Collection, by: str, *, is_exact: bool) -> pl.DataFrame:
    """Return the labelled documents: ``page``, ``label``, ``domain`` and their other columns.

    Raises
    ------
    UserError
        If the collection has no such column, or no document has a value in it.
    """
    docs = collection.docs
    if by not in docs.columns or by in ("id", *_TEXTS):
        columns = [name for name in docs.columns if name not in ("id", *_TEXTS)]
        raise unknown("column", by, columns)
    pages = docs.select(pl.exclude(*_TEXTS)).rename({"id": "page", by: "label"})
    pages = pages.with_columns(pl.col("label").cast(pl.String))
    pages = pages.filter(pl.col("label").is_not_null())
    if not pages.height:
        raise UserError(
            f"no document of the collection has a {by}; name the group of each with --groups "
            f"FILE:id=doc_id,{by}=COLUMN"
        )
    if not is_exact:
        # Documents may be called by their addresses, which answers spell as they like.
        keys = [page_key(page) for page in pages["page"]]
        pages = pages.with_columns(pl.Series("page", keys))
        pages = pages.unique("page", keep="first", maintain_order=True)
    if DOMAIN in pages.columns:
        return pages.with_columns(pl.col(DOMAIN).cast(pl.String).fill_null(pl.col("page")))
    return pages.with_columns(pl.col("page").alias(DOMAIN))
