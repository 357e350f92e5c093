"""Ask whether temperature moves the tilt: a trend of Relative Δ over the sources of a series.

A *series* is a model's rewrites of the same documents at several temperatures; each temperature is
a source, and the *tilt* of a run is Relative Δ between the reference and that source. Dai et al.
(KDD 2024, sec. 3.5) ask this of one model.

There are two answers: the rank correlation of temperature and tilt, and the change of the tilt from
the lowest temperature to the highest. The bootstrap resamples queries once for all temperatures, so
that all tilts move together. Both intervals are widened by what documents add to the error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np

from ranktilt.auditing.comparison.changes import Columns, resampled
from ranktilt.auditing.effects import FEWEST
from ranktilt.auditing.result import Audit
from ranktilt.auditing.significance import influence_of_ratio, numbers_of
from ranktilt.auditing.sources.sources_apart import AuditedSource
from ranktilt.auditing.storage.contributions import Key, common_numbering
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.sources import FewTemperatures, SeriesApart, TemperaturesUnknown
from ranktilt.measures.contrast import RELATIVE_DELTA, RelativeDelta, relative_delta
from ranktilt.statistics.bootstrap import shared_numbering
from ranktilt.statistics.inversion import infer
from ranktilt.statistics.trend import change_of_ends, rank_correlation
from ranktilt.statistics.two_way import Clusters, TwoWayVariance, combine_influences

FEWEST_TEMPERATURES = 3
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
    """The reference: if Relative Δ rises, the run favours it more."""
    temperatures: tuple[float, ...]
    """Temperature of each source, in rising order."""
    values: tuple[float, ...]
    """Relative Δ in percent at each temperature, over the queries that all of them share."""
    correlation: float
    """Spearman's rank correlation of temperature and Relative Δ; NaN where all values are equal."""
    low: float
    """Lower end of the correlation's 95 % bootstrap interval.

    Every resample has the same queries at all temperatures.
    """
    high: float
    """Upper end of the correlation's interval."""
    change: float
    """Relative Δ at the highest temperature minus at the lowest, in points.

    If several sources share a temperature, their mean is taken.
    """
    change_low: float
    """Lower end of the change's 95 % interval, from the same resamples."""
    change_high: float
    """Upper end of the change's interval."""
    queries: int
    """Number of queries with a relevant document of both sources at every temperature."""
    dropped: int
    """Number of resamples in which the correlation was undefined."""

    @property
    def kind(self) -> Literal["rises", "falls", "inconclusive"]:
        """How Relative Δ changes as temperature rises.

        A direction needs both intervals on one side of 0, and enough queries for a verdict.
        """
        if self.queries < FEWEST:
            return "inconclusive"
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
    """Yield the trend of every run and measure over each series with enough temperatures.

    Each of `audits` compares the reference with one of `sources`, in the same order.
    """
    shared = set(audits[0].queries).intersection(*(audit.queries for audit in audits))
    queries = [query for query in audits[0].queries if query in shared]
    indexes_of_series = by_series(sources)
    for run, series, measure in product(audits[0].runs, indexes_of_series, audits[0].measures):
        indexes = indexes_of_series[series]
        temperatures = tuple(sources[index].temperature for index in indexes)
        if len(set(temperatures)) < FEWEST_TEMPERATURES:
            continue
        columns, clusters = _columns_by_temperature(
            [audits[index] for index in indexes], run, RelativeDelta(of=measure), queries
        )
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
    """Return, for each series, the indexes in `sources` of those that have a temperature."""
    indexes_of_series: dict[str, list[int]] = {}
    for index, source in enumerate(sources):
        indexes = indexes_of_series.setdefault(source.series, [])
        if source.has_temperature:
            indexes.append(index)
    return indexes_of_series


def trend_notes(sources: Sequence[AuditedSource]) -> Iterator[Note]:
    """Note why a series has no trend, if its temperatures let a reader expect one."""
    temperatures: dict[str, set[float]] = {}
    for source in sources:
        temperatures_of_series = temperatures.setdefault(source.series, set())
        if source.has_temperature:
            temperatures_of_series.add(source.temperature)
    counts = {series: len(different) for series, different in temperatures.items()}
    most = max(counts.values(), default=0)
    for series, count in counts.items():
        if 1 < count < FEWEST_TEMPERATURES:
            yield FewTemperatures(series=series, temperatures=count)
    unknown = tuple(source.source for source in sources if not source.has_temperature)
    if unknown and most >= FEWEST_TEMPERATURES:
        yield TemperaturesUnknown(sources=unknown)
    all_temperatures = set[float]().union(*temperatures.values())
    if len(all_temperatures) >= FEWEST_TEMPERATURES and most == 1:
        yield SeriesApart(temperatures=len(all_temperatures))


def _columns_by_temperature(
    audits: Sequence[Audit], run: str, tilt: RelativeDelta, queries: Sequence[str]
) -> tuple[Columns, list[Clusters | None]]:
    """Return both groups' values at each temperature, and what documents add to its tilt.

    `queries` are the queries of all audits. A column has the values of the reference, or of the
    rewrites, at one temperature.
    """
    references, rewrites, distinct, keys = [], [], [], []
    for audit in audits:
        row_of_query = {query: row for row, query in enumerate(audit.queries)}
        rows = [row_of_query[query] for query in queries]
        values = audit.values[audit.runs.index(run), audit.measures.index(tilt.of)][:, rows]
        reference, source = audit.pairs[0]
        references.append(values[audit.groups.index(reference)])
        rewrites.append(values[audit.groups.index(source)])
        numbers = audit.distinct(run)
        distinct.append(None if numbers is None else numbers[rows])
        keys.append((run, repr(tilt), reference, source))
    columns = Columns(
        values=np.array([*references, *rewrites]), distinct=shared_numbering(distinct)
    )
    return columns, _clusters(audits, keys, queries)


def _clusters(
    audits: Sequence[Audit], keys: Sequence[Key], queries: Sequence[str]
) -> list[Clusters | None]:
    """Return what documents add to the tilt at each temperature.

    Queries and documents have the same numbers at all temperatures. All are None if an audit does
    not say what documents add. `keys` name the tilt in each audit.
    """
    contributions = [audit.contributions for audit in audits if audit.contributions is not None]
    if len(contributions) < len(audits):
        return [None for _ in audits]
    numberings = common_numbering(contributions, queries)
    return [
        contributions_of_audit.clusters_of(key, numbering)
        for contributions_of_audit, key, numbering in zip(
            contributions, keys, numberings, strict=True
        )
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
    """Compute how Relative Δ goes with the temperatures of a series, with both intervals."""
    columns, temperatures = task.columns, task.temperatures
    count = len(temperatures)
    [means] = resampled([columns], resamples=resamples, seed=seed)
    # The first `count` columns are those of the reference, the others those of the rewrites.
    tilts = relative_delta(columns.means[:count], columns.means[count:])[:, None]
    resampled_tilts = relative_delta(means[:count], means[count:])
    variance = _change_variance(task)
    changes = change_of_ends(temperatures, resampled_tilts)
    change = float(change_of_ends(temperatures, tilts)[0])
    # Relative Δ is between −200 and 200, so that a change is between −400 and 400.
    change_interval = infer(changes, change, variance=variance, neutral=0.0, bounds=(-400.0, 400.0))
    correlations = rank_correlation(temperatures, resampled_tilts)
    correlation = float(rank_correlation(temperatures, tilts)[0])
    defined = correlations[~np.isnan(correlations)]
    if len(np.unique(defined)) > 1:
        # Documents widen this interval by the same factor as that of the change.
        correlation_interval = infer(
            correlations, correlation, variance=variance, neutral=0.0, bounds=(-1.0, 1.0)
        )
        low, high = correlation_interval.low, correlation_interval.high
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
        change_low=change_interval.low,
        change_high=change_interval.high,
        queries=columns.queries,
        dropped=len(correlations) - len(defined),
    )


def _change_variance(task: TrendTask) -> TwoWayVariance:
    """Return the variance of the change from the lowest to the highest temperature."""
    columns, clusters = task.columns, task.clusters
    count = len(task.temperatures)
    temperatures = np.array(task.temperatures)
    is_highest = temperatures == temperatures.max()
    is_lowest = temperatures == temperatures.min()
    # The change is Σ factor · Relative Δ: the mean at the highest temperature minus that at the
    # lowest. All temperatures between have the factor 0.
    factors = is_highest / is_highest.sum() - is_lowest / is_lowest.sum()
    indexes = np.flatnonzero(factors).tolist()
    numbers = numbers_of(columns.mask, columns.distinct)
    influences = [
        influence_of_ratio(
            RELATIVE_DELTA,
            (columns.sums[index], columns.sums[count + index]),
            clusters[index],
            numbers=numbers,
            distinct=columns.distinct,
            is_centred=False,
        )
        for index in indexes
    ]
    return combine_influences(influences, factors[indexes].tolist()).variance()
