"""Records of the journal: one answer each, as JSON with a checksum; and the lines of earlier versions' files."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from ranktilt.errors import DataWarning, shorten

_CHECK = b',"check":"%08x"}'
_CHECK_BYTES = len(_CHECK % 0)
_FIELDS = {
    "key", "time", "document", "prompt", "attempt", "parameters", "asked", "answered", "revision", "finish",
    "prompt_tokens", "completion_tokens", "text",
}  # fmt: skip


def sealed(content: Mapping[str, Any]) -> bytes:
    """Return a record as compact JSON, whose last field is the checksum of all before."""
    plain = orjson.dumps(content)[:-1]
    return plain + _CHECK % zlib.crc32(plain)


def unsealed(record: bytes) -> dict[str, Any]:
    """Read a record; `ValueError` where it is no whole one, or has changed since it was written.

    One of an early version, which has no checksum, is taken as it is, unless a field of it has an unknown name.
    """
    content = orjson.loads(record)
    if not isinstance(content, dict) or not content.keys() >= _FIELDS:
        raise ValueError("the record lacks a field")
    if not isinstance(content["key"], str) or not isinstance(content["text"], str):
        raise ValueError("the record has no key or no text")
    if "check" in content:
        if record[-_CHECK_BYTES:] != _CHECK % zlib.crc32(record[:-_CHECK_BYTES]):
            raise ValueError("the record has changed since it was written")
    elif not content.keys() <= _FIELDS | {"logprobs"}:
        raise ValueError("the record has a field that no version writes")
    return content


def old_records(file: Path, data: bytes, *, start: int) -> list[tuple[str, bytes]]:
    """Read the lines of an earlier version's file from a byte on: keys and records; damaged lines are warned of."""
    whole = list[tuple[str, bytes]]()
    for number, line in enumerate(data[start:].split(b"\n"), start=data.count(b"\n", 0, start) + 1):
        try:
            whole.append((unsealed(line)["key"], line))
        except ValueError:
            if line.strip():
                shown = shorten(line.decode(errors="replace").strip())
                message = f"{file}:{number}: a damaged line is passed over, its answer is asked again: {shown}"
                warnings.warn(message, DataWarning, stacklevel=2)
    return whole
