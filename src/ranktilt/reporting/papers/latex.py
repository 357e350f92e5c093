"""A table of a paper as LaTeX, with the rules of booktabs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ranktilt.reporting.papers.grid import Grid, Panel, Row
from ranktilt.reporting.papers.plain import tex, tex_comment, tex_number

_NARROW, _WIDE = 6, 9
"""Columns that fit into one column of a paper, and into its page in small print."""
_HALF = r"p{0.47\linewidth}"


def latex(grid: Grid) -> str:
    """Write a table as a complete LaTeX environment."""
    environment = "table*" if grid.prose or _total(grid) > _NARROW else "table"
    lines = [
        tex_comment(f"Layout: {grid.paper}. Needs \\usepackage{{booktabs}}."),
        *map(tex_comment, (*grid.made, *grid.remarks)),
        rf"\begin{{{environment}}}[t]",
        r"\centering",
        rf"\caption{{{tex(grid.caption)}}}",
        rf"\label{{tab:{grid.name}}}",
        *_size(grid),
        rf"\begin{{tabular}}{{{_columns(grid)}}}",
        r"\toprule",
        *_body(grid),
        r"\bottomrule",
        r"\end{tabular}",
        *_notes(grid.notes),
        rf"\end{{{environment}}}",
    ]
    return "\n".join(lines) + "\n"


def _total(grid: Grid) -> int:
    return len(grid.stub) + grid.width


def _size(grid: Grid) -> list[str]:
    """What makes a wide table fit onto a page."""
    if _total(grid) > _WIDE:
        return [r"\scriptsize", r"\setlength{\tabcolsep}{2pt}"]
    return [r"\small"] if grid.prose or _total(grid) > _NARROW else []


def _columns(grid: Grid) -> str:
    return "l" * len(grid.stub) + (_HALF if grid.prose else "r") * grid.width


def _body(grid: Grid) -> Iterator[str]:
    alike = len({panel.header for panel in grid.panels}) == 1
    for number, panel in enumerate(grid.panels):
        if number:
            yield r"\midrule"
        if alike and not number:
            yield from _header(grid, panel)
            yield r"\midrule"
        if panel.title:
            yield _title(panel.title, _total(grid), prose=grid.prose)
            yield r"\midrule"
        if not alike:
            yield from _header(grid, panel)
            yield r"\midrule"
        yield from _rows(grid, panel)


def _title(text: str, total: int, *, prose: bool) -> str:
    column = r"p{0.96\linewidth}" if prose else "l"
    return rf"\multicolumn{{{total}}}{{{column}}}{{\textit{{{tex(text)}}}}} \\"


def _header(grid: Grid, panel: Panel) -> Iterator[str]:
    for level in panel.header[:-1]:
        yield _line([""] * len(grid.stub) + [_spanning(*group) for group in level], missing=grid.width - _span(level))
        yield " ".join(_rules(level, len(grid.stub)))
    names = [tex(title) for title, _ in panel.header[-1]]
    yield _line([*map(tex, grid.stub), *names], missing=grid.width - len(names))


def _span(level: Sequence[tuple[str, int]]) -> int:
    return sum(span for _, span in level)


def _spanning(title: str, span: int) -> str:
    return rf"\multicolumn{{{span}}}{{c}}{{{tex(title)}}}"


def _rules(level: Sequence[tuple[str, int]], stub: int) -> Iterator[str]:
    at = stub + 1
    for _, span in level:
        yield rf"\cmidrule(lr){{{at}-{at + span - 1}}}"
        at += span


def _rows(grid: Grid, panel: Panel) -> Iterator[str]:
    for number, row in enumerate(panel.rows):
        if number and len(row.labels) > 1 and row.labels[0]:
            yield r"\midrule"
        yield _row(grid, row)


def _row(grid: Grid, row: Row) -> str:
    show = tex if grid.prose else tex_number
    return _line([*map(tex, row.labels), *map(show, row.texts)], missing=grid.width - len(row.texts))


def _line(cells: Sequence[str], *, missing: int) -> str:
    return " & ".join([*cells, *[""] * missing]).rstrip() + r" \\"


def _notes(notes: Sequence[str]) -> list[str]:
    if not notes:
        return []
    lines = [rf"{tex(note)}\par" for note in notes]
    return [r"\par\smallskip", r"\begin{minipage}{\linewidth}", r"\footnotesize", *lines, r"\end{minipage}"]
