"""Examine the start of a file of unknown format: its first lines, its separator, its JSON."""

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

_START = 1 << 17
"""Number of bytes at the start of a file that are examined: 128 KiB."""
_BOM = b"\xef\xbb\xbf"
"""Mark of byte order at the start of a file."""
_JSON = re.compile(r'\s*(?:\{\s*["}]|\[\s*(?:["{\[\]]|-?[0-9]))')
"""Start of a JSON object or list."""
SEPARATORS = "\t,;|"
"""Signs that separate the columns of a table."""
_BETWEEN = f"{SEPARATORS} "
"""Signs that may separate columns if the user numbers them: a blank may too."""
_BLANKS = " \t\r\n\x0b\x0c"
"""White space of ASCII. Other white space may be part of an id."""
_NAMED_SEPARATOR = re.compile(r'"?sep=(.)"?')
"""The line that names the separator of columns for Excel."""
_ZEROS = 0.8
"""Share of zero bytes among every second byte above which a file is UTF-16 or binary."""
_RULE = re.compile(r"\|?(?:\s*:?-{3,}:?\s*\|)+(?:\s*:?-{3,}:?\s*)?")
"""The line below the header of a table in Markdown."""
_BINARY = {
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
"""First bytes of files that are no text, and their formats."""
_KNOWN = frozenset(
    (*QUERY, *DOCUMENT, *SCORE, *RANK, *GRADE, *LABEL, "text", "title", "query_text")
)
"""Names of columns by which the first line of a table is recognised."""


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """A file whose layout is not known yet; its start is read once."""

    path: Path
    """Path of the file."""
    columns: dict[str, str] = field(default_factory=dict)
    """The user's names of columns by content, such as ``{"id": "url"}``."""

    @cached_property
    def start(self) -> bytes:
        """First bytes of the content, unpacked, without a byte-order mark."""
        with open_bytes(self.path) as stream:
            return stream.read(_START).removeprefix(_BOM)

    @cached_property
    def binary(self) -> str:
        """Format of a file that is no text; empty for text."""
        for sign, name in _BINARY.items():
            if self.start.startswith(sign):
                return name
        halves = (self.start[::2], self.start[1::2])
        # A text may have a few zero bytes; in UTF-16, nearly every second byte is zero.
        if any(half.count(0) > _ZEROS * len(half) for half in halves):
            return "UTF-16 or binary data"
        return ""

    @cached_property
    def lines(self) -> list[str]:
        """First complete lines, empty ones too."""
        # Bytes are split at line feeds and returns alone; texts also at signs that ids may have.
        lines = [line.decode("utf-8", errors="replace") for line in self.start.splitlines()]
        is_whole = len(self.start) < _START or len(lines) < 2
        return lines if is_whole else lines[:-1]

    @cached_property
    def has_json(self) -> bool:
        """Whether the file begins like JSON, as a TREC file may do too."""
        return bool(_JSON.match(self.start[:1000].decode("utf-8", errors="replace")))

    @cached_property
    def has_json_lines(self) -> bool:
        """Whether the first line is a complete JSON value, and the next one begins like one."""
        written = [line for line in self.lines if blank_fields(line)]
        if not written or not written[0].lstrip().startswith(("{", "[")):
            return False
        if not _is_json(written[0]):
            return False
        return len(written) == 1 or written[1].lstrip().startswith(("{", "["))

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
        """First lines of data."""
        return [line for line in self.lines[self.comments :] if blank_fields(line)]

    @cached_property
    def has_markdown(self) -> bool:
        """Whether the first lines are a table of Markdown."""
        return len(self.rows) > 1 and bool(_RULE.fullmatch(self.rows[1].strip()))

    @cached_property
    def is_headless(self) -> bool:
        """Whether the user names columns by their numbers, so that the first line is a row."""
        choices = list(self.columns.values())
        return bool(choices) and all(choice.isdecimal() for choice in choices)

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
            return max(_BETWEEN, key=header.count)
        return self._separator_of_names(header)

    def _separator_of_names(self, header: str) -> str:
        """Return the separator that leaves the most known names; empty for fewer than two.

        A column that the user chose counts twice, and is enough by itself.
        """
        choices = set(self.columns.values())
        best, most = "", 0
        for separator in SEPARATORS:
            names = [name.strip() for name in header.split(separator)]
            known = len(_KNOWN & set(map(snake_case, names))) + 2 * len(choices & set(names))
            if len(names) > 1 and known > most:
                best, most = separator, known
        return best if most > 1 or (choices and most) else ""

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
    """Split a line at ASCII's blanks; ids may have others in them."""
    return [field.decode("utf-8") for field in line.encode("utf-8").split()]


def numbered_names(cells: Sequence[str]) -> list[str]:
    """Return the numbers of columns, from 1, which are their names in a file without names."""
    return [str(number) for number in range(1, len(cells) + 1)]


def _looks_like_row(text: str) -> bool:
    """Return whether a line that begins with ``#`` is a TREC line or a header, and no comment."""
    fields = blank_fields(text)
    if len(fields) in (4, 5, 6) and fields[-1] and _is_number(fields[min(len(fields), 5) - 1]):
        return True
    names = [snake_case(name) for name in re.split(r"[\t,;|]", text.lstrip("#"))]
    return len(_KNOWN & set(names)) > 1


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
        return any(sign in text for sign in ("NaN", "Infinity")) and text.rstrip().endswith("}")
    return True
