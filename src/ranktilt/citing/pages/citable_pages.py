"""The pages that an engine could have cited, as a collection with properties.

The code that explains a ranker's gap between groups of documents also explains a gap between
citation rates of groups of pages. It takes a collection of documents, and an *outcome* for each
query and document. Here pages become the documents, and the outcome is the percentage of a query's
answers that cite the page.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from ranktilt.citing.arrays import numbers_of
from ranktilt.citing.result import CitationAudit
from ranktilt.data.collection import Collection
from ranktilt.data.labels.label_file import LabelFile
from ranktilt.data.labels.label_table import read_labels
from ranktilt.data.page_urls import page_key
from ranktilt.errors import DataError, UserError
from ranktilt.explaining.properties.outcomes import RunEntries
from ranktilt.explaining.properties.result import GapProperty
from ranktilt.explaining.properties.values import MeasuredProperty
from ranktilt.measures.citations.base import Floats, Ints

SEARCH_RANK = "search rank"
"""Name of the property that says at which rank a page was retrieved."""
_PAGE_TEXT = "page_text"
"""Temporary name of the column of texts while a label file is read."""
_RESERVED_COLUMNS = ("id", "source", "origin", "label", "unit")
"""Columns with a meaning here; columns of these names in a label file are dropped."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _SearchRank(MeasuredProperty):
    """The rank at which a page was retrieved: a property of a query and a page together."""

    keys: Ints
    """A number for each pair of query and page, in ascending order.

    It is index of the query · number of pages + index of the page.
    """
    ranks: Floats
    """Rank of each pair, in the order of the keys; NaN if the page was not retrieved."""

    def of_entries(self, collection: Collection, query: Ints, document: Ints) -> Floats:
        """Return the rank of each pair of query and page, all of which must be among the keys."""
        positions = np.searchsorted(self.keys, query * collection.docs.height + document)
        ranks: Floats = self.ranks[positions]
        return ranks


@dataclass(frozen=True, kw_only=True, eq=False)
class CitablePages:
    """The pages that could have been cited, and how often the answers to each query cite them."""

    collection: Collection
    """The pages as documents, with the columns of the label file.

    Their origin, by which errors are clustered, is the unit at which labels are constant, such as
    the domain.
    """
    entries: RunEntries
    """A row for each query and page: the outcome ``cited``, in percent of the query's answers."""
    search_rank: MeasuredProperty | None
    """The rank of a page among the search results; None if no results are known."""


def citable_pages(audit: CitationAudit, label_file: LabelFile, by: str) -> CitablePages:
    """Return the pages that an audited engine could have cited.

    `label_file` has the properties of pages, and `by` is its column of labels.

    Raises
    ------
    UserError
        If it is not known what could have been cited.
    """
    pool = _pool(audit)
    collection = _collection(audit, pool, label_file, by)
    return CitablePages(
        collection=collection,
        entries=_run_entries(pool, collection),
        search_rank=_search_rank(pool, collection),
    )


def label_file_of(audit: CitationAudit) -> LabelFile:
    """Return the label file that an audit was made with."""
    stored = audit.spec.get("label_file")
    if not stored:
        return LabelFile(str(audit.spec["labels"]))
    options = {name: value for name, value in stored.items() if name != "path"}
    return LabelFile(stored["path"], **options)


def _pool(audit: CitationAudit) -> pl.DataFrame:
    """Return the pool, which is what could have been cited: a row for each query and page.

    These are the pages that the engine consulted (read before it answered) or, if that is unknown,
    the pages that were retrieved for the query. Columns: ``query``, ``page``, ``label``, ``unit``,
    ``cited`` (percentage of the query's answers that cite the page) and ``rank`` (0 where not
    retrieved).
    """
    rows = audit.pages.rows()
    in_pool = pl.col("is_consulted") if rows["is_consulted"].any() else pl.col("retrieval_rank") > 0
    rows = rows.filter(in_pool)
    if not rows.height:
        raise UserError(
            "nothing tells what could have been cited; audit with what was retrieved (--run), or "
            "answers that list what they consulted"
        )
    return rows.group_by("query", "page", maintain_order=True).agg(
        pl.col("label").first(),
        pl.col("unit").first(),
        (100 * pl.col("is_cited").mean()).alias("cited"),
        pl.col("retrieval_rank").max().alias("rank"),
    )


def _collection(
    audit: CitationAudit, pool: pl.DataFrame, label_file: LabelFile, by: str
) -> Collection:
    """Return the pages of the pool as documents, with the columns of the label file."""
    pages = pool.select("page", "label", "unit").unique("page", maintain_order=True)
    columns = _read_pages(label_file, by)
    keys = columns["doc_id"]
    if not audit.spec.get("exact_urls"):
        keys = pl.Series([page_key(page) for page in keys], dtype=pl.String)
    # Labels come from the audit, and all other columns from the file.
    dropped = [name for name in ("doc_id", by, *_RESERVED_COLUMNS) if name in columns.columns]
    columns = columns.drop(dropped).with_columns(page=keys).unique("page", maintain_order=True)
    docs = pages.join(columns, on="page", how="left", maintain_order="left")
    text = pl.col("text").cast(pl.String).fill_null("") if "text" in docs.columns else pl.lit("")
    docs = docs.with_columns(text=text).rename({"page": "id", "label": by, "unit": "origin"})
    queries = pool["query"].unique(maintain_order=True)
    # A collection must have judgments; pages have none, so the table is empty.
    judgments = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32}
    return Collection(
        docs,
        pl.DataFrame({"id": queries, "text": queries}),
        pl.DataFrame(schema=judgments),
        {"labels": label_file.path},
    )


def _read_pages(label_file: LabelFile, by: str) -> pl.DataFrame:
    """Read the columns of a label file, with its texts if it has any.

    `read_labels` leaves out a column ``text``, unless the user gives it another name.
    """
    with_text = replace(label_file, columns={**label_file.columns, _PAGE_TEXT: "text"})
    try:
        return read_labels(with_text, by=by).rename({_PAGE_TEXT: "text"})
    except DataError:
        # There is no column ``text``. If another fault of the file was the reason, this raises it.
        return read_labels(label_file, by=by)


def _run_entries(pool: pl.DataFrame, collection: Collection) -> RunEntries:
    """Return the pool as arrays: the numbers of query and page, and the outcome ``cited``."""
    query = numbers_of(pool["query"], collection.queries["id"])
    return RunEntries(
        query=query,
        query_row=query,
        document=numbers_of(pool["page"], collection.docs["id"]),
        outcomes={"cited": pool["cited"].to_numpy()},
    )


def _search_rank(pool: pl.DataFrame, collection: Collection) -> MeasuredProperty | None:
    """Return the rank of pages among the search results; None if no results are known."""
    if not (pool["rank"] > 0).any():
        return None
    query = numbers_of(pool["query"], collection.queries["id"])
    page = numbers_of(pool["page"], collection.docs["id"])
    keys = query * collection.docs.height + page
    order = np.argsort(keys)
    ranks = pool["rank"].to_numpy().astype(np.float64)[order]
    about = GapProperty(name=SEARCH_RANK, unit="ranks", kind="list")
    return _SearchRank(
        about=about,
        # A page without a query has no rank.
        values=np.full(collection.docs.height, np.nan),
        keys=keys[order],
        ranks=np.where(ranks > 0, ranks, np.nan),
    )
