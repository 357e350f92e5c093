"""The temperature study: several sources, each audited against the human side, in one table (Dai et al., sec. 3.5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ranktilt.auditing.answer.verdict import Verdict, bounds, effect_row, judge
from ranktilt.auditing.audit import audit
from ranktilt.auditing.contributions import Key, common_places
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.options import check_choices
from ranktilt.auditing.result import Audit
from ranktilt.auditing.significance import (
    Columns,
    corrected,
    influence_of_ratio,
    numbers_of,
    resampled,
)
from ranktilt.auditing.study_sources import StudySource, StudySources, only, study_sources
from ranktilt.collection import Collection
from ranktilt.errors import UserError, counted, unknown
from ranktilt.io.artifact import Result
from ranktilt.measures.base import Measure, measure
from ranktilt.measures.contrast import RELATIVE_DELTA, RelativeDelta, relative_delta
from ranktilt.measures.margin import LEVEL
from ranktilt.measures.printing import signed
from ranktilt.progress import report
from ranktilt.rankers.base import Ranker
from ranktilt.rankers.candidates import check_reranked
from ranktilt.statistics.bootstrap import RESAMPLES, in_all
from ranktilt.statistics.inversion import infer
from ranktilt.statistics.trend import change_of_ends, rank_correlation
from ranktilt.statistics.two_way import Clusters, TwoWayVariance, combined

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
        return {"kind": self.kind}


@dataclass(frozen=True, eq=False)
class Study(Result, format="ranktilt-study", version=1, noun="a study", command="ranktilt study"):
    """What `study` found; immutable."""

    spec: Mapping[str, Any]
    """How it was made: options, collection, rankers, the number of tests in the family, versions."""
    reference: str
    """The source that each of the others is held against; positive Relative Δ favours it."""
    runs: tuple[str, ...]
    measures: tuple[str, ...]
    sources: tuple[StudySource, ...] = field(metadata={"file": "arms"})
    """By series and rising temperature; those without a temperature last in their series."""
    tilts: tuple[Effect, ...]
    """Relative Δ of every run, source and measure, in this order; `a` is the reference, `b` the source. Corrected p:
    over all of them."""
    trends: tuple[Trend, ...]
    """Of every run, series with three temperatures or more, and measure."""
    notes: tuple[str, ...]
    """What a reader should know."""

    @property
    def level(self) -> float:
        """Half-width, in percent, of what counts as level."""
        return float(self.spec["level"])

    @property
    def primary(self) -> str:
        """The measure on which verdicts are given: see `ranktilt.audit`."""
        return str(self.spec["primary"])

    @property
    def series(self) -> tuple[str, ...]:
        """Names of the series, in order."""
        return tuple(dict.fromkeys(one.series for one in self.sources))

    def tilt(self, run: str, source: str, measure: str) -> Effect:
        """Return Relative Δ of one run, source and measure."""
        found = next(
            (t for t in self.tilts if (t.run, t.b, t.measure) == (run, source, measure)), None
        )
        if found is None:
            names = [f"{t.run}, {t.b}, {t.measure}" for t in self.tilts]
            raise unknown("run, source and measure", f"{run}, {source}, {measure}", names)
        return found

    def points(self, run: str, measure: str, series: str) -> list[tuple[StudySource, Effect]]:
        """Return a series' sources that have a temperature, rising, each with its Relative Δ: a line of the figure."""
        sources = [
            one
            for one in self.sources
            if one.series == series and one.temperature == one.temperature
        ]
        return [(one, self.tilt(run, one.source, measure)) for one in sources]

    def verdict(self, run: str, source: str) -> Verdict:
        """Return the verdict on one run and source, on the primary measure, as an audit of the two gives it."""
        return judge(
            self.primary, [self.tilt(run, source, measure) for measure in self.measures], self.level
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is said of each trend on the primary measure, run by run and series by series."""
        said = []
        for first in (t for t in self.trends if t.measure == self.primary):
            alike = [t for t in self.trends if (t.run, t.series) == (first.run, first.series)]
            agree = sum(t.kind == first.kind for t in alike)
            said.append(trend_sentence(first, agree=agree, measures=len(alike)))
        return tuple(said)

    def derived(self) -> dict[str, Any]:
        verdicts = [self.verdict(run, one.source) for run in self.runs for one in self.sources]
        effects = [effect_row(tilt, self.level) for tilt in self.tilts]
        return {
            "verdicts": verdicts,
            "next_steps": (),
            "effects": effects,
            "sentences": self.sentences,
        }


def study(
    collection: Collection,
    rankers: Sequence[Ranker],
    measures: str | Measure | Iterable[str | Measure] | None = None,
    *,
    primary: str | Measure | None = None,
    reference: str = "human",
    sources: Sequence[str] | None = None,
    ties: str = "expected",
    test: str = "interval",
    correction: str = "holm",
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Study:
    """Audit each source against the human side in a collection of just those two, and ask whether temperature matters.

    All sources are compared over the same documents, those that every one of them rewrote:
    judgments of other documents do not count. Every document of the reference stays in, as a
    competitor. See Dai et al., KDD 2024, sec. 3.5.

    Parameters
    ----------
    collection : Collection
        The reference and rewrites of it at several temperatures, each a source.
    rankers : sequence of Ranker
        Each ranks once for every source.
    measures, primary, ties, test, level : optional
        As in `audit`, but measures of relevance only.
    reference : str, optional
        The human side, favoured by positive values.
    sources : sequence of str, optional
        What is held against it; all other sources by default. Their temperatures stand in a column
        ``temperature``, or are read from the ends of their names (``-tmp0.2``, ``_0.2``), with a
        note.
    correction : {"holm", "bonferroni"}, optional
        Of every p on the primary measure (run × source) together, and of all others.
    resamples, seed : int, optional
        Bootstrap resamples; random seed.

    Returns
    -------
    Study
        One table, and a trend for every series of three temperatures or more.
    """
    rankers = list(rankers)
    check_choices(ties=ties, test=test, correction=correction)
    if not rankers:
        raise UserError("a study needs at least one ranker, such as bm25 (-r bm25)")
    found = study_sources(collection, reference, sources=sources)
    for one in rankers:
        one.check()
    primary = None if primary is None else measure(primary)
    how: dict[str, Any] = {
        "ties": ties,
        "test": test,
        "correction": correction,
        "level": level,
        "resamples": resamples,
        "seed": seed,
    }
    audits = []
    for number, compared in enumerate(found.sources):
        report("auditing sources", number, len(found.sources))
        pair = only(collection, reference, compared.source, found.origins)
        if collection.qrels.height and not (pair.qrels["grade"] > 0).any():
            raise UserError(
                "no document that every source rewrote is judged relevant; name fewer sources (--source)"
            )
        runs = [check_reranked(one.rank(pair), None, one) for one in rankers]
        names = [(reference, compared.source)]
        audits.append(
            audit(pair, runs, measures, primary=primary, pairs=names, confounds=False, **how)
        )
    report("auditing sources", len(found.sources), len(found.sources))
    return _study(audits, found, reference, how)


def _study(
    audits: Sequence[Audit], found: StudySources, reference: str, how: Mapping[str, Any]
) -> Study:
    first = audits[0]
    every = [[t for t in one.tilts if t.run == run] for run in first.runs for one in audits]
    tilts = corrected(
        [tilt for some in every for tilt in some], how["correction"], first.primary_measure
    )
    asked = tuple(_trends(audits, found.sources, reference, how))
    spec = {
        **how,
        "primary": repr(first.primary_measure),
        "reference": reference,
        "tests": sum(t.p == t.p for t in tilts),
        **{
            key: first.spec[key]
            for key in ("ranktilt", "python", "packages", "collection", "inputs")
        },
    }
    notes = (*found.notes, *_audit_notes(audits, found.sources), *_trend_notes(found.sources))
    names = tuple(map(repr, first.measures))
    return Study(spec, reference, first.runs, names, found.sources, tilts, asked, notes)


def _by_series(sources: Sequence[StudySource]) -> dict[str, list[int]]:
    """Places of the sources of each series that have a temperature."""
    found: dict[str, list[int]] = {one.series: [] for one in sources}
    for place, one in enumerate(sources):
        if one.temperature == one.temperature:
            found[one.series].append(place)
    return found


def _trends(
    audits: Sequence[Audit], sources: Sequence[StudySource], reference: str, how: Mapping[str, Any]
) -> Iterator[Trend]:
    """A trend of every run, series with enough temperatures, and measure."""
    queries = [q for q in audits[0].queries if all(q in set(one.queries) for one in audits[1:])]
    places = [[one.queries.index(q) for q in queries] for one in audits]
    for run, ranker in enumerate(audits[0].runs):
        for series, members in _by_series(sources).items():
            temperatures = tuple(sources[m].temperature for m in members)
            if len(set(temperatures)) < FEWEST:
                continue
            for number, of in enumerate(audits[0].measures):
                values = [
                    audits[m].values[run, number, audits[m].groups.index(name), places[m]]
                    for held in ([reference] * len(members), [sources[m].source for m in members])
                    for m, name in zip(members, held, strict=True)
                ]
                numbers = [(audits[m].distinct(audits[m].runs[run]), places[m]) for m in members]
                distinct = in_all([None if one is None else one[place] for one, place in numbers])
                columns = Columns(np.array(values), distinct)
                of_series = [audits[m] for m in members]
                keys = [
                    (ranker, repr(RelativeDelta(of=of)), reference, sources[m].source)
                    for m in members
                ]
                clusters = _clusters(of_series, keys, queries)
                names = {"run": ranker, "measure": repr(of), "series": series, "a": reference}
                yield trend(
                    columns,
                    clusters,
                    temperatures,
                    resamples=how["resamples"],
                    seed=how["seed"],
                    **names,
                )


def _clusters(
    audits: Sequence[Audit], keys: Sequence[Key], queries: Sequence[str]
) -> list[Clusters | None]:
    """What documents add to the tilt at each temperature, with queries and origins numbered alike."""
    contributions = [audit.contributions for audit in audits if audit.contributions is not None]
    if len(contributions) < len(audits):
        return [None for _ in audits]
    alike = common_places(contributions, queries)
    return [
        kept.of(key, place) for kept, key, place in zip(contributions, keys, alike, strict=True)
    ]


def trend(
    columns: Columns,
    clusters: Sequence[Clusters | None],
    temperatures: tuple[float, ...],
    *,
    resamples: int,
    seed: int,
    **names: str,
) -> Trend:
    """Ask whether a series moves with its temperatures.

    `columns` are the reference's values at each temperature in turn, then the rewrites'; `clusters`
    what documents add to the tilt at each.
    """
    half = len(temperatures)
    [means] = resampled([columns], resamples=resamples, seed=seed)
    tilts = relative_delta(columns.means[:half], columns.means[half:])[:, None]
    samples = relative_delta(means[:half], means[half:])
    variance = _change_variance(columns, clusters, temperatures)
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
        **names,
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


def _change_variance(
    columns: Columns, clusters: Sequence[Clusters | None], temperatures: tuple[float, ...]
) -> TwoWayVariance:
    """Return the variance of the mean tilt at the highest temperature less that at the lowest."""
    half = len(temperatures)
    degrees = np.array(temperatures)
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
    return combined(influences, factors[ends].tolist()).variance()


def _audit_notes(audits: Sequence[Audit], sources: Sequence[StudySource]) -> Iterator[str]:
    """The audits' notes, once where all of them say the same."""
    shared = [note for note in audits[0].notes if all(note in one.notes for one in audits)]
    yield from shared
    for audited, one in zip(audits, sources, strict=True):
        for note in audited.notes:
            if note not in shared:
                warning, front = note.startswith("warning: "), f"{one.source}: "
                yield (
                    f"warning: {front}{note.removeprefix('warning: ')}" if warning else front + note
                )


def _trend_notes(sources: Sequence[StudySource]) -> Iterator[str]:
    found = {
        series: len({sources[m].temperature for m in members})
        for series, members in _by_series(sources).items()
    }
    for series, n in found.items():
        if 0 < n < FEWEST:
            hint = " (sources of one model share a column 'model')" if n == 1 < len(found) else ""
            yield f"no trend of {series}: {counted(n, 'temperature', 'temperatures')}; a trend needs {FEWEST}{hint}"


def trend_sentence(trend: Trend, *, agree: int = 1, measures: int = 1) -> str:
    """Say whether a tilt moves with temperature, and on how many of the measures that is so."""
    low, high = (f"{t:g}" for t in (min(trend.temperatures), max(trend.temperatures)))
    front = f"{trend.run}, {trend.series}"
    if trend.queries == 0:
        return f"{front}: no trend to ask for: no query has a relevant document on both sides at every temperature"
    if trend.correlation != trend.correlation:
        return f"{front}: no trend to ask for: {trend.measure} has the same Relative Δ at every temperature, or none"
    numbers = (
        f"rank correlation {signed(trend.correlation, 2)} [{signed(trend.low, 2)}, {signed(trend.high, 2)}], "
        f"{signed(trend.change)} points {bounds(trend.change_low, trend.change_high)} from {low} to {high}"
    )
    if trend.kind == "inconclusive":
        return (
            f"{front}: inconclusive, no trend with temperature shown on {trend.measure}: {numbers}"
        )
    way = f"toward {trend.a}" if trend.kind == "rises" else f"away from {trend.a}"
    agreed = f"; agrees on {agree} of {measures} measures" if measures > 1 else ""
    return f"{front}: Relative Δ on {trend.measure} moves {way} as temperature rises: {numbers}{agreed}"
