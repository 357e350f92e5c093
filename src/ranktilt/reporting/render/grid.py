"""A table as titles and rows of texts, for formats whose tables are flat."""

from __future__ import annotations

from dataclasses import dataclass

from ranktilt.reporting.document import INTERVAL, Cell, Medium, Table


@dataclass(frozen=True)
class Grid:
    """Titles, which columns hold numbers, rows of texts, and which rows begin a group."""

    titles: tuple[str, ...]
    numbers: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]
    begins: tuple[bool, ...]


def grid(table: Table, medium: Medium) -> Grid:
    """Lay a table out flat: groups are columns, or rows of their own; an interval is a row, or stands in its cell."""
    places = table.columns_of(medium)
    rows: list[tuple[str, ...]] = []
    begins: list[bool] = []
    before: tuple[str, ...] = ()
    for row in table.rows:
        group = row.headings
        new = group != before
        shown = row.group if table.repeat or new else tuple("" for _ in table.groups)
        front = shown if table.groups else ()
        if new and not table.groups and not table.repeat and any(group):
            rows.append((*filter(None, group), *[""] * (len(places) - 1)))
            begins.append(True)
        before = group
        rows.append((*front, *(_text(row.cells[place], table) for place in places)))
        begins.append((new and bool(table.groups)) or row.rule)
        if table.intervals == "row" and any(cell.ends and cell.text for cell in row.cells):
            cells = (
                INTERVAL if table.columns[place].header else " … ".join(row.cells[place].ends or ()) for place in places
            )
            rows.append((*[""] * len(front), *cells))
            begins.append(False)
    titles = (*table.groups, *(table.columns[place].title for place in places))
    numbers = (*(False for _ in table.groups), *(table.columns[place].number for place in places))
    return Grid(titles, numbers, tuple(rows), tuple(begins))


def _text(cell: Cell, table: Table) -> str:
    if cell.ends and not cell.text:
        return " … ".join(cell.ends)
    if cell.ends and table.intervals == "cell":
        return f"{cell.text} [{', '.join(cell.ends)}]"
    return f"{cell.text} ({cell.note})" if cell.note else cell.text
