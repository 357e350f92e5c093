"""Test whether groups of queries differ, from the values per query behind an answer.

The *score* of a query is how far it pulls the answer away from its value. If groups of queries do
not differ, the scores of each group have a mean of 0. So the tests ask whether the means of scores
differ (`statistics.group_differences`). A *cell* is one document under one query; its *residual* is
the part that the document has in the query's score.
"""

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
from ranktilt.auditing.repeats.components import residuals_by_repeat
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
    """Score of each query, and what each document adds to it."""
    weight: Floats
    """Weight of each query; Σ score / Σ weight is in the unit of the answer."""
    group: Ints
    """Index of each query's group in `QueryGroups.names`; −1 for none."""
    shift: Floats
    """What was subtracted from each query's answer: its group's neutral value, minus the mean of
    all neutral values."""
    tested: list[int]
    """Indexes of the groups with enough queries and documents to be compared."""

    def distance_from_rest(self, index: int) -> float:
        """Return a group's distance from neutral minus that of all other groups in `tested`."""
        is_member = self.group == index
        is_other = np.isin(self.group, self.tested) & ~is_member
        score, weight = self.scores.score, self.weight
        with np.errstate(invalid="ignore", divide="ignore"):
            inside = np.float64(score[is_member].sum()) / weight[is_member].sum()
            outside = np.float64(score[is_other].sum()) / weight[is_other].sum()
        return float(inside - outside)


def grouped_scores(
    sample: Sample,
    groups: QueryGroups,
    queries: tuple[str, ...],
    effects_alone: Mapping[int, Effect],
) -> GroupedScores:
    """Return the scores behind an answer: how far each query pulls it from its value.

    Without twins, the value that favours nobody is not the same in all groups; it is subtracted
    first. Queries that repeat each other count as one query, of the group of the first of them.

    Parameters
    ----------
    sample : Sample
        Values per query behind the answer on all queries.
    groups : QueryGroups
        The groups of queries.
    queries : tuple of str
        Ids of the sample's queries.
    effects_alone : mapping of int to Effect
        The answer of each group alone, by the group's index. It says whether the group has enough
        queries to be tested.
    """
    influence = sample.influence()
    counted = np.flatnonzero(sample.mask)
    if sample.distinct is not None:
        _, first = np.unique(sample.distinct[counted], return_index=True)
        counted = counted[first]
    group = groups.codes_of(queries)[counted]
    shift = _neutral_shift(influence.query_weight, group, effects_alone)
    # A cell is one document under one query; some cells belong to no query (−1).
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
        index
        for index, effect in sorted(effects_alone.items())
        if effect.testable and (group == index).sum() > 1
    ]
    return GroupedScores(
        scores=scores, weight=influence.query_weight, group=group, shift=shift, tested=tested
    )


def _neutral_shift(weight: Floats, group: Ints, effects_alone: Mapping[int, Effect]) -> Floats:
    """Return the neutral value of each query's group, minus their mean over queries."""
    neutral_values = {index: effect.neutral for index, effect in effects_alone.items()}
    query_neutral = np.array([neutral_values.get(index, np.nan) for index in group.tolist()])
    is_known = ~np.isnan(query_neutral) & (weight > 0)
    if not is_known.any():
        return np.zeros(len(weight))
    mean = float(np.average(query_neutral[is_known], weights=weight[is_known]))
    return np.where(is_known, query_neutral - mean, 0.0)


def tested_differences(
    grouped: GroupedScores, *, resamples: int, seed: int
) -> GroupDifferences | None:
    """Compare the groups with enough queries; None if there are fewer than two of them."""
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
    """Return the test whether groups differ on one question, and each group against all others.

    With two groups, the tests of each group would repeat the first test, and are left out. The p
    are corrected later. `names` are those of all groups.
    """
    tests = tested_differences(grouped, resamples=resamples, seed=seed)
    compared = [] if tests is None else grouped.tested
    undefined = DifferenceTest(p=np.nan, shuffle_p=np.nan, welch_p=np.nan)
    together = undefined if tests is None else tests.together
    difference = GroupDifference(
        run=key.run,
        question=key.question,
        a=key.a,
        b=key.b,
        groups=tuple(names[index] for index in compared),
        p=together.p,
        shuffle_p=together.shuffle_p,
        welch_p=together.welch_p,
        p_corrected=np.nan,
        family_size=1,
    )
    if tests is None or len(compared) < 3:
        return difference, []
    rest = [
        RestDifference(
            group=names[index],
            run=key.run,
            question=key.question,
            a=key.a,
            b=key.b,
            value=grouped.distance_from_rest(index),
            p=test.p,
            p_corrected=np.nan,
        )
        for index, test in zip(compared, tests.against_rest, strict=True)
    ]
    return difference, rest


def correct_rest(rest: Sequence[RestDifference], correction: str) -> tuple[RestDifference, ...]:
    """Correct the tests of each group against all others for the number of groups."""
    ps = correct([row.p for row in rest], correction).tolist()
    return tuple(replace(row, p_corrected=p) for row, p in zip(rest, ps, strict=True))


def correct_differences(
    differences: Sequence[GroupDifference], primary: str, correction: str
) -> list[GroupDifference]:
    """Correct the p on the primary question together, and the p on all others together.

    `primary` is the notation of the primary question, and `correction` is ``holm`` or
    ``bonferroni``.
    """
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
    """Return how much of the variance of scores over queries is more than noise of documents.

    The noise is measured by halves of each query's documents, or of its units such as domains; `by`
    says which. `difference` names the question.
    """
    # To select all queries drops the cells that belong to no query.
    all_queries = np.ones(len(scores.score), dtype=np.bool_)
    share = split_half_share(scores.select(all_queries), resamples=resamples, seed=seed)
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

    `repeats` are the samples of an answer that `mean` averages; `difference` names the question.
    """
    table = residuals_by_repeat(repeats, mean)
    # Positions of the table's queries among those of `grouped`.
    positions = np.searchsorted(numbers_of(mean.mask, mean.distinct), table.numbers)
    neutral = grouped.shift[positions] * table.weight
    scores = table.residual * mean.estimand.per_ratio - neutral[:, None]
    share = repeat_share(scores, resamples=resamples, seed=seed)
    return _tilt_variance(difference, share, "repeats")


def _tilt_variance(
    difference: GroupDifference, share: RepeatableShare, by: NoiseSource
) -> TiltVariance:
    """Return a share of the variance with the question of `difference`."""
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
