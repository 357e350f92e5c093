"""Tables whose columns are separated by a sign: CSV, TSV and the like, read as strings."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from ranktilt.data.files import decode_lines, line_chunks
from ranktilt.data.formats.data_file import DataFile, numbered_names
from ranktilt.errors import DataError, counted, shorten

LINE_COLUMN = "line of the file"
"""Name of the column that is added to a table: the line of each row, for errors."""
_BLANKS = " \t\r\n"
"""White space that is removed around a cell; other kinds, such as no-break spaces, are kept."""
_ROWS = 2_000
"""Number of rows that are read together."""


@dataclass(frozen=True, kw_only=True)
class NamedTable:
    """A table of strings."""

    frame: pl.DataFrame
    """The columns, stripped of blanks, and the `LINE_COLUMN` of each row.

    Columns are called by their position from 0 (``"0"``, ``"1"``), because a file may leave names
    empty, or have a column that is called as `LINE_COLUMN` is.
    """
    names: list[str]
    """Names of the columns, as the file has them."""

    def column(self, name: str) -> pl.Series:
        """Return the cells of the column that the file calls `name`."""
        return self.frame[str(self.names.index(name))]


def read_named_table(file: DataFile) -> NamedTable:
    """Read a table whose first line names its columns."""
    frames, names, header = list[pl.DataFrame](), list[str](), list[str]()
    separator = file.separator
    for rows in field_rows(file.path, separator, comments=file.comments, has_quotes=True):
        if not names and file.is_headless:
            names = numbered_names(rows["fields"][0])
        elif not names:
            names = [name.strip(_BLANKS) for name in rows["fields"][0]]
            names[0] = names[0].removeprefix("#").strip(_BLANKS)
            _require_names(file.path, names, rows[LINE_COLUMN][0])
            header = rows["fields"][0].to_list()
            rows = rows[1:]
        refuse_second_header(file.path, rows, header)
        frames.append(_cells(file.path, rows, names, separator))
    if not names or not any(frame.height for frame in frames):
        raise DataError(file.path, "expected rows below the header, got none")
    return NamedTable(frame=pl.concat(frames), names=names)


def _require_names(path: Path, names: list[str], line: int) -> None:
    """Refuse a column that is named twice."""
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice is not None:
        raise DataError(path, f"column {twice!r} is named twice; keep one of them", line=line)


def refuse_second_header(path: Path, rows: pl.DataFrame, header: list[str]) -> None:
    """Refuse a row that repeats the header, as of two files one after the other."""
    if not header or not rows.height:
        return
    first = pl.col("fields").list.get(0, null_on_oob=True)
    for line, fields in rows.filter(first == header[0]).iter_rows():
        if fields == header:
            message = (
                "the header occurs again; are these two files? Remove the line, or read them "
                "separately"
            )
            raise DataError(path, message, line=line)


def _cells(path: Path, rows: pl.DataFrame, names: list[str], separator: str) -> pl.DataFrame:
    """Return rows of fields as columns; `DataError` where a row has another number of fields."""
    fields = pl.col("fields")
    # A row of separators alone is how spreadsheets write an empty one.
    rows = rows.filter(fields.list.join("").str.strip_chars(_BLANKS) != "")
    wrong = rows.filter(fields.list.len() != len(names))
    if wrong.height:
        line, cells = wrong.row(0)
        expected = counted(len(names), "field", "fields")
        message = f"expected {expected} as in the first line, got {len(cells)}"
        raise DataError(path, f"{message}: {shorten(separator.join(cells))}", line=line)
    cells = {
        f"{number}": fields.list.get(number).str.strip_chars(_BLANKS)
        for number in range(len(names))
    }
    return rows.select(LINE_COLUMN, **cells)


def field_rows(
    path: Path, separator: str, *, comments: int = 0, has_quotes: bool = False
) -> Iterator[pl.DataFrame]:
    """Yield number and fields of the lines that are not blank, a chunk of lines at a time.

    The first `comments` lines are passed over. Quotes are those of RFC 4180; between tabs they are
    plain, unless `has_quotes`.
    """
    chunks = list[tuple[int, str]]()
    for first_line, lines in line_chunks(path):
        passed = min(max(0, comments - first_line + 1), len(lines))
        if lines[passed:]:
            text = decode_lines(path, first_line + passed, lines[passed:])
            chunks.append((first_line + passed, text))
    may_quote = has_quotes or separator != "\t"
    if may_quote and any('"' in text for _, text in chunks):
        first_line = chunks[0][0]
        yield from _quoted_rows(path, (text for _, text in chunks), separator, first_line)
        return
    for first_line, text in chunks:
        frame = (
            pl.Series("text", text.split("\n"))
            .to_frame()
            .with_row_index(LINE_COLUMN, offset=first_line)
        )
        frame = frame.filter(pl.col("text").str.strip_chars() != "")
        if frame.height:
            yield frame.select(LINE_COLUMN, fields=pl.col("text").str.split(separator))


def _quoted_rows(
    path: Path, texts: Iterable[str], separator: str, first_line: int
) -> Iterator[pl.DataFrame]:
    """Read lines in which a field may be quoted, and may span lines."""
    rows = csv.reader(io.StringIO("\n".join(texts)), delimiter=separator, strict=True)
    written = (
        (first_line - 1 + rows.line_num, row)
        for row in rows
        if len(row) > 1 or (row and row[0].strip())
    )
    schema: dict[str, Any] = {LINE_COLUMN: pl.UInt32, "fields": pl.List(pl.String)}
    try:
        while block := list(islice(written, _ROWS)):
            yield pl.DataFrame(block, schema=schema, orient="row")
    except csv.Error as error:
        line = first_line - 1 + rows.line_num
        raise DataError(path, f"cannot be read as CSV: {error}", line=line) from error
