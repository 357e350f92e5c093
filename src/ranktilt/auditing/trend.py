"""Whether a tilt moves with the temperature of the rewrites: a rank correlation, with its interval over queries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.inference import Columns, by_family, resampled
from ranktilt.auditing.verdict import bounds
from ranktilt.measures.base import signed
from ranktilt.measures.contrast import relative_delta
from ranktilt.statistics.bootstrap import interval

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FEWEST = 3
"""Different temperatures from which a trend is asked for."""


@dataclass(frozen=True)
class Trend:
    """How Relative Δ of one run, measure and series of sources moves with their temperature."""

    run: str
    measure: str
    series: str
    """The model behind the sources, and its prompt where there are several."""
    a: str
    """The reference; a rising Relative Δ moves toward it."""
    temperatures: tuple[float, ...]
    """One a source, in rising order."""
    values: tuple[float, ...]
    """Relative Δ in percent at each temperature, over the queries that all of them share."""
    correlation: float
    """Spearman's rank correlation of temperature and Relative Δ, in [−1, 1]; NaN where all values are equal."""
    low: float
    high: float
    """Its 95 % interval: bootstrap over queries, the same resample at every temperature."""
    change: float
    """Relative Δ at the highest less that at the lowest temperature, in points (means where several share one)."""
    change_low: float
    change_high: float
    """Its 95 % interval, from the same resamples."""
    queries: int
    """Queries with a relevant document on both sides at every temperature."""
    dropped: int
    """Resamples in which the correlation was undefined."""

    @property
    def kind(self) -> Literal["rises", "falls", "inconclusive"]:
        """Which way Relative Δ goes as temperature rises, if both intervals lie on that side of 0."""
        if self.low > 0 and self.change_low > 0:
            return "rises"
        if self.high < 0 and self.change_high < 0:
            return "falls"
        return "inconclusive"

    def derived(self) -> dict[str, Any]:
        """What a file tells besides the fields."""
        return {"kind": self.kind}


class TrendTask(NamedTuple):
    """Per-query values of one run, measure and series, before any statistics."""

    run: str
    measure: str
    series: str
    a: str
    temperatures: tuple[float, ...]
    columns: Columns
    """Of the reference at each temperature in turn, and then of the rewrites."""

    @property
    def family(self) -> bytes:
        """Equal for trends over the same queries."""
        return self.columns.family


def trends(tasks: Sequence[TrendTask], *, resamples: int, seed: int) -> tuple[Trend, ...]:
    """Ask of each series, with at least two different temperatures, whether it moves with them."""

    def tested(members: list[TrendTask]) -> Iterable[Trend]:
        means = resampled([task.columns for task in members], resamples=resamples, seed=seed)
        return map(_trend, members, means)

    return tuple(by_family(tasks, tested))


def _trend(task: TrendTask, means: Floats) -> Trend:
    """One trend from per-query values and resampled means, both of the shape (sides and temperatures, …)."""
    at, half = task.temperatures, len(task.temperatures)
    whole = relative_delta(task.columns.means[:half], task.columns.means[half:])[:, None]
    samples = relative_delta(means[:half], means[half:])
    spread, moved = interval(rank_correlation(at, samples)), interval(_change(at, samples))
    return Trend(
        task.run, task.measure, task.series, task.a, at, tuple(whole[:, 0].tolist()),
        float(rank_correlation(at, whole)[0]), spread.low, spread.high,
        float(_change(at, whole)[0]), moved.low, moved.high, task.columns.queries, spread.dropped,
    )  # fmt: skip


def rank_correlation(temperatures: Sequence[float], values: Floats) -> Floats:
    """Spearman's rank correlation of temperatures with each column of values.

    Parameters
    ----------
    temperatures : sequence of float
        One a row of `values`.
    values : ndarray of float64, shape (n_temperatures, n_columns)
        Tied values share the mean of their ranks.

    Returns
    -------
    ndarray of float64, shape (n_columns,)
        In [−1, 1]; NaN where a column holds a NaN or one value only, or all temperatures are the same.
    """
    from scipy import stats  # takes half a second, which no other result should wait for

    x = stats.rankdata(temperatures)
    y = stats.rankdata(values, axis=0)
    x, y = x - x.mean(), y - y.mean(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Floats = (x @ y) / np.sqrt((x**2).sum() * (y**2).sum(axis=0))
    return np.where(np.isnan(values).any(axis=0), np.nan, np.clip(found, -1, 1))


def _change(temperatures: Sequence[float], values: Floats) -> Floats:
    """Mean at the highest temperature less the mean at the lowest, of each column."""
    at = np.array(temperatures)
    change: Floats = values[at == at.max()].mean(axis=0) - values[at == at.min()].mean(axis=0)
    return change


def trend_sentence(trend: Trend, *, agree: int = 1, measures: int = 1) -> str:
    """Say in words whether a tilt moves with temperature.

    Parameters
    ----------
    trend : Trend
        On the primary measure.
    agree, measures : int, optional
        Of how many measures how many say the same, this one included.

    Returns
    -------
    str
        One sentence; ``inconclusive`` is what it says unless both intervals exclude 0 on one side.
    """
    low, high = (f"{t:g}" for t in (min(trend.temperatures), max(trend.temperatures)))
    front = f"{trend.run}, {trend.series}"
    if trend.queries == 0:
        return f"{front}: no trend to ask for: no query has a relevant document on both sides at every temperature"
    if trend.correlation != trend.correlation:
        return f"{front}: no trend to ask for: {trend.measure} has the same Relative Δ at every temperature, or none"
    numbers = (
        f"rank correlation {signed(trend.correlation, 2)} {_ends(trend.low, trend.high)}, "
        f"{signed(trend.change)} points {bounds(trend.change_low, trend.change_high)} from {low} to {high}"
    )
    if trend.kind == "inconclusive":
        return f"{front}: inconclusive, no trend with temperature shown on {trend.measure}: {numbers}"
    way = f"toward {trend.a}" if trend.kind == "rises" else f"away from {trend.a}"
    agreed = f"; agrees on {agree} of {measures} measures" if measures > 1 else ""
    return f"{front}: Relative Δ on {trend.measure} moves {way} as temperature rises: {numbers}{agreed}"


def _ends(low: float, high: float) -> str:
    return f"[{signed(low, 2)}, {signed(high, 2)}]"
