"""Prediction-powered estimates of systems, from a judge's grades and few human labels.

A human label is a human grade of one document for one query. Queries with human labels show how
wrong the judge is; the judge's values of all other queries make the estimate more precise. Such an
estimate is called *prediction-powered*: the judge's values are the predictions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ranktilt.data.notes.judges import LabelsWorth
from ranktilt.errors import UserError
from ranktilt.judging.grades import GradedPairs
from ranktilt.judging.records import Estimate, PoweredEstimate
from ranktilt.judging.systems.systems import SystemValues
from ranktilt.measures.ranking import Bools, Floats
from ranktilt.statistics.equivalence import t_interval
from ranktilt.statistics.judges.prediction_powered import FEWEST_LABELS, powered_mean

_SEED = 17
"""Number that is added to the user's seed, so that other statistics have independent draws."""


def sampled_queries(pairs_of_judge: GradedPairs, labels: int, seed: int) -> tuple[list[str], int]:
    """Draw queries at random until their pairs use up a number of human labels.

    Queries are drawn with all their labels, because a measure needs every grade of its query.

    Parameters
    ----------
    pairs_of_judge : GradedPairs
        The pairs that humans and the judge graded.
    labels : int
        Most human labels that the queries may have together.
    seed : int
        Random seed.

    Returns
    -------
    tuple of list of str and int
        At least two queries, and the number of labels that they have together.

    Raises
    ------
    UserError
        If `labels` are too few for two queries, or as many as there are.
    """
    sizes = pairs_of_judge.table.group_by("query_id", maintain_order=True).len()
    pair_count = pairs_of_judge.table.height
    if labels >= pair_count:
        raise UserError(
            f"--human-sample {labels}: all {pair_count:,} pairs have human grades; draw fewer of "
            "them"
        )
    order = np.random.default_rng([seed, _SEED]).permutation(sizes.height)
    used = np.cumsum(sizes["len"].to_numpy()[order])
    query_count = int(np.searchsorted(used, labels, side="right"))
    if query_count < 2:
        raise UserError(
            f"--human-sample {labels}: too few for two queries, which need {used[1]} labels here"
        )
    return sizes["query_id"].gather(order[:query_count]).to_list(), int(used[query_count - 1])


def powered_estimates(values: SystemValues, labelled: Collection[str]) -> Iterator[PoweredEstimate]:
    """Estimate each system's mean, and the difference of neighbours in the judge's order.

    `labelled` are the queries whose human labels count. Human values of other queries do not enter
    the estimate; their mean is the truth to compare it with.
    """
    is_labelled = np.isin(values.queries, list(labelled))
    order = np.argsort(-values.judged.mean(1), kind="stable").tolist()
    for system in order:
        estimand = _Estimand(
            run=values.runs[system],
            minus="",
            bounds=values.bounds,
            human=values.human[system],
            judged=values.judged[system],
            further_judged=values.further_judged[system],
        )
        yield _powered_estimate(values, estimand, is_labelled)
    # Differences of two values lie between minus and plus the width of the measure's range.
    width = values.bounds[1] - values.bounds[0]
    for system, next_system in pairwise(order):
        human, judged, further_judged = (
            of_systems[system] - of_systems[next_system]
            for of_systems in (values.human, values.judged, values.further_judged)
        )
        estimand = _Estimand(
            run=values.runs[system],
            minus=values.runs[next_system],
            bounds=(-width, width),
            human=human,
            judged=judged,
            further_judged=further_judged,
        )
        yield _powered_estimate(values, estimand, is_labelled)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Estimand:
    """A mean over queries to estimate: of one system, or of the difference of two."""

    run: str
    """The system."""
    minus: str
    """The system that is subtracted; empty for none."""
    bounds: tuple[float, float]
    """Smallest and largest value."""
    human: Floats
    """Value of each query under human grades."""
    judged: Floats
    """Value of each query under the judge."""
    further_judged: Floats
    """Value of each further query, which only the judge graded, under the judge."""


def _powered_estimate(
    values: SystemValues, estimand: _Estimand, is_labelled: Bools
) -> PoweredEstimate:
    """Estimate one mean in three ways: by human labels, by the judge, and by both.

    `is_labelled` says of each query of `values` whether its human labels count.
    """
    labels, predictions = estimand.human[is_labelled], estimand.judged[is_labelled]
    unlabelled = np.concatenate([estimand.judged[~is_labelled], estimand.further_judged])
    powered = powered_mean(labels, predictions, unlabelled)
    # Equal labels have no spread, from which an interval or a correlation could be computed.
    human_ends, correlation = (np.nan, np.nan), np.nan
    if labels.std() > 0:
        human_ends = t_interval(labels)
        if predictions.std() > 0:
            correlation = float(np.corrcoef(labels, predictions)[0, 1])
    human_only = _clipped_estimate((float(labels.mean()), *human_ends), estimand.bounds)
    judge_values = np.concatenate([estimand.judged, estimand.further_judged])
    truth = np.nan if is_labelled.all() else float(estimand.human.mean())
    return PoweredEstimate(
        judge=values.judge,
        measure=values.measure,
        run=estimand.run,
        minus=estimand.minus,
        human_only=human_only,
        judge_only=float(judge_values.mean()),
        powered=_clipped_estimate((powered.value, powered.low, powered.high), estimand.bounds),
        weight=powered.weight,
        correlation=correlation,
        queries=len(labels),
        effective=powered.effective,
        truth=truth,
    )


def _clipped_estimate(
    estimate: tuple[float, float, float], bounds: tuple[float, float]
) -> Estimate:
    """Move a value and both ends of its interval into the measure's range.

    The value is moved too, so that its interval always holds it.
    """
    return Estimate(*np.clip(estimate, *bounds).tolist())


def labels_worth(estimates: Sequence[PoweredEstimate]) -> LabelsWorth:
    """Note how many queries with human labels the judge's grades replace.

    `estimates` are those of one judge and measure. The number is the median over systems.
    """
    effective = []
    for estimate in estimates:
        is_of_system = not estimate.minus
        if is_of_system and not np.isnan(estimate.effective):
            effective.append(estimate.effective)
    labelled_queries = estimates[0].queries
    is_enough = labelled_queries >= FEWEST_LABELS and bool(effective)
    return LabelsWorth(
        judge=estimates[0].judge,
        queries=labelled_queries,
        effective=float(np.median(effective)) if is_enough else None,
    )
