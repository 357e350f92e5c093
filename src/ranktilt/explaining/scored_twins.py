"""Runs that hold twins: documents of each query that a ranker scores, retrieved or not."""

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
"""Fewest origins that are scored for each query, even if the ranker ranks fewer documents."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoredTwins:
    """A run whose gaps are attributed."""

    run: Run
    """The run."""
    note: DocumentsScored | None
    """How many documents were drawn and scored; None if the run has what was retrieved."""


def score_twins(
    collection: Collection, ranker: Ranker | Run, sources: Sequence[str], seed: int
) -> ScoredTwins:
    """Score twins by a ranker, whether it would retrieve them or not.

    A saved run is taken as it is. A ranker that can score only what it retrieves searches instead.
    `sources` begin with the reference.
    """
    if isinstance(ranker, Run):
        return ScoredTwins(run=ranker, note=None)
    run = score_documents(ranker, collection, _sample(collection, ranker, sources, seed))
    if run is None:
        return ScoredTwins(run=check_reranked(ranker.rank(collection), None, ranker), note=None)
    documents, queries = len(run.docs), len(run.queries)
    note = DocumentsScored(run=run.name, documents=documents, queries=queries, seed=seed)
    return ScoredTwins(run=run, note=note)


def _sample(collection: Collection, ranker: Ranker, sources: Sequence[str], seed: int) -> Run:
    """Choose the documents to score for each query; return them as a run whose scores are all 0.

    There are about as many as the ranker ranks: its ``k``, or for a pipeline the number of
    documents that the last stage re-ranks. Whole origins are chosen, so that each document comes
    with all its twins: judged origins first, then others at random. `sources` begin with the
    reference.
    """
    stages, size = stages_of(ranker), collection.docs.height
    twins = _twins(collection, sources)
    origins, rows = twins.group_by("origin").agg("row").sort("origin")
    origin_index = np.full(size, -1)
    origin_index[origins.to_numpy()] = np.arange(len(origins))
    # Origins whose documents are about as many as the ranker's depth.
    affordable = _depth(stages) * len(origins) // max(twins.height, 1)
    count = min(max(affordable, _FEWEST_ORIGINS), len(origins))
    names = collection.queries_with_judgments["id"]
    generator = np.random.default_rng(seed)
    judged = judged_origins(collection)
    excluded = self_documents(collection, getattr(stages[0], "exclude_self", None))
    none = np.empty(0, np.int64)
    parts = [none]
    for number, query in enumerate(codes(names, collection.queries["id"]).tolist()):
        # The numbers of `judged_origins` for this query are from query · size on.
        low, high = np.searchsorted(judged, (query * size, (query + 1) * size))
        first = origin_index[judged[low:high] - query * size]
        first = generator.permutation(first[first >= 0])
        drawn = generator.choice(len(origins), count, replace=False)
        chosen = np.concatenate([first, drawn[~np.isin(drawn, first)]])[:count]
        documents = rows.gather(chosen).explode().to_numpy().astype(np.int64)
        parts.append(documents[~np.isin(documents, excluded.get(number, none))])
    entries = np.concatenate(parts).astype(np.int32)
    return Run(
        queries=tuple(names),
        offsets=np.cumsum([*map(len, parts)]),
        docs=entries,
        scores=np.zeros(len(entries)),
        ids=collection.ids,
    )


def _twins(collection: Collection, sources: Sequence[str]) -> pl.DataFrame:
    """Return the documents of these sources that have twins.

    Their origin has a document by the reference, and one by another source. Columns are
    ``source``, ``row`` and ``origin``, the last two as numbers.
    """
    docs = collection.docs.select(
        "source", row=pl.int_range(pl.len()), origin=pl.Series(collection.origin_codes())
    )
    has_reference = (pl.col("source") == sources[0]).any().over("origin")
    has_twin = pl.col("source").n_unique().over("origin") > 1
    return docs.filter(pl.col("source").is_in(sources)).filter(has_reference & has_twin)


def _depth(stages: Sequence[Any]) -> int:
    """Return how many documents the last stage of a ranker gets.

    It is the depth of the stage before, or of the nearest one before that has a depth.
    """
    for stage in reversed(stages[:-1] or stages):
        depth = getattr(stage, "k", None)
        if depth:
            return int(depth)
    return DEPTH
