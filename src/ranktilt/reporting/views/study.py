"""A temperature study: per ranker a row a source, the trend over them, and the figures of its page."""

from __future__ import annotations

from ranktilt.auditing.effects import Effect
from ranktilt.auditing.study import Study, Trend
from ranktilt.auditing.study_sources import StudySource
from ranktilt.reporting.document import (
    Cell,
    Column,
    Document,
    Figure,
    Section,
    Sentence,
    named,
    tabulated,
    worded,
)
from ranktilt.reporting.figures.charts import Point, lines
from ranktilt.reporting.headline import headline, study_summaries
from ranktilt.reporting.numbers import (
    DASH,
    count,
    ends,
    estimate,
    interval,
    number,
    p_value,
    percent,
    signed,
)
from ranktilt.reporting.provenance import provenance, titled
from ranktilt.reporting.tones import VERDICT_TONES
from ranktilt.reporting.verdicts import mark, starred
from ranktilt.reporting.views.audit_tables import tie_rule

_MOST_FIGURES = 6
_DODGE = 0.012


def view(study: Study) -> Document:
    """Return what is said of a study."""
    found = [finding.sentence for finding in study_summaries(study)]
    sections = [_figures(study), _table(study), _trends(study), provenance(study.spec, study.notes)]
    return Document(
        kind=titled("Temperature study of", study.spec),
        headline=headline(study),
        sections=tuple(section for section in sections if section),
        sentences=tuple(Sentence(text, emphasis="strong") for text in (*found, *study.sentences)),
        legend=tuple(legend(study)),
        notes=study.notes,
        sides=(study.reference, "the rewrites"),
    )


def legend(study: Study) -> list[str]:
    """Say what the numbers are, in a few lines."""
    spec = study.spec
    verdict = f"Verdict on {study.primary}; " if len(study.measures) > 1 else ""
    said = [
        f"Relative Δ in %, each source against {study.reference} in a collection of these two: + favours "
        f"{study.reference}, − favours the rewrites. {verdict}{starred(spec)}",
        f"95 % intervals: paired bootstrap over queries, {spec['resamples']:,} resamples, widened by what documents "
        f"add. Ties: {tie_rule(spec)}.",
    ]
    if study.trends:
        said.append(
            "Trend: Spearman's rank correlation of temperature and Relative Δ, and the difference between the ends, "
            "from the same resamples of queries at every temperature; shown only where both intervals exclude 0. They "
            "are not corrected for the number of trends, and few temperatures show an order, not a law."
        )
    return said


def _trend(trend: Trend) -> str:
    return {"rises": f"toward {trend.a}", "falls": f"away from {trend.a}"}.get(
        trend.kind, trend.kind
    )


def _figures(study: Study) -> Section | None:
    every = len(study.series) * len(study.measures) <= _MOST_FIGURES
    drawn = [
        _figure(study, series, measure)
        for series in study.series
        for measure in (study.measures if every else study.measures[:1])
        if study.points(study.runs[0], measure, series)
    ]
    if not drawn:
        return None
    lead = (
        f"Above 0 the ranker puts {study.reference} text higher, below 0 the rewrites. An interval that crosses 0 does "
        "not show a tilt.",
    )
    more = () if every else (f"Drawn for {study.primary}; the table holds every measure.",)
    return Section("tilt", "Relative Δ by temperature", lead + more, tuple(drawn))


def _figure(study: Study, series: str, measure: str) -> Figure:
    points = {run: study.points(run, measure, series) for run in study.runs}
    temperatures = sorted({arm.temperature for found in points.values() for arm, _ in found})
    span = temperatures[-1] - temperatures[0]
    band = f" Shaded: ±{study.level:g} points, which count as level." if study.level else ""
    return Figure(
        f"Relative Δ of {measure}, {study.reference} against {series}",
        f"Bars: 95 % intervals.{band}",
        lines(
            {run: [_point(arm, tilt) for arm, tilt in found] for run, found in points.items()},
            x="temperature of the rewrites",
            y=f"Relative Δ {measure}, %",
            band=study.level,
            dodge=_DODGE * (span or 1.0),
        ),
    )


def _point(arm: StudySource, tilt: Effect) -> Point:
    found = f"{signed(tilt.value)} % {interval(tilt.low, tilt.high)}"
    label = f"{arm.source} (temperature {arm.temperature:g}): {found}"
    return Point(arm.temperature, tilt.value, tilt.low, tilt.high, label)


def _table(study: Study) -> Section:
    """Per ranker and series a row a source, by rising temperature; with several measures a group each."""
    columns = (
        (named("source"), lambda of: of[1].source),
        (
            "temperature",
            lambda of: number(of[1].temperature, lambda t: f"{t:g}" if t == t else DASH),
        ),
        (study.reference, lambda of: number(of[0].mean_a, percent)),
        ("rewrite", lambda of: number(of[0].mean_b, percent)),
        ("Relative Δ", lambda of: estimate(of[0], signed, mark(of[0]))),
        (Column("corrected p", spare=1), lambda of: number(of[0].p_corrected, p_value)),
        (Column("queries", spare=2), lambda of: number(of[0].queries, count)),
        (worded("verdict"), lambda of: _verdict(of[0], study)),
    )
    found = [
        (study.tilt(run, arm.source, measure), arm)
        for run in study.runs
        for series in study.series
        for measure in study.measures
        for arm in study.sources
        if arm.series == series
    ]
    note = f"Means and Relative Δ in %; + favours {study.reference}, − the rewrites. {starred(study.spec)}"
    several = {"model": len(study.series) > 1, "measure": len(study.measures) > 1}
    table = tabulated(
        f"{study.reference} against each source",
        found,
        columns,
        note=note,
        group=lambda of: (
            of[0].run,
            *[of[1].series] * several["model"],
            *[of[0].measure] * several["measure"],
        ),
        groups=("ranker", *(name for name, there in several.items() if there)),
    )
    return Section("table", "Every number", (), (table,))


def _verdict(tilt: Effect, study: Study) -> Cell:
    kind = tilt.verdict(study.level)
    said = {"a": f"favours {study.reference}", "b": "favours the rewrite"}.get(kind, kind)
    return Cell(said, tone=VERDICT_TONES[kind])


def _trends(study: Study) -> Section | None:
    if not study.trends:
        return None
    columns = (
        (named("ranker"), lambda t: t.run),
        (worded("series"), lambda t: t.series),
        (worded("measure"), lambda t: t.measure),
        (worded("trend"), _trend),
        (
            "rank correlation",
            lambda t: Cell(signed(t.correlation, 2), t.correlation, ends=ends(t.low, t.high, 2)),
        ),
        (
            "change, points",
            lambda t: Cell(signed(t.change), t.change, ends=ends(t.change_low, t.change_high)),
        ),
        ("queries", lambda t: number(t.queries, count)),
    )
    note = "Change: Relative Δ at the highest temperature less that at the lowest."
    table = tabulated("Does the tilt move with temperature?", study.trends, columns, note=note)
    return Section("trends", "Trend with temperature", (), (table,))
