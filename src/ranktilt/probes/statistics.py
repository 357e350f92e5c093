"""What a collection holds, source by source: documents, words, queries, judgments (Dai et al., KDD 2024, Table 1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from ranktilt.collection import Collection
from ranktilt.probes.base import Floats, TextProbe
from ranktilt.probes.distribution import Distribution
from ranktilt.rankers.base import Ranker
from ranktilt.text.quality import words


@dataclass(frozen=True)
class SourceStatistics:
    """What one source holds."""

    source: str
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


@dataclass(frozen=True)
class QueryStatistics:
    """How many queries there are, and how long they are."""

    which: str
    """``all`` queries of the collection, or the ``judged`` ones, which are ranked."""
    queries: int
    words: float
    """Mean number of whitespace words; NaN without queries."""


@dataclass(frozen=True)
class CollectionStatistics:
    """The table of a collection: a row a source, and the queries, which all sources share."""

    sources: tuple[SourceStatistics, ...]
    queries: tuple[QueryStatistics, ...]
    """All queries; then the judged ones, where there are judgments."""
    split: str | None
    """Name of the judgments, such as ``test``; None where they have none."""


def statistics(collection: Collection) -> CollectionStatistics:
    """Count documents, words, queries and relevant documents of every source (Dai et al., KDD 2024, Table 1).

    Lengths are whitespace words, of documents without the title (this gives the published 201.81 for SciFact). Relevant
    is a grade of 1 or more of a document and a query that the collection holds.
    """
    docs = collection.docs.select("id", "source", words=words(collection.docs["text"]))
    relevant = collection.qrels.filter(pl.col("grade") > 0).join(
        collection.queries, left_on="query_id", right_on="id", how="semi"
    )
    judged = relevant.join(docs, left_on="doc_id", right_on="id", how="inner")
    rows = tuple(
        _source(name, docs.filter(pl.col("source") == name), judged.filter(pl.col("source") == name))
        for name in collection.sources
    )
    queries = [_queries("all", collection.queries)]
    if collection.qrels.height:
        queries.append(_queries("judged", collection.judged))
    split = collection.spec.get("split")
    return CollectionStatistics(rows, tuple(queries), None if split is None else str(split))


def _source(name: str, docs: pl.DataFrame, judged: pl.DataFrame) -> SourceStatistics:
    counts = docs["words"].to_numpy()
    queries = judged["query_id"].n_unique()
    low, median, high = np.quantile(counts, (0.25, 0.5, 0.75)).tolist()
    return SourceStatistics(
        name,
        len(counts),
        int((counts == 0).sum()),
        float(np.mean(counts)),
        (low, median, high),
        queries,
        judged.height / queries if queries else np.nan,
    )


def _queries(which: str, queries: pl.DataFrame) -> QueryStatistics:
    counts = words(queries["text"]).to_numpy()
    return QueryStatistics(which, len(counts), float(np.mean(counts)) if len(counts) else np.nan)


class StatisticsProbe(TextProbe):
    """How long the documents of each source are, and how many of them are relevant."""

    name = "statistics"
    question = "Do the sources hold as many documents of the same length, with as many relevant ones?"
    citation = "Dai et al., KDD 2024, Table 1"
    what = "words"
    label = "length"

    def measure(self, collection: Collection, reference: str, ranker: Ranker | None) -> Floats:
        return words(collection.docs["text"]).to_numpy().astype(np.float64)

    def rows(self, collection: Collection, found: Mapping[str, Distribution]) -> list[dict[str, Any]]:
        return [
            {
                **{name: value for name, value in asdict(one).items() if name != "quartiles"},
                **dict(zip(("25 %", "median", "75 %"), one.quartiles, strict=True)),
            }
            for one in sorted(statistics(collection).sources, key=lambda one: list(found).index(one.source))
        ]
