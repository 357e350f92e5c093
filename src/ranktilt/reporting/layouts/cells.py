"""Cells of the papers' tables: read from a CSV file, printed, and derived from other cells.

A *layout* describes a table of a paper without its numbers; a *cell* is one number of it, and a
*key* is a property of a cell, such as its ranker, that gives its position.

Some tables have *derived* cells: Relative Δ of two groups' means (their difference in percent of
their average), or the ratio of two shares. The papers compute them from numbers that are already
rounded for print. A cell's *note* says where its number is not what the others give.
"""

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
from ranktilt.errors import DataError, shorten, unknown_name
from ranktilt.measures.contrast import relative_delta
from ranktilt.reporting.layouts.layout import Layout, layouts
from ranktilt.reporting.layouts.selection import KEYS, PaperCell

DELTA = "relative_delta"
"""Value of the key ``target`` in cells of Relative Δ."""
SHARES = ("unprotected share", "protected share")
"""Measures of the two shares of a ratio: the second over the first."""
RATIO = "PairwiseRatio"
"""Measure of that ratio."""
_REQUIRED_COLUMNS = ("table", "dataset", "system", "measure", "value")
"""Columns that a file must have."""
_ALIASES = {"model": "system"}
"""Other names of columns, by which they may be called in a file."""
_COLUMNS = ("table", *KEYS, "value", "mark", "note")
"""Columns that a file may have."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CellFile:
    """Cells of one or several tables, and the file that they were read from."""

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
        columns = ", ".join(_REQUIRED_COLUMNS)
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
    is_complete = set(_REQUIRED_COLUMNS) <= set(names) <= set(_COLUMNS)
    if is_complete and len(set(names)) == len(names):
        return names
    required = ", ".join(_REQUIRED_COLUMNS)
    optional = ", ".join(name for name in _COLUMNS if name not in _REQUIRED_COLUMNS)
    header = shorten(", ".join(names) or "an empty file")
    raise DataError(
        path,
        f"expected columns {required}, each once, and of {optional} what there is; got {header}",
        line=1,
    )


def _cell(path: Path, line: int, row: dict[str, str]) -> PaperCell:
    """Read the cell of one line."""
    if row["table"] not in layouts():
        raise DataError(path, str(unknown_name("table", row["table"], layouts())), line=line)
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
    """Return cells with their printed texts, and with derived cells computed from the others.

    With `rounding` ``paper``, Relative Δ is computed from the printed means, otherwise from the
    unrounded ones. A note says where a cell of a file is not what the others give.
    """
    printed = [replace(cell, text=layout.printed(cell.value, cell.measure)) for cell in cells]
    if not layout.derived:
        return printed
    original_texts = {cell.cell_key: cell.text for cell in cells}
    is_delta = layout.derived == DELTA
    key = "target" if is_delta else "measure"
    derived_cells = {}
    for cells_by_value in _grouped_by_other_keys(printed, key):
        if is_delta:
            derived = _delta_cell(cells_by_value, layout, original_texts, rounding)
        else:
            derived = _ratio_cell(cells_by_value, layout)
        if derived is not None:
            derived_cells[derived.cell_key] = derived
    replaced = [derived_cells.pop(cell.cell_key, cell) for cell in printed]
    return [*replaced, *derived_cells.values()]


def _grouped_by_other_keys(cells: Sequence[PaperCell], key: str) -> list[dict[str, PaperCell]]:
    """Group the cells that differ in one key alone; each group is by the value of that key."""
    other_keys = [other_key for other_key in KEYS if other_key != key]
    groups: dict[tuple[str, ...], dict[str, PaperCell]] = {}
    for cell in cells:
        groups.setdefault(cell.at(other_keys), {})[str(getattr(cell, key))] = cell
    return list(groups.values())


def _delta_cell(
    targets: dict[str, PaperCell],
    layout: Layout,
    original_texts: dict[tuple[str, ...], str],
    rounding: str,
) -> PaperCell | None:
    """Compute the cell of Relative Δ from two means; None where there are not two.

    `targets` are the cells of the groups' means, and of a Relative Δ if there is one already, by
    their target. The means are those of human and LLM text or, without both, of the only two
    groups.
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
    existing = targets.get(DELTA)
    cell = replace(existing or replace(means[1], target=DELTA, note=""), value=value)
    cell = replace(cell, text=layout.printed(value, cell.measure))
    original_text = original_texts.get(cell.cell_key)
    if existing is None or existing.text == cell.text or not original_text:
        return cell
    note = _difference_note(original_text, "the two means", cell.text, cell.note)
    return replace(cell, note=note)


def _mean(cell: PaperCell, rounding: str) -> float:
    """Return a mean as Relative Δ is computed from it: as printed, or unrounded."""
    if rounding == "paper" and not math.isnan(cell.value):
        return float(cell.text)
    return cell.value


def _ratio_cell(measures: dict[str, PaperCell], layout: Layout) -> PaperCell | None:
    """Compute the cell of a ratio from two shares; None where a share is missing.

    `measures` are the cells of the shares, and of a ratio if there is one already, by their
    measure. An existing ratio is kept where it can be that of the unrounded shares.
    """
    if not all(share in measures for share in SHARES):
        return None
    unprotected, protected = (measures[share].value for share in SHARES)
    value = protected / unprotected if unprotected else math.nan
    existing = measures.get(RATIO)
    cell = replace(
        existing or measures[SHARES[1]],
        measure=RATIO,
        value=value,
        text=layout.printed(value, RATIO),
    )
    if existing is None:
        return replace(cell, note="")
    if math.isnan(value) or math.isnan(existing.value):
        return existing  # the two cannot be compared
    share_error, ratio_error = layout.rounding_error(SHARES[0]), layout.rounding_error(RATIO)
    lowest = (protected - share_error) / (unprotected + share_error)
    highest = math.inf
    if unprotected > share_error:
        highest = (protected + share_error) / (unprotected - share_error)
    if lowest - ratio_error <= existing.value <= highest + ratio_error:
        return existing
    note = _difference_note(existing.text, "the shares", cell.text, existing.note)
    return replace(cell, note=note)


def _difference_note(original: str, inputs: str, computed: str, note: str) -> str:
    """Say that a number is printed otherwise than its inputs give; `note` is the cell's note."""
    reason = note
    if computed not in note:
        reason = "; ".join(filter(None, (f"{inputs} give {computed}", note)))
    return f"printed as {original}, recomputed from its parts ({reason})"
