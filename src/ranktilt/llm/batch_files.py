"""Read a batch's status, and the outcome of each request from its files of answers and errors.

A *batch* is a file of requests that a server answers within a day, at half the price. The *key* of
a request names it in the batch and in the journal of answers. The server's secret key is another
thing; it is hidden in whatever the server sends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from ranktilt.errors import UserError
from ranktilt.llm.base import Answer, Failure, FailureKind
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
"""States of a batch that has not ended; some are words of other servers than OpenAI's."""
ENDED = frozenset(["completed", "expired", "failed", "cancelled"])
"""States of a batch that will not change again."""
_ID = re.compile(r"[!-~]{1,200}")
"""Id of a file, a batch or a request: visible ASCII without blanks."""
_TEMPORARY = re.compile(
    r"expired|cancelled|timeout|timed_out|rate_limit|overloaded|unavailable|server_error|internal",
    re.I,
)
"""Codes of errors of requests that the server did not process, but may process if sent again."""


@dataclass(frozen=True, kw_only=True)
class BatchStatus:
    """State of a batch."""

    status: str
    """Word for the state, of `UNDER_WAY` or `ENDED`."""
    files: tuple[str, ...]
    """Ids of the files of answers and of errors that exist."""
    total: int
    """Number of requests."""
    completed: int
    """Number of requests with an answer, by the server's count."""
    failed: int
    """Number of requests with an error, by the server's count."""
    errors: str
    """Reason why the server refused a batch whose state is ``failed``."""


@dataclass(frozen=True, kw_only=True)
class BatchLines:
    """Content of a batch's files."""

    outcomes: dict[str, Answer | Failure | UserError] = field(default_factory=dict)
    """Outcome of each request by its key; a `UserError` concerns all requests."""
    unreadable: int = 0
    """Number of lines without the outcome of a request."""

    @property
    def answer_count(self) -> int:
        """Number of requests with an answer."""
        return sum(isinstance(outcome, Answer) for outcome in self.outcomes.values())


def read_id(data: dict[str, Any], name: str = "id") -> str:
    """Read the id of a file or a batch from a field; `ValueError` if there is none."""
    value = data.get(name)
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise ValueError(f"no {name} in the answer")
    return value


def read_status(data: dict[str, Any], clean: Callable[[str], str]) -> BatchStatus:
    """Read the state of a batch; `ValueError` if its status is unknown or a file has no id.

    `clean` hides the server's secret key in messages.
    """
    status = data.get("status")
    known = status.casefold() if isinstance(status, str) else ""
    if known not in UNDER_WAY | ENDED:
        words = plain_line(clean(message_text(status)))
        raise ValueError(f"its status {words!r} is unknown")
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
    """Read a part of the list of batches: the ids of each batch and its file.

    `ValueError` if an id cannot be read.
    """
    if not isinstance(data.get("data"), list):
        raise ValueError("no list of batches in the answer")
    batches = [fields_of(batch) for batch in data["data"]]
    return [(read_id(batch), read_id(batch, "input_file_id")) for batch in batches]


def read_lines(content: bytes, server: Server) -> BatchLines:
    """Read the lines of a batch's answers and errors.

    If a request has an answer and an error, the answer counts, because it is paid for; of several
    answers the first counts.
    """
    rows, unreadable = _rows(content)
    answers = dict[str, Answer | Failure | UserError]()
    for key, row in rows:
        if _is_answer(row):
            try:
                answers.setdefault(key, read_answer(_response_body(row), server.model, server))
            except ValueError:
                unreadable += 1
    # A server that answered any request has the model, and accepts the secret key: an error of
    # another request is then about this request alone.
    answering_server = replace(server, has_answered=server.has_answered or bool(answers))
    outcomes = dict(answers)
    for key, row in rows:
        outcome = None if _is_answer(row) else _failure_outcome(row, answering_server)
        if outcome is not None:
            outcomes.setdefault(key, outcome)
        elif not _is_answer(row):
            unreadable += 1
    return BatchLines(outcomes=outcomes, unreadable=unreadable)


def _rows(content: bytes) -> tuple[list[tuple[str, dict[str, Any]]], int]:
    """Parse lines, each with the key of its request, and count those that cannot be parsed.

    Each line is a JSON object. Its field ``custom_id`` is the key of the request.
    """
    rows, unreadable = list[tuple[str, dict[str, Any]]](), 0
    for line in filter(bytes.strip, content.splitlines()):
        try:
            row = json.loads(line)
            rows.append((read_id(row, "custom_id"), row))
        except (
            ValueError,
            AttributeError,
            RecursionError,
        ):  # no JSON, no object, nested too deeply
            unreadable += 1
    return rows, unreadable


def _response_body(row: dict[str, Any]) -> dict[str, Any]:
    """Return the body of a line's response; empty if there is none."""
    return fields_of(fields_of(row.get("response")).get("body"))


def _is_answer(row: dict[str, Any]) -> bool:
    """Tell whether a line has an answer: by its status or, without a status, by its choices."""
    status = fields_of(row.get("response")).get("status_code")
    return status == 200 or (status is None and bool(_response_body(row).get("choices")))


def _failure_outcome(row: dict[str, Any], server: Server) -> Answer | Failure | UserError | None:
    """Return the outcome of a request that has no answer; None if its line does not tell.

    An error that all other requests would meet as well is a `UserError`. An answer that a content
    filter withheld counts as an empty answer.
    """
    response = fields_of(row.get("response"))
    status, body = whole_number(response.get("status_code")), response.get("body")
    error: FailedRequest | UserError
    if status is not None:
        if not 300 <= status < 600:  # no error of HTTP, and `_is_answer` found no answer either
            return None
        fault = body.get("error", body) if isinstance(body, dict) else body
        error = classify_error(status, fault, server)
    else:
        if not row.get("error"):
            return None
        message, codes = error_text(row.get("error"), server.clean)
        kind: FailureKind = "unavailable" if _TEMPORARY.search(codes) else "refused"
        error = FailedRequest(kind, message or codes)
    if isinstance(error, UserError):
        return error
    if error.kind == "filtered":
        return filtered_answer(server.model)
    return Failure(kind=error.kind, message=error.message)
