"""The ranked lists to look through: first results, and documents of interest further down."""

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
TWINS_OF_A_GROUP = 3
"""Twins that are shown of one origin and group; more are hard to compare by eye."""
FURTHER = 100
"""Relevant documents of a list below its first results that are listed."""
_KEY = ["query", "doc"]
"""Columns that name an entry."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ExplorerLists:
    """Ranked lists of some runs for the same queries."""

    entries: tuple[pl.DataFrame, ...]
    """A frame for each run, list by list.

    It has ``query``, ``doc``, ``first`` and ``last`` rank of its tie, ``score``, ``grade`` and
    whether it is in the ``top``. A relevant document that was not retrieved has no ranks and no
    score.
    """
    lengths: tuple[Ints, ...]
    """Number of documents that each query retrieved, an array for each run."""
    ids: pl.Series
    """Ids by number: documents of the collection, then only judged, then only retrieved ones."""
    twins: pl.DataFrame
    """``doc`` and ``twin``: documents of one origin in two groups, for every listed document."""
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
    """Collect the entries to show of each run's ranked lists, with queries in this order."""
    query_ranks = np.argsort(order)
    judged_queries = query_ranks[judgments.query]
    relevant = pl.DataFrame(
        {"query": judged_queries, "doc": judgments.row, "grade": judgments.grade}
    )
    judged_runs = [JudgedRun.from_run(run, collection, judgments) for run in runs]
    if ties == "trec_eval":
        judged_runs = [judged_run.untied() for judged_run in judged_runs]
    unknown = judgments.ids.clear()
    for judged_run in judged_runs:
        unknown = pl.concat([unknown, _unknown(judged_run).alias(unknown.name)])
    unknown = unknown.unique(maintain_order=True)
    retrieved = [_retrieved(judged_run, unknown, query_ranks) for judged_run in judged_runs]
    top_docs = [entries.filter(pl.col("position") < depth)["doc"] for entries in retrieved]
    docs = [*(series.to_numpy() for series in top_docs), judgments.row]
    twins = twins_of(collection, groups, np.unique(np.concatenate(docs)))
    entries = [_shown_entries(entries, relevant, twins, depth) for entries in retrieved]
    lengths = [np.diff(judged_run.ranking.offsets)[order] for judged_run in judged_runs]
    return ExplorerLists(
        entries=tuple(entries),
        lengths=tuple(lengths),
        ids=pl.concat([judgments.ids, unknown]),
        twins=twins,
        relevant=np.bincount(judged_queries, minlength=len(order)),
    )


def twins_of(collection: Collection, groups: Groups, docs: Ints) -> pl.DataFrame:
    """Find the twins of some documents: those of the same origin in other groups."""
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
    origins = members.filter("is_requested").select("origin")
    families = members.join(origins, on="origin", how="semi", maintain_order="left")
    rank_in_group = pl.int_range(pl.len()).over("origin", "group")
    families = families.with_columns(is_twin=rank_in_group < TWINS_OF_A_GROUP)
    documents = families.filter(pl.col("is_twin") | pl.col("is_requested"))
    documents = documents.select("origin", doc="twin", doc_group="group")
    pairs = documents.join(
        families.filter("is_twin"), on="origin", how="inner", maintain_order="left_right"
    )
    return pairs.filter(pl.col("group") != pl.col("doc_group")).select("doc", "twin")


def _unknown(judged_run: JudgedRun) -> pl.Series:
    """Return the ids of entries whose document neither collection nor judgments know."""
    entries = judged_run.position[judged_run.row < 0]
    return judged_run.run.ids.gather(judged_run.run.docs[entries])


def _retrieved(judged_run: JudgedRun, unknown: pl.Series, query_ranks: Ints) -> pl.DataFrame:
    """Return every entry of one run."""
    ranking, doc = judged_run.ranking, judged_run.row.copy()
    doc[doc < 0] = len(judged_run.judgments.ids) + codes(_unknown(judged_run), unknown)
    position = np.arange(len(doc)) - ranking.offsets[ranking.query]
    # Tied entries share the ranks from the first to the last of them.
    first = np.repeat(ranking.before, ranking.sizes) + 1
    last = first + np.repeat(ranking.sizes, ranking.sizes) - 1
    return pl.DataFrame(
        {
            "query": query_ranks[ranking.query],
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
    """Choose the entries of one run that are shown.

    These are the first results, relevant documents, and the twins of both that were retrieved.
    """
    top = pl.col("position").lt(depth).fill_null(False)
    order = ("query", "position", "doc")
    judged = relevant.join(entries, on=_KEY, how="left").sort(order, nulls_last=True)
    further_rank = (~top).cum_sum().over("query")
    chosen = judged.filter(top | (further_rank <= FURTHER))
    listed = pl.concat([entries.filter(top).select(_KEY), chosen.select(_KEY)]).unique()
    # Two steps, so that the twins of a twin are there to compare with it.
    related = listed.join(twins, on="doc").select("query", doc="twin")
    further = related.join(twins, on="doc").select("query", doc="twin")
    keys = pl.concat([listed, related, further]).unique()
    retrieved = entries.join(keys, on=_KEY, how="semi").join(relevant, on=_KEY, how="left")
    lost = chosen.filter(pl.col("position").is_null()).select(retrieved.columns)
    rows = pl.concat([retrieved, lost]).sort(order, nulls_last=True)
    return rows.select(
        *_KEY, "first", "last", "score", pl.col("grade").fill_null(0.0), top.alias("top")
    )
