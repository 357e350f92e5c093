"""Outcomes: the numbers that say how high a document is in a list, by score, rank or top k.

A *list* is a query's ranking in a run; an *entry* is a document in a list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run, codes, collection_rows
from ranktilt.explaining.properties.result import Outcome
from ranktilt.measures.ranking import Ranking, probability_within
from ranktilt.statistics.two_way import sums

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class RunEntries:
    """Every document of a run's lists that the collection has, with its outcomes."""

    query: Ints
    """Number of each entry's list."""
    query_row: Ints
    """Row of each entry's query in the collection; −1 if the collection lacks the query."""
    document: Ints
    """Row of each entry's document in the collection."""
    outcomes: Mapping[Outcome, Floats]
    """Values of each outcome, by its name; a larger value always means a higher rank."""

    @classmethod
    def from_run(cls, run: Run, collection: Collection, *, cutoff: int) -> RunEntries:
        """Compute outcomes over complete lists, and keep the entries of known documents."""
        ranking = Ranking(run.offsets, run.scores)
        document = collection_rows(run, collection)[run.docs]
        is_known = document >= 0
        query_rows = codes(pl.Series(run.queries, dtype=pl.String), collection.queries["id"])
        outcomes: dict[Outcome, Floats] = {}
        # A run that has only an order says nothing about distances between documents.
        if run.scored:
            outcomes["score"] = _standardized_scores(ranking)[is_known]
        outcomes["rank"] = -_middle_ranks(ranking)[is_known]
        outcomes["first ranks"] = 100 * probability_within(ranking, cutoff)[is_known]
        query = ranking.query[is_known]
        return cls(
            query=query,
            query_row=query_rows[query],
            document=document[is_known],
            outcomes=outcomes,
        )


def _standardized_scores(ranking: Ranking) -> Floats:
    """Return scores minus the mean of their list, in the list's standard deviations.

    They are 0 in a list whose documents are all tied.
    """
    count = np.maximum(np.diff(ranking.offsets), 1)
    mean = _list_sums(ranking, ranking.scores) / count
    centred = ranking.scores - mean[ranking.query]
    deviation = np.sqrt(_list_sums(ranking, np.square(centred)) / count)[ranking.query]
    # `ranking.sizes` are the numbers of tied entries; here one of them is the whole list.
    is_all_tied = np.repeat(ranking.sizes, ranking.sizes) == count[ranking.query]
    standardized = np.zeros(len(centred))
    np.divide(centred, deviation, out=standardized, where=~is_all_tied)
    return standardized


def _middle_ranks(ranking: Ranking) -> Floats:
    """Return the rank of each entry, from 1; tied documents have the middle of their ranks."""
    # For each set of tied entries, the number of entries above it and its own size.
    middle = ranking.before + (ranking.sizes + 1) / 2
    ranks: Floats = np.repeat(middle, ranking.sizes)
    return ranks


def _list_sums(ranking: Ranking, values: Floats) -> Floats:
    """Return the sum of the entries' values in each list."""
    return sums(ranking.query, values, len(ranking.offsets) - 1)
