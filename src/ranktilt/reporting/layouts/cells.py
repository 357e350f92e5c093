"""Cells of the papers' tables: one number each, read from a file, and computed again where others give it."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ranktilt.data.files import read_text
from ranktilt.data.formats.ids import plain_float
from ranktilt.data.formats.spreadsheet import from_cell
from ranktilt.errors import DataError, shorten, unknown
from ranktilt.measures.contrast import relative_delta
from ranktilt.reporting.layouts.layout import Layout, layouts
from ranktilt.reporting.layouts.selection import KEYS, PaperCell

DELTA = "relative_delta"
SHARES = ("unprotected share", "protected share")
RATIO = "PairwiseRatio"
_NEEDED = ("table", "dataset", "system", "measure", "value")
_ALIASES = {"model": "system"}
_COLUMNS = ("table", *KEYS, "value", "mark", "note")


@dataclass(frozen=True, eq=False)
class CellFile:
    """Cells of one or several tables in the order of the print, no two of one place, and the file they come from."""

    cells: tuple[PaperCell, ...]
    path: str = ""


def read_cells(path: str | Path) -> CellFile:
    """Read cells of the papers' tables from a CSV file."""
    path = Path(path)
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""), strict=True)
    found, number = dict[tuple[str, ...], PaperCell](), 1
    try:
        names = [_ALIASES.get(name.strip(), name.strip()) for name in reader.fieldnames or ()]
        if not set(_NEEDED) <= set(names) <= set(_COLUMNS) or len(set(names)) < len(names):
            rest = ", ".join(name for name in _COLUMNS if name not in _NEEDED)
            message = (
                f"expected columns {', '.join(_NEEDED)}, each once, and of {rest} what there is"
            )
            raise DataError(
                path, f"{message}; got {shorten(', '.join(names) or 'an empty file')}", line=1
            )
        reader.fieldnames, before = names, reader.line_num
        for row in reader:
            number, before = before + 1, reader.line_num
            if None in row or None in row.values():
                raise DataError(
                    path, f"expected {len(names)} fields ({', '.join(names)})", line=number
                )
            cell = _cell(
                path, number, {name: from_cell(text).strip() for name, text in row.items()}
            )
            if cell.place in found:
                raise DataError(
                    path,
                    f"the cell {', '.join(filter(None, cell.place))} occurs twice",
                    line=number,
                )
            found[cell.place] = cell
    except csv.Error as error:
        raise DataError(path, f"cannot be read as CSV: {error}", line=reader.line_num) from error
    if not found:
        raise DataError(
            path, f"expected cells of tables, one per line below the header ({', '.join(_NEEDED)})"
        )
    return CellFile(tuple(found.values()), str(path))


def _cell(path: Path, line: int, row: dict[str, str]) -> PaperCell:
    if row["table"] not in layouts():
        raise DataError(path, str(unknown("table", row["table"], layouts())), line=line)
    if not row["measure"]:
        raise DataError(path, "expected a measure, got nothing", line=line)
    text = row.pop("value")
    try:
        value = math.nan if text.lower() == "nan" else plain_float(text)
    except ValueError:
        value = math.inf
    if math.isinf(value):
        raise DataError(path, f"expected a number as value, or nan, got {shorten(text)}", line=line)
    return PaperCell(**row, value=value, text=text)


def printed(
    cells: Sequence[PaperCell], layout: Layout, *, rounding: str = "paper"
) -> list[PaperCell]:
    """Give each cell the text that is printed, and compute again what follows from other cells."""
    found = [replace(cell, text=layout.printed(cell.value, cell.measure)) for cell in cells]
    if not layout.derived:
        return found
    given = {cell.place: cell.text for cell in cells}
    key = "target" if layout.derived == DELTA else "measure"
    derived = {}
    for parts in _apart(found, key):
        cell = (
            _delta(parts, layout, given, rounding)
            if layout.derived == DELTA
            else _ratio(parts, layout)
        )
        if cell is not None:
            derived[cell.place] = cell
    return [derived.pop(cell.place, cell) for cell in found] + list(derived.values())


def _apart(cells: Sequence[PaperCell], key: str) -> list[dict[str, PaperCell]]:
    """Cells that differ in one key alone, by that key."""
    found: dict[tuple[str, ...], dict[str, PaperCell]] = {}
    for cell in cells:
        rest = cell.at([other for other in KEYS if other != key])
        found.setdefault(rest, {})[str(getattr(cell, key))] = cell
    return list(found.values())


def _delta(
    targets: dict[str, PaperCell], layout: Layout, given: dict[tuple[str, ...], str], rounding: str
) -> PaperCell | None:
    """Relative Δ of human and LLM wherever a file puts them, or of the two groups that there are."""
    means = [targets[target] for target in ("human", "llm") if target in targets]
    if len(means) < 2:
        means = [cell for target, cell in targets.items() if target != DELTA]
        # The papers' sign: human text first, whichever side an audit puts first.
        means.sort(key=lambda cell: cell.target != "human")
    if len(means) != 2:
        return None
    a, b = (float(c.text) if rounding == "paper" and c.value == c.value else c.value for c in means)
    value = float(relative_delta(a, b))
    before = targets.get(DELTA)
    cell = replace(before or replace(means[1], target=DELTA, note=""), value=value)
    cell = replace(cell, text=layout.printed(value, cell.measure))
    if before is None or before.text == cell.text or not given.get(cell.place):
        return cell
    return replace(cell, note=_differs(given[cell.place], "the two means", cell.text, cell.note))


def _ratio(measures: dict[str, PaperCell], layout: Layout) -> PaperCell | None:
    """The ratio of two shares; one that a file prints stays where the rounding of the shares allows it."""
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
    why = note if now in note else "; ".join(filter(None, (f"{parts} give {now}", note)))
    return f"printed as {before}, recomputed from its parts ({why})"
