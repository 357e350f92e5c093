"""Numerical noise: how far Relative Δ moves if scores move within their resolution.

A score is computed in an arithmetic, such as float16, or printed with some decimals. Both leave
open which of two close scores is higher: this is the *resolution* of the scores. Another machine
may rank such documents the other way. So scores are moved at random within their resolution, many
times, and Relative Δ is computed anew. Relative Δ is the difference of two groups' means of a
measure, in percent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import Groups
from ranktilt.auditing.judged_run import JudgedRun
from ranktilt.data.runs.run import Run
from ranktilt.measures.base import Measure
from ranktilt.measures.contrast import relative_delta
from ranktilt.measures.ranking import Floats, Ints, Ranking
from ranktilt.measures.relevance import values

ROUNDOFF = {"float32": 2.0**-24, "bfloat16": 2.0**-8, "float16": 2.0**-11}
"""Unit roundoff of each arithmetic: the largest relative error of rounding one number to it.

It is 2 to the power of minus the number of significant binary digits.
"""
EXACT = "exact"
"""Precision, in the spec of a run, of scores that are the same to the last bit on every machine."""
DRAWS = 40
"""Number of times that scores are moved within their resolution."""
_QUANTILE = 0.95
"""Share of the draws that move Relative Δ by `NumericalNoise.points` at most."""
_LARGEST_LOGIT = 750.0
"""Largest size of a score before a sigmoid; beyond it, the sigmoid is 0 or 1 in float64."""
_MOST_DECIMALS = 9
"""Largest number of decimals that a score is rounded to for printing.

A score with more decimals is a float that was not rounded.
"""


@dataclass(frozen=True, kw_only=True)
class NumericalNoise:
    """How far one run's Relative Δ on the primary measure moves within the scores' resolution."""

    run: str
    """Name of the run."""
    a: str
    """The first group."""
    b: str
    """The second group."""
    resolution: str
    """What limits the scores: ``float32``, ``bfloat16``, ``float16``, or a number of decimals."""
    points: float
    """Movement in points that 95 % of the draws did not exceed."""


class Resolution(NamedTuple):
    """How finely scores are known: each true score lies within ±`half` of the stored one."""

    name: str
    """What limits the scores: ``float32``, ``bfloat16``, ``float16``, or a number of decimals."""
    half: Floats
    """Largest distance of a true score from the stored one, for each query."""
    ties: bool
    """Whether the true scores of tied documents may differ.

    They may if scores are printed with few decimals. An arithmetic gives equal scores to equal
    inputs: then tied documents move together.
    """


def resolution(run: Run, ranking: Ranking) -> Resolution | None:
    """Return how finely a run's scores are known, by its arithmetic or its printed digits.

    None for scores that are exact or whole numbers, and if nothing says how finely they are known.
    """
    scores, arithmetic = ranking.scores, precision(run.spec)
    if arithmetic == EXACT or not len(scores) or (scores == np.round(scores)).all():
        return None
    decimals = _printed_decimals(scores)
    if arithmetic is None and decimals is None and (scores == scores.astype(np.float32)).all():
        arithmetic = "float32"
    if arithmetic in ROUNDOFF:
        # A score is a sum of many numbers. The largest score of a list stands for their size, which
        # decides how large rounding errors are, also of scores that happen to be close to 0.
        largest = np.zeros(len(ranking.offsets) - 1)
        np.maximum.at(largest, ranking.query, np.abs(scores))
        return Resolution(name=arithmetic, half=ROUNDOFF[arithmetic] * largest, ties=False)
    if decimals is None:
        return None
    half = np.full(len(ranking.offsets) - 1, 0.5 * 10.0**-decimals)
    name = "1 decimal" if decimals == 1 else f"{decimals} decimals"
    return Resolution(name=name, half=half, ties=True)


def _printed_decimals(scores: Floats) -> int | None:
    """Return how many decimals all scores have at most; None for more than `_MOST_DECIMALS`."""
    for decimals in range(1, _MOST_DECIMALS + 1):
        if (np.round(scores, decimals) == scores).all():
            return decimals
    return None


def precision(spec: Mapping[str, Any]) -> str | None:
    """Return the arithmetic that computed a run's scores, such as ``float16``.

    The spec of the run says so, or the spec of its language model; None if neither does.
    """
    model = spec.get("llm")
    model_precision = model.get("precision") if isinstance(model, Mapping) else None
    name = spec.get("precision", model_precision)
    return name if isinstance(name, str) else None


def numerical_noise(
    judged_run: JudgedRun,
    measure: Measure,
    groups: Groups,
    *,
    tilts: Sequence[Effect],
    counted: Floats,
    seed: int,
) -> Iterator[NumericalNoise]:
    """Draw scores within their resolution many times; yield how far each Relative Δ moves.

    Yields nothing if nothing limits the resolution of the scores.

    Parameters
    ----------
    judged_run : JudgedRun
        The run.
    measure : Measure
        The primary measure.
    groups : Groups
        Groups of the documents.
    tilts : sequence of Effect
        Relative Δ of this run on the measure, for each pair of groups.
    counted : array, shape (1 + n_groups, n_queries)
        Values of the measure with the scores as they are, over all documents and over each group;
        NaN where a query does not count.
    seed : int
        Random seed.
    """
    ranking = before_activation(judged_run)
    limit = resolution(judged_run.run, ranking)
    if limit is None or not tilts:
        return
    # Most entries are far below the cutoff, and no movement of scores changes the measure by them.
    near, is_near = _in_reach_of_cutoff(ranking, limit.half, measure.cutoff)
    rng = np.random.default_rng(seed)
    # Each draw is a ranking, and the order of its entries. The first has the scores as they are.
    draws = [(near, np.arange(len(near.scores)))]
    draws += [_with_moved_scores(near, limit, rng) for _ in range(DRAWS)]
    # Values of the measure for each group, of shape (1 + DRAWS, n_queries).
    drawn_values: dict[str, Floats] = {}
    for name in {tilt.a for tilt in tilts} | {tilt.b for tilt in tilts}:
        group = groups.names.index(name)
        gains, judged = judged_run.gains(group, is_near), judged_run.judgments.of_group(group)
        drawn_values[name] = np.stack(
            [values(measure, drawn, gains[order], judged) for drawn, order in draws]
        )
    for tilt in tilts:
        columns = [groups.names.index(name) + 1 for name in (tilt.a, tilt.b)]
        is_counted = ~np.isnan(counted[columns]).any(axis=0)
        if np.isnan(tilt.value) or not is_counted.any():
            continue
        mean_a = drawn_values[tilt.a][:, is_counted].mean(axis=1)
        mean_b = drawn_values[tilt.b][:, is_counted].mean(axis=1)
        deltas = relative_delta(mean_a, mean_b)
        moves = np.abs(deltas[1:] - deltas[0])
        yield NumericalNoise(
            run=tilt.run,
            a=tilt.a,
            b=tilt.b,
            resolution=limit.name,
            points=float(np.nanquantile(moves, _QUANTILE, method="higher")),
        )


def before_activation(judged_run: JudgedRun) -> Ranking:
    """Return the ranking with the scores before the model's last function, such as a sigmoid.

    The model computes these in its arithmetic, so they have its resolution. The last function
    squeezes close scores together: their resolution is finer after it.
    """
    ranking = judged_run.ranking
    activation = judged_run.run.spec.get("activation")
    if activation not in ("Sigmoid", "Tanh"):
        return ranking
    scores = ranking.scores
    with np.errstate(divide="ignore"):  # the inverse of 0 or 1 is infinite, and clipped below
        is_sigmoid = activation == "Sigmoid"
        logits = np.log(scores) - np.log1p(-scores) if is_sigmoid else np.arctanh(scores)
    return Ranking(ranking.offsets, np.clip(logits, -_LARGEST_LOGIT, _LARGEST_LOGIT))


def _in_reach_of_cutoff(
    ranking: Ranking, half: Floats, cutoff: int | None
) -> tuple[Ranking, npt.NDArray[np.bool_]]:
    """Cut each list to the entries that could come above the cutoff, and return which they are.

    `half` is the largest distance of a true score from the stored one, for each query.
    """
    lengths = np.diff(ranking.offsets)
    if cutoff is None or not len(ranking.scores):
        return ranking, np.ones(len(ranking.scores), dtype=bool)
    # The last entry above the cutoff. An entry below it can pass it if the two scores are closer
    # than twice the resolution.
    last = np.minimum(
        ranking.offsets[:-1] + np.minimum(lengths, cutoff) - 1, len(ranking.scores) - 1
    )
    lowest = ranking.scores[np.maximum(last, 0)] - 2 * half
    is_near = np.asarray(ranking.scores >= lowest[ranking.query])
    near_lengths = np.bincount(ranking.query[is_near], minlength=len(lengths))
    offsets = np.concatenate([[0], np.cumsum(near_lengths)])
    return Ranking(offsets, ranking.scores[is_near]), is_near


def _with_moved_scores(
    ranking: Ranking, limit: Resolution, rng: np.random.Generator
) -> tuple[Ranking, Ints]:
    """Move each score at random within its resolution.

    Returns the new ranking, and the entries in their new order.
    """
    if limit.ties:
        moves = rng.uniform(-1, 1, len(ranking.scores))
    else:  # tied documents move together
        moves = np.repeat(rng.uniform(-1, 1, len(ranking.starts)), ranking.sizes)
    scores = ranking.scores + moves * limit.half[ranking.query]
    order = np.lexsort((-scores, ranking.query))
    return Ranking(ranking.offsets, scores[order]), order
