"""JSON in which every key counts: of two equal keys in one object parsers keep the last, and here both are refused."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from ranktilt.errors import DataError, shorten

_KEY_ENDS = re.compile(r'"\s*:')
_KEY_ENDS_IN_BYTES = re.compile(rb'"\s*:')
"""What follows every key. It also occurs within strings, so it is never seen less often than there are keys."""
_NESTED = frozenset({dict, list})
_TOKEN = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"(\s*:)?|[{}]', re.DOTALL)
"""A string, with the colon that makes it a key, or the begin or the end of an object."""


def parse_json(text: str | bytes) -> Any:
    """Parse JSON in which Python's json may have written NaN, Infinity or -Infinity: each is null."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        signs = ("NaN", "Infinity") if isinstance(text, str) else (b"NaN", b"Infinity")
        if not any(sign in text for sign in signs):  # type: ignore[operator]
            raise
        with suppress(ValueError, TypeError, RecursionError):
            return orjson.loads(orjson.dumps(json.loads(text)))  # which writes null for these
        raise


def require_single_keys(path: Path | str, text: str, content: Any, *, first_line: int = 1) -> None:
    """Refuse a text of JSON, whose parsed `content` is given, in which an object has two equal keys."""
    if len(_KEY_ENDS.findall(text)) != key_count(content):
        _refuse_repeated_key(path, text, first_line)


def require_single_keys_in_lines(
    path: Path | str, lines: Sequence[bytes], rows: Sequence[dict[str, Any]], *, first_line: int
) -> None:
    """Refuse lines of one JSON object each, or blank, in which an object has two equal keys; `rows` are the objects.

    Counting what ends keys takes a fraction of the time of parsing, so that only lines that may
    have a key twice are read again.
    """
    if len(_KEY_ENDS_IN_BYTES.findall(b"\n".join(lines))) == sum(map(len, rows)):
        return
    numbered = (
        (number, line)
        for number, line in enumerate(lines, start=first_line)
        if line and not line.isspace()
    )
    for (number, line), row in zip(numbered, rows, strict=True):
        if len(_KEY_ENDS_IN_BYTES.findall(line)) != key_count(row):
            _refuse_repeated_key(path, line.decode(errors="replace"), number)


def key_count(content: Any) -> int:
    """Count the keys of all objects in parsed JSON."""
    count, nested = 0, [content]
    while nested:
        value = nested.pop()
        if isinstance(value, dict):
            count += len(value)
            value = value.values()
        elif not isinstance(value, list):
            continue
        if not _NESTED.isdisjoint(map(type, value)):  # in most objects all values are plain
            nested += [inner for inner in value if type(inner) in _NESTED]
    return count


def _refuse_repeated_key(path: Path | str, text: str, first_line: int) -> None:
    """Read the keys of valid JSON one by one; `DataError` names the line of the second of two equal ones."""
    objects = list[set[str]]()
    for token in _TOKEN.finditer(text):
        if token[0] == "{":
            objects.append(set())
        elif token[0] == "}":
            objects.pop()
        elif token[2] is not None:
            key = json.loads(f'"{token[1]}"', strict=False) if "\\" in token[1] else token[1]
            if key in objects[-1]:
                line = first_line + text.count("\n", 0, token.start())
                raise DataError(
                    path,
                    f"the key {shorten(key)} occurs twice in one object; keep one of them",
                    line=line,
                )
            objects[-1].add(key)
