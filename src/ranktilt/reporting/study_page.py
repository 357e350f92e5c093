"""A temperature study as one HTML page: how each ranker's tilt moves with the temperature of the rewrites."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ranktilt.auditing.effects import ALPHA, Effect
from ranktilt.auditing.inference import Trend
from ranktilt.auditing.study import Study
from ranktilt.auditing.study_sources import StudySource
from ranktilt.auditing.verdict import bounds, probability, signed
from ranktilt.errors import listed
from ranktilt.reporting.figures import Point, lines
from ranktilt.reporting.page import Cell, Column, Figure, Page, Section, Table, Tone, Verdict, render
from ranktilt.reporting.provenance import folder, provenance

_TONES: dict[str, Tone] = {"favours": "bad", "level": "good", "inconclusive": "unsure"}
_MOST_FIGURES = 6
_MOST_VERDICTS = 8
_DODGE = 0.012

_NOTES = (
    "Each source is mixed with the reference alone, every ranker ranks that mixture once, and Relative Δ compares the "
    "two sides on it. Intervals are a paired bootstrap over queries, both sides of a query drawn together, widened by "
    "what documents add.",
    "“Favours” is said where the p-value, corrected over all tests of the study, is below .05 and the 95 % interval "
    "excludes 0; “level” where the whole interval lies within the shaded band; “inconclusive” otherwise, which is not "
    "the same as level.",
    "A trend asks whether Relative Δ rises or falls with temperature, by a rank correlation that is computed anew in "
    "every resample of the queries. It describes these sources; with three temperatures it can say little.",
    "The study is that of Dai et al., Neural Retrievers are Biased Towards LLM-Generated Content, KDD 2024, sec. 3.5.",
)


def study_page(study: Study) -> str:
    """Write a temperature study as one self-contained HTML page.

    Parameters
    ----------
    study : Study
        What `study` found.

    Returns
    -------
    str
        HTML that opens from disk and loads nothing: the answer in plain words, Relative Δ by temperature as figures
        and as a table, trends, and how it was made.
    """
    return render(study_contents(study))


def study_contents(study: Study) -> Page:
    """Return what the page of a study says, so that it can also stand beside other results."""
    sections = [_figures(study), _table(study), _trends(study), provenance(study.spec, study.notes)]
    name = folder(study.spec)
    return Page(
        title=f"Temperature study of {name}" if name else "Temperature study",
        kind=f"Temperature study of {name}" if name else "Temperature study",
        headline=headline(study),
        verdicts=tuple(_verdicts(study)),
        sections=tuple(section for section in sections if section),
        notes=_NOTES,
    )


def headline(study: Study) -> str:
    """Say in one sentence what a study found on its primary measure.

    Parameters
    ----------
    study : Study
        What `study` found.

    Returns
    -------
    str
        Per ranker, at how many of the sources it favours which side, or is level.
    """
    return "; ".join(_summary(run, study) for run in study.runs) + "."


def _summary(run: str, study: Study) -> str:
    first = study.measures[0]
    kinds = [study.tilt(run, arm.source, first).verdict(study.level) for arm in study.sources]
    parts: list[str] = []
    for kind, words in (
        ("a", f"favours {study.reference} text"),
        ("b", "favours the rewrites"),
        ("level", "is level"),
        ("inconclusive", "is inconclusive"),
    ):
        if kind in kinds:
            parts.append(f"{words}{_share(kinds.count(kind), study, first=not parts)}")
    return f"{run} {listed(parts)}"


def _share(count: int, study: Study, *, first: bool) -> str:
    total = len(study.sources)
    known = all(arm.temperature == arm.temperature for arm in study.sources) and len(study.series) == 1
    where, noun = ("at", "temperature") if known else ("on", "source")
    if total == 1:
        return ""
    if count == total:
        return f" {where} all {total} {noun}s"
    return f" {where} {count} of {total} {noun}s" if first else f" {where} {count}"


def _verdicts(study: Study) -> Iterable[Verdict]:
    """What is said of each trend; then one line a ranker and source, where there are few."""
    for sentence in study.sentences:
        yield Verdict(f"{sentence}.", "")
    if len(study.runs) * len(study.sources) <= _MOST_VERDICTS:
        for run in study.runs:
            for arm in study.sources:
                found = study.verdict(run, arm.source)
                where = "" if found.favours == arm.source else f"{arm.source}: "
                yield Verdict(f"{where}{found.sentence}.", _TONES[found.kind])


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
    more = () if every else (f"Drawn for {study.measures[0]}; the table holds every measure.",)
    return Section("figures", "Relative Δ by temperature", lead + more, tuple(drawn))


def _figure(study: Study, series: str, measure: str) -> Figure:
    points = {run: study.points(run, measure, series) for run in study.runs}
    spots = sorted({arm.temperature for found in points.values() for arm, _ in found})
    span = spots[-1] - spots[0]
    said = [
        f"{run}: " + ", ".join(f"{_moved(tilt)} at {arm.temperature:g}" for arm, tilt in found) + "."
        for run, found in points.items()
    ]
    band = f" Shaded: ±{study.level:g} points, which count as level." if study.level else ""
    return Figure(
        f"Relative Δ of {measure}, {study.reference} against {series}",
        f"{' '.join(said)} Bars: 95 % intervals.{band}",
        lines(
            {run: [_point(arm, tilt) for arm, tilt in found] for run, found in points.items()},
            x="temperature of the rewrites",
            y=f"Relative Δ {measure}, %",
            band=study.level,
            dodge=_DODGE * (span or 1.0),
        ),
    )


def _moved(tilt: Effect) -> str:
    return "undefined" if np.isnan(tilt.value) else f"{signed(tilt.value)} %"


def _point(arm: StudySource, tilt: Effect) -> Point:
    label = f"{arm.source} (temperature {arm.temperature:g}): {signed(tilt.value)} % {bounds(tilt.low, tilt.high)}"
    return Point(arm.temperature, tilt.value, tilt.low, tilt.high, label)


def _table(study: Study) -> Section:
    columns = (
        Column("ranker", number=False, header=True),
        Column("source", number=False, room=11),
        Column("temperature"),
        Column("verdict", number=False),
        *([Column("measure", number=False)] if len(study.measures) > 1 else []),
        Column(study.reference),
        Column("rewrite"),
        Column("Relative Δ, %"),
        Column("95 % interval"),
        Column("corrected p"),
        Column("queries"),
    )
    rows = []
    before = None
    for run in study.runs:
        for arm in study.sources:
            for measure in study.measures:
                rows.append(_row(study.tilt(run, arm.source, measure), arm, study, group=run != before))
                before = run
    correction = str(study.spec.get("correction", "holm")).capitalize()
    note = (
        f"Means in %. + favours {study.reference}, − the rewrites. p: corrected ({correction}) over all tests of this "
        f"table; * below {ALPHA:g}.".replace("0.05", ".05")
    )
    table = Table(f"{study.reference} against each source", columns, tuple(rows), note)
    return Section("table", "Every number", (), (table,))


def _row(tilt: Effect, arm: StudySource, study: Study, *, group: bool) -> tuple[Cell, ...]:
    kind = tilt.verdict(study.level)
    side = {"a": f"favours {tilt.a}", "b": "favours the rewrite"}.get(kind, kind)
    star = "*" if tilt.p_corrected < ALPHA else ""
    return (
        Cell(tilt.run, group=group),
        Cell(arm.source),
        Cell("–" if np.isnan(arm.temperature) else f"{arm.temperature:g}", arm.temperature),
        Cell(side, tone=_TONES.get(kind, "bad")),
        *((Cell(tilt.measure),) if len(study.measures) > 1 else ()),
        _percent(tilt.mean_a),
        _percent(tilt.mean_b),
        Cell("–" if np.isnan(tilt.value) else signed(tilt.value) + star, tilt.value),
        Cell("–" if np.isnan(tilt.low) else bounds(tilt.low, tilt.high)),
        Cell("–" if np.isnan(tilt.p_corrected) else probability(tilt.p_corrected).removeprefix("= "), tilt.p_corrected),
        Cell(f"{tilt.queries:,}", tilt.queries),
    )


def _percent(value: float) -> Cell:
    return Cell("–" if np.isnan(value) else f"{100 * value:.1f}", value)


def _trends(study: Study) -> Section | None:
    if not study.trends:
        return None
    columns = (
        Column("ranker", number=False, header=True), Column("series", number=False), Column("measure", number=False),
        Column("trend", number=False), Column("rank correlation"), Column("95 % interval"), Column("change, points"),
        Column("its 95 % interval"), Column("queries"),
    )  # fmt: skip
    rows = tuple(_trend(trend) for trend in study.trends)
    note = "Change: Relative Δ at the highest temperature less that at the lowest."
    table = Table("Does the tilt move with temperature?", columns, rows, note)
    return Section("trends", "Trend with temperature", (), (table,))


def _trend(trend: Trend) -> tuple[Cell, ...]:
    return (
        Cell(trend.run),
        Cell(trend.series),
        Cell(trend.measure),
        Cell({"rises": f"toward {trend.a}", "falls": f"away from {trend.a}"}.get(trend.kind, trend.kind)),
        Cell("–" if np.isnan(trend.correlation) else signed(trend.correlation, 2), trend.correlation),
        Cell("–" if np.isnan(trend.low) else f"[{signed(trend.low, 2)}, {signed(trend.high, 2)}]"),
        Cell("–" if np.isnan(trend.change) else signed(trend.change), trend.change),
        Cell("–" if np.isnan(trend.change_low) else bounds(trend.change_low, trend.change_high)),
        Cell(f"{trend.queries:,}", trend.queries),
    )
