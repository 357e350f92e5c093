"""Examine the start of a file of unknown format: its first lines, its separator, its JSON.

The *separator* is the character between the columns of a delimited table.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import orjson

from ranktilt.data.files import open_bytes
from ranktilt.data.formats.tables.column_names import (
    DOCUMENT,
    GRADE,
    LABEL,
    QUERY,
    RANK,
    SCORE,
    snake_case,
)

_START_BYTES = 1 << 17
"""Number of bytes at the start of a file that are examined: 128 KiB."""
_BOM = b"\xef\xbb\xbf"
"""Byte-order mark of UTF-8, which some programs write at the start of a file."""
_JSON_START = re.compile(r'\s*(?:\{\s*["}]|\[\s*(?:["{\[\]]|-?[0-9]))')
"""Start of a JSON object or list."""
SEPARATORS = "\t,;|"
"""Characters that separate the columns of a table."""
_SEPARATORS_OF_NUMBERED_COLUMNS = f"{SEPARATORS} "
"""Characters that may separate columns which the user names by their numbers: a blank may too."""
_BLANKS = " \t\r\n\x0b\x0c"
"""White space of ASCII. Other white space may be part of an id."""
_NAMED_SEPARATOR = re.compile(r'"?sep=(.)"?')
"""The line that names the separator of columns for Excel."""
_MOST_ZEROS = 0.8
"""Share of zero bytes among every second byte above which a file is UTF-16 or binary."""
_MARKDOWN_RULE = re.compile(r"\|?(?:\s*:?-{3,}:?\s*\|)+(?:\s*:?-{3,}:?\s*)?")
"""The line below the header of a table in Markdown."""
_BINARY_FORMATS = {
    b"PAR1": "Parquet",
    b"ARROW1": "Arrow (Feather)",
    b"SQLite format 3": "an SQLite database",
    b"%PDF": "PDF",
    b"\x89HDF": "HDF5",
    b"\x93NUMPY": "a NumPy array",
    b"\x80\x04": "a Python pickle",
    b"\x80\x05": "a Python pickle",
    b"\xd0\xcf\x11\xe0": "an old office document",
    b"7z\xbc\xaf": "a 7z archive",
    b"Rar!": "a RAR archive",
    b"LZ4": "LZ4",
    b"\x04\x22\x4d\x18": "LZ4",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
    b"Obj\x01": "Avro",
    b"ORC": "ORC",
}
"""Formats of files that are no text, by the first bytes of the file."""
_KNOWN_COLUMNS = frozenset(
    (*QUERY, *DOCUMENT, *SCORE, *RANK, *GRADE, *LABEL, "text", "title", "query_text")
)
"""Names of columns by which the first line of a table is recognised."""


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """A file whose layout is not known yet; its start is read once."""

    path: Path
    """Path of the file."""
    columns: dict[str, str] = field(default_factory=dict)
    """Columns that the user names by their content: ``{"id": "url"}`` if ``url`` has the ids.

    The names are numbers from 1 in a file whose columns have no names.
    """

    @cached_property
    def start(self) -> bytes:
        """First bytes of the content, unpacked, without a byte-order mark."""
        with open_bytes(self.path) as stream:
            return stream.read(_START_BYTES).removeprefix(_BOM)

    @cached_property
    def binary(self) -> str:
        """Format of a file that is no text, such as ``Parquet``; empty for text."""
        for first_bytes, name in _BINARY_FORMATS.items():
            if self.start.startswith(first_bytes):
                return name
        every_second_byte = (self.start[::2], self.start[1::2])
        # A text may have a few zero bytes; in UTF-16, nearly every second byte is zero.
        if any(half.count(0) > _MOST_ZEROS * len(half) for half in every_second_byte):
            return "UTF-16 or binary data"
        return ""

    @cached_property
    def lines(self) -> list[str]:
        """First complete lines, empty ones too."""
        # Bytes are split at line feeds and carriage returns only. A string would also be split at
        # other characters, which may be part of an id.
        lines = [line.decode("utf-8", errors="replace") for line in self.start.splitlines()]
        is_last_complete = len(self.start) < _START_BYTES or len(lines) < 2
        return lines if is_last_complete else lines[:-1]

    @cached_property
    def has_json(self) -> bool:
        """Whether the file begins like JSON, as a TREC file may do too."""
        return bool(_JSON_START.match(self.start[:1000].decode("utf-8", errors="replace")))

    @cached_property
    def has_json_lines(self) -> bool:
        """Whether the first line is a complete JSON value, and the next line begins like one.

        True for a file of one such line too.
        """
        filled_lines = [line for line in self.lines if blank_fields(line)]
        if not filled_lines or not filled_lines[0].lstrip().startswith(("{", "[")):
            return False
        if not _is_json(filled_lines[0]):
            return False
        return len(filled_lines) == 1 or filled_lines[1].lstrip().startswith(("{", "["))

    @cached_property
    def comments(self) -> int:
        """Number of lines before the data: blank lines, comments, or the name of the separator."""
        count = 0
        for line in self.lines:
            text = line.strip(_BLANKS)
            is_comment = text.startswith("#") and not _looks_like_row(text)
            if text and not is_comment and not _NAMED_SEPARATOR.fullmatch(text):
                return count
            count += 1
        return count

    @cached_property
    def rows(self) -> list[str]:
        """First lines that are neither blank nor comments: a header, if there is one, and data."""
        return [line for line in self.lines[self.comments :] if blank_fields(line)]

    @cached_property
    def has_markdown(self) -> bool:
        """Whether the first lines are a table of Markdown."""
        return len(self.rows) > 1 and bool(_MARKDOWN_RULE.fullmatch(self.rows[1].strip()))

    @cached_property
    def is_headless(self) -> bool:
        """Whether the user names columns by their numbers, so that the first line is no header."""
        names = list(self.columns.values())
        return bool(names) and all(name.isdecimal() for name in names)

    @cached_property
    def separator(self) -> str:
        """Separator of a table whose first line names its columns; empty for any other file."""
        if self.has_markdown:
            return ""
        for line in self.lines[: self.comments]:
            match = _NAMED_SEPARATOR.fullmatch(line.strip())
            if match:
                return match[1]
        if not self.rows:
            return ""
        header = self.rows[0].replace('"', "").lstrip("#")
        if self.is_headless:
            return max(_SEPARATORS_OF_NUMBERED_COLUMNS, key=header.count)
        return self._separator_of_names(header)

    def _separator_of_names(self, header: str) -> str:
        """Return the separator that gives the most known names of columns.

        A column that the user names counts twice, and is enough by itself. Empty if no separator
        gives two known names.
        """
        chosen_names = set(self.columns.values())
        best_separator, most_known = "", 0
        for separator in SEPARATORS:
            names = [name.strip() for name in header.split(separator)]
            known_count = len(_KNOWN_COLUMNS & set(map(snake_case, names)))
            known_count += 2 * len(chosen_names & set(names))
            if len(names) > 1 and known_count > most_known:
                best_separator, most_known = separator, known_count
        return best_separator if most_known > 1 or (chosen_names and most_known) else ""

    @cached_property
    def header(self) -> list[str]:
        """Names of the columns; empty if the first line has none."""
        if not self.separator or not self.rows:
            return []
        if self.is_headless:
            return numbered_names(self.rows[0].split(self.separator))
        cells = self.rows[0].lstrip("#").split(self.separator)
        return [cell.strip().strip('"') for cell in cells]


def blank_fields(line: str) -> list[str]:
    """Split a line at blanks of ASCII; ids may have other white space in them."""
    return [field.decode("utf-8") for field in line.encode("utf-8").split()]


def numbered_names(cells: Sequence[str]) -> list[str]:
    """Return the numbers of the columns of these cells, from 1, as names of the columns."""
    return [str(number) for number in range(1, len(cells) + 1)]


def _looks_like_row(text: str) -> bool:
    """Return whether a line that begins with ``#`` is a TREC line or a header, and no comment."""
    fields = blank_fields(text)
    # The score, or the grade, is the fourth of four fields, and the fifth of more.
    if len(fields) in (4, 5, 6) and fields[-1] and _is_number(fields[min(len(fields), 5) - 1]):
        return True
    names = [snake_case(name) for name in re.split(r"[\t,;|]", text.lstrip("#"))]
    return len(_KNOWN_COLUMNS & set(names)) > 1


def _is_number(text: str) -> bool:
    """Tell whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_json(text: str) -> bool:
    """Tell whether a line is JSON, also if it has numbers that JSON does not know."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        has_python_number = any(number in text for number in ("NaN", "Infinity"))
        return has_python_number and text.rstrip().endswith("}")
    return True
