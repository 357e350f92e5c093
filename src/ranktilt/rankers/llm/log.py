"""Stored calls of LLM rankers, as others keep them: one record a call, with the prompt's text or the ids shown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ranktilt.errors import DataError, shorten
from ranktilt.io.files import decode_text, read_bytes

_BETWEEN = re.compile(r"[\s,\[\]]*")
"""Records follow each other, as lines or in a list."""
_SQLITE = b"SQLite format 3\x00"
_BEGUN = re.compile(r"(?:t(?:ru?)?|f(?:a(?:ls?)?)?|n(?:ul?)?|-|\\?u?[0-9a-fA-F]{0,4}\"?)\s*\Z")
"""What is left of a value or an escape that a file's end cuts off."""
EXPECTED = "expected records of prompt and response (rank_llm), or of query, ids and answer"


class LoggedCall(NamedTuple):
    """One call: what was asked, and the answer."""

    number: int
    """From 1, in the log's order."""
    query: str | None
    """Id of the query, where the log tells it."""
    ids: tuple[str, ...]
    """Documents in the order in which they were shown; empty where only the prompt tells them."""
    prompt: str
    answer: str | None
    """None where there is none."""


class CallLog(NamedTuple):
    """The calls of a log."""

    calls: tuple[LoggedCall, ...]
    cut: bool
    """Whether the last record stops in the middle, as that of a process that was killed."""


def read_log(path: Path) -> CallLog:
    """Read a log: JSON records one after the other, by lines, commas or in a list, plain or gzip.

    A record has ``prompt`` (a text, or a list of messages) and ``response``, as rank_llm writes it, alone or in the
    ``invocations_history`` of a ``query``; or it has ``query`` (an id), ``ids`` (documents in the order shown) and
    ``answer``. `DataError` names the line of anything else; a record that the file's end cuts off is left out.
    """
    text = _text(path)
    records, cut = list[LoggedCall](), False
    decoder, end = json.JSONDecoder(), 0
    while (start := _past(text, end)) < len(text):
        try:
            record, end = decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            if records and _stops(text, error):
                cut = True
                break
            came = shorten(text[start : start + 200])
            raise DataError(path, f"{EXPECTED}, got {came}", line=_line(text, start)) from error
        except (RecursionError, ValueError) as error:
            raise DataError(path, f"{EXPECTED}, got JSON that cannot be read", line=_line(text, start)) from error
        found = list(_calls(record, len(records)))
        if not found:
            came = shorten(", ".join(record)) if isinstance(record, dict) else shorten(record)
            raise DataError(path, f"{EXPECTED}, got {came}", line=_line(text, start))
        records += found
    if not records:
        raise DataError(path, "holds no calls")
    return CallLog(tuple(records), cut)


def _text(path: Path) -> str:
    data = read_bytes(path)
    if data.startswith(_SQLITE):
        raise DataError(
            path,
            "is a journal of RankTilt, which keeps a digest of each prompt and not its text, so that nothing says "
            "which passages an answer ranks; rank again instead: what the journal holds is not asked again",
        )
    if not data.strip():
        raise DataError(path, "the file is empty")
    return decode_text(path, data)


def _past(text: str, end: int) -> int:
    found = _BETWEEN.match(text, end)
    return end if found is None else found.end()


def _stops(text: str, error: json.JSONDecodeError) -> bool:
    """Whether a record is broken because the text ends in it."""
    return error.msg.startswith("Unterminated string") or _BEGUN.match(text, error.pos) is not None


def _line(text: str, start: int) -> int:
    return text.count("\n", 0, start) + 1


def _calls(record: Any, before: int) -> Iterator[LoggedCall]:
    """The calls of a record, none if it is not what it should be."""
    if not isinstance(record, dict):
        return
    history = record.get("invocations_history")
    if isinstance(history, list):
        query = record.get("query")
        query = query.get("qid") if isinstance(query, dict) else query
        found = [_call(one, before + place, _id(query)) for place, one in enumerate(history, start=1)]
    else:
        found = [_call(record, before + 1, _id(record.get("query")))]
    if None not in found:
        yield from (one for one in found if one is not None)


def _call(record: Any, number: int, query: str | None) -> LoggedCall | None:
    if not isinstance(record, Mapping):
        return None
    answer = record.get("answer", record.get("response", ""))
    prompt, ids = _prompt(record.get("prompt")), record.get("ids")
    if answer is not None and not isinstance(answer, str):
        return None
    if isinstance(ids, list) and "answer" in record:
        named = tuple(name for one in ids if (name := _id(one)) is not None)
        return LoggedCall(number, query, named, "", answer) if query and len(named) == len(ids) else None
    return LoggedCall(number, query, (), prompt, answer) if prompt and "response" in record else None


def _prompt(found: Any) -> str:
    """The text of a prompt, or of all its messages; empty where it is neither."""
    if isinstance(found, list):
        found = "\n".join(str(one.get("content", "")) for one in found if isinstance(one, Mapping))
    return found if isinstance(found, str) else ""


def _id(found: Any) -> str | None:
    return str(found) if isinstance(found, str | int) and not isinstance(found, bool) and str(found) else None
