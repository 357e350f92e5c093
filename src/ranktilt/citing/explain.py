"""Which properties of pages go with the gap between two groups' citation rates.

Within a question, the pages that an engine could cite differ in group and in properties: columns of
the label file, features of their texts, the rank at which they were found. The gap is split among
them as that of a ranker is (`ranktilt.statistics.gelbach`), with errors over questions and units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from ranktilt.auditing.grouping.pairs import grouped_pairs
from ranktilt.citing.arrays import numbers_of
from ranktilt.citing.result import CitationAudit
from ranktilt.data.collection import Collection
from ranktilt.data.label_file import LabelFile
from ranktilt.data.label_table import read_labels
from ranktilt.data.page_urls import page_key
from ranktilt.errors import DataError, UserError
from ranktilt.explaining.properties.gaps import GapOptions, corrected_gaps, pair_gaps
from ranktilt.explaining.properties.outcomes import RunEntries
from ranktilt.explaining.properties.result import ExplainedGap, ExplainedGaps, GapProperty
from ranktilt.explaining.properties.rows import GroupedProperties, PairRows
from ranktilt.explaining.properties.values import (
    MeasuredProperty,
    NoPropertiesError,
    PropertyName,
    PropertyTable,
    measure_properties,
)
from ranktilt.measures.citations.base import Floats, Ints
from ranktilt.statistics.gelbach import DRAWS

SEARCH_RANK = "search rank"
_PAGE_TEXT = "page_text"
_TAKEN = ("id", "source", "origin", "label", "unit")


@dataclass(frozen=True, kw_only=True, eq=False)
class _SearchRank(MeasuredProperty):
    """The rank at which a page was found for a query: a property of both."""

    keys: Ints
    """Query × number of pages + page of each entry, in ascending order."""
    ranks: Floats
    """In the order of the keys; NaN where the page was not retrieved."""

    def of_entries(self, collection: Collection, query: Ints, document: Ints) -> Floats:
        """Return the rank of each pair of query and page, all of which are entries."""
        positions = np.searchsorted(self.keys, query * collection.docs.height + document)
        ranks: Floats = self.ranks[positions]
        return ranks


def explain_citations(
    audit: CitationAudit,
    labels: str | LabelFile | None = None,
    properties: Sequence[PropertyName] | None = None,
    *,
    draws: int = DRAWS,
    seed: int = 0,
    correction: str = "holm",
) -> ExplainedGaps:
    """Attribute the gap between groups' citation rates to properties of their pages.

    Parameters
    ----------
    audit : CitationAudit
        An audit with pages that were consulted, or retrieved.
    labels : str or LabelFile, optional
        Table of the pages, with columns of numbers or a column ``text``; by default the one that
        the audit was made with.
    properties : sequence of str or TextProbe, optional
        Columns of numbers, or probes of texts such as ``perplexity:MODEL``; by default all columns
        of numbers, features of texts where there are some, and the search rank.
    draws, seed : int, optional
        Joint draws behind the intervals of parts, and their seed.
    correction : {"holm", "bonferroni"}, optional
        Correct the p of all gaps together, and the p of all parts.

    Returns
    -------
    ExplainedGaps
        The gap of each pair in percentage points of the citation rate within questions, and the
        part that goes with each property.

    Raises
    ------
    UserError
        If nothing tells what could have been cited, or pages have no properties.
    """
    by = str(audit.spec.get("by", "source"))
    entries = _pool(audit)
    label_file = _label_file(audit) if labels is None else LabelFile.from_text(labels)
    collection = _collection(audit, entries, label_file, by)
    groups, _pairs = grouped_pairs(collection, by, None)
    ranks = [] if properties else _search_rank(entries, collection)
    try:
        table = measure_properties(collection, groups, properties, with_query_words=False)
    except NoPropertiesError as error:
        if not ranks:
            raise UserError(
                f"nothing to explain the gap with: {label_file.path} has no column of numbers and "
                "no column text; add one that could go with a citation, such as the words, the age "
                "or the text of each page"
            ) from error
        table = PropertyTable(measured=(), left_out=(), has_texts=False)
    table = PropertyTable(
        measured=(*table.measured, *ranks), left_out=table.left_out, has_texts=table.has_texts
    )
    measured = GroupedProperties(collection=collection, groups=groups, table=table)
    options = GapOptions(cutoff=0, draws=draws, seed=seed, correction=correction)
    run_entries = _run_entries(entries, collection)
    gaps, left_out = list[ExplainedGap](), list(table.left_out)
    for effect in audit.primary:
        rows = PairRows.from_entries(run_entries, measured, (effect.a, effect.b))
        left_out += rows.left_out
        gaps += pair_gaps(rows, _engine(audit), (effect.a, effect.b), options)
    return ExplainedGaps(
        spec=_spec(audit, label_file, options),
        by=by,
        cutoff=0,
        properties=tuple(single.about for single in table.measured),
        gaps=corrected_gaps(gaps, correction),
        left_out=tuple(dict.fromkeys(left_out)),
        has_texts=table.has_texts,
    )


def _engine(audit: CitationAudit) -> str:
    return str(audit.spec.get("engine") or "the engine")


def _spec(audit: CitationAudit, label_file: LabelFile, options: GapOptions) -> dict[str, object]:
    return {
        "audit": audit.loaded_from or audit.spec.get("command"),
        "labels": label_file.path,
        "by": audit.spec.get("by"),
        "draws": options.draws,
        "seed": options.seed,
        "correction": options.correction,
    }


def _pool(audit: CitationAudit) -> pl.DataFrame:
    """Return the pages that could be cited, a row for each query and page.

    Repeats of a query are averaged: ``cited`` is the percentage of them that cite the page.
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


def _label_file(audit: CitationAudit) -> LabelFile:
    """Return the label file that an audit was made with."""
    stored = audit.spec.get("label_file")
    if not stored:
        return LabelFile(str(audit.spec["labels"]))
    options = {name: value for name, value in stored.items() if name != "path"}
    return LabelFile(stored["path"], **options)


def _collection(
    audit: CitationAudit, entries: pl.DataFrame, label_file: LabelFile, by: str
) -> Collection:
    """Return the pages as documents, whose origin is the unit at which labels are constant."""
    pages = entries.select("page", "label", "unit").unique("page", maintain_order=True)
    columns = _read_pages(label_file, by)
    keys = columns["doc_id"]
    if not audit.spec.get("exact_urls"):
        keys = pl.Series([page_key(page) for page in keys], dtype=pl.String)
    dropped = [name for name in ("doc_id", by, *_TAKEN) if name in columns.columns]
    columns = columns.drop(dropped).with_columns(page=keys).unique("page", maintain_order=True)
    docs = pages.join(columns, on="page", how="left", maintain_order="left")
    text = pl.col("text").cast(pl.String).fill_null("") if "text" in docs.columns else pl.lit("")
    docs = docs.with_columns(text=text).rename({"page": "id", "label": by, "unit": "origin"})
    queries = entries["query"].unique(maintain_order=True)
    judgments = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32}
    return Collection(
        docs,
        pl.DataFrame({"id": queries, "text": queries}),
        pl.DataFrame(schema=judgments),
        {"labels": label_file.path},
    )


def _read_pages(label_file: LabelFile, by: str) -> pl.DataFrame:
    """Read the columns of a label file, and its texts, which labels leave out otherwise."""
    with_text = replace(label_file, columns={**label_file.columns, _PAGE_TEXT: "text"})
    try:
        return read_labels(with_text, by=by).rename({_PAGE_TEXT: "text"})
    except DataError:  # no column has this name, or the file is at fault, which is said below
        return read_labels(label_file, by=by)


def _run_entries(entries: pl.DataFrame, collection: Collection) -> RunEntries:
    query = numbers_of(entries["query"], collection.queries["id"])
    return RunEntries(
        query=query,
        query_row=query,
        document=numbers_of(entries["page"], collection.docs["id"]),
        outcomes={"cited": entries["cited"].to_numpy()},
    )


def _search_rank(entries: pl.DataFrame, collection: Collection) -> list[MeasuredProperty]:
    """Return the rank of pages in the search results, where results are known."""
    if not (entries["rank"] > 0).any():
        return []
    query = numbers_of(entries["query"], collection.queries["id"])
    page = numbers_of(entries["page"], collection.docs["id"])
    keys = query * collection.docs.height + page
    order = np.argsort(keys)
    ranks = entries["rank"].to_numpy().astype(np.float64)[order]
    about = GapProperty(name=SEARCH_RANK, unit="ranks", kind="list")
    return [
        _SearchRank(
            about=about,
            values=np.full(collection.docs.height, np.nan),
            keys=keys[order],
            ranks=np.where(ranks > 0, ranks, np.nan),
        )
    ]
