"""Scores of twins that are chosen whatever their scores are.

Twins of which both are retrieved were chosen by their scores, which bends what their gaps go with.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.collection import Collection
from ranktilt.rankers.base import DEPTH, Ranker, score_documents, stages_of
from ranktilt.rankers.self_exclusion import self_documents
from ranktilt.run import Run, codes

Ints = npt.NDArray[np.int64]
_FEWEST = 30
"""Origins of a query that are scored, where there are so many, however shallow the ranker is."""


def score_twins(collection: Collection, ranker: Ranker, sources: Sequence[str], seed: int) -> Run | None:
    """Score twins of these sources, the reference's first; None where the ranker scores only what it retrieves.

    As many documents a query as the ranker ranks (``@k``; of a pipeline's last stage, as many as it re-ranks): judged
    ones first, others drawn at random, each with all its twins.
    """
    return score_documents(ranker, collection, _sample(collection, ranker, sources, seed))


def judged_origins(collection: Collection) -> Ints:
    """Return a number for each judged pair of query and origin: the query's row · documents + the origin's number."""
    query = codes(collection.qrels["query_id"], collection.queries["id"])
    row = codes(collection.qrels["doc_id"], collection.ids)
    known = (query >= 0) & (row >= 0)
    return np.unique(query[known] * collection.docs.height + collection.origin_codes()[row[known]])


def _sample(collection: Collection, ranker: Ranker, sources: Sequence[str], seed: int) -> Run:
    """Choose documents of each query, without scores yet."""
    stages, size = stages_of(ranker), collection.docs.height
    docs = collection.docs.select("source", row=pl.int_range(pl.len()), origin=pl.Series(collection.origin_codes()))
    reference = (pl.col("source") == sources[0]).any().over("origin")
    twins = docs.filter(pl.col("source").is_in(sources)).filter(
        reference & (pl.col("source").n_unique().over("origin") > 1)
    )
    origins, rows = twins.group_by("origin").agg("row").sort("origin")
    place = np.full(size, -1)
    place[origins.to_numpy()] = np.arange(len(origins))
    depth = next((k for one in reversed(stages[:-1] or stages) if (k := getattr(one, "k", None))), DEPTH)
    count = min(max(depth * len(origins) // max(twins.height, 1), _FEWEST), len(origins))
    names, generator, judged = collection.judged["id"], np.random.default_rng(seed), judged_origins(collection)
    excluded = self_documents(collection, getattr(stages[0], "exclude_self", None))
    parts, none = [np.empty(0, np.int64)], np.empty(0, np.int64)
    for number, query in enumerate(codes(names, collection.queries["id"]).tolist()):
        low, high = np.searchsorted(judged, (query * size, (query + 1) * size))
        first = place[judged[low:high] - query * size]
        first = generator.permutation(first[first >= 0])
        drawn = generator.choice(len(origins), count, replace=False)
        chosen = np.concatenate([first, drawn[~np.isin(drawn, first)]])[:count]
        found = rows.gather(chosen).explode().to_numpy().astype(np.int64)
        parts.append(found[~np.isin(found, excluded.get(number, none))])
    entries = np.concatenate(parts).astype(np.int32)
    return Run(tuple(names), np.cumsum([*map(len, parts)]), entries, np.zeros(len(entries)), collection.ids)
