"""The document of an audit of several sources, each compared with one reference such as human text.

A *source* is a set of rewrites of the reference's documents by one model at one *temperature*; a
*series* is the sources of one model. A *tilt* is how far a ranker favours the reference or the
source, by Relative Δ; an *effect* is a tilt, or the answer to another question of the *card*. A
*trend* is a change of the tilt with the temperature. The page has a table of all sources, and then
the sections of the audit of each, such as its *controls* (audits without a possible other cause).
The *verdict* on an effect says which side it is shown to favour. The *spec* of the audits is their
settings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import isnan
from operator import attrgetter

from ranktilt.auditing.answer.verdict import Verdict
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.result import Audit
from ranktilt.auditing.sources.source_audits import SourceAudits
from ranktilt.auditing.sources.sources_apart import AuditedSource
from ranktilt.auditing.sources.temperature_trend import Trend
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
from ranktilt.reporting.sentences.findings import next_commands
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.reporting.sentences.source_audits import source_audits_meaning, trend_sentences
from ranktilt.reporting.sentences.verdicts import significance_star, star_legend
from ranktilt.reporting.tones import VERDICT_TONES
from ranktilt.reporting.views.audit.query_groups import query_group_sentences
from ranktilt.reporting.views.audit.sections import audit_sections
from ranktilt.reporting.views.audit.tables import card_table, control_table, tie_rule
from ranktilt.reporting.views.readings import verdict_chart

_MOST_FIGURES = 6
"""Most figures for which every measure is drawn; of more only the first measure is."""
_DODGE = 0.012
"""Distance between the points of two rankers, which none may hide, as a share of the axis."""


@dataclass(frozen=True, kw_only=True)
class _SourceRow:
    """A row of a table: a ranker's answer to one question about one source."""

    source: AuditedSource
    """The source."""
    effect: Effect
    """The answer, with its ranker and its measure."""


def view(result: SourceAudits | LoadedSourceAudits, *, budget: int = BUDGET) -> Document:
    """Return the document of an audit of several sources.

    With their collection and runs, the audit of each source has its own sections, with queries,
    lists and texts up to `budget` characters; without, only its card and controls.
    """
    audits = result.audit if isinstance(result, LoadedSourceAudits) else result
    summaries = [finding.sentence for finding in source_summaries(audits)]
    notes = note_sentences(audits.notes)
    sections: list[Section | PageSections | None] = [
        _figure_section(audits),
        *_table_sections(audits),
        _trend_section(audits),
    ]
    if isinstance(result, LoadedSourceAudits):
        sections.append(provenance(audits.spec, notes))
        sections += _audit_sections(audits, result.parts, budget)
    else:
        sections += _card_sections(audits)
        sections.append(provenance(audits.spec, notes))
    texts = (*summaries, *trend_sentences(audits))
    sentences = [Sentence(text, emphasis="strong") for text in texts]
    sentences += _group_sentences(audits)
    present_sections = [section for section in sections if section is not None]
    names = [*audits.runs, *(source.source for source in audits.sources)]
    return Document(
        kind=titled("Audit of the sources of", audits.spec),
        headline=headline(audits),
        sections=tuple(present_sections),
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
    """Yield the main findings about groups of queries, with the source of each."""
    for source, audit in zip(audits.sources, audits.audits, strict=True):
        for sentence in query_group_sentences(audit):
            if sentence.emphasis:
                yield replace(sentence, text=f"{source.source}, {sentence.text}")


def _first_figure(audits: SourceAudits) -> Iterator[IntervalChart]:
    """Draw the answer of each ranker to the primary question about each source."""
    has_several_runs = len(audits.runs) > 1

    def row_label(verdict: Verdict) -> str:
        source = verdict.b if verdict.a == audits.reference else verdict.a
        return f"{source}, {verdict.run}" if has_several_runs else source

    chart = verdict_chart(
        audits.verdicts(),
        row_label,
        title=f"{audits.primary}: {audits.reference} against each source",
        sides=("the rewrites", audits.reference),
    )
    if chart is not None:
        yield chart


def _legend(audits: SourceAudits) -> Iterator[str]:
    """Say what the tilts and trends are, and how they were computed."""
    spec, reference = audits.spec, audits.reference
    if audits.tilts:
        verdict = f"Verdict on {audits.primary}; " if len(audits.measures) > 1 else ""
        yield (
            f"Relative Δ in %, each source with {reference} in a collection of these two: "
            f"+ favours {reference}, − favours the rewrites. {verdict}{star_legend(spec)}"
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


def _figure_section(audits: SourceAudits) -> Section | None:
    """Return the section of figures of Relative Δ by temperature; None without temperatures."""
    is_every_measure = len(audits.series) * len(audits.measures) <= _MOST_FIGURES
    measures = audits.measures if is_every_measure else audits.measures[:1]
    series_and_measures = [
        (series, measure)
        for series, measure in product(audits.series, measures)
        if audits.points(audits.runs[0], measure, series)
    ]
    if not series_and_measures:
        return None
    lead = [
        f"Above 0, the ranker puts {audits.reference} text higher; below 0, the rewrites. An "
        "interval that includes 0 shows no tilt."
    ]
    if not is_every_measure:
        lead.append(f"The figures show {measures[0]}, the table every measure.")
    figures = PageBlocks(make=partial(_figures, audits, series_and_measures))
    return Section("tilt", "Relative Δ by temperature", lead=tuple(lead), blocks=(figures,))


def _figures(
    audits: SourceAudits, series_and_measures: Sequence[tuple[str, str]]
) -> Iterator[Figure]:
    """Yield a figure for each series and measure."""
    for series, measure in series_and_measures:
        yield _temperature_figure(audits, series, measure)


def _temperature_figure(audits: SourceAudits, series: str, measure: str) -> Figure:
    """Draw Relative Δ by temperature on one series and measure, a line for each ranker."""
    points_of = {}
    for run in audits.runs:
        points_of[run] = [
            _temperature_point(source, tilt) for source, tilt in audits.points(run, measure, series)
        ]
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


def _temperature_point(source: AuditedSource, tilt: Effect) -> Point:
    """Return the point of a source: its tilt at its temperature."""
    value = f"{signed(tilt.value)} % {interval(tilt.low, tilt.high)}"
    label = f"{source.source} (temperature {source.temperature:g}): {value}"
    return Point(x=source.temperature, value=tilt.value, low=tilt.low, high=tilt.high, label=label)


def _table_sections(audits: SourceAudits) -> Iterator[Section]:
    """Yield the section with the table of every Relative Δ.

    A primary question that is not one of these has a section and a table before it.
    """
    if audits.primary not in audits.measures:
        yield Section("answers", "The primary question", blocks=(_answer_table(audits),))
    if audits.tilts:
        yield Section("table", "Every number", blocks=(_tilt_table(audits),))


def _tilt_table(audits: SourceAudits) -> Table:
    """Return the table of Relative Δ, with a row for each ranker, source and measure."""
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

    def heading(row: _SourceRow) -> tuple[str, ...]:
        names = [row.effect.run]
        names += [row.source.series] if has_several_series else []
        names += [row.effect.measure] if has_several_measures else []
        return tuple(names)

    group_titles = ["ranker"]
    group_titles += ["model"] if has_several_series else []
    group_titles += ["measure"] if has_several_measures else []
    note = (
        f"Means and Relative Δ in %; + favours {audits.reference}, − the rewrites. "
        f"{star_legend(audits.spec)}"
    )
    return make_table(
        f"{audits.reference} against each source",
        rows,
        columns,
        note=note,
        group_of=heading,
        group_titles=tuple(group_titles),
        collapsed=True,
    )


def _tilt_cell(row: _SourceRow) -> Cell:
    """Return the cell of Relative Δ with its interval and its star."""
    effect = row.effect
    return estimate_cell(effect, signed, significance_star(effect), neutral=effect.neutral)


def _tilt_rows(audits: SourceAudits) -> Iterator[_SourceRow]:
    """Yield a row for each run, series, measure and source, in this order.

    A source without relevant documents on both sides has no tilt, and so no row.
    """
    for run, series, measure in product(audits.runs, _series_groups(audits), audits.measures):
        for source in audits.sources:
            if source.series not in series:
                continue
            for tilt in audits.audit_of(source.source).tilts:
                if (tilt.run, tilt.measure) == (run, measure):
                    yield _SourceRow(source=source, effect=tilt)


def _series_groups(audits: SourceAudits) -> list[tuple[str, ...]]:
    """Return the sets of series whose rows share a heading: each alone, or all in one.

    All are in one where every series has a single source.
    """
    if len(audits.series) == len(audits.sources):
        return [audits.series]
    return [(series,) for series in audits.series]


def _answer_table(audits: SourceAudits) -> Table:
    """Return the table of answers to a primary question other than a Relative Δ."""
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
    """Return the cell of an answer with its unit."""
    return Cell(row.effect.estimand.answer(row.effect.value))


def _interval_cell(row: _SourceRow) -> Cell:
    """Return the cell of an answer's interval; a dash where it has none."""
    effect = row.effect
    if not effect.has_interval:
        return Cell(DASH, emphasis="quiet")
    amount = effect.estimand.amount
    return Cell(f"[{amount(effect.low)}, {amount(effect.high)}]", emphasis="quiet")


def _source_columns(audits: SourceAudits) -> list[ColumnSpec]:
    """Return the column of sources and, where some temperature is known, that of temperatures."""
    columns: list[ColumnSpec] = [(name_column("source"), attrgetter("source.source"))]
    if any(source.has_temperature for source in audits.sources):
        columns.append(("temperature", lambda row: _temperature_cell(row.source)))
    return columns


def _temperature_cell(source: AuditedSource) -> Cell:
    """Return the cell of a source's temperature; a dash where it is not known."""
    return number_cell(source.temperature, lambda value: DASH if isnan(value) else f"{value:g}")


def _verdict_cell(audits: SourceAudits, row: _SourceRow) -> Cell:
    """Return the cell of the verdict: the favoured side, ``level`` or ``inconclusive``."""
    verdict = row.effect.verdict(audits.margin)
    sides = {"a": f"favours {audits.reference}", "b": "favours the rewrite"}
    return Cell(sides.get(verdict, verdict), tone=VERDICT_TONES[verdict])


def _trend_section(audits: SourceAudits) -> Section | None:
    """Return the section on trends with the temperature; None where no trend was computed."""
    if not audits.trends:
        return None
    columns: list[ColumnSpec] = [
        (name_column("ranker"), attrgetter("run")),
        (text_column("series"), attrgetter("series")),
        (text_column("measure"), attrgetter("measure")),
        (text_column("trend"), _direction_words),
        ("rank correlation", _correlation_cell),
        ("change, points", _change_cell),
        ("queries", number_cells("queries", with_commas)),
    ]
    note = "Change: Relative Δ at the highest temperature minus that at the lowest."
    table = make_table("Does the tilt move with temperature?", audits.trends, columns, note=note)
    return Section("trends", "Trend with temperature", blocks=(table,))


def _direction_words(trend: Trend) -> str:
    """Say toward which side the tilt moves as the temperature rises, if it is shown to move."""
    directions = {"rises": f"toward {trend.a}", "falls": f"away from {trend.a}"}
    return directions.get(trend.kind, trend.kind)


def _correlation_cell(trend: Trend) -> Cell:
    """Return the cell of the rank correlation of temperature and tilt, with its interval."""
    interval_ends = ends(trend.low, trend.high, 2)
    return Cell(signed(trend.correlation, 2), trend.correlation, ends=interval_ends)


def _change_cell(trend: Trend) -> Cell:
    """Return the cell of the change from the lowest to the highest temperature."""
    interval_ends = ends(trend.change_low, trend.change_high)
    return Cell(signed(trend.change), trend.change, ends=interval_ends)


def _card_sections(audits: SourceAudits) -> Iterator[Section]:
    """Yield the sections with each source's card and controls, of those that were computed."""
    for source, audit in zip(audits.sources, audits.audits, strict=True):
        tables = _card_and_controls(audit)
        if tables:
            title = f"{audits.reference} against {source.source}"
            yield Section(
                f"{_anchor(source.source)}-card", title, blocks=tuple(tables), titled=True
            )


def _card_and_controls(audit: Audit) -> list[Table]:
    """Return the table of an audit's card and that of its controls, if there are any."""
    tables = [card_table(audit)] if audit.card else []
    return [*tables, control_table(audit)] if audit.controls else tables


def _audit_sections(
    audits: SourceAudits, loaded_audits: Sequence[LoadedAudit], budget: int
) -> Iterator[Section | PageSections]:
    """Yield the sections of the audit of each source, below the name of its pair of groups."""
    for source, loaded_audit in zip(audits.sources, loaded_audits, strict=True):
        pair = f"{audits.reference} | {source.source}"
        for section in audit_sections(loaded_audit, budget=budget):
            if isinstance(section, Section):
                yield _section_of_source(section, source.source, pair)
            else:
                make = partial(_sections_of_source, section, source.source, pair)
                yield PageSections(make=make)


def _sections_of_source(page: PageSections, source: str, pair: str) -> Iterator[Section]:
    """Yield the sections of an audit as those of one source on the page about all sources."""
    for section in page.sections:
        yield _section_of_source(section, source, pair)


def _section_of_source(section: Section, source: str, pair: str) -> Section:
    """Return a section as one of a source: its anchor and its heading name the source."""
    return replace(section, name=f"{_anchor(source)}-{section.name}", part=pair)


def _anchor(source: str) -> str:
    """Turn a source's name into a part of an anchor: lower-case letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", source.lower()).strip("-") or "source"
