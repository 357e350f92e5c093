"""Stored calls of LLM rankers, as others keep them: one record a call, with the prompt's text or the ids shown."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ranktilt.errors import DataError, shorten
from ranktilt.io.files import decode_text, read_bytes
from ranktilt.io.json_text import require_single_keys

_BETWEEN = re.compile(r"[\s,\[\]]*")
"""Records follow each other, as lines or in a list."""
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


def read_log(path: Path) -> tuple[LoggedCall, ...]:
    """Read a log: JSON records one after the other, by lines, commas or in a list, plain or gzip.

    A record has ``prompt`` (a text, or a list of messages) and ``response``, as rank_llm writes it, alone or in the
    ``invocations_history`` of a ``query``; or it has ``query`` (an id), ``ids`` (documents in the order shown) and
    ``answer``. `DataError` names the line of anything else.
    """
    text, records = decode_text(path, read_bytes(path)), list[LoggedCall]()
    decoder, end, line = json.JSONDecoder(), 0, 1
    while (start := _BETWEEN.match(text, end).end()) < len(text):  # type: ignore[union-attr]
        line += text.count("\n", end, start)
        try:
            record, end = decoder.raw_decode(text, start)
            require_single_keys(path, text[start:end], record, first_line=line)
            found, came = _calls(record, len(records)), ", ".join(record) if isinstance(record, dict) else record
        except json.JSONDecodeError:
            found, came = [], text[start : start + 200]
        if not found:
            raise DataError(path, f"{EXPECTED}, got {shorten(came)}", line=line)
        records += found
        line += text.count("\n", start, end)
    if not records:
        raise DataError(path, "holds no calls")
    return tuple(records)


def _calls(record: Any, before: int) -> list[LoggedCall]:
    """The calls of a record, none if it is not what it should be."""
    if not isinstance(record, dict):
        return []
    query, history = record.get("query"), record.get("invocations_history")
    query = query.get("qid") if isinstance(query, dict) else query
    answers = history if isinstance(history, list) else [record]
    calls = [_call(answer, number, _id(query)) for number, answer in enumerate(answers, start=before + 1)]
    return [] if None in calls else [call for call in calls if call is not None]


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
