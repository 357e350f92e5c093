"""Cells of the papers' tables: one number each, with the keys that say where it stands."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import polars as pl

from ranktilt.errors import DataError, shorten, unknown
from ranktilt.io.files import invalid_utf8, read_bytes
from ranktilt.reporting.papers.layouts import LAYOUTS

KEYS = ("dataset", "generator", "temperature", "collection", "system", "condition", "target", "measure")
"""What says where in its table a cell stands."""
_NEEDED = ("table", "dataset", "system", "measure", "value")
_ALIASES = {"model": "system"}
_VALUES = ("table", *KEYS, "value", "note")


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One number of one table; a key that a table does not have is empty."""

    table: str
    """Name of a layout, such as ``dai-3``."""
    dataset: str = ""
    generator: str = ""
    """The model that wrote the LLM's side."""
    temperature: str = ""
    collection: str = ""
    """``mixed`` or ``single-source``."""
    system: str = ""
    """The ranker, as the papers call it."""
    condition: str = ""
    """Of the queries or pairs, such as ``neutral`` or ``relevant``."""
    target: str = ""
    """The group whose documents count, or ``relative_delta``."""
    measure: str = ""
    value: float
    """On the scale of the print: percent in Dai et al., 0 to 1 in the others; NaN where undefined."""
    text: str = ""
    """The number as it is printed."""
    note: str = ""

    @property
    def place(self) -> tuple[str, ...]:
        """Table and keys, which no two cells share."""
        return (self.table, *(str(getattr(self, key)) for key in KEYS))


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells of one or several tables, in the order of the print.

    Parameters
    ----------
    cells : tuple of Cell
        No two of one place.
    made : str
        The file or the command that they come from.
    """

    cells: tuple[Cell, ...]
    made: str = ""

    @property
    def table(self) -> pl.DataFrame:
        """The tidy table: a row a cell; ``value`` is NaN where undefined, everything else is text."""
        names = [field.name for field in fields(Cell)]
        schema = {name: pl.Float64 if name == "value" else pl.String for name in names}
        return pl.DataFrame([astuple(cell) for cell in self.cells], schema=schema, orient="row")


def read_cells(path: str | Path) -> Cells:
    """Read cells of the papers' tables from a CSV file."""
    path = Path(path)
    found, places = [], dict[tuple[str, ...], int]()
    for line, row in _rows(path):
        cell = _cell(path, line, row)
        if cell.place in places:
            where = ", ".join(filter(None, cell.place))
            raise DataError(path, f"the cell {where} is there twice, first in line {places[cell.place]}", line=line)
        places[cell.place] = line
        found.append(cell)
    if not found:
        raise DataError(path, f"expected cells of tables, a line each below the header ({', '.join(_NEEDED)})")
    return Cells(tuple(found), str(path))


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Lines with their number, by column."""
    data = read_bytes(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(path, invalid_utf8(error.start, data)) from error
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = _header(path, next(reader, []))
        before = reader.line_num
        for row in reader:
            first, before = before + 1, reader.line_num
            if not row:
                continue
            if len(row) != len(header):
                came = f"expected {len(header)} fields ({', '.join(header)}), got {len(row)}"
                raise DataError(path, came, line=first)
            yield first, dict(zip(header, map(str.strip, row), strict=True))
    except csv.Error as error:
        raise DataError(path, f"cannot be read as CSV: {error}", line=reader.line_num) from error


def _header(path: Path, row: Sequence[str]) -> list[str]:
    names = [_ALIASES.get(name.strip(), name.strip()) for name in row]
    missing = [name for name in _NEEDED if name not in names]
    if missing:
        came = ", ".join(row) or "an empty file"
        hint = " (or model)" if "system" in missing else ""
        message = f"expected columns {', '.join(_NEEDED)}; missing: {', '.join(missing)}{hint}; got {shorten(came)}"
        raise DataError(path, message, line=1)
    for name in names:
        if name not in _VALUES:
            raise DataError(path, str(unknown("column", name, _VALUES)), line=1)
        if names.count(name) > 1:
            raise DataError(path, f"column {name!r} is there twice", line=1)
    return names


def _cell(path: Path, line: int, row: dict[str, str]) -> Cell:
    if row["table"] not in LAYOUTS:
        raise DataError(path, str(unknown("table", row["table"], LAYOUTS)), line=line)
    if not row["measure"]:
        raise DataError(path, "expected a measure, got nothing", line=line)
    keys = {name: text for name, text in row.items() if name != "value"}
    return Cell(**keys, value=_number(path, line, row["value"]), text=row["value"])


def _number(path: Path, line: int, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.inf
    if math.isinf(value):
        raise DataError(path, f"expected a number as value, or nan, got {shorten(text)}", line=line)
    return value
