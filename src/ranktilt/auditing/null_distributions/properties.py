"""Answers about a property of documents, with the values of each list in random order.

A document has the same value in every list, so the range of random answers is widened as for labels
(`LabelEffects`). Neutral is exactly 0: in a random order any ranks hold the list's mean.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ranktilt.auditing.groups import Groups
from ranktilt.auditing.judged_run import JudgedRun
from ranktilt.auditing.null_distributions.base import LabelEffects, NullDistribution
from ranktilt.auditing.null_distributions.lists import shuffled_in_lists
from ranktilt.auditing.significance import Sample
from ranktilt.measures.exposure.property_lift import PropertyEstimand
from ranktilt.measures.ranking import Floats, Ints
from ranktilt.progress import report
from ranktilt.statistics.two_way import Clusters


def property_sample(
    judged_run: JudgedRun,
    estimand: PropertyEstimand,
    groups: Groups,
    origins: Ints,
    *,
    seed: int,
    count: int,
) -> Sample:
    """Return one run's answer to a question about the property whose two ends are the groups."""
    ranking = judged_run.ranking
    numbers = _entry_values(judged_run, groups)
    values = (numbers - groups.mean_value) / groups.spread_of_values
    answers = estimand.of_values(ranking, values)
    first, list_mean = estimand.means_of(ranking, numbers)
    is_known = ~np.isnan(answers)
    effects = _label_effects(judged_run, estimand, values, origins)
    group_a, group_b = groups.names
    sample = Sample(
        run=judged_run.run.name,
        estimand=estimand,
        a=group_a,
        b=group_b,
        numerator=np.where(is_known, answers, 0.0),
        denominator=is_known.astype(np.float64),
        parts={"mean_first": first, "mean_list": list_mean},
        twins=False,
        clusters=effects.clusters,
        distinct=judged_run.distinct,
    )
    draws = _shuffled_answers(judged_run, estimand, values, seed=seed, count=count)
    drawn = NullDistribution.from_draws(sample.value, draws, effects.spread)
    return replace(sample, null=drawn._replace(median=0.0))


def _entry_values(judged_run: JudgedRun, groups: Groups) -> Floats:
    """Return the number of each entry's document; NaN for none, and in unknown queries."""
    code = judged_run.group_codes(groups)
    values = np.full(len(code), np.nan)
    if groups.values is not None:
        values[code >= 0] = groups.values[judged_run.row[code >= 0]]
    return values


def _label_effects(
    judged_run: JudgedRun, estimand: PropertyEstimand, values: Floats, origins: Ints
) -> LabelEffects:
    """Return what each document's value adds to the answer; each entry is drawn separately."""
    entries = np.flatnonzero(~np.isnan(values))
    total, weight = (
        column[entries] for column in estimand.value_effects(judged_run.ranking, values)
    )
    query, origin = judged_run.ranking.query[entries], origins[judged_run.row[entries]]
    clusters = Clusters(query=query, origin=origin, total=total, weight=weight)
    return LabelEffects(clusters=clusters, draw=entries)


def _shuffled_answers(
    judged_run: JudgedRun, estimand: PropertyEstimand, values: Floats, *, seed: int, count: int
) -> Floats:
    """Return the mean answer with the values of each list in random order, `count` times."""
    ranking = judged_run.ranking
    answers = estimand.of_values(ranking, values)
    list_count = int((~np.isnan(answers)).sum())
    draws = np.full(count, np.nan)
    if not list_count:
        return draws
    _, weights = estimand.value_effects(ranking, values)
    # A shuffle moves the weighted mean alone, and of that only the few entries that count.
    counted = np.flatnonzero(weights > 0)
    weights = weights[counted] / list_count
    weighted_mean = float(weights @ values[counted])
    list_mean = weighted_mean - float(np.nanmean(answers))
    is_known = ~np.isnan(values)
    # Which of its list's known entries gives each entry its value; −1 stays where there is none.
    givers = np.where(is_known, np.arange(len(values)), -1)
    shuffled = shuffled_in_lists(judged_run, givers, seed)
    for draw, giver in zip(range(count), shuffled, strict=False):
        draws[draw] = weights @ values[giver[counted]] - list_mean
        report(f"random lists of {judged_run.run.name}", draw + 1, count)
    return draws
