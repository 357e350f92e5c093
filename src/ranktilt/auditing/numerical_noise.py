"""Numerical noise: how far Relative Δ would move if scores moved within the resolution of what made them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import Groups
from ranktilt.auditing.judged_run import JudgedRun
from ranktilt.data.run import Run
from ranktilt.measures.base import Measure
from ranktilt.measures.contrast import relative_delta
from ranktilt.measures.ranking import Floats, Ints, Ranking
from ranktilt.measures.relevance import values

ROUNDOFF = {"float32": 2.0**-24, "bfloat16": 2.0**-8, "float16": 2.0**-11}
"""Unit roundoff: the largest relative error of rounding one number."""
EXACT = "exact"
"""What spec says of scores that are the same to the last bit on every machine."""
DRAWS = 40
_QUANTILE = 0.95
_DECIMALS = 9
"""A score with more digits after the point is a float as it is, and not a rounded one."""


@dataclass(frozen=True)
class NumericalNoise:
    """How far one run's Relative Δ on the primary measure moves within the resolution of its scores."""

    run: str
    a: str
    b: str
    resolution: str
    """What limits the scores: ``float32``, ``bfloat16``, ``float16``, or a number of decimals."""
    points: float
    """95 % of the draws moved Relative Δ by no more, in points."""


class Resolution(NamedTuple):
    """How finely scores are known: each lies within ±`half` of what it says."""

    name: str
    half: Floats
    """Of each query."""
    ties: bool
    """Whether equal scores stand for unequal ones, too: printed digits hide that, an arithmetic gives equals equal."""


def resolution(run: Run, ranking: Ranking) -> Resolution | None:
    """Say how finely a run's scores are known, by its arithmetic or printed digits; None for exact or whole ones."""
    scores, named = ranking.scores, precision(run.spec)
    if named == EXACT or not len(scores) or (scores == np.round(scores)).all():
        return None
    decimals = next(
        (n for n in range(1, _DECIMALS + 1) if (np.round(scores, n) == scores).all()), None
    )
    if named is None and decimals is None and (scores == scores.astype(np.float32)).all():
        named = "float32"
    if named in ROUNDOFF:
        largest = np.zeros(len(ranking.offsets) - 1)
        np.maximum.at(largest, ranking.query, np.abs(scores))
        return Resolution(named, ROUNDOFF[named] * largest, ties=False)
    if decimals is None:
        return None
    half = np.full(len(ranking.offsets) - 1, 0.5 * 10.0**-decimals)
    return Resolution("1 decimal" if decimals == 1 else f"{decimals} decimals", half, ties=True)


def precision(spec: Mapping[str, Any]) -> str | None:
    """Return what a run's scores were computed in, as its spec or that of its language model says; None if neither."""
    model = spec.get("llm")
    found = spec.get("precision", model.get("precision") if isinstance(model, Mapping) else None)
    return found if isinstance(found, str) else None


def numerical_noise(
    judged_run: JudgedRun,
    measure: Measure,
    groups: Groups,
    tilts: Sequence[Effect],
    counted: Floats,
    *,
    seed: int,
) -> Iterator[NumericalNoise]:
    """Move a run's scores within their resolution, again and again, and see what becomes of each Relative Δ.

    `tilts` are the run's on the primary `measure`, one a pair; `counted` is that measure as it is,
    of all documents and each group, NaN where a query does not count. Nothing comes where scores
    have no such limit.
    """
    before = before_activation(judged_run)
    limit = resolution(judged_run.run, before)
    if limit is None or not tilts:
        return
    near, entries = _in_reach(before, limit.half, measure.cutoff)
    rng, draws = np.random.default_rng(seed), [(near, np.arange(len(near.scores)))]
    draws += [_moved(near, limit, rng) for _ in range(DRAWS)]
    drawn = dict[str, Floats]()
    for name in {side for tilt in tilts for side in (tilt.a, tilt.b)}:
        group = groups.names.index(name)
        gains, judged = judged_run.gains(group, entries), judged_run.judgments.of_group(group)
        drawn[name] = np.stack(
            [values(measure, ranking, gains[order], judged) for ranking, order in draws]
        )
    for tilt in tilts:
        counts = ~np.isnan(
            counted[[groups.names.index(side) + 1 for side in (tilt.a, tilt.b)]]
        ).any(axis=0)
        if np.isnan(tilt.value) or not counts.any():
            continue
        deltas = relative_delta(*(drawn[side][:, counts].mean(axis=1) for side in (tilt.a, tilt.b)))
        moves = np.abs(deltas[1:] - deltas[0])
        points = float(np.nanquantile(moves, _QUANTILE, method="higher"))
        yield NumericalNoise(tilt.run, tilt.a, tilt.b, limit.name, points)


def before_activation(judged_run: JudgedRun) -> Ranking:
    """Scores before the function that brings them to probabilities, which is where a model's arithmetic ends."""
    ranking = judged_run.ranking
    activation = judged_run.run.spec.get("activation")
    if activation not in ("Sigmoid", "Tanh"):
        return ranking
    with np.errstate(divide="ignore"):
        scores = ranking.scores
        wide = np.log(scores) - np.log1p(-scores) if activation == "Sigmoid" else np.arctanh(scores)
    return Ranking(ranking.offsets, np.clip(wide, -_WIDEST, _WIDEST))


_WIDEST = 750.0
"""Beyond, the logistic function is 0 or 1 in float64."""


def _in_reach(
    ranking: Ranking, half: Floats, cutoff: int | None
) -> tuple[Ranking, npt.NDArray[np.bool_]]:
    """The part of each list that could come above the cutoff, and the mask of its entries."""
    lengths = np.diff(ranking.offsets)
    if cutoff is None or not len(ranking.scores):
        return ranking, np.ones(len(ranking.scores), dtype=bool)
    last = np.minimum(
        ranking.offsets[:-1] + np.minimum(lengths, cutoff) - 1, len(ranking.scores) - 1
    )
    lowest = ranking.scores[np.maximum(last, 0)] - 2 * half
    keep = np.asarray(ranking.scores >= lowest[ranking.query])
    kept = np.bincount(ranking.query[keep], minlength=len(lengths))
    return Ranking(np.concatenate([[0], np.cumsum(kept)]), ranking.scores[keep]), keep


def _moved(ranking: Ranking, limit: Resolution, rng: np.random.Generator) -> tuple[Ranking, Ints]:
    """Move each score within its resolution; returns the new lists and the entries in their new order."""
    if limit.ties:
        moves = rng.uniform(-1, 1, len(ranking.scores))
    else:
        moves = np.repeat(rng.uniform(-1, 1, len(ranking.starts)), ranking.sizes)
    scores = ranking.scores + moves * limit.half[ranking.query]
    order = np.lexsort((-scores, ranking.query))
    return Ranking(ranking.offsets, scores[order]), order
