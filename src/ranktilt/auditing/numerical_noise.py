"""Numerical noise: how far Relative Δ moves if scores move within their resolution.

A score is computed in an arithmetic, such as float16, or printed with some decimals. Both leave
open which of two close scores is higher.
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
"""Unit roundoff: the largest relative error of rounding one number."""
EXACT = "exact"
"""Precision, in the spec of a run, of scores that are the same to the last bit on every machine."""
DRAWS = 40
"""Number of times that scores are moved within their resolution."""
_QUANTILE = 0.95
"""Share of the draws that move Relative Δ by `NumericalNoise.points` at most."""
_DECIMALS = 9
"""Most decimals of a score that was rounded to be printed; one with more is a float."""


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
    """What limits the scores; see `NumericalNoise.resolution`."""
    half: Floats
    """Half-width for the scores of each query."""
    ties: bool
    """Whether equal scores may hide unequal ones.

    Printed decimals do; arithmetic gives equal scores to equal inputs.
    """


def resolution(run: Run, ranking: Ranking) -> Resolution | None:
    """Return how finely a run's scores are known, by its arithmetic or its printed digits.

    None for exact and for whole scores.
    """
    scores, arithmetic = ranking.scores, precision(run.spec)
    if arithmetic == EXACT or not len(scores) or (scores == np.round(scores)).all():
        return None
    decimals = _printed_decimals(scores)
    if arithmetic is None and decimals is None and (scores == scores.astype(np.float32)).all():
        arithmetic = "float32"
    if arithmetic in ROUNDOFF:
        largest = np.zeros(len(ranking.offsets) - 1)
        np.maximum.at(largest, ranking.query, np.abs(scores))
        return Resolution(name=arithmetic, half=ROUNDOFF[arithmetic] * largest, ties=False)
    if decimals is None:
        return None
    half = np.full(len(ranking.offsets) - 1, 0.5 * 10.0**-decimals)
    name = "1 decimal" if decimals == 1 else f"{decimals} decimals"
    return Resolution(name=name, half=half, ties=True)


def _printed_decimals(scores: Floats) -> int | None:
    """Return how many decimals hold all scores exactly; None for more than `_DECIMALS`."""
    for decimals in range(1, _DECIMALS + 1):
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
    """Draw scores within their resolution many times; measure how far each Relative Δ moves.

    `tilts` are the run's on the primary `measure`, one for each pair; `counted` is that measure
    with the scores as they are, over all documents and over each group, NaN where a query does not
    count. Yields nothing where scores have no such limit.
    """
    before = before_activation(judged_run)
    limit = resolution(judged_run.run, before)
    if limit is None or not tilts:
        return
    near, entries = _in_reach(before, limit.half, measure.cutoff)
    rng = np.random.default_rng(seed)
    # The first draw is the scores as they are.
    draws = [(near, np.arange(len(near.scores)))]
    draws += [_moved(near, limit, rng) for _ in range(DRAWS)]
    drawn = dict[str, Floats]()
    for name in {tilt.a for tilt in tilts} | {tilt.b for tilt in tilts}:
        group = groups.names.index(name)
        gains, judged = judged_run.gains(group, entries), judged_run.judgments.of_group(group)
        drawn[name] = np.stack(
            [values(measure, ranking, gains[order], judged) for ranking, order in draws]
        )
    for tilt in tilts:
        columns = [groups.names.index(name) + 1 for name in (tilt.a, tilt.b)]
        counts = ~np.isnan(counted[columns]).any(axis=0)
        if np.isnan(tilt.value) or not counts.any():
            continue
        mean_a = drawn[tilt.a][:, counts].mean(axis=1)
        mean_b = drawn[tilt.b][:, counts].mean(axis=1)
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
    """Return the scores before the function that makes them probabilities.

    There a model's arithmetic ends.
    """
    ranking = judged_run.ranking
    activation = judged_run.run.spec.get("activation")
    if activation not in ("Sigmoid", "Tanh"):
        return ranking
    with np.errstate(divide="ignore"):
        scores = ranking.scores
        wide = np.log(scores) - np.log1p(-scores) if activation == "Sigmoid" else np.arctanh(scores)
    return Ranking(ranking.offsets, np.clip(wide, -_WIDEST, _WIDEST))


_WIDEST = 750.0
"""Largest score before a logistic function; beyond, the function is 0 or 1 in float64."""


def _in_reach(
    ranking: Ranking, half: Floats, cutoff: int | None
) -> tuple[Ranking, npt.NDArray[np.bool_]]:
    """Cut each list to the entries that could come above the cutoff, and return which they are."""
    lengths = np.diff(ranking.offsets)
    if cutoff is None or not len(ranking.scores):
        return ranking, np.ones(len(ranking.scores), dtype=bool)
    last = np.minimum(
        ranking.offsets[:-1] + np.minimum(lengths, cutoff) - 1, len(ranking.scores) - 1
    )
    lowest = ranking.scores[np.maximum(last, 0)] - 2 * half
    keep = np.asarray(ranking.scores >= lowest[ranking.query])
    near_lengths = np.bincount(ranking.query[keep], minlength=len(lengths))
    offsets = np.concatenate([[0], np.cumsum(near_lengths)])
    return Ranking(offsets, ranking.scores[keep]), keep


def _moved(ranking: Ranking, limit: Resolution, rng: np.random.Generator) -> tuple[Ranking, Ints]:
    """Move each score within its resolution.

    Returns the new lists, and the entries in their new order.
    """
    if limit.ties:
        moves = rng.uniform(-1, 1, len(ranking.scores))
    else:
        moves = np.repeat(rng.uniform(-1, 1, len(ranking.starts)), ranking.sizes)
    scores = ranking.scores + moves * limit.half[ranking.query]
    order = np.lexsort((-scores, ranking.query))
    return Ranking(ranking.offsets, scores[order]), order
