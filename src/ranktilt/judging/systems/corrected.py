"""Means and differences of systems from a judge's grades, corrected by few human labels."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ranktilt.data.notes.judges import LabelsWorth
from ranktilt.errors import UserError
from ranktilt.judging.grades import Graded
from ranktilt.judging.records import Corrected, Estimate
from ranktilt.judging.systems.systems import SystemValues
from ranktilt.measures.ranking import Bools, Floats
from ranktilt.statistics.equivalence import t_interval
from ranktilt.statistics.prediction_powered import FEWEST_LABELS, powered_mean

_SEED = 17
"""Number that is added to the user's seed, so that other statistics have independent draws."""


def sampled_queries(graded: Graded, labels: int, seed: int) -> tuple[list[str], int]:
    """Draw queries at random until their pairs use up so many human labels.

    Returns the queries, and the labels that they need. Whole queries, because a measure needs all
    grades of its query; at least two.
    """
    sizes = graded.pairs.group_by("query_id", maintain_order=True).len()
    if labels >= graded.pairs.height:
        raise UserError(
            f"--human-sample {labels}: all {graded.pairs.height:,} pairs have human grades; "
            "draw fewer of them"
        )
    order = np.random.default_rng([seed, _SEED]).permutation(sizes.height)
    used = np.cumsum(sizes["len"].to_numpy()[order])
    number = int(np.searchsorted(used, labels, side="right"))
    if number < 2:
        raise UserError(
            f"--human-sample {labels}: too few for two queries, which need {used[1]} labels here"
        )
    return sizes["query_id"].gather(order[:number]).to_list(), int(used[number - 1])


def corrected(values: SystemValues, labelled: Collection[str]) -> Iterator[Corrected]:
    """Estimate each system's mean, and the difference of neighbours in the judge's order.

    Human values of the other queries only serve as the truth to compare with.
    """
    is_labelled = np.isin(values.queries, list(labelled))
    order = np.argsort(-values.judged.mean(1), kind="stable").tolist()
    for system in order:
        estimate = _Estimand(
            run=values.runs[system],
            minus="",
            bounds=values.bounds,
            human=values.human[system],
            judged=values.judged[system],
            more=values.more[system],
        )
        yield _corrected(values, estimate, is_labelled)
    width = values.bounds[1] - values.bounds[0]
    for system, next_system in pairwise(order):
        human, judged, more = (
            rows[system] - rows[next_system] for rows in (values.human, values.judged, values.more)
        )
        estimate = _Estimand(
            run=values.runs[system],
            minus=values.runs[next_system],
            bounds=(-width, width),
            human=human,
            judged=judged,
            more=more,
        )
        yield _corrected(values, estimate, is_labelled)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Estimand:
    """A mean over queries, of one system or of the difference of two."""

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
    more: Floats
    """Values of further queries under the judge alone."""


def _corrected(values: SystemValues, estimand: _Estimand, is_labelled: Bools) -> Corrected:
    """Estimate one mean in three ways: by human labels, by the judge, and by both."""
    labels, predictions = estimand.human[is_labelled], estimand.judged[is_labelled]
    unlabelled = np.concatenate([estimand.judged[~is_labelled], estimand.more])
    powered = powered_mean(labels, predictions, unlabelled)
    # Labels that are all the same say nothing of how far others would differ.
    human_ends, correlation = (np.nan, np.nan), np.nan
    if labels.std() > 0:
        human_ends = t_interval(labels)
        if predictions.std() > 0:
            correlation = float(np.corrcoef(labels, predictions)[0, 1])
    human_only = _within((float(labels.mean()), *human_ends), estimand.bounds)
    judge_values = np.concatenate([estimand.judged, estimand.more])
    truth = np.nan if is_labelled.all() else float(estimand.human.mean())
    return Corrected(
        judge=values.judge,
        measure=values.measure,
        run=estimand.run,
        minus=estimand.minus,
        human_only=human_only,
        judge_only=float(judge_values.mean()),
        powered=_within((powered.value, powered.low, powered.high), estimand.bounds),
        weight=powered.weight,
        correlation=correlation,
        queries=len(labels),
        effective=powered.effective,
        truth=truth,
    )


def _within(estimate: tuple[float, float, float], bounds: tuple[float, float]) -> Estimate:
    """Move a value and its ends into the measure's range, so that an interval holds its value."""
    return Estimate(*np.clip(estimate, *bounds).tolist())


def gain_note(rows: list[Corrected]) -> LabelsWorth:
    """Note what the human labels are worth with the judge's."""
    effective = [row.effective for row in rows if not row.minus and not np.isnan(row.effective)]
    is_enough = rows[0].queries >= FEWEST_LABELS and bool(effective)
    return LabelsWorth(
        judge=rows[0].judge,
        queries=rows[0].queries,
        effective=float(np.median(effective)) if is_enough else None,
    )
