"""Several sources: per ranker a row a source, the trend over temperature, each source's audit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from operator import attrgetter

from ranktilt.auditing.answer.verdict import Verdict
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.result import Audit
from ranktilt.auditing.source_audits import SourceAudits
from ranktilt.auditing.sources_apart import AuditedSource
from ranktilt.auditing.temperature_trend import Trend
from ranktilt.reporting.document import (
    Cell,
    Column,
    ColumnSpec,
    Document,
    Figure,
    PageBlocks,
    PageSections,
    Section,
    Sentence,
    Table,
    make_table,
    name_column,
    text_column,
)
from ranktilt.reporting.explorer.section import BUDGET
from ranktilt.reporting.figures.charts import Point, lines
from ranktilt.reporting.headline import headline, source_summaries
from ranktilt.reporting.interval_chart import IntervalChart
from ranktilt.reporting.numbers import (
    DASH,
    ends,
    estimate_cell,
    interval,
    number_cell,
    number_cells,
    p_value,
    percent,
    signed,
    with_commas,
)
from ranktilt.reporting.provenance import provenance, titled
from ranktilt.reporting.reload import LoadedAudit, LoadedSourceAudits
from ranktilt.reporting.sentences.next_steps import next_commands
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.reporting.sentences.source_audits import source_audits_meaning, trend_sentences
from ranktilt.reporting.sentences.verdicts import mark, starred
from ranktilt.reporting.tones import VERDICT_TONES
from ranktilt.reporting.views.audit.query_groups import query_group_sentences
from ranktilt.reporting.views.audit.sections import audit_sections
from ranktilt.reporting.views.audit.tables import card_table, control_table, tie_rule
from ranktilt.reporting.views.readings import verdict_chart

_MOST_FIGURES = 6
"""Figures beyond which only those of the first measure are drawn."""
_DODGE = 0.012
"""How far points are moved apart, so that none hides another."""


@dataclass(frozen=True, kw_only=True)
class _SourceRow:
    """An answer about one source."""

    source: AuditedSource
    """The source."""
    effect: Effect
    """The answer."""


def view(result: SourceAudits | LoadedSourceAudits, *, budget: int = BUDGET) -> Document:
    """Lay out all sources in one table, and then the audit of each where a page can hold it."""
    audits = result.audit if isinstance(result, LoadedSourceAudits) else result
    summaries = [finding.sentence for finding in source_summaries(audits)]
    notes = note_sentences(audits.notes)
    sections: list[Section | PageSections | None] = [
        _figures(audits),
        *_tables(audits),
        _trends(audits),
        provenance(audits.spec, notes),
    ]
    if isinstance(result, LoadedSourceAudits):
        sections += _whole_audits(audits, result.parts, budget)
    else:
        sections[-1:-1] = _card_sections(audits)
    sections_to_show = [section for section in sections if section is not None]
    texts = (*summaries, *trend_sentences(audits))
    sentences = [Sentence(text, emphasis="strong") for text in texts]
    sentences += _group_sentences(audits)
    names = [*audits.runs, *(source.source for source in audits.sources)]
    return Document(
        kind=titled("Audit of the sources of", audits.spec),
        headline=headline(audits),
        sections=tuple(sections_to_show),
        sentences=tuple(sentences),
        meaning=source_audits_meaning(audits),
        first_figure=PageBlocks(make=partial(_first_figure, audits)),
        next_steps=next_commands(audits.next_steps),
        legend=tuple(_legend(audits)),
        notes=notes,
        sides=(audits.reference, "the rewrites"),
        names=tuple(names),
    )


def _group_sentences(audits: SourceAudits) -> Iterator[Sentence]:
    """Say of each source whether groups of queries differ, if they were asked about."""
    for source, audit in zip(audits.sources, audits.audits, strict=True):
        for sentence in query_group_sentences(audit):
            if sentence.emphasis:
                yield replace(sentence, text=f"{source.source}, {sentence.text}")


def _first_figure(audits: SourceAudits) -> Iterator[IntervalChart]:
    """Draw the answer of each ranker on each source."""
    has_several_runs = len(audits.runs) > 1

    def label(verdict: Verdict) -> str:
        source = verdict.b if verdict.a == audits.reference else verdict.a
        return f"{source}, {verdict.run}" if has_several_runs else source

    chart = verdict_chart(
        audits.verdicts(),
        label,
        title=f"{audits.primary}: {audits.reference} against each source",
        sides=("the rewrites", audits.reference),
    )
    if chart is not None:
        yield chart


def _legend(audits: SourceAudits) -> Iterator[str]:
    """Say what the numbers are, in a few lines."""
    spec, reference = audits.spec, audits.reference
    if audits.tilts:
        verdict = f"Verdict on {audits.primary}; " if len(audits.measures) > 1 else ""
        yield (
            f"Relative Δ in %, each source with {reference} in a collection of these two: "
            f"+ favours {reference}, − favours the rewrites. {verdict}{starred(spec)}"
        )
        yield (
            f"95 % intervals: paired bootstrap over queries, {spec['resamples']:,} resamples, "
            f"widened for the choice of documents. Ties: {tie_rule(spec)}."
        )
    if audits.trends:
        yield (
            "Trend: Spearman's rank correlation of temperature and Relative Δ, and the difference "
            "between the ends, from the same resamples of queries at every temperature; shown only "
            "where both intervals exclude 0. They are not corrected for the number of trends. A "
            "few temperatures show an order, not a law."
        )


def _figures(audits: SourceAudits) -> Section | None:
    """Return the section of figures; None where no series has temperatures."""
    is_every_measure = len(audits.series) * len(audits.measures) <= _MOST_FIGURES
    measures = audits.measures if is_every_measure else audits.measures[:1]
    drawn = [
        (series, measure)
        for series, measure in product(audits.series, measures)
        if audits.points(audits.runs[0], measure, series)
    ]
    if not drawn:
        return None
    lead = [
        f"Above 0, the ranker puts {audits.reference} text higher; below 0, the rewrites. An "
        "interval that includes 0 shows no tilt."
    ]
    if not is_every_measure:
        lead.append(f"The figures show {measures[0]}, the table every measure.")
    figures = PageBlocks(make=partial(_drawn, audits, drawn))
    return Section("tilt", "Relative Δ by temperature", lead=tuple(lead), blocks=(figures,))


def _drawn(audits: SourceAudits, drawn: Sequence[tuple[str, str]]) -> Iterator[Figure]:
    """Yield a figure for each series and measure."""
    for series, measure in drawn:
        yield _figure(audits, series, measure)


def _figure(audits: SourceAudits, series: str, measure: str) -> Figure:
    """Return the figure of one series and measure."""
    points_of = {}
    for run in audits.runs:
        points_of[run] = [_point(*point) for point in audits.points(run, measure, series)]
    temperatures = [point.x for point in points_of[audits.runs[0]]]
    span = max(temperatures) - min(temperatures)
    band = ""
    if audits.margin_points:
        band = f" Shaded: ±{audits.margin_points:g} points, which count as level."
    return Figure(
        f"Relative Δ of {measure}, {audits.reference} against {series}",
        f"Bars: 95 % intervals.{band}",
        lines(
            points_of,
            x="temperature of the rewrites",
            y=f"Relative Δ {measure}, %",
            band=audits.margin_points,
            dodge=_DODGE * (span or 1.0),
        ),
    )


def _point(source: AuditedSource, tilt: Effect) -> Point:
    """Return a source, as a point."""
    value = f"{signed(tilt.value)} % {interval(tilt.low, tilt.high)}"
    label = f"{source.source} (temperature {source.temperature:g}): {value}"
    return Point(x=source.temperature, value=tilt.value, low=tilt.low, high=tilt.high, label=label)


def _tables(audits: SourceAudits) -> Iterator[Section]:
    """Yield a table of the primary question where it is no measure, and of every Relative Δ."""
    if audits.primary not in audits.measures:
        yield Section("answers", "The primary question", blocks=(_answer_table(audits),))
    if audits.tilts:
        yield Section("table", "Every number", blocks=(_tilt_table(audits),))


def _tilt_table(audits: SourceAudits) -> Table:
    """Return the table of Relative Δ."""
    columns: list[ColumnSpec] = [
        *_source_columns(audits),
        (audits.reference, number_cells("effect.mean_a", percent)),
        ("rewrite", number_cells("effect.mean_b", percent)),
        ("Relative Δ", _tilt_cell),
    ]
    columns += [
        (Column("corrected p", drop_order=1), number_cells("effect.p_corrected", p_value)),
        (Column("queries", drop_order=2), number_cells("effect.queries", with_commas)),
        (text_column("verdict"), partial(_verdict_cell, audits)),
    ]
    rows = list(_tilt_rows(audits))
    has_several_series = len(_series_groups(audits)) > 1
    has_several_measures = len(audits.measures) > 1

    def group(row: _SourceRow) -> tuple[str, ...]:
        names = [row.effect.run]
        names += [row.source.series] if has_several_series else []
        names += [row.effect.measure] if has_several_measures else []
        return tuple(names)

    heads = ["ranker"]
    heads += ["model"] if has_several_series else []
    heads += ["measure"] if has_several_measures else []
    note = (
        f"Means and Relative Δ in %; + favours {audits.reference}, − the rewrites. "
        f"{starred(audits.spec)}"
    )
    caption = f"{audits.reference} against each source"
    return make_table(
        caption, rows, columns, note=note, group_of=group, group_titles=tuple(heads), collapsed=True
    )


def _tilt_cell(row: _SourceRow) -> Cell:
    """Print Relative Δ."""
    return estimate_cell(row.effect, signed, mark(row.effect))


def _tilt_rows(audits: SourceAudits) -> Iterator[_SourceRow]:
    """Yield a row per run, series, measure and source; none where a side is never relevant."""
    for run, series, measure in product(audits.runs, _series_groups(audits), audits.measures):
        for source in audits.sources:
            if source.series not in series:
                continue
            for tilt in audits.audit_of(source.source).tilts:
                if (tilt.run, tilt.measure) == (run, measure):
                    yield _SourceRow(source=source, effect=tilt)


def _series_groups(audits: SourceAudits) -> list[tuple[str, ...]]:
    """Return the series that have rows of their own; of one source each, all are together."""
    if len(audits.series) == len(audits.sources):
        return [audits.series]
    return [(series,) for series in audits.series]


def _answer_table(audits: SourceAudits) -> Table:
    """Lay out a primary question that is no measure of relevance, for each ranker and source."""
    rows = [
        _SourceRow(source=source, effect=audits.answer(run, source.source))
        for run, source in product(audits.runs, audits.sources)
    ]
    columns: list[ColumnSpec] = [
        *_source_columns(audits),
        ("answer", _answer_cell),
        ("95 % interval", _interval_cell),
        (Column("corrected p", drop_order=1), number_cells("effect.p_corrected", p_value)),
        (text_column("verdict"), partial(_verdict_cell, audits)),
    ]
    return make_table(
        f"{audits.primary}: {audits.reference} against each source",
        rows,
        columns,
        group_of=lambda row: (row.effect.run,),
        group_titles=("ranker",),
    )


def _answer_cell(row: _SourceRow) -> Cell:
    """Print an answer in its own unit."""
    return Cell(row.effect.estimand.answer(row.effect.value))


def _interval_cell(row: _SourceRow) -> Cell:
    """Print an answer's interval."""
    effect = row.effect
    if not effect.has_interval:
        return Cell(DASH, emphasis="quiet")
    amount = effect.estimand.amount
    return Cell(f"[{amount(effect.low)}, {amount(effect.high)}]", emphasis="quiet")


def _source_columns(audits: SourceAudits) -> list[ColumnSpec]:
    """Return the source, and its temperature where that of any is known."""
    columns: list[ColumnSpec] = [(name_column("source"), attrgetter("source.source"))]
    if any(source.has_temperature for source in audits.sources):
        columns.append(("temperature", lambda row: _temperature(row.source)))
    return columns


def _temperature(source: AuditedSource) -> Cell:
    """Print a temperature; a dash where it is not known."""
    return number_cell(source.temperature, lambda value: f"{value:g}" if value == value else DASH)


def _verdict_cell(audits: SourceAudits, row: _SourceRow) -> Cell:
    """Print the verdict."""
    kind = row.effect.verdict(audits.margin)
    words = {"a": f"favours {audits.reference}", "b": "favours the rewrite"}.get(kind, kind)
    return Cell(words, tone=VERDICT_TONES[kind])


def _trends(audits: SourceAudits) -> Section | None:
    """Return the section on trends; None where there is none."""
    if not audits.trends:
        return None
    columns: list[ColumnSpec] = [
        (name_column("ranker"), attrgetter("run")),
        (text_column("series"), attrgetter("series")),
        (text_column("measure"), attrgetter("measure")),
        (text_column("trend"), _direction),
        ("rank correlation", _correlation),
        ("change, points", _change),
        ("queries", number_cells("queries", with_commas)),
    ]
    note = "Change: Relative Δ at the highest temperature minus that at the lowest."
    table = make_table("Does the tilt move with temperature?", audits.trends, columns, note=note)
    return Section("trends", "Trend with temperature", blocks=(table,))


def _direction(trend: Trend) -> str:
    """Say where a trend leads."""
    directions = {"rises": f"toward {trend.a}", "falls": f"away from {trend.a}"}
    return directions.get(trend.kind, trend.kind)


def _correlation(trend: Trend) -> Cell:
    """Print the correlation with the temperature."""
    limits = ends(trend.low, trend.high, 2)
    return Cell(signed(trend.correlation, 2), trend.correlation, ends=limits)


def _change(trend: Trend) -> Cell:
    """Print the change over all temperatures."""
    limits = ends(trend.change_low, trend.change_high)
    return Cell(signed(trend.change), trend.change, ends=limits)


def _card_sections(audits: SourceAudits) -> Iterator[Section]:
    """Yield each source's card and controls, where they were asked for."""
    for source, audit in zip(audits.sources, audits.audits, strict=True):
        tables = _card_and_controls(audit)
        if tables:
            title = f"{audits.reference} against {source.source}"
            yield Section(
                f"{_anchor(source.source)}-card", title, blocks=tuple(tables), titled=True
            )


def _card_and_controls(audit: Audit) -> list[Table]:
    """Return the tables of an audit's other questions and controls."""
    tables = [card_table(audit)] if audit.card else []
    return [*tables, control_table(audit)] if audit.controls else tables


def _whole_audits(
    audits: SourceAudits, parts: Sequence[LoadedAudit], budget: int
) -> Iterator[Section | PageSections]:
    """Yield the sections of each source's own audit, under its name."""
    for source, opened in zip(audits.sources, parts, strict=True):
        part = f"{audits.reference} | {source.source}"
        for section in audit_sections(opened, budget=budget):
            if isinstance(section, Section):
                yield _part_section(section, source.source, part)
            else:
                make = partial(_part_sections, section, source.source, part)
                yield PageSections(make=make)


def _part_sections(page: PageSections, source: str, part: str) -> Iterator[Section]:
    """Yield sections as a part of the page about all sources."""
    for section in page.sections:
        yield _part_section(section, source, part)


def _part_section(section: Section, source: str, part: str) -> Section:
    """Return a section as a part of the page about all sources."""
    return replace(section, name=f"{_anchor(source)}-{section.name}", part=part)


def _anchor(source: str) -> str:
    """Return a source as a part of an address."""
    return re.sub(r"[^a-z0-9]+", "-", source.lower()).strip("-") or "source"
