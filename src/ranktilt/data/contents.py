"""What a collection holds: documents, words, queries and judgments of every source."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.text.quality import words


@dataclass(frozen=True, kw_only=True)
class SourceContents:
    """What one source holds."""

    source: str | None
    """None for the documents that name no source."""
    documents: int
    empty: int
    """Documents without a word; they count in the mean with 0."""
    words: float
    """Mean number of whitespace words of a text without its title; NaN without documents."""
    quartiles: tuple[float, float, float]
    """Words below which a quarter, half and three quarters of the texts lie."""
    queries: int
    """Queries with at least one relevant document of the source."""
    relevant: float
    """Mean number of relevant documents of the source over these queries; NaN without any."""
    judged: int = 0
    """Documents that a judgment names, of whatever grade."""
    twins: int = 0
    """Documents whose origin has a document of another source, too."""
    duplicates: int = 0
    """Documents with the text of an earlier one of the source."""


@dataclass(frozen=True, kw_only=True)
class QueryContents:
    """How many queries there are, and how long they are."""

    which: str
    """``all`` queries of the collection, or the ``judged`` ones, which are ranked."""
    queries: int
    words: float
    """Mean number of whitespace words; NaN without queries."""


@dataclass(frozen=True, kw_only=True)
class Contents:
    """The table of a collection: a row a source, and the queries, which all sources share."""

    sources: tuple[SourceContents, ...]
    queries: tuple[QueryContents, ...]
    """All queries; then the judged ones, where there are judgments."""
    split: str | None
    """Name of the judgments, such as ``test``; None where they have none."""


def contents_of(collection: Collection) -> Contents:
    """Count documents, words, queries and relevant documents of every source (Dai et al., KDD 2024, Table 1).

    Lengths are whitespace words, of documents without the title (this gives the published 201.81
    for SciFact). Relevant is a grade of 1 or more of a document and a query that the collection
    holds.
    """
    is_stated = pl.col("source").is_not_null()
    text = pl.col("text").str.strip_chars()
    sources_of_origin = pl.col("source").drop_nulls().n_unique().over("origin")
    # Two hashes of 64 bits stand for a text, so that copies are told without holding all texts.
    docs = collection.docs.select(
        "id",
        "source",
        words=words(collection.docs["text"]),
        copy=(text != "")
        & ~pl.struct("source", text.hash(0), text.hash(1).alias("again")).is_first_distinct(),
        judged=pl.col("id").is_in(collection.qrels["doc_id"].implode()),
        twin=is_stated & (sources_of_origin > 1),
    )
    relevant = (
        collection.qrels.filter(pl.col("grade") > 0)
        .join(collection.queries, left_on="query_id", right_on="id", how="semi")
        .join(docs.select("id", "source"), left_on="doc_id", right_on="id")
    )
    names = [*collection.sources, *([None] if collection.sourceless else [])]
    docs_of = docs.partition_by("source", as_dict=True)
    relevant_of = relevant.partition_by("source", as_dict=True)
    queries = [_queries("all", collection.queries)]
    if collection.qrels.height:
        queries.append(_queries("judged", collection.queries_with_judgments))
    split = collection.spec.get("split")
    return Contents(
        sources=tuple(
            _source(name, docs_of[name,], relevant_of.get((name,), relevant.clear()))
            for name in names
        ),
        queries=tuple(queries),
        split=None if split is None else str(split),
    )


def _source(name: str | None, docs: pl.DataFrame, relevant: pl.DataFrame) -> SourceContents:
    counts = docs["words"].to_numpy()
    queries = relevant["query_id"].n_unique()
    low, median, high = np.quantile(counts, (0.25, 0.5, 0.75)).tolist()
    return SourceContents(
        source=name,
        documents=len(counts),
        empty=int((counts == 0).sum()),
        words=float(np.mean(counts)),
        quartiles=(low, median, high),
        queries=queries,
        relevant=relevant.height / queries if queries else np.nan,
        judged=int(docs["judged"].sum()),
        twins=int(docs["twin"].sum()),
        duplicates=int(docs["copy"].sum()),
    )


def _queries(which: str, queries: pl.DataFrame) -> QueryContents:
    counts = words(queries["text"]).to_numpy()
    mean = float(np.mean(counts)) if len(counts) else np.nan
    return QueryContents(which=which, queries=len(counts), words=mean)
