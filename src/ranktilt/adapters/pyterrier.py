"""PyTerrier: a pipeline as a ranker, and a ranker as a transformer.

PyTerrier calls queries *topics*. Its *transformers* take a table of topics or of results, and
return one of results; a *pipeline* is several of them, one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from ranktilt.adapters.base import ObjectRanker, object_spec
from ranktilt.data.collection import Collection
from ranktilt.data.formats.ids import ids_of, pandas_columns, require_pandas, texts_of
from ranktilt.data.runs.run import Run
from ranktilt.errors import UserError
from ranktilt.optional import need
from ranktilt.rankers.base import Ranker

_NAMES = {"qid": "query_id", "docno": "doc_id", "score": "score"}
"""PyTerrier's names of a run's columns."""


@dataclass(frozen=True)
class PyTerrierRanker(ObjectRanker):
    """Ranks with a PyTerrier pipeline.

    The pipeline gets a table of topics (``qid``, ``query``) and returns one of results (``qid``,
    ``docno``, ``score``). Its documents must have the collection's ids. If the pipeline comes after
    another ranker, the table of topics also has that ranker's results, which the pipeline re-ranks.
    """

    pipeline: Any
    """A PyTerrier transformer, called with a pandas table."""
    name: ClassVar[str] = "pyterrier"
    fixed: ClassVar[tuple[str, ...]] = ("pipeline",)
    """Fields that a user cannot set as options."""

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        """Let the pipeline answer the judged queries, or re-rank the results of a run."""
        topics = collection.queries_with_judgments.select(qid="id", query="text")
        if run is not None:
            topics = _results(run).join(topics, on="qid", maintain_order="left")
        results = Run.from_pandas(self.pipeline(topics.to_pandas())).frame()
        spec = {"ranker": repr(self), **object_spec(self.pipeline)}
        queries = collection.queries_with_judgments["id"]
        return Run.from_frame(results, queries=queries, spec=spec)

    def __repr__(self) -> str:
        return f"pyterrier:{self.pipeline!r}"


def as_pyterrier(ranker: Ranker, collection: Collection) -> Any:
    """Return a ranker of RankTilt as a transformer over a collection, for PyTerrier.

    Parameters
    ----------
    ranker : Ranker
        Searches the collection, or re-ranks the results that it gets (``docno``).
    collection : Collection
        The documents to search; its judgments are not read.

    Returns
    -------
    pyterrier.Transformer
        Answers topics (``qid``, ``query``) with ``docno``, ``score`` and ``rank``, and the column
        ``source``, which measures of `as_ir_measures` need.
    """
    library = need("pyterrier", extra="adapters", for_="PyTerrier's transformers")

    def transform(topics: Any) -> Any:
        """Return the results of some topics; both are pandas tables."""
        queries = _topics(topics).unique(maintain_order=True)
        repeated = queries.filter(~pl.col("id").is_first_distinct())
        if repeated.height:
            raise UserError(
                f"topics: query {repeated['id'][0]!r} comes twice, with two texts; "
                "give each its own qid"
            )
        # A ranker answers the queries of a collection, so this one has the topics as queries.
        unjudged = Collection(collection.docs, queries, collection.qrels.clear(), collection.spec)
        before = Run.from_pandas(topics) if "docno" in topics.columns else None
        results = _results(ranker.rank(unjudged, before))
        sources = collection.docs.select(docno="id", source="source")
        results = results.join(sources, on="docno", maintain_order="left")
        texts = queries.select(qid="id", query="text")
        results = results.join(texts, on="qid", maintain_order="left")
        # Results are sorted, the best first, within each query; PyTerrier counts ranks from 0.
        ranks = pl.int_range(pl.len()).over("qid")
        return results.with_columns(rank=ranks).to_pandas()

    return library.apply.generic(transform, required_columns=["qid", "query"])


def _topics(topics: Any) -> pl.DataFrame:
    """Return the queries of PyTerrier's topics or results, as ``id`` and ``text``, row by row."""
    names = require_pandas(topics, "topics")
    for name in ("qid", "query"):
        if name not in names:
            raise UserError(f"topics: expected a column {name!r}, got {', '.join(names)}")
    table = pandas_columns(topics, {names.index("qid"): "id", names.index("query"): "text"})
    return table.with_columns(
        ids_of(table["id"], "topics: column 'qid'").alias("id"),
        texts_of(table["text"], "topics: column 'query'"),
    )


def _results(run: Run) -> pl.DataFrame:
    """Return a run as PyTerrier's table of results."""
    return run.frame().select(pl.col(column).alias(name) for name, column in _NAMES.items())
