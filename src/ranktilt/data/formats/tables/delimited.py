"""Tables whose columns are separated by a character: CSV, TSV and the like, read as strings.

Every row keeps the number of its line, so that errors found later can name it.
"""

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
_ROWS_AT_ONCE = 2_000
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
            # Some programs mark the header as a comment.
            names[0] = names[0].removeprefix("#").strip(_BLANKS)
            _require_distinct_names(file.path, names, rows[LINE_COLUMN][0])
            header = rows["fields"][0].to_list()
            rows = rows[1:]
        refuse_second_header(file.path, rows, header)
        frames.append(_cells(file.path, rows, names, separator))
    if not names or not any(frame.height for frame in frames):
        raise DataError(file.path, "expected rows below the header, got none")
    return NamedTable(frame=pl.concat(frames), names=names)


def _require_distinct_names(path: Path, names: list[str], line: int) -> None:
    """Refuse two columns with the same name; `line` is that of the header."""
    repeated = next((name for name in names if name and names.count(name) > 1), None)
    if repeated is not None:
        raise DataError(path, f"column {repeated!r} is named twice; keep one of them", line=line)


def refuse_second_header(path: Path, rows: pl.DataFrame, header: list[str]) -> None:
    """Refuse a row that repeats the header, as when two files were put into one.

    `rows` has the columns of `field_rows`.
    """
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
    """Return the columns of rows, called by their positions, and the line of each row.

    `DataError` if a row has another number of fields than there are names.
    """
    fields = pl.col("fields")
    # Spreadsheets write an empty row as separators alone.
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
    """Yield a table of the rows of a file that are not blank, a chunk of lines at a time.

    Its columns are `LINE_COLUMN`, the line of each row, and ``fields``, the list of its fields.

    Parameters
    ----------
    path : Path
        The file.
    separator : str
        Character between fields.
    comments : int, optional
        Number of lines to skip at the start of the file.
    has_quotes : bool, optional
        Whether fields between tabs may be quoted as in RFC 4180. Fields between other separators
        always may.
    """
    chunks = list[tuple[int, str]]()
    for first_line, lines in line_chunks(path):
        skipped = min(max(0, comments - first_line + 1), len(lines))
        if lines[skipped:]:
            text = decode_lines(path, first_line + skipped, lines[skipped:])
            chunks.append((first_line + skipped, text))
    may_quote = has_quotes or separator != "\t"
    if may_quote and any('"' in text for _first_line, text in chunks):
        first_line, _text = chunks[0]
        texts = (text for _first_line, text in chunks)
        yield from _quoted_rows(path, texts, separator, first_line)
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
    """Read texts in which a field may be quoted, and may then span several lines."""
    reader = csv.reader(io.StringIO("\n".join(texts)), delimiter=separator, strict=True)
    numbered_rows = (
        (first_line - 1 + reader.line_num, row)
        for row in reader
        if len(row) > 1 or (row and row[0].strip())
    )
    schema: dict[str, Any] = {LINE_COLUMN: pl.UInt32, "fields": pl.List(pl.String)}
    try:
        while block := list(islice(numbered_rows, _ROWS_AT_ONCE)):
            yield pl.DataFrame(block, schema=schema, orient="row")
    except csv.Error as error:
        line = first_line - 1 + reader.line_num
        raise DataError(path, f"cannot be read as CSV: {error}", line=line) from error
