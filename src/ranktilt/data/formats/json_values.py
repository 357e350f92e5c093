"""JSON files: one value, or one value a line; every key counts, and errors name the line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from ranktilt.data.files import decode_lines, line_chunks, read_text
from ranktilt.data.formats.json_text import require_single_keys, require_single_keys_in_lines
from ranktilt.errors import DataError, shorten

_SAMPLE_SIZE = 200
"""Number of values that are looked at to find which fields a file has."""
_PYTHON_NUMBERS = ("NaN", "Infinity")
"""Numbers that Python's json writes, although JSON does not have them."""


@dataclass(frozen=True, kw_only=True)
class ValueBlock:
    """The JSON values of some lines."""

    values: list[Any]
    """The value of each line that is not blank."""
    lines: list[int]
    """Number of each value's line."""


def read_document(path: Path) -> Any:
    """Read a file that is one JSON value."""
    text = read_text(path)
    if not text.strip():
        raise DataError(path, "the file is empty")
    try:
        content = loads(text)
    except orjson.JSONDecodeError as error:
        message = f"expected one JSON value, got broken JSON ({error.msg}){_cut_off_hint(error)}"
        raise DataError(path, message, line=error.lineno) from error
    require_single_keys(path, text, content)
    return content


def read_lines(path: Path) -> Iterator[ValueBlock]:
    """Yield the JSON values of the lines that are not blank, a chunk of lines at a time."""
    for first_line, lines in line_chunks(path):
        decode_lines(path, first_line, lines)
        block = ValueBlock(values=[], lines=[])
        for number, line in enumerate(lines, start=first_line):
            if line and not line.isspace():
                block.values.append(_line_value(path, number, line))
                block.lines.append(number)
        if block.values:
            # The check for repeated keys takes lines of objects alone.
            if all(type(value) is dict for value in block.values):
                require_single_keys_in_lines(path, lines, block.values, first_line=first_line)
            yield block


def first_blocks(path: Path) -> tuple[list[ValueBlock], Iterator[ValueBlock]]:
    """Read enough lines to find the fields; return their values, and an iterator over the rest."""
    blocks = read_lines(path)
    first = list[ValueBlock]()
    count = 0
    for block in blocks:
        first.append(block)
        count += len(block.values)
        if count >= _SAMPLE_SIZE:
            break
    return first, blocks


def _line_value(path: Path, number: int, line: bytes) -> Any:
    """Parse the JSON value in a line; `DataError` names the line."""
    try:
        return loads(line)
    except orjson.JSONDecodeError as error:
        text = shorten(line[:200].decode(errors="replace"))
        reason = f"{error.msg}{_cut_off_hint(error)}"
        message = f"expected one JSON value per line, got broken JSON ({reason}): {text}"
        raise DataError(path, message, line=number) from error


def _cut_off_hint(error: orjson.JSONDecodeError) -> str:
    """Say that a file is cut off if its JSON ends too soon; empty for any other fault."""
    return "; the file is cut off, so fetch or write it again" if "end of data" in error.msg else ""


def loads(text: str | bytes) -> Any:
    """Parse JSON; NaN and infinities, which Python's json writes, are read as numbers."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        as_text = text if isinstance(text, str) else text.decode(errors="replace")
        if not any(number in as_text for number in _PYTHON_NUMBERS):
            raise
        with suppress(ValueError, RecursionError):
            return json.loads(as_text)
        raise
