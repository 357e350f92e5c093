"""A table of a paper as Markdown and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from ranktilt.reporting.papers.cells import KEYS, Cell
from ranktilt.reporting.papers.grid import Grid, Panel
from ranktilt.reporting.papers.plain import markdown, markdown_number

_ALWAYS = ("dataset", "system", "measure")


def markdown_table(grid: Grid) -> str:
    """Write a table as Markdown."""
    parts = [f"**{markdown(grid.caption)}**", f"*{markdown(f'Layout: {grid.paper}.')}*"]
    for panel in grid.panels:
        if panel.title:
            parts.append(f"*{markdown(panel.title)}*")
        parts.append("\n".join(_lines(grid, panel)))
    notes = [*grid.notes, *grid.remarks, *grid.made]
    if notes:
        parts.append("\n".join(f"- {markdown(note)}" for note in notes))
    return "\n\n".join(parts) + "\n"


def _lines(grid: Grid, panel: Panel) -> Iterable[str]:
    titles = _flattened(panel)
    show = markdown if grid.prose else markdown_number
    yield _line([*map(markdown, grid.stub), *map(markdown, titles)])
    yield _line(["---"] * len(grid.stub) + ["---" if grid.prose else "---:"] * len(titles))
    for row in panel.rows:
        yield _line([*map(markdown, row.labels), *map(show, row.texts)])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _flattened(panel: Panel) -> list[str]:
    """One title a column: those of all levels above it, and its own."""
    levels = [[title for title, span in level for _ in range(span)] for level in panel.header]
    return [", ".join(filter(None, titles)) for titles in zip(*levels, strict=True)]


def cells_csv(grids: Sequence[Grid]) -> str:
    """Write the cells of tables as CSV, as they are printed and in the order of the print."""
    cells = [c for g in grids for p in g.panels for row in p.rows for c in row.cells if c is not None]
    keys = [key for key in KEYS if key in _ALWAYS or any(getattr(cell, key) for cell in cells)]
    stream = io.StringIO()
    lines = csv.writer(stream, lineterminator="\n")
    lines.writerow(["table", *keys, "value", "note"])
    for cell in cells:
        lines.writerow([cell.table, *(getattr(cell, key) for key in keys), _number(cell), cell.note])
    return stream.getvalue()


def prose_csv(grids: Sequence[Grid]) -> str:
    """Write chosen pairs of texts as CSV: a line a pair."""
    stream = io.StringIO()
    lines = csv.writer(stream, lineterminator="\n")
    lines.writerow(["table", "pair", *(title for title, _ in grids[0].panels[0].header[-1])])
    for grid in grids:
        for panel in grid.panels:
            for row in panel.rows:
                lines.writerow([grid.name, panel.title, *row.texts])
    return stream.getvalue()


def _number(cell: Cell) -> str:
    return "nan" if cell.value != cell.value else cell.text
