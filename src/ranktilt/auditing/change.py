"""How far Relative Δ and effectiveness moved from one run to another over the same queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.effects import ALPHA
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.matching import Match, RunPair
from ranktilt.measures.contrast import relative_delta
from ranktilt.statistics.bootstrap import Interval, interval, resampled_means, together
from ranktilt.statistics.correction import detectable_effect
from ranktilt.statistics.permutation import Systems, sign_flip_ps, swap_ps

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MeanChange:
    """Effectiveness of two runs on one measure: means without grouping, in percent."""

    run: str
    old_run: str
    measure: str
    new: float
    old: float
    """Means over the compared queries."""
    value: float
    """new − old, in percentage points."""
    low: float
    high: float
    """95 % bootstrap interval, both runs resampled together."""
    error: float
    p: float
    """Paired sign-flip permutation test."""
    p_corrected: float
    queries: int
    """Queries on which both are defined; the others are excluded."""
    excluded: int
    votes: int
    """Distinct queries in which any of the values is above 0."""
    tests: int
    """Tests of the comparison, which are corrected together."""

    @property
    def detectable(self) -> float:
        """Smallest absolute difference that this comparison detects with 80 % power: see `detectable_effect`."""
        return detectable_effect(self.error, self.tests, self.votes)

    @property
    def testable(self) -> bool:
        """Whether there are queries enough for any p below .05: six."""
        return 2.0 ** (1 - self.votes) < ALPHA

    @property
    def shown(self) -> bool:
        """Whether a difference is shown: corrected p < .05 and the interval excludes 0."""
        return self.p_corrected < ALPHA and not self.low <= 0 <= self.high

    def row(self) -> dict[str, Any]:
        """Return the fields, and the detectable difference, by name."""
        return {**asdict(self), "detectable": self.detectable}


@dataclass(frozen=True)
class TiltChange(MeanChange):
    """Relative Δ of two runs on one measure and pair of groups: percent, and its differences in points.

    Positive values of `new` and `old` favour `a`; a positive `value` says that the new run lies further toward
    `a`, which need not mean that it tilts more: that is the `growth`. The test exchanges the two runs query by
    query.
    """

    a: str
    b: str
    dropped: int
    """Resamples in which either Relative Δ was undefined."""
    level_new: float
    level_old: float
    """What favours nobody: 0 for twins, the middle of each run's random band otherwise."""
    growth: float
    """|new − level_new| − |old − level_old|: above 0, the new run tilts more, whichever way."""
    growth_low: float
    growth_high: float
    """Its 95 % bootstrap interval; the levels are taken as known."""
    growth_error: float
    twins: bool

    @property
    def growth_detectable(self) -> float:
        """Smallest absolute growth that these queries detect with 80 % power by a test of its own."""
        return detectable_effect(self.growth_error, queries=self.votes)

    def row(self) -> dict[str, Any]:
        """Return the fields, and the detectable differences, by name."""
        return {**super().row(), "growth_detectable": self.growth_detectable}


class _Task(NamedTuple):
    """One comparison before any statistics."""

    runs: RunPair
    measure: str
    pair: Pair
    columns: tuple[Floats, ...]
    """Per-query values: the new and the old run's, for each group in turn."""
    distinct: Ints | None
    """Number of the query that each query repeats under both runs."""

    @property
    def mask(self) -> npt.NDArray[np.bool_]:
        undefined: npt.NDArray[np.bool_] = np.any([np.isnan(c) for c in self.columns], axis=0)
        return ~undefined


def mean_changes(match: Match, *, resamples: int, seed: int) -> list[MeanChange]:
    """Compare effectiveness, run by run and measure by measure; p is not corrected yet.

    Parameters
    ----------
    match : Match
        Two audits side by side.
    resamples : int
        Bootstrap resamples and sign flips.
    seed : int
        Of both.

    Returns
    -------
    list of MeanChange
        Every run pair × measure. Exchanging the audits negates every difference exactly.
    """
    tasks = [
        _Task(r, m, (ALL, ALL), match.values(r, m, ALL), match.distinct(r)) for r in match.runs for m in match.measures
    ]
    made: dict[int, MeanChange] = {}
    for members in _families(tasks):
        columns = _columns(tasks, members)
        *sums, sizes = resampled_means([*columns, _sizes(tasks[members[0]])], resamples=resamples, seed=seed)
        differences = [new - old for new, old in zip(columns[::2], columns[1::2], strict=True)]
        ps = sign_flip_ps(differences, resamples=resamples, seed=seed)
        for place, index in enumerate(members):
            new, old = (one / sizes for one in sums[2 * place : 2 * place + 2])
            spread = interval(100 * (new - old))
            made[index] = _mean_change(tasks[index], spread, ps[place])
    return [made[i] for i in range(len(tasks))]


def tilt_changes(match: Match, *, resamples: int, seed: int, test: bool = True) -> list[TiltChange]:
    """Compare Relative Δ, run by run, pair by pair and measure by measure; p is not corrected yet.

    Parameters
    ----------
    match : Match
        Two audits side by side.
    resamples : int
        Bootstrap resamples and exchanges.
    seed : int
        Of both.
    test : bool, optional
        Whether to compute p; NaN otherwise.

    Returns
    -------
    list of TiltChange
        Every run pair × pair of groups × measure. Exchanging the audits negates every difference exactly.
    """
    tasks = [
        _Task(r, m, (a, b), (*match.values(r, m, a), *match.values(r, m, b)), match.distinct(r))
        for r in match.runs
        for a, b in match.pairs
        for m in match.measures
    ]
    made: dict[int, TiltChange] = {}
    for members in _families(tasks):
        columns = _columns(tasks, members)
        means = resampled_means(columns, resamples=resamples, seed=seed)
        quads = [Systems(new_a, new_b, old_a, old_b) for new_a, old_a, new_b, old_b in _fours(columns)]
        ps = swap_ps(quads, relative_delta, resamples=resamples, seed=seed) if test else [np.nan] * len(quads)
        for index, samples, p in zip(members, _fours(means), ps, strict=True):
            made[index] = _tilt_change(match, tasks[index], samples, p)
    return [made[i] for i in range(len(tasks))]


def _families(tasks: Sequence[_Task]) -> list[list[int]]:
    """Comparisons over the same queries, which share their resamples."""
    found: dict[bytes, list[int]] = defaultdict(list)
    for index, task in enumerate(tasks):
        repeated = b"" if task.distinct is None else task.distinct.tobytes()
        found[task.mask.tobytes() + repeated].append(index)
    return list(found.values())


def _columns(tasks: Sequence[_Task], members: Sequence[int]) -> list[Floats]:
    """Sums of each column over the distinct queries that count."""
    return [_together(tasks[members[0]], column) for index in members for column in tasks[index].columns]


def _together(task: _Task, column: Floats) -> Floats:
    mask = task.mask
    return together(column[mask], None if task.distinct is None else task.distinct[mask])


def _votes(task: _Task) -> int:
    return int((np.sum([_together(task, column) for column in task.columns], axis=0) > 0).sum())


def _sizes(task: _Task) -> Floats:
    """How many queries each distinct query stands for."""
    return _together(task, np.ones(len(task.mask)))


def _fours(columns: Sequence[Floats]) -> list[tuple[Floats, Floats, Floats, Floats]]:
    return list(zip(columns[::4], columns[1::4], columns[2::4], columns[3::4], strict=True))


def _mean_change(task: _Task, spread: Interval, p: float) -> MeanChange:
    mask = task.mask
    new, old = (100 * _mean(column[mask]) for column in task.columns)
    n = int(mask.sum())
    return MeanChange(
        task.runs.new, task.runs.old, task.measure, new, old, new - old, spread.low, spread.high, spread.error,
        p, np.nan, n, len(mask) - n, _votes(task), 1,
    )  # fmt: skip


def _tilt_change(match: Match, task: _Task, samples: tuple[Floats, Floats, Floats, Floats], p: float) -> TiltChange:
    new_a, old_a, new_b, old_b = samples
    one, two = match.tilts(task.runs, task.measure, task.pair)
    level, old_level = one.level, two.level
    deltas, old_deltas = relative_delta(new_a, new_b), relative_delta(old_a, old_b)
    spread = interval(deltas - old_deltas)
    grown = interval(np.abs(deltas - level) - np.abs(old_deltas - old_level))
    mask = task.mask
    means = [_mean(column[mask]) for column in task.columns]
    new, old = (float(relative_delta(means[side], means[2 + side])) for side in (0, 1))
    n = int(mask.sum())
    return TiltChange(
        task.runs.new, task.runs.old, task.measure, new, old, new - old, spread.low, spread.high, spread.error,
        p, np.nan, n, len(mask) - n, _votes(task), 1, task.pair[0], task.pair[1], spread.dropped, level, old_level,
        abs(new - level) - abs(old - old_level), grown.low, grown.high, grown.error, one.twins and two.twins,
    )  # fmt: skip


def _mean(values: Floats) -> float:
    return float(np.mean(values)) if len(values) else float("nan")
