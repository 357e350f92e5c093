"""Test whether groups of queries differ, from the values per query behind an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ranktilt.auditing.effects import FEWEST
from ranktilt.auditing.query_groups.grouping import QueryGroups
from ranktilt.auditing.significance import Sample
from ranktilt.measures.ranking import Floats, Ints
from ranktilt.statistics.group_differences import (
    GroupDifferences,
    QueryScores,
    effective_documents,
    group_differences,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupedScores:
    """Scores of the queries behind an answer, with their groups."""

    scores: QueryScores
    weight: Floats
    """Weight of each query, in the unit of the scores: Σ score / Σ weight is a distance."""
    group: Ints
    """Group of each query, by its number among the names of all groups; −1 for none."""

    def tested(self) -> list[int]:
        """Return the numbers of the groups with enough queries and documents to be compared."""
        counts = np.bincount(self.group[self.group >= 0])
        documents = effective_documents(self.scores, self.group)
        # Where documents are not known, queries alone decide: NaN is no smaller number.
        enough = np.fmin(counts, documents) >= FEWEST
        tested: list[int] = np.flatnonzero(enough).tolist()
        return tested

    def distance_from_rest(self, number: int, tested: list[int]) -> float:
        """Return how far a group's tilt is from that of the other groups that are tested."""
        is_member = self.group == number
        is_other = np.isin(self.group, tested) & ~is_member
        score, weight = self.scores.score, self.weight
        with np.errstate(invalid="ignore", divide="ignore"):
            inside = np.float64(score[is_member].sum()) / weight[is_member].sum()
            outside = np.float64(score[is_other].sum()) / weight[is_other].sum()
        return float(inside - outside)


def grouped_scores(
    sample: Sample, groups: QueryGroups, queries: tuple[str, ...], neutral: Mapping[int, float]
) -> GroupedScores:
    """Return the scores behind an answer: how far each query pulls it from its value.

    Where the value that favours nobody is not the same in all groups, as without twins, it is taken
    off first. Queries that repeat each other are one, of the group of the first.
    """
    influence = sample.influence()
    counted = np.flatnonzero(sample.mask)
    if sample.distinct is not None:
        counted = counted[np.unique(sample.distinct[counted], return_index=True)[1]]
    group = groups.codes_of(queries)[counted]
    shift = _shift(influence.query_weight, group, neutral)
    has_query = influence.query >= 0
    cell_shift = np.where(has_query, shift[np.where(has_query, influence.query, 0)], 0.0)
    return GroupedScores(
        scores=QueryScores(
            score=influence.query_residual - shift * influence.query_weight,
            query=influence.query,
            origin=influence.origin,
            residual=influence.residual - cell_shift * influence.weight,
            weight=influence.weight,
        ),
        weight=influence.query_weight,
        group=group,
    )


def _shift(weight: Floats, group: Ints, neutral: Mapping[int, float]) -> Floats:
    """Return the neutral value of each query's group, minus their mean."""
    values = np.array([neutral.get(number, np.nan) for number in group.tolist()])
    is_known = ~np.isnan(values) & (weight > 0)
    if not is_known.any():
        return np.zeros(len(weight))
    mean = float(np.average(values[is_known], weights=weight[is_known]))
    return np.where(is_known, values - mean, 0.0)


def tested_differences(
    grouped: GroupedScores, *, resamples: int, seed: int
) -> GroupDifferences | None:
    """Compare the groups with enough queries; None where fewer than two have."""
    tested = grouped.tested()
    if len(tested) < 2:
        return None
    is_tested = np.isin(grouped.group, tested)
    group = np.searchsorted(tested, grouped.group[is_tested])
    scores = grouped.scores.select(is_tested)
    return group_differences(scores, group, resamples=resamples, seed=seed)

