"""Read the names of files with their columns: ``FILE:query=qid,id=url``.

A *key* says what a column holds (``query``), and its value is the column's name in the file
(``qid``). Some keys are options instead, such as ``keep=first``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ranktilt.errors import UserError, unknown_name
from ranktilt.sizes import read_whole_number

PAIRS = r"[\w.-]+=[^=,]+(?:,[\w.-]+=[^=,]+)*"
"""Pattern of ``key=column,key=column``."""
_NOTATION = re.compile(rf"(?P<file>.+?):(?P<pairs>{PAIRS})")
"""Pattern of ``FILE:key=column,key=column``."""
FIRST = "first"
"""The only choice of ``keep`` and ``several``."""
RUN_NOUNS = ("query", "id", "score", "rank", "hits", "repeat")
"""Keys of a run's columns; ``hits`` is the key of its lists of documents in JSON."""
QRELS_NOUNS = ("query", "id", "grade", "hits", "confidence")
"""Keys of judgments' columns."""
RUN_OPTIONS = {"keep": (FIRST,)}
"""Options of a run, with their possible values."""
QRELS_OPTIONS = {"several": (FIRST,)}
"""Options of judgments, with their possible values."""


@dataclass(frozen=True, kw_only=True)
class NamedFile:
    """A file, and the user's choices for it."""

    path: Path
    """Path of the file."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Column or key by its content: ``{"id": "document.url"}``; ``hits`` names the key of lists."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options with their values: ``{"keep": "first"}``."""

    @classmethod
    def from_text(
        cls, text: str | Path, nouns: Sequence[str], options: Mapping[str, Sequence[str]]
    ) -> NamedFile:
        """Read ``FILE:query=qid,keep=first``; the whole text is the path if such a file exists.

        `nouns` are the valid keys of columns, and `options` the valid options with their values.
        """
        notation = split_notation(text)
        if notation is None:
            return cls(path=Path(text))
        file, pairs = notation
        names = dict[str, str]()
        for key, value in pairs:
            if key in names:
                raise UserError(f"{text}: {key} occurs twice")
            if key not in nouns and key not in options:
                raise UserError(f"{file}: {unknown_name('key', key, [*nouns, *options])}")
            if key in options and value not in options[key]:
                raise UserError(f"{file}: {unknown_name(f'choice of {key}', value, options[key])}")
            names[key] = value
        return cls(
            path=Path(file),
            columns={key: value for key, value in names.items() if key in nouns},
            options={key: value for key, value in names.items() if key in options},
        )


def split_notation(text: str | Path) -> tuple[str, list[tuple[str, str]]] | None:
    """Split a text into a file's name and pairs of key and value; None for the name alone."""
    match = None if os.path.exists(text) else _NOTATION.fullmatch(str(text))
    if match is None:
        return None
    parts = [part.partition("=") for part in match["pairs"].split(",")]
    return match["file"], [(key, value.strip()) for key, _, value in parts]


def file_of(text: str | Path) -> Path:
    """Return the file in a text, without the pairs of key and value."""
    notation = split_notation(text)
    return Path(text if notation is None else notation[0])


def pairs_of(text: str | Path) -> str:
    """Return the pairs of key and value in a text, as users type them; empty for a file alone."""
    notation = split_notation(text)
    if notation is None:
        return ""
    _, pairs = notation
    return ",".join(f"{key}={value}" for key, value in pairs)


def value_at(record: Any, path: str) -> Any:
    """Return the value at a dotted path of nested JSON, or of a key with dots; None if absent."""
    if isinstance(record, Mapping) and path in record:
        return record[path]
    value = record
    for key in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, list):
            index = read_whole_number(key)
            value = value[index] if index is not None and 0 <= index < len(value) else None
        else:
            return None
    return value
