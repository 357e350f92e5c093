"""Cells of the papers' tables: read from a file, and recomputed where they follow from others."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ranktilt.data.files import read_text
from ranktilt.data.formats.ids import plain_float
from ranktilt.data.formats.tables.spreadsheet import from_cell
from ranktilt.errors import DataError, shorten, unknown
from ranktilt.measures.contrast import relative_delta
from ranktilt.reporting.layouts.layout import Layout, layouts
from ranktilt.reporting.layouts.selection import KEYS, PaperCell

DELTA = "relative_delta"
"""Value of the key ``target`` in cells of Relative Δ."""
SHARES = ("unprotected share", "protected share")
"""Measures of the two shares that a ratio divides."""
RATIO = "PairwiseRatio"
"""Measure of that ratio."""
_NEEDED = ("table", "dataset", "system", "measure", "value")
"""Columns that a file must have."""
_ALIASES = {"model": "system"}
"""Other names of columns."""
_COLUMNS = ("table", *KEYS, "value", "mark", "note")
"""Columns that a file may have."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CellFile:
    """Cells of one or several tables in the order of the print, and the file they come from."""

    cells: tuple[PaperCell, ...]
    """Cells in the order of the print."""
    path: str = ""
    """Path of the file; empty where they were not read from one."""


def read_cells(path: str | Path) -> CellFile:
    """Read cells of the papers' tables from a CSV file.

    Raises
    ------
    DataError
        If a column is missing or unknown, a line is no cell of a table, or two lines are the same
        cell; names the line.
    """
    path = Path(path)
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""), strict=True)
    try:
        cells = _cells_of_lines(path, reader)
    except csv.Error as error:
        raise DataError(path, f"cannot be read as CSV: {error}", line=reader.line_num) from error
    if not cells:
        columns = ", ".join(_NEEDED)
        raise DataError(
            path, f"expected cells of tables, one per line below the header ({columns})"
        )
    return CellFile(cells=tuple(cells), path=str(path))


def _cells_of_lines(path: Path, reader: csv.DictReader[str]) -> list[PaperCell]:
    """Read the cell of each line, and refuse one that occurs twice."""
    names = _column_names(path, reader)
    reader.fieldnames = names
    cells: dict[tuple[str, ...], PaperCell] = {}
    # A quoted field may span lines, so a row begins where the one before it ended.
    first_line, last_line = 1, reader.line_num
    for row in reader:
        first_line, last_line = last_line + 1, reader.line_num
        if None in row or None in row.values():
            fields = f"{len(names)} fields ({', '.join(names)})"
            raise DataError(path, f"expected {fields}", line=first_line)
        texts = {name: from_cell(text).strip() for name, text in row.items()}
        cell = _cell(path, first_line, texts)
        if cell.cell_key in cells:
            position = ", ".join(filter(None, cell.cell_key))
            raise DataError(path, f"the cell {position} occurs twice", line=first_line)
        cells[cell.cell_key] = cell
    return list(cells.values())


def _column_names(path: Path, reader: csv.DictReader[str]) -> list[str]:
    """Return the names of the columns; `DataError` where one is missing or unknown."""
    names = [_ALIASES.get(name.strip(), name.strip()) for name in reader.fieldnames or ()]
    is_complete = set(_NEEDED) <= set(names) <= set(_COLUMNS)
    if is_complete and len(set(names)) == len(names):
        return names
    optional = ", ".join(name for name in _COLUMNS if name not in _NEEDED)
    header = shorten(", ".join(names) or "an empty file")
    raise DataError(
        path,
        f"expected columns {', '.join(_NEEDED)}, each once, and of {optional} what there is; "
        f"got {header}",
        line=1,
    )


def _cell(path: Path, line: int, row: dict[str, str]) -> PaperCell:
    """Read the cell of one line."""
    if row["table"] not in layouts():
        raise DataError(path, str(unknown("table", row["table"], layouts())), line=line)
    if not row["measure"]:
        raise DataError(path, "expected a measure, got nothing", line=line)
    text = row.pop("value")
    try:
        value = math.nan if text.lower() == "nan" else plain_float(text)
    except ValueError:
        value = math.inf  # refused below, as infinite numbers are
    if math.isinf(value):
        raise DataError(path, f"expected a number as value, or nan, got {shorten(text)}", line=line)
    return PaperCell(**row, value=value, text=text)


def printed_cells(
    cells: Sequence[PaperCell], layout: Layout, *, rounding: str = "paper"
) -> list[PaperCell]:
    """Give each cell the text that is printed, and compute again what follows from other cells."""
    texted = [replace(cell, text=layout.printed(cell.value, cell.measure)) for cell in cells]
    if not layout.derived:
        return texted
    original_texts = {cell.cell_key: cell.text for cell in cells}
    is_delta = layout.derived == DELTA
    key = "target" if is_delta else "measure"
    derived = {}
    for parts in _grouped_by_rest(texted, key):
        cell = (
            _delta(parts, layout, original_texts, rounding) if is_delta else _ratio(parts, layout)
        )
        if cell is not None:
            derived[cell.cell_key] = cell
    replaced = [derived.pop(cell.cell_key, cell) for cell in texted]
    return [*replaced, *derived.values()]


def _grouped_by_rest(cells: Sequence[PaperCell], key: str) -> list[dict[str, PaperCell]]:
    """Group the cells that differ in one key alone, by that key."""
    rest_keys = [rest_key for rest_key in KEYS if rest_key != key]
    groups: dict[tuple[str, ...], dict[str, PaperCell]] = {}
    for cell in cells:
        groups.setdefault(cell.at(rest_keys), {})[str(getattr(cell, key))] = cell
    return list(groups.values())


def _delta(
    targets: dict[str, PaperCell],
    layout: Layout,
    original_texts: dict[tuple[str, ...], str],
    rounding: str,
) -> PaperCell | None:
    """Compute Relative Δ of human and LLM, or of the two groups that there are.

    Human and LLM count wherever a file puts them.
    """
    means = [targets[target] for target in ("human", "llm") if target in targets]
    if len(means) < 2:
        means = [cell for target, cell in targets.items() if target != DELTA]
        # The papers' sign: human text first, whichever side an audit puts first.
        means.sort(key=lambda cell: cell.target != "human")
    if len(means) != 2:
        return None
    a, b = (_mean(cell, rounding) for cell in means)
    value = float(relative_delta(a, b))
    before = targets.get(DELTA)
    cell = replace(before or replace(means[1], target=DELTA, note=""), value=value)
    cell = replace(cell, text=layout.printed(value, cell.measure))
    original_text = original_texts.get(cell.cell_key)
    if before is None or before.text == cell.text or not original_text:
        return cell
    return replace(cell, note=_differs(original_text, "the two means", cell.text, cell.note))


def _mean(cell: PaperCell, rounding: str) -> float:
    """Return a mean as a paper takes it, rounded to the printed digits, or as it is."""
    if rounding == "paper" and not math.isnan(cell.value):
        return float(cell.text)
    return cell.value


def _ratio(measures: dict[str, PaperCell], layout: Layout) -> PaperCell | None:
    """Compute the ratio of two shares; a printed one stays where their rounding allows it."""
    if not all(share in measures for share in SHARES):
        return None
    unprotected, protected = (measures[share].value for share in SHARES)
    value = protected / unprotected if unprotected else math.nan
    before = measures.get(RATIO)
    cell = replace(
        before or measures[SHARES[1]], measure=RATIO, value=value, text=layout.printed(value, RATIO)
    )
    if before is None:
        return replace(cell, note="")
    if math.isnan(value) or math.isnan(before.value):
        return before  # there is nothing to hold it against
    half, last = layout.unit(SHARES[0]), layout.unit(RATIO)
    low = (protected - half) / (unprotected + half)
    high = (protected + half) / (unprotected - half) if unprotected > half else math.inf
    if low - last <= before.value <= high + last:
        return before
    return replace(cell, note=_differs(before.text, "the shares", cell.text, before.note))


def _differs(before: str, parts: str, now: str, note: str) -> str:
    """Note that a printed number is not what its parts give."""
    why = note if now in note else "; ".join(filter(None, (f"{parts} give {now}", note)))
    return f"printed as {before}, recomputed from its parts ({why})"
