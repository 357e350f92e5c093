"""Which tables a result holds, and the cells of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ranktilt.reporting.layouts.layout import Layout, layouts
from ranktilt.reporting.layouts.selection import PaperCell


def cells_of(result: Any, table: str | Layout, *, at_home: bool = False) -> list[PaperCell]:
    """Find the cells of one table in a result."""
    layout = layouts()[table] if isinstance(table, str) else table
    return [
        cell
        for selection in layout.cells
        for cell in selection.cells(result, layout.name, scale=layout.scale, at_home=at_home)
    ]


def tables_of(result: Any) -> list[str]:
    """Name the tables that a result is laid out as where nobody names one: those that its rows are at home in."""
    return [
        layout.name
        for layout in layouts().values()
        if any(
            any(selection.cells(result, layout.name, at_home=True)) for selection in layout.cells
        )
    ]


def result_types() -> tuple[type[Any], ...]:
    """Return the kinds of results that some layout shows."""
    kinds = dict[type[Any], None]()
    for layout in layouts().values():
        for selection in layout.cells:
            several = isinstance(selection.result, tuple)
            kinds |= dict.fromkeys(selection.result if several else (selection.result,))  # type: ignore[arg-type]
    return tuple(kinds)


def left_out(result: Any, layout: Layout) -> list[str]:
    """Name the rankers of a result that a table is not about."""
    names = list[str]()
    for selection in layout.cells:
        frame, rows = selection.frame(result), selection.rows(result, at_home=False)
        if "system" in frame.columns and rows.height:
            names += [name for name in frame["system"].unique(maintain_order=True) if name]
            shown = set(rows["system"])
            names = [name for name in names if name not in shown]
    return list(dict.fromkeys(names))


def made_by(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Say which command made a result, where one did."""
    return (f"Made by: {spec['command']}",) if spec.get("command") else ()
