"""The ranked lists to look through: first results, and what else of a query is worth finding further down."""

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
from ranktilt.data.run import Run, codes

Ints = npt.NDArray[np.int64]
TWINS_OF_A_GROUP = 3
"""Documents of one origin and one group that are shown as twins; beyond these there is nothing to compare by eye."""
FURTHER = 100
"""Relevant documents of a list below its first results that are listed."""
_KEY = ["query", "doc"]


@dataclass(frozen=True, eq=False)
class ExplorerLists:
    """Ranked lists of some runs for the same queries."""

    entries: tuple[pl.DataFrame, ...]
    """One a run, list by list: ``query``, ``doc``, ``first`` and ``last`` rank of its tie, ``score``, ``grade`` and
    whether it is in the ``top``. No ranks and no score where a relevant document was not retrieved."""
    lengths: tuple[Ints, ...]
    """Documents that each query retrieved, one array a run."""
    ids: pl.Series
    """Documents by number: those of the collection, those that are only judged, those that are only retrieved."""
    twins: pl.DataFrame
    """``doc`` and ``twin``: documents of one origin in two groups, for every document in an entry."""
    relevant: Ints
    """Relevant documents of each query."""


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
    """Collect what is worth seeing of each run's ranked lists, queries in this order."""
    place = np.argsort(order)
    relevant = pl.DataFrame(
        {"query": place[judgments.query], "doc": judgments.row, "grade": judgments.grade}
    )
    aligned = [JudgedRun.from_run(run, collection, judgments) for run in runs]
    if ties == "trec_eval":
        aligned = [one.untied() for one in aligned]
    unknown = pl.concat(
        [judgments.ids.clear(), *(_unknown(one).alias(judgments.ids.name) for one in aligned)]
    )
    unknown = unknown.unique(maintain_order=True)
    parts = [_retrieved(one, unknown, place) for one in aligned]
    listed = [part.filter(pl.col("place") < depth)["doc"].to_numpy() for part in parts]
    twins = twins_of(collection, groups, np.unique(np.concatenate([*listed, judgments.row])))
    return ExplorerLists(
        tuple(_shown_entries(part, relevant, twins, depth) for part in parts),
        tuple(np.diff(one.ranking.offsets)[order] for one in aligned),
        pl.concat([judgments.ids, unknown]),
        twins,
        np.bincount(place[judgments.query], minlength=len(order)),
    )


def twins_of(collection: Collection, groups: Groups, docs: Ints) -> pl.DataFrame:
    """Find the twins of some documents: those of the same origin in other groups."""
    table = pl.DataFrame(
        {"origin": collection.docs["origin"], "group": groups.code}
    ).with_row_index("twin")
    table = table.with_columns(
        pl.col("twin").cast(pl.Int64), asked=pl.Series(np.isin(np.arange(len(groups.code)), docs))
    )
    table = table.filter(pl.col("group") >= 0)
    family = table.join(
        table.filter("asked").select("origin"), on="origin", how="semi", maintain_order="left"
    )
    family = family.with_columns(
        few=pl.int_range(pl.len()).over("origin", "group") < TWINS_OF_A_GROUP
    )
    every = family.filter(pl.col("few") | pl.col("asked")).select("origin", doc="twin", own="group")
    joined = every.join(family.filter("few"), on="origin", how="inner", maintain_order="left_right")
    return joined.filter(pl.col("group") != pl.col("own")).select("doc", "twin")


def _unknown(aligned: JudgedRun) -> pl.Series:
    """Ids of the entries whose document neither collection nor judgments know."""
    return aligned.run.ids.gather(aligned.run.docs[aligned.position[aligned.row < 0]])


def _retrieved(aligned: JudgedRun, unknown: pl.Series, place: Ints) -> pl.DataFrame:
    """Every entry of one run."""
    ranking, doc = aligned.ranking, aligned.row.copy()
    doc[doc < 0] = len(aligned.judgments.ids) + codes(_unknown(aligned), unknown)
    first = np.repeat(ranking.before, ranking.sizes) + 1
    return pl.DataFrame(
        {
            "query": place[ranking.query],
            "doc": doc,
            "place": np.arange(len(doc)) - ranking.offsets[ranking.query],
            "first": first,
            "last": first + np.repeat(ranking.sizes, ranking.sizes) - 1,
            "score": aligned.run.scores[aligned.position],
        }
    )


def _shown_entries(
    part: pl.DataFrame, relevant: pl.DataFrame, twins: pl.DataFrame, depth: int
) -> pl.DataFrame:
    """What is shown of one run: the first results, relevant documents, and the twins of both as far as retrieved."""
    top = pl.col("place").lt(depth).fill_null(False)
    judged = relevant.join(part, on=_KEY, how="left").sort("query", "place", "doc", nulls_last=True)
    chosen = judged.filter(top | ((~top).cum_sum().over("query") <= FURTHER))
    shown = pl.concat([part.filter(top).select(_KEY), chosen.select(_KEY)]).unique()
    related = shown.join(twins, on="doc").select("query", doc="twin")
    further = related.join(twins, on="doc").select("query", doc="twin")
    wanted = pl.concat([shown, related, further]).unique()
    retrieved = part.join(wanted, on=_KEY, how="semi").join(relevant, on=_KEY, how="left")
    lost = chosen.filter(pl.col("place").is_null()).select(retrieved.columns)
    rows = pl.concat([retrieved, lost]).sort("query", "place", "doc", nulls_last=True)
    return rows.select(
        *_KEY, "first", "last", "score", pl.col("grade").fill_null(0.0), top.alias("top")
    )
