"""Which tables a result holds, and the cells of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ranktilt.reporting.layouts.layout import Layout, layouts
from ranktilt.reporting.layouts.selection import PaperCell


def cells_of(result: Any, table: str | Layout, *, at_home: bool = False) -> list[PaperCell]:
    """Find the cells of one table in a result."""
    layout = layouts()[table] if isinstance(table, str) else table
    cells: list[PaperCell] = []
    for selection in layout.cells:
        cells += selection.cells(result, layout.name, scale=layout.scale, at_home=at_home)
    return cells


def tables_of(result: Any) -> list[str]:
    """Name the tables that a result is laid out as by default: those its rows are at home in."""
    names = []
    for layout in layouts().values():
        selections = layout.cells
        if any(any(part.cells(result, layout.name, at_home=True)) for part in selections):
            names.append(layout.name)
    return names


def result_types() -> tuple[type[Any], ...]:
    """Return the kinds of results that some layout shows."""
    kinds = dict[type[Any], None]()
    for layout in layouts().values():
        for selection in layout.cells:
            selected = selection.result
            kinds |= dict.fromkeys(selected if isinstance(selected, tuple) else (selected,))
    return tuple(kinds)


def left_out(result: Any, layout: Layout) -> list[str]:
    """Name the rankers of a result that a table is not about."""
    names = list[str]()
    for selection in layout.cells:
        frame, rows = selection.frame(result), selection.rows(result, at_home=False)
        if "system" in frame.columns and rows.height:
            names += [name for name in frame["system"].unique(maintain_order=True) if name]
            systems_in_table = set(rows["system"])
            names = [name for name in names if name not in systems_in_table]
    return list(dict.fromkeys(names))


def made_by(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Say which command made a result, where one did."""
    return (f"Made by: {spec['command']}",) if spec.get("command") else ()
