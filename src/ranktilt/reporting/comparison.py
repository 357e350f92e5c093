"""A comparison of two audits as text: for the terminal, Markdown or CSV."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import IO

import polars as pl
from rich import box
from rich.table import Table
from rich.text import Text

from ranktilt.auditing.changes import MeanChange, RunPair, TiltChange
from ranktilt.auditing.compare import Comparison
from ranktilt.auditing.effects import ALPHA
from ranktilt.auditing.groups import Pair
from ranktilt.errors import counted, unknown
from ranktilt.reporting.console import direction, fitting, printing
from ranktilt.reporting.layout import Row, signed_or_dash
from ranktilt.reporting.markdown import markdown, markdown_line

_LABEL = 26


def comparison_table(comparison: Comparison, format: str = "table") -> str:
    """Print a comparison.

    Parameters
    ----------
    comparison : Comparison
        What to print.
    format : {"table", "markdown", "csv"}, optional
        ``table``: plain text with verdicts and legend. ``markdown``: the same. ``csv``: one line a run pair, measure
        and quantity, unrounded.

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
    return FORMATS[format](comparison)


def show_comparison(
    comparison: Comparison, stream: IO[str], *, notes: bool = True, terminal: IO[str] | None = None
) -> None:
    """Print table, verdicts, legend and notes.

    Parameters
    ----------
    comparison : Comparison
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
        for part in fitting(console, len(comparison.measures), lambda chosen: _table(comparison, chosen)):
            console.print(part)
        for verdict in comparison.verdicts():
            console.print(Text(verdict.sentence, style="bold"), soft_wrap=plain)
        for line in (*legend(comparison), *comparison.notes) if notes else ():
            console.print(Text(line, style="dim"), soft_wrap=plain)


def rows(comparison: Comparison) -> list[Row]:
    """Lay a comparison out: per run pair effectiveness, then Relative Δ of each pair of groups, measure by measure."""
    return [row for runs in comparison.runs for row in _run_rows(comparison, runs)]


def _run_rows(comparison: Comparison, runs: RunPair) -> list[Row]:
    title = f"{runs.new} against {'its old run' if runs.new == runs.old else runs.old}"
    means = [m for m in comparison.means if (m.run, m.old_run) == runs]
    plain = [(f"{m.old:.1f}", f"{m.new:.1f}") if m.queries else ("–", "–") for m in means]
    found = [
        Row(title, "all", "effectiveness: old", tuple((old,) for old, _ in plain), str(means[0].queries)),
        Row(title, "all", "new", tuple((new,) for _, new in plain)),
        _difference(title, means, kind="group"),
        _interval(title, means),
    ]
    for pair in comparison.pairs:
        found += _tilt_rows(comparison, runs, pair, title)
    return found


def _tilt_rows(comparison: Comparison, runs: RunPair, pair: Pair, title: str) -> list[Row]:
    tilts = [t for t in comparison.tilts if (t.run, t.old_run) == runs and (t.a, t.b) == pair]
    name = "Relative Δ" if len(comparison.pairs) == 1 else f"Relative Δ {pair[0]} | {pair[1]}"
    grown = tuple((signed_or_dash(t.growth),) for t in tilts)
    ends = tuple((signed_or_dash(t.growth_low), signed_or_dash(t.growth_high)) for t in tilts)
    return [
        Row(title, "group", f"{name}: old", tuple((signed_or_dash(t.old),) for t in tilts), str(tilts[0].queries)),
        Row(title, "group", "new", tuple((signed_or_dash(t.new),) for t in tilts)),
        _difference(title, tilts, kind="delta"),
        _interval(title, tilts),
        Row(title, "group", "growth of the tilt", grown),
        Row(title, "interval", "95 % interval", ends),
    ]


def _difference(title: str, changes: Sequence[MeanChange], *, kind: str) -> Row:
    cells = tuple((signed_or_dash(c.value) + ("*" if c.p_corrected < ALPHA else ""),) for c in changes)
    shown = tuple(("a" if c.value > 0 else "b") if c.shown else "" for c in changes)
    return Row(title, "delta" if kind == "delta" else "group", "difference", cells, favoured=shown)


def _interval(title: str, changes: Sequence[MeanChange]) -> Row:
    return Row(
        title, "interval", "95 % interval", tuple((signed_or_dash(c.low), signed_or_dash(c.high)) for c in changes)
    )


def legend(comparison: Comparison) -> list[str]:
    """Say what the numbers are, in a few lines."""
    spec = comparison.spec
    tests = counted(int(spec["tests"]), "test", "tests")
    kinds = "sign flips for effectiveness"
    lines = ["Effectiveness: means over all relevant documents in %. Differences are new − old, in points."]
    if comparison.pairs:
        a, b = comparison.pairs[0]
        more = " (and likewise for the other pairs)" if len(comparison.pairs) > 1 else ""
        kinds = f"systems exchanged query by query for Relative Δ, {kinds}"
        lines.append(
            f"Relative Δ in %: + favours {a}, − favours {b}{more}. Growth of the tilt: |Δ new| − |Δ old|; above 0 the "
            "new run tilts more, whichever way."
        )
    correction = str(spec["correction"]).capitalize()
    lines.append(f"* corrected p < .05 ({correction} over {tests}; permutation tests: {kinds}).")
    lines.append(f"Intervals: paired bootstrap over queries, {spec['resamples']:,} resamples.")
    return lines


def _table(comparison: Comparison, chosen: slice) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", max_width=_LABEL, overflow="fold")
    for title in (*comparison.measures[chosen], "queries"):
        table.add_column(title, justify="right", no_wrap=True)
    before = None
    for row in rows(comparison):
        if row.run != before:
            if before is not None:
                table.add_section()
            table.add_row(Text(row.run, style="bold"))
            before = row.run
        dim = "dim" if row.kind in ("all", "interval") else ""
        label = Text(f"  {row.label}", style="bold" if row.label == "difference" else dim)
        table.add_row(label, *_cells(row, dim)[chosen], Text(row.queries, style="dim"))
    return table


def _cells(row: Row, style: str) -> list[Text]:
    if row.kind == "delta":
        return [direction(lines[0], bool(side)) for lines, side in zip(row.cells, row.favoured, strict=True)]
    if row.favoured:
        pairs = zip(row.cells, row.favoured, strict=True)
        return [Text(lines[0], style="bold" if side else "") for lines, side in pairs]
    return [Text("\n".join(lines), style=style) for lines in row.cells]


def _text(comparison: Comparison) -> str:
    stream = io.StringIO()
    show_comparison(comparison, stream)
    return stream.getvalue()


def _markdown(comparison: Comparison) -> str:
    titles = ("runs", "", *comparison.measures, "queries")
    lines = [markdown_line(titles), markdown_line(("---", "---", *["---:"] * (len(titles) - 2)))]
    before = None
    for row in rows(comparison):
        cells = [" … ".join(cell) for cell in row.cells]
        lines.append(markdown_line((row.run if row.run != before else "", row.label, *cells, row.queries)))
        before = row.run
    said = [v.sentence for v in comparison.verdicts()]
    return (
        "\n".join([*lines, "", *(f"- {markdown(n)}" for n in (*said, *legend(comparison), *comparison.notes))]) + "\n"
    )


def _csv(comparison: Comparison) -> str:
    parts = [
        pl.DataFrame([_record(c) for c in changes], infer_schema_length=None)
        for changes in (comparison.means, comparison.tilts)
        if changes
    ]
    return pl.concat(parts, how="diagonal_relaxed").write_csv()


def _record(change: MeanChange) -> dict[str, object]:
    quantity = "relative_delta" if isinstance(change, TiltChange) else "effectiveness"
    row = {**asdict(change), **change.derived()}
    first = {key: row.pop(key) for key in ("run", "old_run", "measure")}
    return {**first, "quantity": quantity, **row}


FORMATS: dict[str, Callable[[Comparison], str]] = {"table": _text, "markdown": _markdown, "csv": _csv}
