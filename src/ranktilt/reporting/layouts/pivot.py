"""Cells of one layout as tables: a table for each panel, with rows and columns by keys.

A *key* is a property of a cell, such as its ranker or measure; a layout says which keys name rows,
columns and panels. Values of keys are in the *order of the print*: measures in that of the paper,
all others as they first occur.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan

from ranktilt.errors import UserError
from ranktilt.reporting.document import Cell, Column, Row, Table
from ranktilt.reporting.layouts.cells import DELTA
from ranktilt.reporting.layouts.layout import Layout
from ranktilt.reporting.layouts.selection import KEYS, PaperCell
from ranktilt.reporting.numbers import DASH
from ranktilt.reporting.tones import Tone

_Values = tuple[str, ...]
"""Values of some keys, in the order of the keys."""


@dataclass(frozen=True, kw_only=True)
class PivotedTables:
    """Cells laid out by panels, rows and columns."""

    tables: tuple[Table, ...]
    """One table per panel."""
    cells: tuple[PaperCell | None, ...]
    """Every cell in the order of the print; None for a gap."""
    keys: tuple[str, ...]
    """Keys that give the position of a cell: those of panels, then of rows and of columns."""


def pivot(cells: Sequence[PaperCell], layout: Layout) -> PivotedTables:
    """Lay cells out by the panels, rows and columns of a layout.

    Raises
    ------
    UserError
        If two cells have the same position.
    """
    _require_distinct(cells, layout)
    return _Pivot(cells=tuple(cells), layout=layout).pivoted()


def key_values(cells: Sequence[PaperCell], layout: Layout) -> dict[str, list[str]]:
    """Return the values of every key, in the order of the print."""
    return {key: _values(key, cells, layout) for key in KEYS}


@dataclass(frozen=True, kw_only=True, eq=False)
class _Pivot:
    """Lays the cells of one layout out."""

    cells: tuple[PaperCell, ...]
    """Cells of the layout."""
    layout: Layout
    """The layout."""

    @cached_property
    def values(self) -> dict[str, list[str]]:
        """Values of every key, in the order of the print."""
        return key_values(self.cells, self.layout)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Keys that name columns: the last, and any other that has several values."""
        keys = self.layout.columns
        return tuple(key for key in keys if self._varies(key) or key == keys[-1])

    @cached_property
    def panels(self) -> tuple[str, ...]:
        """Keys that name panels: the layout's, and unused ones, of those with several values."""
        layout = self.layout
        used = {*layout.rows, *layout.columns, *layout.panels}
        unused = [key for key in KEYS if key not in used]
        return tuple(key for key in (*layout.panels, *unused) if self._varies(key))

    def pivoted(self) -> PivotedTables:
        """Return one table per panel, and the cells in the order of the print."""
        tables: list[Table] = []
        cells: list[PaperCell | None] = []
        for panel in self._combinations(self.panels, self.cells):
            panel_cells = [cell for cell in self.cells if cell.at(self.panels) == panel]
            columns = self._combinations(self.columns, panel_cells)
            lines = self._lines(panel_cells, columns)
            for _, line_cells in lines:
                cells += line_cells
            tables.append(
                Table(
                    self._caption(panel),
                    self._table_columns(columns),
                    self._rows(lines),
                    spans=self._spans(columns),
                )
            )
        keys = dict.fromkeys((*self.panels, *self.layout.rows, *self.columns))
        return PivotedTables(tables=tuple(tables), cells=tuple(cells), keys=tuple(keys))

    def _varies(self, key: str) -> bool:
        """Tell whether a key has several values."""
        return len(self.values[key]) > 1

    def _combinations(self, keys: Sequence[str], cells: Iterable[PaperCell]) -> list[_Values]:
        """Return the values of some keys that occur together, in the order of the print."""

        def rank(values: _Values) -> list[int]:
            pairs = zip(keys, values, strict=True)
            return [self.values[key].index(value) for key, value in pairs]

        return sorted({cell.at(keys) for cell in cells}, key=rank)

    def _lines(
        self, cells: Sequence[PaperCell], columns: Sequence[_Values]
    ) -> list[tuple[_Values, list[PaperCell | None]]]:
        """Return the values that name each row of a panel, and its cells: None for a gap."""
        by_position = {cell.at((*self.layout.rows, *self.columns)): cell for cell in cells}
        lines = []
        for row in self._combinations(self.layout.rows, cells):
            line_cells = [by_position.get((*row, *column)) for column in columns]
            lines.append((row, line_cells))
        return lines

    def _rows(self, lines: Sequence[tuple[_Values, list[PaperCell | None]]]) -> tuple[Row, ...]:
        """Return the rows of a panel's table, with a line above each new value of the first key."""
        rows: list[Row] = []
        previous_values: _Values = tuple("" for _ in self.layout.rows)
        for values, line_cells in lines:
            labels = self._row_labels(values, previous_values)
            has_rule = bool(rows) and len(labels) > 1 and bool(labels[0])
            cells = (*map(Cell, labels), *map(_table_cell, line_cells))
            rows.append(Row(cells, rule=has_rule))
            previous_values = values
        return tuple(rows)

    def _row_labels(self, values: _Values, previous_values: _Values) -> list[str]:
        """Return the labels of a row; empty for the first values that the row above has too."""
        labels: list[str] = []
        is_repeated = True
        for key, value, previous_value in zip(
            self.layout.rows, values, previous_values, strict=True
        ):
            is_repeated = is_repeated and value == previous_value
            labels.append("" if is_repeated else self.layout.label(key, value))
        return labels

    def _caption(self, panel: _Values) -> str:
        """Return the caption of a panel, from its values of the panels' keys."""
        phrases = map(self.layout.caption_phrase, self.panels, panel)
        return ", ".join(filter(None, phrases))

    def _table_columns(self, columns: Sequence[_Values]) -> tuple[Column, ...]:
        """Return the columns of a panel: those that name rows, then those of numbers."""
        layout = self.layout
        headers = [Column(layout.title_of(key), number=False, header=True) for key in layout.rows]
        numbers = [Column(layout.label(self.columns[-1], column[-1])) for column in columns]
        return (*headers, *numbers)

    def _spans(self, columns: Sequence[_Values]) -> tuple[tuple[str, int], ...]:
        """Return the headings above the titles, each with its number of columns.

        Empty unless columns have two keys; the first heading is an empty one above the names of
        rows.
        """
        if len(self.columns) < 2:
            return ()
        upper_values = [column[0] for column in columns]
        spans = [
            (self.layout.label(self.columns[0], value), upper_values.count(value))
            for value in dict.fromkeys(upper_values)
        ]
        return (("", len(self.layout.rows)), *spans) if spans else ()


def _values(key: str, cells: Sequence[PaperCell], layout: Layout) -> list[str]:
    """Return the values of one key in the order of the print."""
    values = list(dict.fromkeys(str(getattr(cell, key)) for cell in cells))
    # Measures come in the paper's order, and others after them. Of groups, human text comes first
    # and Relative Δ last.
    if key == "measure":
        ranks = {measure: rank for rank, measure in enumerate(layout.measures)}
        values.sort(key=lambda measure: ranks.get(measure, len(layout.measures)))
    if key == "target":
        values.sort(key=lambda target: (target == DELTA, target not in ("human", "")))
    return values


def _table_cell(cell: PaperCell | None) -> Cell:
    """Return a cell as a table has it: a dash for a gap, Relative Δ in the favoured side's tone."""
    if cell is None:
        return Cell(DASH)
    text = cell.text.replace("-", "−") + cell.mark
    if cell.target != DELTA or isnan(cell.value) or cell.value == 0:
        return Cell(text)
    tone: Tone = "first" if cell.value > 0 else "second"
    return Cell(text, cell.value, tone)


def _require_distinct(cells: Sequence[PaperCell], layout: Layout) -> None:
    """Raise a `UserError` if two cells have the same position."""
    positions = set[tuple[str, ...]]()
    for cell in cells:
        if cell.cell_key in positions:
            keys = [
                f"{layout.title_of(key).lower()} {value}"
                for key, value in zip(KEYS, cell.at(KEYS), strict=True)
                if value
            ]
            raise UserError(
                f"{layout.name}: two results hold the same cell ({', '.join(keys)}); "
                "leave one of them out, or give their folders different names"
            )
        positions.add(cell.cell_key)
