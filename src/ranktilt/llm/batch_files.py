"""What a server says of a batch: its status, and what became of each request by the files of answers and errors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from ranktilt.errors import UserError
from ranktilt.llm.base import Answer, Failure
from ranktilt.llm.responses import (
    FailedRequest,
    classify_error,
    error_text,
    filtered_answer,
    read_answer,
)
from ranktilt.llm.server import Server
from ranktilt.llm.untrusted import elements_of, fields_of, message_text, plain_line, whole_number

UNDER_WAY = frozenset(
    [
        "validating",
        "queued",
        "pending",
        "created",
        "scheduled",
        "running",
        "in_progress",
        "finalizing",
        "cancelling",
    ]
)
ENDED = frozenset(["completed", "expired", "failed", "cancelled"])
_ID = re.compile(r"[!-~]{1,200}")
_PASSING = re.compile(
    r"expired|cancelled|timeout|timed_out|rate_limit|overloaded|unavailable|server_error|internal",
    re.I,
)
"""Codes of errors of requests that were not carried out, and may be another time."""


@dataclass(frozen=True, kw_only=True)
class BatchStatus:
    """How far a batch is."""

    status: str
    files: tuple[str, ...]
    """Ids of the files of answers and of errors, as far as there are any."""
    total: int
    completed: int
    """Requests with an answer, by the server's count."""
    failed: int
    errors: str
    """Why the whole batch was not taken."""


@dataclass(frozen=True, kw_only=True)
class BatchLines:
    """What the files of a batch say."""

    outcomes: dict[str, Answer | Failure | UserError] = field(default_factory=dict)
    """What became of requests, by their key; a `UserError` concerns them all."""
    unreadable: int = 0
    """Lines that do not say what became of a request."""

    @property
    def answer_count(self) -> int:
        """Requests with an answer."""
        return sum(isinstance(outcome, Answer) for outcome in self.outcomes.values())


def read_id(data: dict[str, Any], name: str = "id") -> str:
    """Read the id of a file or a batch; `ValueError` where there is none."""
    value = data.get(name)
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise ValueError(f"no {name} in the answer")
    return value


def read_status(data: dict[str, Any], clean: Callable[[str], str]) -> BatchStatus:
    """Read how far a batch is; `ValueError` where its status or its files are not said, or not known."""
    status = data.get("status")
    known = status.casefold() if isinstance(status, str) else ""
    if known not in UNDER_WAY | ENDED:
        raise ValueError(
            f"its status is {plain_line(clean(message_text(status)))!r}, which is none that is known"
        )
    names = [
        name for name in ("output_file_id", "error_file_id") if data.get(name) not in (None, "")
    ]
    counts = fields_of(data.get("request_counts"))
    total, completed, failed = (
        whole_number(counts.get(name)) or 0 for name in ("total", "completed", "failed")
    )
    faults = elements_of(fields_of(data.get("errors")).get("data"))
    messages = [
        plain_line(clean(message_text(fields_of(fault).get("message")))) for fault in faults
    ]
    return BatchStatus(
        status=known,
        files=tuple(read_id(data, name) for name in names),
        total=total,
        completed=completed,
        failed=failed,
        errors="; ".join(filter(None, messages)) or "no reason is given",
    )


def read_page(data: dict[str, Any]) -> list[tuple[str, str]]:
    """Read a part of the list of batches, each with the id of its file; `ValueError` where one cannot be read."""
    if not isinstance(data.get("data"), list):
        raise ValueError("no list of batches in the answer")
    batches = [fields_of(batch) for batch in data["data"]]
    return [(read_id(batch), read_id(batch, "input_file_id")) for batch in batches]


def read_lines(content: bytes, server: Server) -> BatchLines:
    """Read the lines of a batch's answers and errors.

    An answer counts before an error for the same request, since it is paid for, and the first one
    of several does. A server that answered one of them has the model, and takes the key.
    """
    rows, unreadable = _rows(content)
    answers = dict[str, Answer | Failure | UserError]()
    for key, row in rows:
        if _is_answer(row):
            try:
                answers.setdefault(key, read_answer(_response_body(row), server.model, server))
            except ValueError:
                unreadable += 1
    known = replace(server, has_answered=server.has_answered or bool(answers))
    outcomes = dict(answers)
    for key, row in rows:
        outcome = None if _is_answer(row) else _failed(row, known)
        if outcome is not None:
            outcomes.setdefault(key, outcome)
        elif not _is_answer(row):
            unreadable += 1
    return BatchLines(outcomes=outcomes, unreadable=unreadable)


def _rows(content: bytes) -> tuple[list[tuple[str, dict[str, Any]]], int]:
    """Parse lines, each with the key of its request, and count those that cannot be."""
    rows, unreadable = list[tuple[str, dict[str, Any]]](), 0
    for line in filter(bytes.strip, content.splitlines()):
        try:
            row = json.loads(line)
            rows.append((read_id(row, "custom_id"), row))
        except (ValueError, AttributeError, RecursionError):
            unreadable += 1
    return rows, unreadable


def _response_body(row: dict[str, Any]) -> dict[str, Any]:
    return fields_of(fields_of(row.get("response")).get("body"))


def _is_answer(row: dict[str, Any]) -> bool:
    status = fields_of(row.get("response")).get("status_code")
    return status == 200 or (status is None and bool(_response_body(row).get("choices")))


def _failed(row: dict[str, Any], server: Server) -> Answer | Failure | UserError | None:
    """Return what became of a request without an answer; None where the line does not say it."""
    response = fields_of(row.get("response"))
    status, body = whole_number(response.get("status_code")), response.get("body")
    if status is not None:
        if not 300 <= status < 600:
            return None
        error = classify_error(
            status, body.get("error", body) if isinstance(body, dict) else body, server
        )
    else:
        words, labels = error_text(row.get("error"), server.clean)
        if not row.get("error"):
            return None
        error = FailedRequest(
            "unavailable" if _PASSING.search(labels) else "refused", words or labels
        )
    if isinstance(error, UserError):
        return error
    if error.kind == "filtered":
        return filtered_answer(server.model)
    return Failure(error.kind, error.message)
