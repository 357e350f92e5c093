"""A table of a paper as rows, columns and panels, before any format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ranktilt.errors import UserError
from ranktilt.reporting.papers.cells import KEYS, Cell
from ranktilt.reporting.papers.derived import DELTA
from ranktilt.reporting.papers.layouts import Layout

ABSENT = "–"
_SETTING = ("collection", "condition")
"""Keys whose only value a caption does not repeat: the title says it."""
Combination = tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """Labels of a row, empty where they are those of the row above, and its cells."""

    labels: tuple[str, ...]
    texts: tuple[str, ...]
    cells: tuple[Cell | None, ...] = ()
    """What stands behind each text; None where the results do not hold it."""


@dataclass(frozen=True)
class Panel:
    """One block of a table."""

    title: str
    """Empty where the table has one block."""
    header: tuple[tuple[tuple[str, int], ...], ...]
    """Per level the titles and how many columns each one spans; the last level names the columns."""
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Grid:
    """A table that only lacks its format."""

    name: str
    paper: str
    caption: str
    stub: tuple[str, ...]
    """Titles of the columns of labels."""
    panels: tuple[Panel, ...]
    notes: tuple[str, ...] = ()
    """What stands below it."""
    remarks: tuple[str, ...] = ()
    """What its maker should know; not for a paper's reader."""
    made: tuple[str, ...] = ()
    """The commands and files behind it, in words."""
    prose: bool = False
    """Whether its cells are texts, not numbers."""

    @property
    def width(self) -> int:
        """Columns of numbers in the widest panel."""
        return max(len(panel.header[-1]) for panel in self.panels)


def lay_out(cells: Sequence[Cell], layout: Layout, *, made: Sequence[str] = ()) -> Grid:
    """Arrange the cells of one table."""
    return _Arranged(cells, layout).grid(tuple(made))


class _Arranged:
    def __init__(self, cells: Sequence[Cell], layout: Layout) -> None:
        self.layout = layout
        self.cells = {cell.place[1:]: cell for cell in cells}
        if len(self.cells) < len(cells):
            raise UserError(_twice(cells, layout))
        self.orders = {key: _order(key, cells, layout) for key in KEYS}
        several = [key for key in KEYS if len(self.orders[key]) > 1]
        self.columns = tuple(key for key in layout.columns if key in several or key == layout.columns[-1])
        used = {*layout.rows, *layout.columns}
        spare = [key for key in KEYS if key in several and key not in used and key not in layout.panels]
        self.panels = tuple(key for key in (*layout.panels, *spare) if key in several)
        self.shown = {*layout.rows, *self.columns, *self.panels}

    def grid(self, made: tuple[str, ...]) -> Grid:
        layout = self.layout
        context = [
            layout.said(key, self.orders[key][0])
            for key in KEYS
            if key not in self.shown and key not in _SETTING and self.orders[key][0] not in ("", "-")
        ]
        groups = layout.title_of_groups and "human" not in self.orders["target"]
        title = layout.title_of_groups if groups else layout.title
        caption = ". ".join([title, *([", ".join(context)] if context else [])]) + "."
        stub = tuple(layout.title_of(key) for key in layout.rows)
        panels = tuple(self._panel(one) for one in self._combinations(self.panels, list(self.cells.values())))
        return Grid(layout.name, layout.paper, caption, stub, panels, self._notes(panels), self._remarks(), made)

    def _combinations(self, keys: Sequence[str], cells: Sequence[Cell]) -> list[Combination]:
        """Values of some keys that occur together, in order."""
        found = {tuple(str(getattr(cell, key)) for key in keys) for cell in cells}
        places = {key: {value: place for place, value in enumerate(self.orders[key])} for key in keys}
        return sorted(found, key=lambda one: [places[key][value] for key, value in zip(keys, one, strict=True)])

    def _panel(self, panel: Combination) -> Panel:
        layout = self.layout
        inside = [c for c in self.cells.values() if tuple(getattr(c, key) for key in self.panels) == panel]
        rows = self._combinations(layout.rows, inside)
        columns = self._combinations(self.columns, inside)
        at = {tuple(getattr(c, key) for key in (*layout.rows, *self.columns)): c for c in inside}
        lines, before = [], tuple("" for _ in layout.rows)
        for row in rows:
            found = tuple(at.get((*row, *column)) for column in columns)
            texts = tuple(ABSENT if cell is None else cell.text for cell in found)
            lines.append(Row(self._labels(row, before), texts, found))
            before = row
        title = ", ".join(filter(None, (layout.said(k, v) for k, v in zip(self.panels, panel, strict=True))))
        return Panel(title, self._header(columns), tuple(lines))

    def _labels(self, row: Combination, before: Combination) -> tuple[str, ...]:
        """A row's labels; one that it shares with the row above, and all before it too, is left out."""
        same = next((i for i, (a, b) in enumerate(zip(row, before, strict=True)) if a != b), len(row))
        pairs = zip(self.layout.rows, row, strict=True)
        return tuple("" if i < same else self.layout.label(key, value) for i, (key, value) in enumerate(pairs))

    def _header(self, columns: Sequence[Combination]) -> tuple[tuple[tuple[str, int], ...], ...]:
        levels = []
        for level, key in enumerate(self.columns):
            groups: list[tuple[Combination, int]] = []
            for column in columns:
                front = column[: level + 1]
                if groups and groups[-1][0] == front:
                    groups[-1] = (front, groups[-1][1] + 1)
                else:
                    groups.append((front, 1))
            levels.append(tuple((self.layout.label(key, front[-1]), span) for front, span in groups))
        return tuple(levels)

    def _notes(self, panels: Sequence[Panel]) -> tuple[str, ...]:
        notes = [f"{self._where(cell)}: {cell.note}" for cell in self.cells.values() if cell.note]
        notes += self._dashes([cell for panel in panels for row in panel.rows for cell in row.cells])
        return tuple(f"{note.removesuffix('.')}." for note in dict.fromkeys(notes))

    def _remarks(self) -> tuple[str, ...]:
        held = self.orders["measure"]
        lacking = [self.layout.label("measure", m) for m in self.layout.measures if m not in held]
        return (f"The paper's table also has {', '.join(lacking)}, not in these results.",) if lacking else ()

    def _dashes(self, cells: Sequence[Cell | None]) -> list[str]:
        why = ["not in these results"] if None in cells else []
        why += ["undefined"] if any(cell is not None and cell.text == ABSENT for cell in cells) else []
        return [f"{ABSENT}: {' or '.join(why)}."] if why else []

    def _where(self, cell: Cell) -> str:
        keys = (*self.panels, *self.layout.rows, *self.columns)
        return ", ".join(self.layout.label(key, getattr(cell, key)) for key in dict.fromkeys(keys))


def _order(key: str, cells: Sequence[Cell], layout: Layout) -> list[str]:
    """Values of one key in the order of the print."""
    found = list(dict.fromkeys(str(getattr(cell, key)) for cell in cells))
    if key == "measure":
        found.sort(key=lambda m: layout.measures.index(m) if m in layout.measures else len(layout.measures))
    if key == "target":
        found.sort(key=lambda target: (target == DELTA, target not in ("human", "")))
    return found


def _twice(cells: Sequence[Cell], layout: Layout) -> str:
    places = [cell.place for cell in cells]
    place = next(place for number, place in enumerate(places) if place in places[:number])
    keys = [f"{layout.title_of(key).lower()} {value}" for key, value in zip(KEYS, place[1:], strict=True) if value]
    return (
        f"{layout.name}: two results hold the same cell ({', '.join(keys)}); leave one of them out, or give their "
        "folders different names"
    )
