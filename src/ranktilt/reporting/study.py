"""A temperature study as text: per ranker a row a source and the trend over them, for people and for spreadsheets."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, Literal

import polars as pl
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ranktilt.auditing.effects import Effect
from ranktilt.auditing.inference import Trend
from ranktilt.auditing.study import Study
from ranktilt.auditing.study_sources import StudySource
from ranktilt.errors import counted, unknown
from ranktilt.reporting.console import direction, fitting, printing
from ranktilt.reporting.layout import mark, signed_or_dash, twin_test
from ranktilt.reporting.markdown import markdown, markdown_line

_LABEL = 30


@dataclass(frozen=True)
class Row:
    """One row of the table: a source, or what is said of a series."""

    run: str
    series: str
    kind: Literal["source", "correlation", "change"]
    label: str
    under: str
    """The source's name; empty for what is said of a series."""
    cells: tuple[tuple[str, str], ...]
    """Per measure the value and its interval."""
    shown: tuple[bool, ...]
    """Per measure whether a side, or a trend, is found by the verdict's rule."""
    queries: str
    verdict: str
    """On the primary measure."""


def study_table(study: Study, format: str = "table", *, notes: bool = True) -> str:
    """Print a study.

    Parameters
    ----------
    study : Study
        What to print.
    format : {"table", "markdown", "csv"}, optional
        ``table``: plain text with the trends in words and a legend. ``markdown``: the same as a table and a list.
        ``csv``: a line a ranker, source and measure, unrounded.
    notes : bool, optional
        Whether to print legend and notes; not in CSV.

    Returns
    -------
    str
        Ends with a line end.

    Raises
    ------
    UserError
        If the format is unknown.
    """
    if format not in FORMATS:
        raise unknown("format", format, FORMATS)
    return FORMATS[format](study, notes)


def show_study(study: Study, stream: IO[str], *, notes: bool = True, terminal: IO[str] | None = None) -> None:
    """Print table, trends in words, legend and notes.

    Parameters
    ----------
    study : Study
        What to print.
    stream : file
        Where to.
    notes : bool, optional
        Whether to print legend and notes.
    terminal : file, optional
        The terminal whose width and colours count, by default the stream itself. Without one the text is plain and
        as wide as it needs to be.
    """
    with printing(stream, terminal) as (console, plain):
        for part in _tables(study, console):
            console.print(part)
        for sentence in study.sentences:
            console.print(Text(sentence, style="bold"), soft_wrap=plain)
        for line in (*legend(study), *study.notes) if notes else ():
            console.print(Text(line, style="dim"), soft_wrap=plain)


def rows(study: Study) -> list[Row]:
    """Lay a study out: per ranker and series a row a source, by rising temperature, then what is said of the trend.

    Parameters
    ----------
    study : Study
        What is printed.

    Returns
    -------
    list of Row
        In order.
    """
    found = []
    for run in study.runs:
        for series in study.series:
            found += [_source_row(study, run, arm) for arm in study.sources if arm.series == series]
            found += _trend_rows([t for t in study.trends if (t.run, t.series) == (run, series)])
    return found


def _source_row(study: Study, run: str, arm: StudySource) -> Row:
    tilts = [study.tilt(run, arm.source, measure) for measure in study.measures]
    at = f"{arm.temperature:g}" if arm.temperature == arm.temperature else "–"
    cells = tuple((signed_or_dash(t.value) + mark(t), _between(t.low, t.high)) for t in tilts)
    shown = tuple(t.verdict(study.level) in ("a", "b") for t in tilts)
    return Row(
        run, arm.series, "source", at, arm.source, cells, shown, str(tilts[0].queries), _said(tilts[0], study.level)
    )


def _said(tilt: Effect, level: float) -> str:
    kind = tilt.verdict(level)
    return {"a": f"favours {tilt.a}", "b": "favours rewrites"}.get(kind, kind)


def _trend_rows(trends: Sequence[Trend]) -> list[Row]:
    """Of one ranker and series, over all measures."""
    if not trends:
        return []
    first = trends[0]
    shown = tuple(t.kind != "inconclusive" for t in trends)
    ordered = tuple((_dash(t.correlation), _between(t.low, t.high, 2)) for t in trends)
    moved = tuple((signed_or_dash(t.change), _between(t.change_low, t.change_high)) for t in trends)
    ends = f"{min(first.temperatures):g} to {max(first.temperatures):g}, points"
    said = {"rises": f"toward {first.a}", "falls": f"away from {first.a}"}.get(first.kind, first.kind)
    front = (first.run, first.series)
    return [
        Row(*front, "change", ends, "", moved, shown, str(first.queries), said),
        Row(*front, "correlation", "rank correlation", "", ordered, shown, "", ""),
    ]


def _dash(value: float) -> str:
    return "–" if value != value else f"{value:+.2f}".replace("-", "−")


def _between(low: float, high: float, digits: int = 1) -> str:
    ends = [_dash(v) if digits == 2 else signed_or_dash(v) for v in (low, high)]
    return f"[{', '.join(ends)}]"


def legend(study: Study) -> list[str]:
    """Say what the numbers are, in a few lines.

    Parameters
    ----------
    study : Study
        What is printed.

    Returns
    -------
    list of str
        Sentences.
    """
    spec = study.spec
    test = twin_test(spec["test"])
    ties = "expected value over all orders" if spec["ties"] == "expected" else "trec_eval's, by id"
    tests = counted(int(spec["tests"]), "test", "tests")
    verdict = f"Verdict on {study.measures[0]}; " if len(study.measures) > 1 else ""
    lines = [
        f"Relative Δ in %, each source against {study.reference} in a collection of these two: + favours "
        f"{study.reference}, − favours the rewrites. {verdict}* corrected "
        f"p < .05 ({str(spec['correction']).capitalize()} over {tests}; {test}).",
        f"Intervals: paired bootstrap over queries, {spec['resamples']:,} resamples, widened by what documents add. "
        f"Ties: {ties}.",
    ]
    if study.trends:
        lines.append(
            "Trend: Spearman's rank correlation of temperature and Relative Δ, and the difference between the ends, "
            "from the same resamples of queries at every temperature; shown only where both intervals exclude 0. They "
            "are not corrected for the number of trends, and few temperatures show an order, not a law."
        )
    return lines


def _tables(study: Study, console: Console) -> list[Table]:
    found = rows(study)
    return fitting(console, len(study.measures), lambda chosen: _table(study, found, chosen))


def _table(study: Study, found: Sequence[Row], chosen: slice) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", max_width=_LABEL, overflow="fold")
    for title in (*study.measures[chosen], "queries"):
        table.add_column(title, justify="right", no_wrap=True)
    first = not chosen.start
    if first:
        table.add_column("verdict", no_wrap=True)
    before: tuple[str, str] = ("", "")
    for row in found:
        if row.run != before[0]:
            if before[0]:
                table.add_section()
            table.add_row(Text(row.run, style="bold"))
        if (row.run, row.series) != before and len(study.series) > 1:
            table.add_row(Text(f" {row.series}", style="bold dim"))
        before = (row.run, row.series)
        style = "" if row.kind == "source" else "dim"
        under = f"\n    {row.under}" if row.under else ""
        label = Text.assemble((f"  {row.label}", style), (under, "dim"))
        bold = "bold" if row.shown[:1] == (True,) else ""
        verdict = [Text(row.verdict, style=bold)] if first else []
        table.add_row(label, *_cells(row)[chosen], Text(row.queries, style="dim"), *verdict)
    return table


def _cells(row: Row) -> list[Text]:
    cells = []
    for (value, between), shown in zip(row.cells, row.shown, strict=True):
        found = direction(value, shown) if row.kind == "source" else Text(value, style="bold" if shown else "")
        cells.append(found.append(f"\n{between}", "not bold dim default"))
    return cells


def _text(study: Study, notes: bool) -> str:
    stream = io.StringIO()
    show_study(study, stream, notes=notes)
    return stream.getvalue()


def _markdown(study: Study, notes: bool) -> str:
    titles = ("ranker", "model", "temperature", "source", *study.measures, "queries", "verdict")
    sides = ["---"] * 2 + ["---:", "---"] + ["---:"] * (len(study.measures) + 1) + ["---"]
    lines = [markdown_line(titles), markdown_line(sides)]
    for row in rows(study):
        cells = [f"{value} {between}" for value, between in row.cells]
        lines.append(markdown_line((row.run, row.series, row.label, row.under, *cells, row.queries, row.verdict)))
    said = (*study.sentences, *((*legend(study), *study.notes) if notes else ()))
    return "\n".join([*lines, *([""] if said else []), *(f"- {markdown(text)}" for text in said)]) + "\n"


def _csv(study: Study, notes: bool) -> str:
    table = study.table
    floats = [name for name, kind in table.schema.items() if kind == pl.Float64]
    return table.with_columns(pl.col(floats).fill_nan(None)).write_csv()


FORMATS: dict[str, Callable[[Study, bool], str]] = {"table": _text, "markdown": _markdown, "csv": _csv}
