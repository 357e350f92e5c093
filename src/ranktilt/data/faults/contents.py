"""Count the documents, words, queries and judgments of every source of a collection."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.text.quality import words


@dataclass(frozen=True, kw_only=True)
class SourceContents:
    """Counts of one source."""

    source: str | None
    """Name of the source; None for the documents without one."""
    documents: int
    """Number of documents."""
    empty: int
    """Number of documents without a word, which count as 0 in the mean of `words`."""
    words: float
    """Mean number of words of a text, split at white space, without the title."""
    quartiles: tuple[float, float, float]
    """Numbers of words below which a quarter, a half and three quarters of the texts are."""
    queries: int
    """Number of queries with at least one relevant document of the source."""
    relevant: float
    """Mean number of relevant documents of the source over these queries; NaN if there are none."""
    judged: int = 0
    """Number of documents with a judgment of any grade."""
    twins: int = 0
    """Number of documents whose origin has a document of another source too."""
    duplicates: int = 0
    """Number of documents with the same text as an earlier document of the source."""


@dataclass(frozen=True, kw_only=True)
class QueryContents:
    """Number and length of queries."""

    which: str
    """``all`` queries of the collection, or the ``judged`` ones, which are ranked."""
    queries: int
    """Number of queries."""
    words: float
    """Mean number of whitespace words; NaN without queries."""


@dataclass(frozen=True, kw_only=True)
class Contents:
    """Counts of a collection: a record for each source, and the queries, which sources share."""

    sources: tuple[SourceContents, ...]
    """Counts of each source, then of documents without one."""
    queries: tuple[QueryContents, ...]
    """All queries, then the judged ones if there are judgments."""
    split: str | None
    """Name of the judgments, such as ``test``; None if they have no name."""


def contents_of(collection: Collection) -> Contents:
    """Count documents, words, queries and relevant documents of every source.

    The counts are those of Dai et al., KDD 2024, Table 1. A text's length is its number of words
    between white space, without the title (this gives the published 201.81 for SciFact). A document
    is relevant if it has a grade above 0 for a query of the collection.
    """
    docs = _counted_documents(collection)
    relevant = (
        collection.qrels.filter(pl.col("grade") > 0)
        .join(collection.queries, left_on="query_id", right_on="id", how="semi")
        .join(docs.select("id", "source"), left_on="doc_id", right_on="id")
    )
    names: list[str | None] = [*collection.sources]
    if collection.sourceless:
        names.append(None)
    docs_by_source = docs.partition_by("source", as_dict=True)
    relevant_by_source = relevant.partition_by("source", as_dict=True)
    sources = []
    for name in names:
        relevant_of_source = relevant_by_source.get((name,), relevant.clear())
        sources.append(_source_contents(name, docs_by_source[name,], relevant_of_source))
    queries = [_query_contents("all", collection.queries)]
    if collection.qrels.height:
        queries.append(_query_contents("judged", collection.queries_with_judgments))
    split = collection.spec.get("split")
    return Contents(
        sources=tuple(sources),
        queries=tuple(queries),
        split=None if split is None else str(split),
    )


def _counted_documents(collection: Collection) -> pl.DataFrame:
    """Return each document's words, and whether it is a copy, judged, or a twin."""
    text = pl.col("text").str.strip_chars()
    # Texts are compared by two hashes of 64 bits, so that not all texts are in memory together.
    fingerprint = pl.struct("source", text.hash(0), text.hash(1).alias("second_hash"))
    is_judged = pl.col("id").is_in(collection.qrels["doc_id"].implode())
    sources_of_origin = pl.col("source").drop_nulls().n_unique().over("origin")
    is_twin = pl.col("source").is_not_null() & (sources_of_origin > 1)
    return collection.docs.select(
        "id",
        "source",
        words=words(collection.docs["text"]),
        copy=(text != "") & ~fingerprint.is_first_distinct(),
        judged=is_judged,
        twin=is_twin,
    )


def _source_contents(
    name: str | None, docs: pl.DataFrame, relevant: pl.DataFrame
) -> SourceContents:
    """Count the documents of one source, and their relevant judgments."""
    word_counts = docs["words"].to_numpy()
    query_count = relevant["query_id"].n_unique()
    relevant_mean = relevant.height / query_count if query_count else np.nan
    empty_count = int((word_counts == 0).sum())
    low, median, high = np.quantile(word_counts, (0.25, 0.5, 0.75)).tolist()
    return SourceContents(
        source=name,
        documents=len(word_counts),
        empty=empty_count,
        words=float(np.mean(word_counts)),
        quartiles=(low, median, high),
        queries=query_count,
        relevant=relevant_mean,
        judged=int(docs["judged"].sum()),
        twins=int(docs["twin"].sum()),
        duplicates=int(docs["copy"].sum()),
    )


def _query_contents(which: str, queries: pl.DataFrame) -> QueryContents:
    """Count queries and their words; `which` says which queries these are."""
    word_counts = words(queries["text"]).to_numpy()
    mean = float(np.mean(word_counts)) if len(word_counts) else np.nan
    return QueryContents(which=which, queries=len(word_counts), words=mean)
