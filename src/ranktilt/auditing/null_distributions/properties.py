"""Answers about a property of documents, with the values of each list in random order.

A property is a number that each document has, such as its popularity; the groups are its two ends.
A document has the same value in every list, although values are shuffled for each list separately.
So the range of random answers is widened, as it is for labels (`LabelEffects.spread`). The neutral
answer is exactly 0: in a random order, any ranks hold the mean value of the list.
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
    """Return one run's answer to a question about the property whose two ends are the groups.

    `origins` has the number of each document's origin, by row. The values are shuffled `count`
    times.
    """
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
        details={"mean_first": first, "mean_list": list_mean},
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
    """Return what each document's value adds to the answer, entry by entry.

    Shuffles draw the value of each entry separately.
    """
    entries = np.flatnonzero(~np.isnan(values))
    total, weight = (
        column[entries] for column in estimand.value_effects(judged_run.ranking, values)
    )
    query, origin = judged_run.ranking.query[entries], origins[judged_run.row[entries]]
    clusters = Clusters(query=query, origin=origin, total=total, weight=weight)
    return LabelEffects(clusters=clusters, draw_number=entries)


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
    # An answer is the weighted mean of a list's values minus their plain mean. A shuffle changes
    # the weighted mean alone, which few entries have a weight in.
    counted = np.flatnonzero(weights > 0)
    weights = weights[counted] / list_count
    weighted_mean = float(weights @ values[counted])
    list_mean = weighted_mean - float(np.nanmean(answers))
    is_known = ~np.isnan(values)
    # Shuffled are the indexes of the entries: each entry gets the value of the entry whose index it
    # gets. An entry without a value has −1, which no shuffle moves.
    indexes = np.where(is_known, np.arange(len(values)), -1)
    shuffled = shuffled_in_lists(judged_run, indexes, seed)
    for draw, value_index in zip(range(count), shuffled, strict=False):
        draws[draw] = weights @ values[value_index[counted]] - list_mean
        report(f"random lists of {judged_run.run.name}", draw + 1, count)
    return draws
