"""The ranked lists of an explorer: first results, and documents of interest further down.

An *entry* is a document in a query's list. A *judged run* is a run with the judgments of its
entries. *Twins* are documents of one *origin* (versions of the same text) in two groups. Queries
and documents are integers: the query's position in the order of the page, and the document's row in
the collection; documents that are only judged or retrieved have the integers that follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.groups import Groups
from ranktilt.auditing.judged_run import JudgedRun
from ranktilt.auditing.judgments import Judgments
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run, codes

Ints = npt.NDArray[np.int64]
"""Array of whole numbers."""
TWINS_OF_A_GROUP = 3
"""Most documents of one origin and group that are shown; more are hard to compare by eye."""
FURTHER = 100
"""Most relevant documents that are shown of a list below its first results."""
_KEY = ["query", "doc"]
"""Columns whose values no two entries of a run share."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ExplorerLists:
    """Ranked lists of some runs for the same queries."""

    entries: tuple[pl.DataFrame, ...]
    """A frame of entries for each run, list by list.

    Its columns are ``query``, ``doc``, the ``first`` and ``last`` rank of the entries with the same
    score, ``score``, ``grade``, and ``top``: whether it is one of the first results. A relevant
    document that was not retrieved has no ranks and no score.
    """
    lengths: tuple[Ints, ...]
    """Length of each query's list, an array for each run."""
    ids: pl.Series
    """Ids of documents by their integers.

    First those of the collection, then those that are only judged, then those that are only
    retrieved.
    """
    twins: pl.DataFrame
    """Pairs of twins, in the columns ``doc`` and ``twin``, for every listed document."""
    relevant: Ints
    """Number of relevant documents of each query."""


def ranked_lists(
    collection: Collection,
    groups: Groups,
    judgments: Judgments,
    runs: Sequence[Run],
    *,
    order: Ints,
    depth: int,
    ties: str,
) -> ExplorerLists:
    """Collect the entries to show of each run's ranked lists.

    `order` are the indices of queries in the order of the page, `depth` is the number of first
    results, and `ties` the rule for equal scores.
    """
    query_positions = np.argsort(order)  # the position of each query in the order
    judged_queries = query_positions[judgments.query]
    relevant = pl.DataFrame(
        {"query": judged_queries, "doc": judgments.row, "grade": judgments.grade}
    )
    judged_runs = [JudgedRun.from_run(run, collection, judgments) for run in runs]
    if ties == "trec_eval":
        judged_runs = [judged_run.untied() for judged_run in judged_runs]
    unknown_ids = judgments.ids.clear()
    for judged_run in judged_runs:
        unknown_ids = pl.concat([unknown_ids, _unknown_ids(judged_run).alias(unknown_ids.name)])
    unknown_ids = unknown_ids.unique(maintain_order=True)
    all_entries = [
        _all_entries(judged_run, unknown_ids, query_positions) for judged_run in judged_runs
    ]
    top_docs = [entries.filter(pl.col("position") < depth)["doc"] for entries in all_entries]
    docs = [*(series.to_numpy() for series in top_docs), judgments.row]
    twins = twins_of(collection, groups, np.unique(np.concatenate(docs)))
    shown_entries = [_shown_entries(entries, relevant, twins, depth) for entries in all_entries]
    lengths = [np.diff(judged_run.ranking.offsets)[order] for judged_run in judged_runs]
    return ExplorerLists(
        entries=tuple(shown_entries),
        lengths=tuple(lengths),
        ids=pl.concat([judgments.ids, unknown_ids]),
        twins=twins,
        relevant=np.bincount(judged_queries, minlength=len(order)),
    )


def twins_of(collection: Collection, groups: Groups, docs: Ints) -> pl.DataFrame:
    """Return the twins of some documents, as pairs in the columns ``doc`` and ``twin``.

    `docs` are integers of documents. Of one origin and group only the first few are twins.
    """
    is_requested = np.isin(np.arange(len(groups.code)), docs)
    members = pl.DataFrame(
        {
            "origin": collection.docs["origin"],
            "group": groups.code,
            "is_requested": is_requested,
        }
    )
    members = members.with_row_index("twin").cast({"twin": pl.Int64})
    members = members.filter(pl.col("group") >= 0)
    requested_origins = members.filter("is_requested").select("origin")
    versions = members.join(requested_origins, on="origin", how="semi", maintain_order="left")
    index_in_group = pl.int_range(pl.len()).over("origin", "group")
    versions = versions.with_columns(is_twin=index_in_group < TWINS_OF_A_GROUP)
    documents = versions.filter(pl.col("is_twin") | pl.col("is_requested"))
    documents = documents.select("origin", doc="twin", doc_group="group")
    pairs = documents.join(
        versions.filter("is_twin"), on="origin", how="inner", maintain_order="left_right"
    )
    return pairs.filter(pl.col("group") != pl.col("doc_group")).select("doc", "twin")


def _unknown_ids(judged_run: JudgedRun) -> pl.Series:
    """Return the ids of retrieved documents that are neither in the collection nor judged."""
    entries = judged_run.position[judged_run.row < 0]
    return judged_run.run.ids.gather(judged_run.run.docs[entries])


def _all_entries(
    judged_run: JudgedRun, unknown_ids: pl.Series, query_positions: Ints
) -> pl.DataFrame:
    """Return every entry of one run, with its position in its list from 0 on.

    `unknown_ids` are the ids whose integers follow those of the collection and judgments.
    """
    ranking, doc = judged_run.ranking, judged_run.row.copy()
    doc[doc < 0] = len(judged_run.judgments.ids) + codes(_unknown_ids(judged_run), unknown_ids)
    position = np.arange(len(doc)) - ranking.offsets[ranking.query]
    # Tied entries share the ranks from the first to the last of them: `before` is the number of
    # entries above a tie, `sizes` the number of entries in it.
    first = np.repeat(ranking.before, ranking.sizes) + 1
    last = first + np.repeat(ranking.sizes, ranking.sizes) - 1
    return pl.DataFrame(
        {
            "query": query_positions[ranking.query],
            "doc": doc,
            "position": position,
            "first": first,
            "last": last,
            "score": judged_run.run.scores[judged_run.position],
        }
    )


def _shown_entries(
    entries: pl.DataFrame, relevant: pl.DataFrame, twins: pl.DataFrame, depth: int
) -> pl.DataFrame:
    """Return the entries of one run that are shown.

    These are the first results, the best ranked relevant documents, and the twins of both, as far
    as they were retrieved. Relevant documents that were not retrieved come last.
    """
    is_top = pl.col("position").lt(depth).fill_null(False)
    order = ("query", "position", "doc")
    relevant_entries = relevant.join(entries, on=_KEY, how="left").sort(order, nulls_last=True)
    rank_below_top = (~is_top).cum_sum().over("query")
    shown_relevant = relevant_entries.filter(is_top | (rank_below_top <= FURTHER))
    listed = pl.concat([entries.filter(is_top).select(_KEY), shown_relevant.select(_KEY)]).unique()
    # Two steps, so that the twins of a twin are there to compare with it.
    twins_of_listed = listed.join(twins, on="doc").select("query", doc="twin")
    twins_of_twins = twins_of_listed.join(twins, on="doc").select("query", doc="twin")
    keys = pl.concat([listed, twins_of_listed, twins_of_twins]).unique()
    retrieved = entries.join(keys, on=_KEY, how="semi").join(relevant, on=_KEY, how="left")
    not_retrieved = shown_relevant.filter(pl.col("position").is_null()).select(retrieved.columns)
    rows = pl.concat([retrieved, not_retrieved]).sort(order, nulls_last=True)
    return rows.select(
        *_KEY, "first", "last", "score", pl.col("grade").fill_null(0.0), is_top.alias("top")
    )
