"""Where documents stand in a run's lists: in scores, in ranks, and within the first k."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.run import Run, codes, collection_rows
from ranktilt.explaining.properties.result import Outcome
from ranktilt.measures.ranking import Ranking, first_ranks
from ranktilt.statistics.two_way import sums

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class RunEntries:
    """Every document of a run's lists that the collection has; higher outcomes rank higher."""

    query: Ints
    """Number of the list."""
    query_row: Ints
    """Row of the query in the collection; −1 where it is not there."""
    document: Ints
    """Row of the document in the collection."""
    outcomes: Mapping[Outcome, Floats]
    """Values by the name of the outcome."""

    @classmethod
    def from_run(cls, run: Run, collection: Collection, *, cutoff: int) -> RunEntries:
        """Take outcomes from whole lists, and keep the entries of known documents."""
        ranking = Ranking(run.offsets, run.scores)
        document = collection_rows(run, collection)[run.docs]
        is_known = document >= 0
        query_rows = codes(pl.Series(run.queries, dtype=pl.String), collection.queries["id"])
        outcomes: dict[Outcome, Floats] = {}
        # A run that holds an order alone has no distances between its documents.
        if run.scored:
            outcomes["score"] = _standardized(ranking)[is_known]
        outcomes["rank"] = -_middle_ranks(ranking)[is_known]
        outcomes["first ranks"] = 100 * first_ranks(ranking, cutoff)[is_known]
        query = ranking.query[is_known]
        return cls(
            query=query,
            query_row=query_rows[query],
            document=document[is_known],
            outcomes=outcomes,
        )


def _standardized(ranking: Ranking) -> Floats:
    """Return scores in standard deviations of their list; 0 where all of a list are tied."""
    count = np.maximum(np.diff(ranking.offsets), 1)
    mean = _list_sums(ranking, ranking.scores) / count
    centred = ranking.scores - mean[ranking.query]
    deviation = np.sqrt(_list_sums(ranking, np.square(centred)) / count)[ranking.query]
    is_tied = np.repeat(ranking.sizes, ranking.sizes) == count[ranking.query]
    standardized = np.zeros(len(centred))
    np.divide(centred, deviation, out=standardized, where=~is_tied)
    return standardized


def _middle_ranks(ranking: Ranking) -> Floats:
    """Return ranks from 1; tied documents share the middle of theirs."""
    middle = ranking.before + (ranking.sizes + 1) / 2
    ranks: Floats = np.repeat(middle, ranking.sizes)
    return ranks


def _list_sums(ranking: Ranking, values: Floats) -> Floats:
    """Return the sum of some values over each list."""
    return sums(ranking.query, values, len(ranking.offsets) - 1)
