"""The table of an audit as text: for the terminal, Markdown, LaTeX or CSV."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence

import polars as pl

from ranktilt.auditing.effects import TABLE_COLUMNS
from ranktilt.auditing.result import Audit
from ranktilt.errors import unknown
from ranktilt.reporting.card import HEADER, lines
from ranktilt.reporting.controls import control_rows, control_titles
from ranktilt.reporting.layout import header, legend, rows, sentences
from ranktilt.reporting.markdown import markdown, markdown_line, one_line

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "−": "$-$", "Δ": r"$\Delta$", "–": "--",
    "|": r"\textbar{}", "<": r"\textless{}", ">": r"\textgreater{}", "±": r"$\pm$",
    "…": r"\ldots{}",
}  # fmt: skip

_COUNTS = ("pairs", "wins", "losses", "ties", "whole", "whole_wins", "whole_losses", "absent", "raw")


def table(audit: Audit, format: str = "table") -> str:
    """Print an audit's table.

    Parameters
    ----------
    audit : Audit
        What to print.
    format : {"table", "markdown", "latex", "csv"}, optional
        ``table``: plain text with verdicts and legend. ``markdown``, ``latex`` (booktabs): the same. ``csv``: one
        line a ranker, row and measure, unrounded.

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
    return FORMATS[format](audit)


def _text(audit: Audit) -> str:
    from ranktilt.reporting.terminal import show

    stream = io.StringIO()
    show(audit, stream)
    return stream.getvalue()


def _markdown(audit: Audit) -> str:
    parts = []
    if audit.measures:
        titles = ("ranker", "", *header(audit))
        main = [markdown_line(titles), markdown_line(("---", "---", *["---:"] * len(header(audit))))]
        parts.append(main + [markdown_line(cells) for cells in _grid(audit, " … ")])
    if audit.estimates:
        align = ["---:" if title in ("answer", "95 % interval", "p") else "---" for title in HEADER]
        card = [markdown_line(("ranker", *HEADER)), markdown_line(("---", *align))]
        parts.append(card + [markdown_line(cells) for cells in _card_grid(audit)])
    if audit.controls:
        names = control_titles(audit)
        align = ["---" if title == "changed" else "---:" for title in names]
        part = [markdown_line(("ranker", "control", *names)), markdown_line(("---", "---", *align))]
        parts.append(part + [markdown_line(cells) for cells in _control_grid(audit)])
    notes = [*sentences(audit), *legend(audit), *audit.notes]
    parts.append([f"- {markdown(n)}" for n in notes])
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _card_grid(audit: Audit) -> Iterator[Sequence[str]]:
    for run in audit.runs:
        for pair in audit.pairs:
            name = run if len(audit.pairs) == 1 else f"{run}, {pair[0]} and {pair[1]}"
            for number, line in enumerate(lines(audit, run, pair)):
                yield ("" if number else name, *line.cells)


def _control_grid(audit: Audit) -> Iterator[Sequence[str]]:
    for run in audit.runs:
        for pair in audit.tilted_pairs:
            name = run if len(audit.pairs) == 1 else f"{run}, {pair[0]} and {pair[1]}"
            for number, row in enumerate(control_rows(audit, run, pair)):
                yield ("" if number else name, row.label, *row.cells, row.moved, row.changed)


def _grid(audit: Audit, joiner: str) -> list[Sequence[str]]:
    grid: list[Sequence[str]] = []
    before = None
    for row in rows(audit):
        cells = [joiner.join(c) for c in row.cells]
        grid.append((row.run if row.run != before else "", row.label, *cells, row.queries, row.tied))
        before = row.run
    return grid


def _latex(audit: Audit) -> str:
    parts = []
    if audit.measures:
        titles = header(audit)
        parts += _booktabs(("Ranker", "", *titles), "ll" + "r" * len(titles), list(_grid(audit, " … ")))
    if audit.estimates:
        parts += _booktabs(("Ranker", *HEADER), "llrrrll", list(_card_grid(audit)))
    if audit.controls:
        columns = "ll" + "r" * (len(audit.measures) + 1) + "l"
        parts += _booktabs(("Ranker", "control", *control_titles(audit)), columns, list(_control_grid(audit)))
    notes = [*sentences(audit), *legend(audit), *audit.notes]
    return "\n".join([*parts, *(f"% {one_line(n)}" for n in notes)]) + "\n"


def _booktabs(titles: Sequence[str], columns: str, grid: Sequence[Sequence[str]]) -> list[str]:
    rows = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", _tex_line(titles), r"\midrule"]
    for number, cells in enumerate(grid):
        if number and cells[0]:
            rows.append(r"\midrule")
        rows.append(_tex_line(cells))
    return [*rows, r"\bottomrule", r"\end{tabular}"]


def _tex_line(cells: Sequence[str]) -> str:
    return " & ".join("".join(_LATEX.get(c, c) for c in one_line(cell)) for cell in cells) + r" \\"


def _csv(audit: Audit) -> str:
    means = audit.by_group().select(
        "run", "measure", pl.lit("mean").alias("row"), "group", value="mean", queries="queries"
    )
    parts = [means]
    for a, b in audit.tilted_pairs:
        delta = audit.relative_delta(a, b).select(
            "run", "measure", pl.lit("relative_delta").alias("row"), pl.format("{}|{}", "a", "b").alias("group"),
            "value", "queries", "low", "high", "p", "p_corrected", "detectable",
            "excluded", "dropped", "band_low", "band_high", "tied_share",
        )  # fmt: skip
        parts.append(delta)
    for a, b in audit.pairs if audit.estimates else ():
        card = audit.card(a, b)
        parts.append(
            card.select(
                "run", pl.col("name").alias("measure"), pl.lit("card").alias("row"), pl.lit(f"{a}|{b}").alias("group"),
                "value", "queries", "low", "high", "p", "p_corrected", "detectable", "band_low", "band_high", "level",
                *(column for column in _COUNTS if column in card.columns),
            )
        )  # fmt: skip
    if audit.controls:
        parts.append(_control_frame(audit))
    return pl.concat(parts, how="diagonal_relaxed").write_csv()


def _control_frame(audit: Audit) -> pl.DataFrame:
    names = ("measure", "value", "queries", "low", "high", "p", "p_corrected", "detectable", "band_low", "band_high")
    rows = []
    for one in audit.controls:
        front = {"run": one.run, "row": f"control {one.control}", "group": f"{one.a}|{one.b}"}
        moves = one.moves or [None] * len(one.tilts)
        for tilt, move in zip(one.tilts, moves, strict=True):
            moved = {"moved": move.value, "moved_low": move.low, "moved_high": move.high} if move else {}
            row = tilt.row()
            rows.append({**front, **{k: row[k] for k in TABLE_COLUMNS if k in names}, **moved})
    return pl.DataFrame(rows, infer_schema_length=None)


FORMATS: dict[str, Callable[[Audit], str]] = {
    "table": _text,
    "markdown": _markdown,
    "latex": _latex,
    "csv": _csv,
}
