"""Read JSON: a text, a file of one value, or a file of one value a line.

Errors name the line. An object with two equal keys is refused, because parsers silently keep the
last one. Reading every key would take long. The text is therefore searched for the ends of keys,
``":``. If they are as many as the keys of the parsed values, no key was lost. If they are more, the
text is read key by key, because strings may contain these characters too.

Python's json writes NaN, Infinity and -Infinity, which JSON does not have: `parse_with_nan` reads
them as numbers, `parse_with_null` as null.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from ranktilt.data.files import decode_lines, line_chunks, read_text
from ranktilt.errors import DataError, shorten

_KEY_ENDS = re.compile(r'"\s*:')
"""End of a key in JSON."""
_KEY_ENDS_IN_BYTES = re.compile(rb'"\s*:')
"""End of a key in JSON as bytes."""
_NESTED_TYPES = frozenset({dict, list})
"""Types of nested values."""
_TOKEN = re.compile(r'"(?P<text>[^"\\]*(?:\\.[^"\\]*)*)"(?P<colon>\s*:)?|[{}]', re.DOTALL)
"""A string, with the colon that makes it a key, or the brace that begins or ends an object."""
_PYTHON_NUMBERS = re.compile(r"NaN|Infinity")
"""Numbers that Python's json writes, although JSON does not have them."""
_SAMPLE_SIZE = 200
"""Number of values that are looked at to find which fields a file has."""


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
        content = parse_with_nan(text)
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


def parse_with_nan(text: str | bytes) -> Any:
    """Parse JSON, with NaN and infinities as numbers."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        with suppress(ValueError, RecursionError):
            as_text = text if isinstance(text, str) else text.decode()
            if _PYTHON_NUMBERS.search(as_text) is not None:
                return json.loads(as_text)
        raise


def parse_with_null(text: str | bytes) -> Any:
    """Parse JSON, with null for NaN and infinities."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        with suppress(ValueError, TypeError, RecursionError):
            # orjson writes null for these numbers.
            return orjson.loads(orjson.dumps(parse_with_nan(text)))
        raise


def require_single_keys(path: Path | str, text: str, content: Any, *, first_line: int = 1) -> None:
    """Refuse a JSON text, with its parsed `content`, in which an object has two equal keys."""
    if len(_KEY_ENDS.findall(text)) != key_count(content):
        _refuse_repeated_key(path, text, first_line)


def require_single_keys_in_lines(
    path: Path | str, lines: Sequence[bytes], rows: Sequence[dict[str, Any]], *, first_line: int
) -> None:
    """Refuse JSON lines, whose objects are `rows`, in which an object has two equal keys.

    Counting the ends of keys takes a fraction of the time of parsing, so that only lines that may
    have a key twice are read again. `first_line` is the number of the first line.
    """
    key_ends = len(_KEY_ENDS_IN_BYTES.findall(b"\n".join(lines)))
    # Most objects hold no others, and then their own keys are all there are.
    if key_ends == sum(map(len, rows)) or key_ends == key_count(list(rows)):
        return
    numbered = enumerate(lines, start=first_line)
    filled_lines = [(number, line) for number, line in numbered if line and not line.isspace()]
    for (number, line), row in zip(filled_lines, rows, strict=True):
        if len(_KEY_ENDS_IN_BYTES.findall(line)) != key_count(row):
            _refuse_repeated_key(path, line.decode(errors="replace"), number)


def key_count(content: Any) -> int:
    """Count the keys of all objects in parsed JSON."""
    count, to_visit = 0, [content]
    while to_visit:
        value = to_visit.pop()
        if isinstance(value, dict):
            count += len(value)
            value = value.values()
        elif not isinstance(value, list):
            continue
        # This quick test suffices for most objects, whose values are all plain.
        if not _NESTED_TYPES.isdisjoint(map(type, value)):
            to_visit += [inner for inner in value if type(inner) in _NESTED_TYPES]
    return count


def _line_value(path: Path, number: int, line: bytes) -> Any:
    """Parse the JSON value in a line; `DataError` names the line."""
    try:
        return parse_with_nan(line)
    except orjson.JSONDecodeError as error:
        text = shorten(line[:200].decode(errors="replace"))
        reason = f"{error.msg}{_cut_off_hint(error)}"
        message = f"expected one JSON value per line, got broken JSON ({reason}): {text}"
        raise DataError(path, message, line=number) from error


def _cut_off_hint(error: orjson.JSONDecodeError) -> str:
    """Say that a file is cut off if its JSON ends too soon; empty for any other fault."""
    return "; the file is cut off, so fetch or write it again" if "end of data" in error.msg else ""


def _refuse_repeated_key(path: Path | str, text: str, first_line: int) -> None:
    """Read the keys of valid JSON one by one; `DataError` has the line of a repeated one."""
    keys_of_open_objects = list[set[str]]()
    for token in _TOKEN.finditer(text):
        if token[0] == "{":
            keys_of_open_objects.append(set())
        elif token[0] == "}":
            keys_of_open_objects.pop()
        elif token["colon"] is not None:
            key = token["text"]
            if "\\" in key:
                key = json.loads(f'"{key}"', strict=False)
            if key in keys_of_open_objects[-1]:
                line = first_line + text.count("\n", 0, token.start())
                message = f"the key {shorten(key)} occurs twice in one object; keep one of them"
                raise DataError(path, message, line=line)
            keys_of_open_objects[-1].add(key)
