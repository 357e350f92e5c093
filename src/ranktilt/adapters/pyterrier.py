"""PyTerrier: a pipeline as a ranker, and a ranker as a transformer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from ranktilt.collection import Collection
from ranktilt.errors import UserError
from ranktilt.optional import need
from ranktilt.rankers.base import Ranker
from ranktilt.run import Run

_NAMES = {"qid": "query_id", "docno": "doc_id", "score": "score"}
_WORDS = r"[^\w\s]"


@dataclass(frozen=True)
class PyTerrierRanker(Ranker):
    """Any PyTerrier pipeline that answers topics (``qid``, ``query``) with ``docno`` and ``score``.

    Its documents must be called as the collection's are. Behind another stage it gets that stage's results.
    """

    pipeline: Any
    plain_queries: bool = True
    """Whether everything but words is taken out of queries, as Terrier's query language needs it."""
    name: ClassVar[str] = "pyterrier"

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        """Let the pipeline answer the judged queries, or re-rank the results of a run."""
        text = pl.col("text").str.replace_all(_WORDS, " ") if self.plain_queries else pl.col("text")
        topics = collection.judged.select(qid="id", query=text)
        if run is not None:
            results = run.frame().rename({name: here for here, name in _NAMES.items()})
            topics = results.join(topics, on="qid", maintain_order="left")
        found = pl.from_pandas(self.pipeline(topics.to_pandas()))
        missing = [name for name in _NAMES if name not in found.columns]
        if missing:
            raise UserError(f"{self!r}: expected results with the columns {', '.join(_NAMES)}; missing: {missing[0]}")
        frame = found.select(pl.col(name).alias(_NAMES[name]) for name in _NAMES)
        frame = frame.cast({"query_id": pl.String, "doc_id": pl.String})
        return Run.from_frame(frame, queries=collection.judged["id"], spec={"ranker": repr(self)})

    def __repr__(self) -> str:
        return f"pyterrier:{self.pipeline!r}"


def as_pyterrier(ranker: Ranker, collection: Collection) -> Any:
    """Give a ranker of RankTilt to PyTerrier, as a transformer over a collection.

    Parameters
    ----------
    ranker : Ranker
        Searches the collection, or, where it gets results (``docno``), re-ranks them.
    collection : Collection
        What is searched; its judgments are not read.

    Returns
    -------
    pyterrier.Transformer
        Answers topics (``qid``, ``query``) with ``docno``, ``score`` and ``rank``, and the column ``source``, which
        measures of `as_ir_measures` need.
    """
    library = need("pyterrier", extra="adapters", for_="PyTerrier's transformers")

    def transform(topics: Any) -> Any:
        given = pl.from_pandas(topics)
        queries = given.select(id=pl.col("qid").cast(pl.String), text="query").unique("id", maintain_order=True)
        asked = queries.select(query_id="id", doc_id=pl.lit(collection.ids[0]), grade=pl.lit(1.0))
        part = Collection(collection.docs, queries, asked, spec=collection.spec)
        before = Run.from_frame(given.rename(_NAMES)) if "docno" in given.columns else None
        results = ranker.rank(part, before).frame().rename({name: here for here, name in _NAMES.items()})
        results = results.join(collection.docs.select(docno="id", source="source"), on="docno", maintain_order="left")
        results = results.join(queries.select(qid="id", query="text"), on="qid", maintain_order="left")
        ranks = pl.int_range(pl.len()).over("qid")  # results fall within each query
        return results.with_columns(rank=ranks).to_pandas()

    return library.apply.generic(transform, required_columns=["qid", "query"])
