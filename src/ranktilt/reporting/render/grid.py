"""A table as titles and rows of texts, for formats whose tables are flat."""

from __future__ import annotations

from dataclasses import dataclass

from ranktilt.reporting.document import Cell, Table


@dataclass(frozen=True)
class Grid:
    """Titles, which columns hold numbers, rows of texts, and which rows begin a group."""

    titles: tuple[str, ...]
    numbers: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]
    begins: tuple[bool, ...]


def grid(table: Table) -> Grid:
    """Lay a table out flat: groups are columns, and an interval stands in its cell."""
    rows: list[tuple[str, ...]] = []
    begins: list[bool] = []
    before: tuple[str, ...] = ()
    for row in table.rows:
        new = row.group != before
        front = row.group if new else tuple("" for _ in table.groups)
        before = row.group
        rows.append((*front, *map(_text, row)))
        begins.append((new and bool(table.groups)) or row.rule)
    titles = (*table.groups, *(column.title for column in table.columns))
    numbers = (*(False for _ in table.groups), *(column.number for column in table.columns))
    return Grid(titles, numbers, tuple(rows), tuple(begins))


def _text(cell: Cell) -> str:
    note = f"({cell.note})" if cell.note else ""
    return " ".join(filter(None, (cell.text, cell.interval, note)))
