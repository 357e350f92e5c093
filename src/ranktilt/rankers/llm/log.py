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
from ranktilt.llm.stored_answers import stored_answer

_BETWEEN = re.compile(r"[\s,\[\]]*")
"""Records follow each other, as lines or in a list."""
EXPECTED = "expected records of prompt and response (rank_llm), or of query, ids and answer"
_ANSWERS = (
    "answer",
    "response",
    "output",
    "outputs",
    "completion",
    "choices",
    "generated_text",
    "raw_response",
    "raw_answer",
)
"""Where a record holds its answer, in any form that `stored_answer` reads; the first one counts."""
_PROMPTS = ("prompt", "messages", "request", "input")


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

    A record has ``prompt`` (a text, or a list of messages) and ``response``, as rank_llm writes it,
    alone or in the ``invocations_history`` of a ``query``; or it has ``query`` (an id), ``ids``
    (documents in the order shown) and ``answer``. Requests and responses of a server's API are read
    too. Answers stay as they came: reasoning and wrappers go where an answer is read. `DataError`
    names the line of anything else.
    """
    text, records = decode_text(path, read_bytes(path)), list[LoggedCall]()
    decoder, end, line = json.JSONDecoder(), 0, 1
    while (start := _BETWEEN.match(text, end).end()) < len(text):  # type: ignore[union-attr]
        line += text.count("\n", end, start)
        try:
            record, end = decoder.raw_decode(text, start)
            require_single_keys(path, text[start:end], record, first_line=line)
            found, came = (
                _calls(record, len(records)),
                ", ".join(record) if isinstance(record, dict) else record,
            )
        except (
            ValueError,
            RecursionError,
        ):  # no JSON, nested too deeply, or a number of thousands of digits
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
    calls = [
        _call(answer, number, _id(query)) for number, answer in enumerate(answers, start=before + 1)
    ]
    return [] if None in calls else [call for call in calls if call is not None]


def _call(record: Any, number: int, query: str | None) -> LoggedCall | None:
    if not isinstance(record, Mapping):
        return None
    key = next((name for name in _ANSWERS if name in record), None)
    if key is None:
        return None
    try:
        answer = stored_answer({key: record[key]} if key == "choices" else record[key])
    except ValueError:
        return None
    ids = record.get("ids")
    if isinstance(ids, list):
        names = tuple(name for value in ids if (name := _id(value)) is not None)
        return (
            LoggedCall(number, query, names, "", answer)
            if query and len(names) == len(ids)
            else None
        )
    prompt = next((text for name in _PROMPTS if (text := _prompt(record.get(name)))), "")
    return LoggedCall(number, query, (), prompt, answer) if prompt else None


def _prompt(stored: Any) -> str:
    """The text of a prompt, of all its messages, or of a request with these; empty where it is none of them."""
    if isinstance(stored, Mapping):
        nested = (stored.get(name) for name in ("body", *_PROMPTS))
        return next((text for value in nested if (text := _prompt(value))), "")
    if isinstance(stored, list):
        contents = [message.get("content") for message in stored if isinstance(message, Mapping)]
        return "\n".join(_content(content) for content in contents)
    return stored if isinstance(stored, str) else ""


def _content(content: Any) -> str:
    """The text of a message: one, or that of all its parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else ""


def _id(found: Any) -> str | None:
    return (
        str(found)
        if isinstance(found, str | int) and not isinstance(found, bool) and str(found)
        else None
    )
