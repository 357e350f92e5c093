"""Runs that hold twins: documents of each query that a ranker scores, retrieved or not.

*Twins* are two documents of the same origin by different sources (authors); one of the sources is
the *reference*, with which the others are compared. A ranker cuts its lists, so that often only one
of two twins is in them. Here it scores both, so that every pair has a gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.notes.probes import DocumentsScored
from ranktilt.data.runs.run import Run, codes
from ranktilt.explaining.twin_gaps import judged_origins
from ranktilt.rankers.base import DEPTH, Ranker, score_documents, stages_of
from ranktilt.rankers.candidates import check_reranked
from ranktilt.rankers.self_exclusion import self_documents

_FEWEST_ORIGINS = 30
"""Minimum number of origins to score for each query, even if the ranker ranks fewer documents."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoredTwins:
    """A run with scores of twins."""

    run: Run
    """The run."""
    note: DocumentsScored | None
    """Note on the number of documents drawn and scored; None if the run has retrieved documents."""


def score_twins(
    collection: Collection, ranker: Ranker | Run, sources: Sequence[str], seed: int
) -> ScoredTwins:
    """Score twins by a ranker, whether it would retrieve them or not.

    A saved run is returned as it is. A ranker that can score only what it retrieves searches
    instead.

    Parameters
    ----------
    collection : Collection
        Documents with twins, and queries.
    ranker : Ranker or Run
        The ranker.
    sources : sequence of str
        The reference, and then the other sources.
    seed : int
        Random seed of the draw of documents.
    """
    if isinstance(ranker, Run):
        return ScoredTwins(run=ranker, note=None)
    run = score_documents(ranker, collection, _sample(collection, ranker, sources, seed))
    if run is None:
        searched = check_reranked(ranker.rank(collection), candidates=None, ranker=ranker)
        return ScoredTwins(run=searched, note=None)
    note = DocumentsScored(
        run=run.name, documents=len(run.docs), queries=len(run.queries), seed=seed
    )
    return ScoredTwins(run=run, note=note)


def _sample(collection: Collection, ranker: Ranker, sources: Sequence[str], seed: int) -> Run:
    """Choose the documents to score for each query; return them as a run whose scores are all 0.

    There are about as many as the ranker ranks: its ``k``, or for a pipeline the number of
    documents that the last stage re-ranks. Whole origins are chosen, so that each document comes
    with all its twins: judged origins first, then others at random. `sources` begin with the
    reference.
    """
    stages, document_count = stages_of(ranker), collection.docs.height
    twins = _twins(collection, sources)
    # Each origin with twins, and the rows of its documents.
    origins, rows = twins.group_by("origin").agg("row").sort("origin")
    index_of_origin = np.full(document_count, -1)
    index_of_origin[origins.to_numpy()] = np.arange(len(origins))
    # The number of origins whose documents are about as many as the ranker ranks.
    affordable = _depth(stages) * len(origins) // max(twins.height, 1)
    origin_count = min(max(affordable, _FEWEST_ORIGINS), len(origins))
    query_ids = collection.queries_with_judgments["id"]
    generator = np.random.default_rng(seed)
    judged = judged_origins(collection)
    # A query that is itself a document is not scored with itself.
    excluded = self_documents(collection, getattr(stages[0], "exclude_self", None))
    no_rows = np.empty(0, np.int64)
    lists = [no_rows]
    for number, query in enumerate(codes(query_ids, collection.queries["id"]).tolist()):
        # `judged_origins` numbers the origins of a query from query · document_count on.
        first_number = query * document_count
        low, high = np.searchsorted(judged, (first_number, first_number + document_count))
        judged_indices = index_of_origin[judged[low:high] - first_number]
        judged_indices = generator.permutation(judged_indices[judged_indices >= 0])
        drawn = generator.choice(len(origins), origin_count, replace=False)
        not_judged = drawn[~np.isin(drawn, judged_indices)]
        chosen = np.concatenate([judged_indices, not_judged])[:origin_count]
        documents = rows.gather(chosen).explode().to_numpy().astype(np.int64)
        lists.append(documents[~np.isin(documents, excluded.get(number, no_rows))])
    docs = np.concatenate(lists).astype(np.int32)
    return Run(
        queries=tuple(query_ids),
        offsets=np.cumsum([*map(len, lists)]),  # the first list is empty, so they begin with 0
        docs=docs,
        scores=np.zeros(len(docs)),
        ids=collection.ids,
    )


def _twins(collection: Collection, sources: Sequence[str]) -> pl.DataFrame:
    """Return the documents of these sources whose origin has the reference and another source.

    Columns are ``source``, ``row`` (of the collection) and ``origin`` (as a code).
    """
    docs = collection.docs.select(
        "source", row=pl.int_range(pl.len()), origin=pl.Series(collection.origin_codes())
    )
    has_reference = (pl.col("source") == sources[0]).any().over("origin")
    has_twin = pl.col("source").n_unique().over("origin") > 1
    return docs.filter(pl.col("source").is_in(sources)).filter(has_reference & has_twin)


def _depth(stages: Sequence[Any]) -> int:
    """Return how many documents the last stage of a ranker gets.

    This is the depth of the stage before it, or of the nearest earlier stage that has a depth. A
    ranker of one stage has its own depth.
    """
    for stage in reversed(stages[:-1] or stages):
        depth = getattr(stage, "k", None)
        if depth:
            return int(depth)
    return DEPTH
