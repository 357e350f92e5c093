"""Ask whether temperature moves the tilt: a trend of Relative Δ over the sources of a series.

Dai et al. (KDD 2024, sec. 3.5) ask this of rewrites by one model. Queries are resampled once for
all temperatures, and what documents add widens both intervals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np

from ranktilt.auditing.contributions import Key, common_numbering
from ranktilt.auditing.result import Audit
from ranktilt.auditing.significance import (
    Columns,
    influence_of_ratio,
    numbers_of,
    resampled,
)
from ranktilt.auditing.sources_apart import AuditedSource
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.sources import FewTemperatures, SeriesApart, TemperaturesUnknown
from ranktilt.measures.base import Measure
from ranktilt.measures.contrast import RELATIVE_DELTA, RelativeDelta, relative_delta
from ranktilt.statistics.bootstrap import shared_numbering
from ranktilt.statistics.inversion import infer
from ranktilt.statistics.trend import change_of_ends, rank_correlation
from ranktilt.statistics.two_way import Clusters, TwoWayVariance, combine_influences

FEWEST = 3
"""Fewest different temperatures for a trend."""


@dataclass(frozen=True, kw_only=True)
class Trend:
    """How Relative Δ of one run, measure and series of sources changes with their temperature."""

    run: str
    """Name of the run."""
    measure: str
    """Notation of the measure."""
    series: str
    """The model behind the sources, and its prompt where there are several."""
    a: str
    """The reference; a rising Relative Δ moves toward it."""
    temperatures: tuple[float, ...]
    """Temperature of each source, in rising order."""
    values: tuple[float, ...]
    """Relative Δ in percent at each temperature, over the queries that all of them share."""
    correlation: float
    """Spearman's rank correlation of temperature and Relative Δ; NaN where all values are equal."""
    low: float
    """Lower end of the correlation's 95 % interval: bootstrap over queries, alike at all
    temperatures."""
    high: float
    """Upper end of the same interval."""
    change: float
    """Relative Δ at the highest temperature minus at the lowest, in points.

    If several sources share a temperature, their mean.
    """
    change_low: float
    """Lower end of the change's 95 % interval, from the same resamples."""
    change_high: float
    """Upper end of the same interval."""
    queries: int
    """Queries with a relevant document on both sides at every temperature."""
    dropped: int
    """Resamples in which the correlation was undefined."""

    @property
    def kind(self) -> Literal["rises", "falls", "inconclusive"]:
        """Direction in which Relative Δ goes as temperature rises, if both intervals exclude 0."""
        if self.low > 0 and self.change_low > 0:
            return "rises"
        if self.high < 0 and self.change_high < 0:
            return "falls"
        return "inconclusive"

    def derived(self) -> dict[str, Any]:
        """Return numbers that follow from the fields, for the file."""
        return {"kind": self.kind}


def trends(
    audits: Sequence[Audit], sources: Sequence[AuditedSource], *, resamples: int, seed: int
) -> Iterator[Trend]:
    """Yield a trend of every run, series with enough temperatures, and measure of relevance."""
    shared = set(audits[0].queries).intersection(*(audit.queries for audit in audits))
    queries = [query for query in audits[0].queries if query in shared]
    all_series = by_series(sources)
    for run, series, measure in product(audits[0].runs, all_series, audits[0].measures):
        members = all_series[series]
        temperatures = tuple(sources[member].temperature for member in members)
        if len(set(temperatures)) < FEWEST:
            continue
        columns, clusters = _columns([audits[member] for member in members], run, measure, queries)
        task = TrendTask(
            run=run,
            measure=repr(measure),
            series=series,
            a=audits[0].pairs[0][0],
            temperatures=temperatures,
            columns=columns,
            clusters=tuple(clusters),
        )
        yield trend(task, resamples=resamples, seed=seed)


def by_series(sources: Sequence[AuditedSource]) -> dict[str, list[int]]:
    """Return, for each series, the positions of its sources that have a temperature."""
    positions: dict[str, list[int]] = {}
    for position, source in enumerate(sources):
        members = positions.setdefault(source.series, [])
        if source.has_temperature:
            members.append(position)
    return positions


def trend_notes(sources: Sequence[AuditedSource]) -> Iterator[Note]:
    """Note why a series has no trend, where one may be expected."""
    temperatures = dict[str, set[float]]()
    for source in sources:
        known = temperatures.setdefault(source.series, set())
        known.update([source.temperature] if source.has_temperature else [])
    counts = {series: len(known) for series, known in temperatures.items()}
    for series, count in counts.items():
        if 1 < count < FEWEST:
            yield FewTemperatures(series=series, temperatures=count)
    unknown = tuple(source.source for source in sources if not source.has_temperature)
    if unknown and max(counts.values()) >= FEWEST:
        yield TemperaturesUnknown(sources=unknown)
    different = set[float]().union(*temperatures.values())
    if len(different) >= FEWEST and max(counts.values()) == 1:
        yield SeriesApart(temperatures=len(different))


def _columns(
    audits: Sequence[Audit], run: str, measure: Measure, queries: Sequence[str]
) -> tuple[Columns, list[Clusters | None]]:
    """Return both sides' values at each temperature, and what documents add to its tilt."""
    references, rewrites, distinct, keys = [], [], [], []
    for audit in audits:
        row_of_query = {query: row for row, query in enumerate(audit.queries)}
        rows = [row_of_query[query] for query in queries]
        values = audit.values[audit.runs.index(run), audit.measures.index(measure)][:, rows]
        reference, source = audit.pairs[0]
        references.append(values[audit.groups.index(reference)])
        rewrites.append(values[audit.groups.index(source)])
        numbers = audit.distinct(run)
        distinct.append(None if numbers is None else numbers[rows])
        keys.append((run, repr(RelativeDelta(of=measure)), reference, source))
    columns = Columns(
        values=np.array([*references, *rewrites]), distinct=shared_numbering(distinct)
    )
    return columns, _clusters(audits, keys, queries)


def _clusters(
    audits: Sequence[Audit], keys: Sequence[Key], queries: Sequence[str]
) -> list[Clusters | None]:
    """Return what documents add to the tilt at each temperature, numbered alike."""
    contributions = [audit.contributions for audit in audits if audit.contributions is not None]
    if len(contributions) < len(audits):
        return [None for _ in audits]
    alike = common_numbering(contributions, queries)
    return [
        added.clusters_of(key, numbering)
        for added, key, numbering in zip(contributions, keys, alike, strict=True)
    ]


@dataclass(frozen=True, kw_only=True, eq=False)
class TrendTask:
    """Values of one run, measure and series of sources, before any statistics."""

    run: str
    """Name of the run."""
    measure: str
    """Notation of the measure."""
    series: str
    """Name of the series."""
    a: str
    """The reference."""
    temperatures: tuple[float, ...]
    """Temperature of each source, in rising order."""
    columns: Columns
    """Values of the reference at each temperature in turn, then values of the rewrites."""
    clusters: tuple[Clusters | None, ...]
    """What documents add to the tilt at each temperature."""


def trend(task: TrendTask, *, resamples: int, seed: int) -> Trend:
    """Ask whether a series moves with its temperatures."""
    columns, temperatures = task.columns, task.temperatures
    half = len(temperatures)
    [means] = resampled([columns], resamples=resamples, seed=seed)
    tilts = relative_delta(columns.means[:half], columns.means[half:])[:, None]
    samples = relative_delta(means[:half], means[half:])
    variance = _change_variance(task)
    changes = change_of_ends(temperatures, samples)
    change = float(change_of_ends(temperatures, tilts)[0])
    moved = infer(changes, change, variance=variance, neutral=0.0, bounds=(-400.0, 400.0))
    correlations = rank_correlation(temperatures, samples)
    correlation = float(rank_correlation(temperatures, tilts)[0])
    defined = correlations[~np.isnan(correlations)]
    if len(np.unique(defined)) > 1:  # as much wider as the change is
        bounds = (-1.0, 1.0)
        spread = infer(correlations, correlation, variance=variance, neutral=0.0, bounds=bounds)
        low, high = spread.low, spread.high
    else:
        low, high = (correlation, correlation) if len(defined) else (np.nan, np.nan)
    return Trend(
        run=task.run,
        measure=task.measure,
        series=task.series,
        a=task.a,
        temperatures=temperatures,
        values=tuple(tilts[:, 0].tolist()),
        correlation=correlation,
        low=low,
        high=high,
        change=change,
        change_low=moved.low,
        change_high=moved.high,
        queries=columns.queries,
        dropped=len(correlations) - len(defined),
    )


def _change_variance(task: TrendTask) -> TwoWayVariance:
    """Return the variance of the change from the lowest to the highest temperature."""
    columns, clusters = task.columns, task.clusters
    half = len(task.temperatures)
    degrees = np.array(task.temperatures)
    is_highest, is_lowest = degrees == degrees.max(), degrees == degrees.min()
    factors = is_highest / is_highest.sum() - is_lowest / is_lowest.sum()
    ends = np.flatnonzero(factors).tolist()
    numbers = numbers_of(columns.mask, columns.distinct)
    influences = [
        influence_of_ratio(
            RELATIVE_DELTA,
            (columns.sums[end], columns.sums[half + end]),
            clusters[end],
            numbers=numbers,
            distinct=columns.distinct,
            is_centred=False,
        )
        for end in ends
    ]
    return combine_influences(influences, factors[ends].tolist()).variance()
