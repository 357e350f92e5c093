"""Test whether groups of queries differ, from the values per query behind an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ranktilt.auditing.effects import Effect
from ranktilt.auditing.query_groups.grouping import QueryGroups
from ranktilt.auditing.query_groups.result import (
    AnswerKey,
    GroupDifference,
    NoiseSource,
    RestDifference,
    TiltVariance,
)
from ranktilt.auditing.repeats.residuals import residuals_by_repeat
from ranktilt.auditing.significance import Sample, numbers_of
from ranktilt.measures.ranking import Floats, Ints
from ranktilt.statistics.correction import correct
from ranktilt.statistics.group_differences import (
    DifferenceTest,
    GroupDifferences,
    QueryScores,
    group_differences,
)
from ranktilt.statistics.heterogeneity import RepeatableShare, repeat_share, split_half_share


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupedScores:
    """Scores of the queries behind an answer, with their groups."""

    scores: QueryScores
    weight: Floats
    """Weight of each query, in the unit of the scores: Σ score / Σ weight is a distance."""
    group: Ints
    """Group of each query, by its number among the names of all groups; −1 for none."""
    shift: Floats
    """What was taken off the distance of each query: its group's neutral value, minus the mean."""
    tested: list[int]
    """Numbers of the groups with enough queries and documents to be compared."""

    def distance_from_rest(self, number: int) -> float:
        """Return how far a group's tilt is from that of the other groups that are tested."""
        is_member = self.group == number
        is_other = np.isin(self.group, self.tested) & ~is_member
        score, weight = self.scores.score, self.weight
        with np.errstate(invalid="ignore", divide="ignore"):
            inside = np.float64(score[is_member].sum()) / weight[is_member].sum()
            outside = np.float64(score[is_other].sum()) / weight[is_other].sum()
        return float(inside - outside)


def grouped_scores(
    sample: Sample, groups: QueryGroups, queries: tuple[str, ...], alone: Mapping[int, Effect]
) -> GroupedScores:
    """Return the scores behind an answer: how far each query pulls it from its value.

    `alone` has the answer of each group by itself, which says whether it has enough queries. Where
    the value that favours nobody is not the same in all groups, as without twins, it is taken off
    first. Queries that repeat each other are one, of the group of the first.
    """
    influence = sample.influence()
    counted = np.flatnonzero(sample.mask)
    if sample.distinct is not None:
        counted = counted[np.unique(sample.distinct[counted], return_index=True)[1]]
    group = groups.codes_of(queries)[counted]
    shift = _shift(influence.query_weight, group, alone)
    has_query = influence.query >= 0
    cell_shift = np.where(has_query, shift[np.where(has_query, influence.query, 0)], 0.0)
    scores = QueryScores(
        score=influence.query_residual - shift * influence.query_weight,
        query=influence.query,
        origin=influence.origin,
        residual=influence.residual - cell_shift * influence.weight,
        weight=influence.weight,
    )
    tested = [
        number
        for number, effect in sorted(alone.items())
        if effect.testable and (group == number).sum() > 1
    ]
    return GroupedScores(
        scores=scores, weight=influence.query_weight, group=group, shift=shift, tested=tested
    )


def _shift(weight: Floats, group: Ints, alone: Mapping[int, Effect]) -> Floats:
    """Return the neutral value of each query's group, minus their mean."""
    neutral = {number: effect.neutral for number, effect in alone.items()}
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
    tested = grouped.tested
    if len(tested) < 2:
        return None
    is_tested = np.isin(grouped.group, tested)
    group = np.searchsorted(tested, grouped.group[is_tested])
    scores = grouped.scores.select(is_tested)
    return group_differences(scores, group, resamples=resamples, seed=seed)


def compare_groups(
    key: AnswerKey, names: Sequence[str], grouped: GroupedScores, *, resamples: int, seed: int
) -> tuple[GroupDifference, list[RestDifference]]:
    """Return whether groups differ on one question, and each group against all others.

    Of two groups, the first test says all; p is corrected later.
    """
    tests = tested_differences(grouped, resamples=resamples, seed=seed)
    numbers = [] if tests is None else grouped.tested
    together = DifferenceTest(p=np.nan, shuffle_p=np.nan, welch_p=np.nan)
    if tests is not None:
        together = tests.together
    difference = GroupDifference(
        run=key.run,
        question=key.question,
        a=key.a,
        b=key.b,
        groups=tuple(names[number] for number in numbers),
        p=together.p,
        shuffle_p=together.shuffle_p,
        welch_p=together.welch_p,
        p_corrected=np.nan,
        family_size=1,
    )
    if tests is None or len(numbers) < 3:
        return difference, []
    rest = [
        RestDifference(
            group=names[number],
            run=key.run,
            question=key.question,
            a=key.a,
            b=key.b,
            value=grouped.distance_from_rest(number),
            p=test.p,
            p_corrected=np.nan,
        )
        for number, test in zip(numbers, tests.against_rest, strict=True)
    ]
    return difference, rest


def corrected_rest(rest: Sequence[RestDifference], correction: str) -> tuple[RestDifference, ...]:
    """Correct the tests of each group against all others for the number of groups."""
    ps = correct([row.p for row in rest], correction).tolist()
    return tuple(replace(row, p_corrected=p) for row, p in zip(rest, ps, strict=True))


def corrected_differences(
    differences: Sequence[GroupDifference], primary: str, correction: str
) -> list[GroupDifference]:
    """Correct the tests of the primary question together, and those of all others."""
    rows = list(differences)
    for is_primary in (True, False):
        indices = [
            index
            for index, difference in enumerate(differences)
            if (difference.question == primary) == is_primary
        ]
        ps = [differences[index].p for index in indices]
        tests = max(sum(not np.isnan(p) for p in ps), 1)
        for index, p in zip(indices, correct(ps, correction), strict=True):
            rows[index] = replace(differences[index], p_corrected=float(p), family_size=tests)
    return rows


def split_half_variance(
    difference: GroupDifference,
    scores: QueryScores,
    *,
    resamples: int,
    seed: int,
    by: NoiseSource = "documents",
) -> TiltVariance:
    """Return how much of the variance of scores over queries is more than noise of documents."""
    every = np.ones(len(scores.score), dtype=np.bool_)
    share = split_half_share(scores.select(every), resamples=resamples, seed=seed)
    return _tilt_variance(difference, share, by)


def repeat_variance(
    difference: GroupDifference,
    grouped: GroupedScores,
    repeats: Sequence[Sample],
    mean: Sample,
    *,
    resamples: int,
    seed: int,
) -> TiltVariance:
    """Return how much of the variance of scores over queries is more than noise of repeats.

    `repeats` are the samples of an answer that `mean` averages.
    """
    table = residuals_by_repeat(repeats, mean)
    rows = np.searchsorted(numbers_of(mean.mask, mean.distinct), table.numbers)
    neutral = grouped.shift[rows] * table.weight
    scores = table.residual * mean.estimand.per_ratio - neutral[:, None]
    share = repeat_share(scores, resamples=resamples, seed=seed)
    return _tilt_variance(difference, share, "repeats")


def _tilt_variance(
    difference: GroupDifference, share: RepeatableShare, by: NoiseSource
) -> TiltVariance:
    return TiltVariance(
        run=difference.run,
        question=difference.question,
        a=difference.a,
        b=difference.b,
        share=share.share,
        low=share.low,
        high=share.high,
        queries=share.queries,
        by=by,
    )
