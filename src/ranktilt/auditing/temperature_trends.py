"""Whether Relative Δ moves with the temperature of the rewrites: rank correlations and differences of the ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.significance import Columns, by_family, resampled
from ranktilt.measures.contrast import relative_delta
from ranktilt.statistics.bootstrap import interval
from ranktilt.statistics.trend import change_of_ends, rank_correlation

Floats = npt.NDArray[np.float64]


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
    spread, moved = interval(rank_correlation(at, samples)), interval(change_of_ends(at, samples))
    return Trend(
        task.run, task.measure, task.series, task.a, at, tuple(whole[:, 0].tolist()),
        float(rank_correlation(at, whole)[0]), spread.low, spread.high,
        float(change_of_ends(at, whole)[0]), moved.low, moved.high, task.columns.queries, spread.dropped,
    )  # fmt: skip
