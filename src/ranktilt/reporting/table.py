"""The table of an audit as text: for the terminal, Markdown, LaTeX or CSV."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence

import polars as pl

from ranktilt.auditing.result import Audit
from ranktilt.errors import unknown
from ranktilt.reporting.layout import header, legend, rows, sentences

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "−": "$-$", "Δ": r"$\Delta$", "–": "--",
    "|": r"\textbar{}", "<": r"\textless{}", ">": r"\textgreater{}", "±": r"$\pm$",
}  # fmt: skip


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
    titles = ("ranker", "", *header(audit))
    lines = [_md_line(titles), _md_line(("---", "---", *["---:"] * len(header(audit))))]
    lines += [_md_line(cells) for cells in _grid(audit, " … ")]
    notes = [*sentences(audit), *legend(audit), *audit.notes]
    return "\n".join([*lines, "", *(f"- {_md(n)}" for n in notes)]) + "\n"


def _grid(audit: Audit, joiner: str) -> list[Sequence[str]]:
    grid: list[Sequence[str]] = []
    before = None
    for row in rows(audit):
        cells = [joiner.join(c) for c in row.cells]
        grid.append((row.run if row.run != before else "", row.label, *cells, row.queries, row.tied))
        before = row.run
    return grid


def _md_line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_md, cells)) + " |"


def _md(text: str) -> str:
    return re.sub(r"([|*_`<>\\])", r"\\\1", text) if not re.fullmatch(r"-+:?", text) else text


def _latex(audit: Audit) -> str:
    titles = header(audit)
    lines = [
        rf"\begin{{tabular}}{{ll{'r' * len(titles)}}}",
        r"\toprule",
        _tex_line(("Ranker", "", *titles)),
        r"\midrule",
    ]
    for number, cells in enumerate(_grid(audit, " ")):
        if number and cells[0]:
            lines.append(r"\midrule")
        lines.append(_tex_line(cells))
    lines += [r"\bottomrule", r"\end{tabular}"]
    notes = [*sentences(audit), *legend(audit), *audit.notes]
    return "\n".join([*lines, *(f"% {n}" for n in notes)]) + "\n"


def _tex_line(cells: Sequence[str]) -> str:
    return " & ".join("".join(_LATEX.get(c, c) for c in cell) for cell in cells) + r" \\"


def _csv(audit: Audit) -> str:
    means = audit.by_group().select(
        "run", "measure", pl.lit("mean").alias("row"), "group", value="mean", queries="queries"
    )
    parts = [means]
    for a, b in audit.pairs:
        delta = audit.relative_delta(a, b).select(
            "run", "measure", pl.lit("relative_delta").alias("row"), pl.format("{}|{}", "a", "b").alias("group"),
            "value", "queries", "low", "high", "p", "p_corrected", "detectable",
            "excluded", "dropped", "band_low", "band_high", "tied_share",
        )  # fmt: skip
        parts.append(delta)
    return pl.concat(parts, how="diagonal_relaxed").write_csv()


FORMATS: dict[str, Callable[[Audit], str]] = {
    "table": _text,
    "markdown": _markdown,
    "latex": _latex,
    "csv": _csv,
}
