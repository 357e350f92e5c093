"""Refuse JSON with two equal keys in one object, of which parsers silently keep the last."""

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
"""End of a key in JSON."""
_KEY_ENDS_IN_BYTES = re.compile(rb'"\s*:')
"""End of a key in JSON as bytes.

The same characters may occur in a string, so that a text has at least as many of them as keys.
"""
_NESTED = frozenset({dict, list})
"""Types of nested values."""
_TOKEN = re.compile(r'"(?P<text>[^"\\]*(?:\\.[^"\\]*)*)"(?P<colon>\s*:)?|[{}]', re.DOTALL)
"""A string, with the colon that makes it a key, or the begin or the end of an object."""


def parse_json(text: str | bytes) -> Any:
    """Parse JSON, with null for NaN, Infinity and -Infinity, which Python's json writes."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        signs = ("NaN", "Infinity") if isinstance(text, str) else (b"NaN", b"Infinity")
        if not any(sign in text for sign in signs):  # type: ignore[operator]
            raise
        with suppress(ValueError, TypeError, RecursionError):
            # orjson writes null for these numbers.
            return orjson.loads(orjson.dumps(json.loads(text)))
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
    have a key twice are read again.
    """
    key_ends = len(_KEY_ENDS_IN_BYTES.findall(b"\n".join(lines)))
    if key_ends == sum(map(len, rows)) or key_ends == key_count(list(rows)):
        return
    numbered = enumerate(lines, start=first_line)
    written = [(number, line) for number, line in numbered if line and not line.isspace()]
    for (number, line), row in zip(written, rows, strict=True):
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
    """Read the keys of valid JSON one by one; `DataError` has the line of a repeated one."""
    objects = list[set[str]]()
    for token in _TOKEN.finditer(text):
        if token[0] == "{":
            objects.append(set())
        elif token[0] == "}":
            objects.pop()
        elif token["colon"] is not None:
            key = token["text"]
            if "\\" in key:
                key = json.loads(f'"{key}"', strict=False)
            if key in objects[-1]:
                line = first_line + text.count("\n", 0, token.start())
                message = f"the key {shorten(key)} occurs twice in one object; keep one of them"
                raise DataError(path, message, line=line)
            objects[-1].add(key)
