"""Files named with their columns: ``FILE:query=qid,id=url``, as options and Python take them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ranktilt.errors import UserError, unknown

PAIRS = r"[\w.-]+=[^=,]+(?:,[\w.-]+=[^=,]+)*"
_NOTATION = re.compile(rf"(?P<file>.+?):(?P<pairs>{PAIRS})")
FIRST = "first"
"""The only choice of ``keep`` and ``several`` so far."""
RUN_NOUNS = ("query", "id", "score", "rank", "hits")
QRELS_NOUNS = ("query", "id", "grade", "hits")
RUN_OPTIONS = {"keep": (FIRST,)}
QRELS_OPTIONS = {"several": (FIRST,)}


@dataclass(frozen=True, kw_only=True)
class NamedFile:
    """A file, and what its user says about it."""

    path: Path
    columns: Mapping[str, str] = field(default_factory=dict)
    """Column or key by what it holds: ``{"id": "document.url"}``; ``hits`` names the key of lists."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Choices: ``{"keep": "first"}``."""

    @classmethod
    def from_text(
        cls, text: str | Path, nouns: Sequence[str], options: Mapping[str, Sequence[str]]
    ) -> NamedFile:
        """Read ``FILE:query=qid,keep=first``; the name of a file that exists is that file's."""
        pairs = split_notation(text)
        if pairs is None:
            return cls(path=Path(text))
        file, assigned = pairs
        names = dict[str, str]()
        for key, value in assigned:
            if key in names:
                raise UserError(f"{text}: {key} is named twice")
            if key not in nouns and key not in options:
                raise UserError(f"{file}: {unknown('key', key, [*nouns, *options])}")
            if key in options and value not in options[key]:
                raise UserError(f"{file}: {unknown(f'choice of {key}', value, options[key])}")
            names[key] = value
        return cls(
            path=Path(file),
            columns={key: value for key, value in names.items() if key in nouns},
            options={key: value for key, value in names.items() if key in options},
        )


def split_notation(text: str | Path) -> tuple[str, list[tuple[str, str]]] | None:
    """Take a file's name and its pairs of key and value apart; None where there is the name alone."""
    match = None if os.path.exists(text) else _NOTATION.fullmatch(str(text))
    if match is None:
        return None
    parts = [part.partition("=") for part in match["pairs"].split(",")]
    return match["file"], [(key, value.strip()) for key, _, value in parts]


def file_of(text: str | Path) -> Path:
    """Return the file that a text names, without what is said of its columns."""
    pairs = split_notation(text)
    return Path(text if pairs is None else pairs[0])


def pairs_of(text: str | Path) -> str:
    """Return what a text says of a file's columns, as it is typed; empty where it names the file alone."""
    pairs = split_notation(text)
    return "" if pairs is None else ",".join(f"{key}={value}" for key, value in pairs[1])


def value_at(record: Any, path: str) -> Any:
    """Return what lies at a dotted path of nested JSON, or under a key that is spelled so; None where nothing does."""
    if isinstance(record, Mapping) and path in record:
        return record[path]
    value = record
    for key in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value
