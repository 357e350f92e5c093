"""Runs that hold twins: documents of each query that a ranker scores, retrieved or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.notes.probes import DocumentsScored
from ranktilt.data.run import Run, codes
from ranktilt.explaining.twin_gaps import judged_origins
from ranktilt.rankers.base import DEPTH, Ranker, score_documents, stages_of
from ranktilt.rankers.candidates import check_reranked
from ranktilt.rankers.self_exclusion import self_documents

_FEWEST_ORIGINS = 30
"""Origins of a query that are scored, where there are so many, however shallow the ranker is."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoredTwins:
    """A run whose gaps are attributed."""

    run: Run
    """The run."""
    note: DocumentsScored | None
    """How many documents were drawn and scored; None where the run has what was retrieved."""


def score_twins(
    collection: Collection, ranker: Ranker | Run, sources: Sequence[str], seed: int
) -> ScoredTwins:
    """Score twins by a ranker, and note how many.

    A ranker that scores only what it retrieves ranks instead.
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
    """Choose the documents of each query to score, without scores yet.

    `sources` begin with the reference. As many documents as the ranker ranks (``@k``; of a
    pipeline's last stage, as many as it re-ranks): judged ones first, others drawn at random, each
    with all its twins.
    """
    stages, size = stages_of(ranker), collection.docs.height
    twins = _twins(collection, sources)
    origins, rows = twins.group_by("origin").agg("row").sort("origin")
    origin_index = np.full(size, -1)
    origin_index[origins.to_numpy()] = np.arange(len(origins))
    affordable = _depth(stages) * len(origins) // max(twins.height, 1)
    count = min(max(affordable, _FEWEST_ORIGINS), len(origins))
    names = collection.queries_with_judgments["id"]
    generator = np.random.default_rng(seed)
    judged = judged_origins(collection)
    excluded = self_documents(collection, getattr(stages[0], "exclude_self", None))
    none = np.empty(0, np.int64)
    parts = [none]
    for number, query in enumerate(codes(names, collection.queries["id"]).tolist()):
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
    """Return the documents of the sources whose text has a version in the reference and another."""
    docs = collection.docs.select(
        "source", row=pl.int_range(pl.len()), origin=pl.Series(collection.origin_codes())
    )
    has_reference = (pl.col("source") == sources[0]).any().over("origin")
    has_twin = pl.col("source").n_unique().over("origin") > 1
    return docs.filter(pl.col("source").is_in(sources)).filter(has_reference & has_twin)


def _depth(stages: Sequence[Any]) -> int:
    """Return the depth of the last stage but one, or of the nearest before it that has one."""
    for stage in reversed(stages[:-1] or stages):
        depth = getattr(stage, "k", None)
        if depth:
            return int(depth)
    return DEPTH
