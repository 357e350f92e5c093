"""Which papers' tables a result holds, and the cells of each.

A *layout* describes a table of a paper without its numbers, and a *cell* is one number of it. A
cell is *at home* in the table that it is printed in when all tables of a paper are made together;
other tables may repeat it.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

from ranktilt.reporting.layouts.layout import Layout, layouts
from ranktilt.reporting.layouts.selection import PaperCell


def cells_of(result: Any, table: str | Layout, *, at_home: bool = False) -> list[PaperCell]:
    """Return the cells of one table in a result; with `at_home`, only those at home in it."""
    layout = layouts()[table] if isinstance(table, str) else table
    cells: list[PaperCell] = []
    for selection in layout.cells:
        cells += selection.cells(result, layout.name, scale=layout.scale, at_home=at_home)
    return cells


def tables_of(result: Any) -> list[str]:
    """Return the names of the tables in which some cells of a result are at home."""
    names = []
    for layout in layouts().values():
        cells = chain.from_iterable(
            selection.cells(result, layout.name, at_home=True) for selection in layout.cells
        )
        if next(cells, None) is not None:
            names.append(layout.name)
    return names


def result_types() -> tuple[type[Any], ...]:
    """Return the kinds of results that some layout shows."""
    result_kinds = dict[type[Any], None]()
    for layout in layouts().values():
        for selection in layout.cells:
            kinds = selection.result
            result_kinds |= dict.fromkeys(kinds if isinstance(kinds, tuple) else (kinds,))
    return tuple(result_kinds)


def left_out(result: Any, layout: Layout) -> list[str]:
    """Return the names of a result's rankers that are in no cell of a table."""
    names = list[str]()
    for selection in layout.cells:
        frame, rows = selection.frame(result), selection.rows(result, at_home=False)
        if "system" in frame.columns and rows.height:
            names += [name for name in frame["system"].unique(maintain_order=True) if name]
            systems_in_table = set(rows["system"])
            names = [name for name in names if name not in systems_in_table]
    return list(dict.fromkeys(names))


def made_by(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a sentence on the command that made a result; empty where none did."""
    return (f"Made by: {spec['command']}",) if spec.get("command") else ()
