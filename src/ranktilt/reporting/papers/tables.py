"""The papers' tables of any results, in one text: LaTeX, Markdown or CSV."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ranktilt.auditing.result import Audit
from ranktilt.auditing.study import Study
from ranktilt.errors import UserError, counted, unknown
from ranktilt.measures.contrast import ROUNDINGS
from ranktilt.probes.validation import Validation
from ranktilt.reporting.papers.cells import Cell, Cells
from ranktilt.reporting.papers.chosen import chosen_pairs, has_pairs, has_texts
from ranktilt.reporting.papers.derived import DELTA, printed
from ranktilt.reporting.papers.grid import Grid, lay_out
from ranktilt.reporting.papers.latex import latex
from ranktilt.reporting.papers.layouts import LAYOUTS, PAPER, Layout
from ranktilt.reporting.papers.results import belongs, cells_of, left_out, made_by, tables_of
from ranktilt.reporting.papers.written import cells_csv, markdown_table, prose_csv
from ranktilt.reporting.reload import Opened

Source = Opened | Audit | Validation | Study | Cells
PROSE = ("dai-10", "dai-11")
"""Tables of texts: of the first collection that came with its texts, and of the second."""

_OTHERS = {
    **dict.fromkeys(("dai-3", "dai-4"), "re-rankers have a table of their own (dai-5, dai-6)"),
    **dict.fromkeys(("dai-5", "dai-6"), "the table holds re-rankers and what they start from"),
}
_ANY = ("", "-")
"""Systems of cells that are about a collection: several results of it hold the same ones."""
_ROUNDED = (
    "Relative Δ comes from the means as printed here, as in the paper; the audit's own comes from the means before "
    "rounding, and may differ where they are small."
)


def paper_tables(
    results: Sequence[Source], layout: str, format: str, *, rounding: str = "paper", queries: Sequence[str] = ()
) -> str:
    """Lay results out as the papers' tables."""
    if format not in FORMATS:
        raise unknown("format", format, FORMATS)
    if rounding not in ROUNDINGS:
        raise unknown("rounding", rounding, ROUNDINGS)
    grids = paper_grids(results, layout, rounding=rounding, queries=queries)
    if format == "csv" and layout == PAPER:
        grids = [grid for grid in grids if not grid.prose] or grids
    return FORMATS[format](grids)


def paper_grids(
    results: Sequence[Source], layout: str, *, rounding: str = "paper", queries: Sequence[str] = ()
) -> list[Grid]:
    """Lay results out as `paper_tables` does, before any format."""
    if layout != PAPER and layout not in LAYOUTS:
        raise unknown("layout", layout, (PAPER, *LAYOUTS))
    names = _held(results) if layout == PAPER else [layout]
    if not names:
        raise UserError(f"the results given ({_kinds(results)}) hold none of the papers' tables; {_all_commands()}")
    return [_grid(results, LAYOUTS[name], rounding, queries, own=layout == PAPER) for name in names]


def _held(results: Sequence[Source]) -> list[str]:
    """Names of the tables that the results hold, in the papers' order."""
    found = {name for result in results for name in _tables(result)}
    found.update(PROSE[: sum(isinstance(result, Opened) and has_pairs(result) for result in results)])
    return [name for name in LAYOUTS if name in found]


def _tables(result: Source) -> list[str]:
    if isinstance(result, Cells):
        return [cell.table for cell in result.cells]
    return tables_of(_bare(result))


def _bare(result: Opened | Audit | Validation | Study) -> Audit | Validation | Study:
    return result.audit if isinstance(result, Opened) else result


def _grid(results: Sequence[Source], layout: Layout, rounding: str, queries: Sequence[str], *, own: bool) -> Grid:
    if layout.name in PROSE:
        return _texts(results, layout, queries)
    cells, made = list[Cell](), list[str]()
    for result in results:
        found = _cells(result, layout.name, own=own)
        cells += [cell for cell in found if cell.system not in _ANY or cell not in cells]
        made += _made(result) if found else ()
    if not cells:
        raise UserError(_lacking(results, layout))
    grid = lay_out(printed(cells, layout, rounding=rounding), layout, made=list(dict.fromkeys(made)))
    return replace(grid, notes=(*grid.notes, *_caveats(results, layout, rounding)))


def _caveats(results: Sequence[Source], layout: Layout, rounding: str) -> list[str]:
    """What a Relative Δ of a result must not be read without."""
    bare = [_bare(result) for result in results if not isinstance(result, Cells)]
    found = [one for one in bare if not isinstance(one, Validation) and one.tilts]
    if layout.derived != DELTA or not found:
        return []
    others = dict.fromkeys(name for one in found for name in left_out(one, layout.name))
    said = [f"Without {', '.join(others)}: {_OTHERS[layout.name]}."] if others else []
    if rounding == "paper" and any(one.spec.get("rounding", "none") != "paper" for one in found):
        said.append(_ROUNDED)
    if not all(tilt.twins for one in found for tilt in one.tilts):
        said.append("Groups that are not twins: Relative Δ is level at what shuffled labels give, which need not be 0.")
    return said


def _cells(result: Source, table: str, *, own: bool) -> list[Cell]:
    """Cells of one table; where nobody named it, only those that are at home in it."""
    if isinstance(result, Cells):
        return [cell for cell in result.cells if cell.table == table]
    bare = _bare(result)
    if own and table not in tables_of(bare):
        return []
    found = cells_of(bare, table)
    return found if not own or isinstance(bare, Study) else [cell for cell in found if belongs(cell, table)]


def _made(result: Source) -> tuple[str, ...]:
    if isinstance(result, Cells):
        return (f"Cells of {result.made}",) if result.made else ()
    return made_by(_bare(result).spec)


def _texts(results: Sequence[Source], layout: Layout, queries: Sequence[str]) -> Grid:
    opened = [result for result in results if isinstance(result, Opened) and has_texts(result)]
    opened.sort(key=has_pairs, reverse=True)
    place = PROSE.index(layout.name)
    if len(opened) <= place:
        raise UserError(_lacking(results, layout))
    return chosen_pairs(opened[place], layout.name, queries=queries)


def _lacking(results: Sequence[Source], layout: Layout) -> str:
    made = f"{layout.command} makes one" if layout.command.startswith("ranktilt") else f"give {layout.command}"
    first = f"{layout.name} shows {layout.shows}"
    if layout.name == PROSE[1]:
        return f"{first}; the results given ({_kinds(results)}) hold fewer: {PROSE[0]} shows the first"
    why = [note for result in results if isinstance(result, Opened) for note in result.notes]
    if layout.name in PROSE and why:
        return f"{first}; {why[0]}"
    return f"{first}; the results given ({_kinds(results)}) hold none: {made}"


def _kinds(results: Sequence[Source]) -> str:
    """Say what the results are: ``2 audits, 1 validation``."""
    nouns = {"audit": 0, "validation": 0, "study": 0, "file of cells": 0}
    plurals = {"study": "studies", "file of cells": "files of cells"}
    for result in results:
        bare = result if isinstance(result, Cells) else _bare(result)
        kinds = {Audit: "audit", Validation: "validation", Study: "study", Cells: "file of cells"}
        nouns[kinds[type(bare)]] += 1
    return ", ".join(counted(n, one, plurals.get(one, f"{one}s")) for one, n in nouns.items() if n) or "nothing"


def _all_commands() -> str:
    commands = dict.fromkeys(one.command for one in LAYOUTS.values() if one.command.startswith("ranktilt"))
    return "such results are made by: " + "; ".join(list(commands)[:4])


def _csv(grids: Sequence[Grid]) -> str:
    return prose_csv(grids) if grids[0].prose else cells_csv(grids)


FORMATS: dict[str, Callable[[Sequence[Grid]], str]] = {
    "latex": lambda grids: "\n".join(map(latex, grids)),
    "markdown": lambda grids: "\n".join(map(markdown_table, grids)),
    "csv": _csv,
}
