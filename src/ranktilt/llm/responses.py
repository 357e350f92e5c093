"""Read a server's response: an answer, or an error.

An error may concern the prompt alone, pass after a while, or concern all requests. The *key* is the
secret one that is sent to the server; it is hidden in whatever the server sends back.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any, Literal

import numpy as np

from ranktilt.errors import UserError, counted
from ranktilt.llm.base import Answer, FailureKind, Vectors
from ranktilt.llm.server import VARIABLE, Server
from ranktilt.llm.stored_answers import stored_answer
from ranktilt.llm.untrusted import (
    elements_of,
    fields_of,
    log_probabilities,
    message_text,
    plain_line,
    token_texts,
)

_MESSAGE_LENGTH = 200
"""Most characters of an error's message."""
_VERSION_DATE = re.compile(r"[-@:]?(\d{4}-\d\d-\d\d|\d{4,8}|latest|main)")
"""Suffix of a model's name for a version of it, such as a date."""
_TEMPORARY_CODES = {408, 409, 429}
"""Status codes below 500 that may pass: time limit, conflict, too many requests."""
LONGEST_WAIT = 120.0
"""Most seconds that the client waits if a server asks it to."""
_MOST_DAYS = 3_650
"""Most days of a waiting time that are written as a number."""
_QUOTA = re.compile(
    r"insufficient_quota|billing_\w*limit|billing_not_active|insufficient.balance", re.I
)
"""Words of an error that says that the quota is used up."""
_CONTEXT = re.compile(
    r"context_length_exceeded|exceed_context_size|max_tokens must be at least 1, got -"
    r"|context[ _-]?(length|size|window)\b.*\b(exceed|maximum|too|reduce|requested)"
    r"|(exceed\w*|maximum|longer than|too \w+ for)\b.{0,60}\bcontext\b"
    r"|\b(prompt|input|message|request)s?\b.{0,40}\btoo (long|large)|string_above_max_length",
    re.I | re.S,
)
"""Words of an error that says that a prompt is longer than the model's context."""
_FILTER = re.compile(
    r"content_filter|content_policy|ResponsibleAIPolicy|data_inspection_failed"
    r"|content (management )?(policy|filter)",
    re.I,
)
"""Words of an error that says that a content filter withheld the answer."""


class FailedRequest(Exception):
    """A request without an answer.

    `kind` is a kind of `Failure`, or ``filtered`` if a content filter withheld the answer.
    """

    def __init__(self, kind: FailureKind | Literal["filtered"], message: str) -> None:
        self.kind, self.message = kind, message
        super().__init__(message)


def classify_error(
    status: int, body: object, server: Server, wait: float | None = None
) -> FailedRequest | UserError:
    """Return the exception for an error of a server; a `UserError` if all requests would meet it.

    `status` and `body` are those of the response, and `wait` is the number of seconds for which the
    server asks to be left alone.
    """
    words, labels = error_text(body, server.clean)
    message = f"({status}): {words}" if words else f"({status})"
    if status in (400, 403, 422, 451) and _FILTER.search(f"{labels} {words}"):
        return FailedRequest("filtered", message)
    if status in (400, 413, 422, 500) and _CONTEXT.search(f"{labels} {words}"):
        return FailedRequest("too long", f"longer than the model's context {message}")
    if status == 403 and server.has_answered and not isinstance(body, dict):
        # The body is the page of a firewall, which says nothing about the key.
        return FailedRequest("refused", f"rejected by the server {message}")
    has_no_quota = status == 402 or (status == 429 and _QUOTA.search(labels) is not None)
    lasting = _lasting_error(status, message, server, has_no_quota=has_no_quota)
    if lasting is not None:
        return lasting
    if wait is not None and wait > LONGEST_WAIT and _may_pass(status):
        return UserError(
            f"{server.where}: the server asks to wait {_duration(wait)} {message}; run the same "
            "command then: the answers so far are kept"
        )
    if _may_pass(status):
        return FailedRequest("unavailable", f"error of the server {message}")
    return FailedRequest(
        "too long" if status == 413 else "refused", f"rejected by the server {message}"
    )


def _may_pass(status: int) -> bool:
    """Tell whether an error may pass, so that the same request can succeed later."""
    return status in _TEMPORARY_CODES or status >= 500


def _lasting_error(
    status: int, message: str, server: Server, *, has_no_quota: bool
) -> UserError | None:
    """Return an error that all other requests would meet as well; None for other errors."""
    if 300 <= status < 400:
        return UserError(
            f"{server.where} redirects elsewhere ({status}); redirects are not followed: "
            "check the base URL"
        )
    if has_no_quota:
        return UserError(
            f"the quota of the key in {VARIABLE} is used up at {server.where} {message}; "
            "raise it and run this again"
        )
    if status in (401, 403):
        fault = (
            "asks for a key"
            if server.key is None
            else f"does not accept the key for model {server.model!r}"
        )
        return UserError(f"{server.where} {fault} (the environment variable {VARIABLE}) {message}")
    if status == 404:
        return UserError(
            f"{server.where} has no model {server.model!r} {message}; name one that it serves, "
            "under a base URL that usually ends in /v1"
        )
    return None


def retry_delay(headers: Mapping[str, str]) -> float | None:
    """Return the number of seconds for which a server asks to be left alone; None if it does not.

    Servers give a number or a date.
    """
    for header, divisor in (("retry-after-ms", 1_000), ("retry-after", 1)):
        with suppress(KeyError, ValueError):
            seconds = float(headers[header]) / divisor
            return None if math.isnan(seconds) else seconds
    try:
        return parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time()
    except (KeyError, ValueError, TypeError, OverflowError, OSError):
        return None


def _duration(seconds: float) -> str:
    """Write seconds in minutes, hours or days."""
    days = seconds / 86_400
    if days > _MOST_DAYS:
        return f"more than {_MOST_DAYS:,} days"
    for length, unit in ((86_400, "day"), (3_600, "hour")):
        if seconds >= length:
            return counted(round(seconds / length), unit, f"{unit}s")
    return counted(round(seconds / 60), "minute", "minutes")


def error_text(body: object, clean: Callable[[str], str] = str) -> tuple[str, str]:
    """Return the message of an error, and its code and type.

    The message is one line of at most 200 characters. `body` is the value of the response's field
    ``error``, or a body without this field, which may be any text. `clean` hides the key.
    """
    fields = body if isinstance(body, dict) else {"message": body}
    text = clean(message_text(fields.get("message") or fields.get("detail")))
    words = plain_line(re.sub(r"<[^<>]*>", " ", text).strip().rstrip("."), _MESSAGE_LENGTH)
    labels = (plain_line(message_text(fields.get(name))) for name in ("code", "type"))
    return words, " ".join(labels)


def json_body(content: bytes, clean: Callable[[str], str] = str) -> dict[str, Any]:
    """Parse a JSON object; the `ValueError` for anything else shows its beginning, cleaned."""
    try:
        # Unlike orjson, this reads NaN, Infinity and halves of characters, which servers in Python
        # write.
        data = json.loads(content)
    except (ValueError, RecursionError):
        start = " ".join(clean(content.decode(errors="replace")).split())[:60]
        raise ValueError(f"malformed JSON: {start!r}" if start else "an empty body") from None
    if not isinstance(data, dict):
        raise ValueError(f"expected a JSON object, got {type(data).__name__}")
    return data


def read_answer(data: dict[str, Any], model: str, server: Server | None = None) -> Answer:
    """Read a chat completion; `ValueError` if it has no choice, or no message that can be read.

    An answer was paid for, so nothing else is required: other wrong fields are left out, and
    `Answer` cleans the rest. `model` is the model's name if the response has none. The secret key
    of the `server` is hidden. A refusal in a field of its own becomes the text.
    """
    server = server or Server(model=model, url=None)
    choices = elements_of(data.get("choices"))
    if not choices:
        raise ValueError("no choice in the answer")
    choice = fields_of(choices[0])
    message = choice.get("message")
    if not isinstance(message, dict):
        raise ValueError("no message in the answer")
    try:
        # A text, or parts, some of which may be reasoning.
        content = stored_answer(message.get("content"))
    except ValueError:
        raise ValueError("no message in the answer") from None
    refusal = message.get("refusal")
    if content is None:
        content = refusal if isinstance(refusal, str) else ""

    def name(value: object) -> str:
        return server.clean(value) if isinstance(value, str) else ""

    usage, returned = fields_of(data.get("usage")), data.get("model")
    token_list = fields_of(choice.get("logprobs")).get("content")
    tokens = [fields_of(token) for token in elements_of(token_list)]
    logprobs = log_probabilities([token.get("logprob") for token in tokens])
    finish = name(choice.get("finish_reason"))
    answering_model = model if returned == model else name(returned) or model
    revision = name(data.get("system_fingerprint"))
    return Answer(
        text=server.secret(content),
        finish=finish,
        prompt_tokens=usage.get("prompt_tokens"),
        completion_tokens=usage.get("completion_tokens"),
        model=answering_model,
        revision=revision,
        logprobs=logprobs or None,
        tokens=_token_texts(tokens, server.secret),
    )


def _token_texts(
    tokens: list[dict[str, Any]], hide: Callable[[str], str]
) -> tuple[str, ...] | None:
    """Return the text of each token; None if any has no text, or if the key is in them."""
    texts = token_texts([token.get("token") for token in tokens])
    text = "".join(texts or ())
    return texts if text and hide(text) == text else None


def filtered_answer(model: str) -> Answer:
    """Return an empty answer in place of one that a content filter withheld."""
    return Answer(
        text="", finish="content_filter", prompt_tokens=None, completion_tokens=None, model=model
    )


def read_vectors(data: dict[str, Any], count: int) -> Vectors:
    """Read embeddings, in the order of their index: float32 (count, dimension).

    Raises a `ValueError` unless there is exactly one finite vector for each of `count` texts, all
    of the same dimension.
    """
    try:
        by_index = {row["index"]: row["embedding"] for row in elements_of(data.get("data"))}
        with np.errstate(over="ignore"):
            vectors = np.array([by_index[number] for number in range(count)], dtype=np.float32)
        if vectors.ndim != 2 or not vectors.size:
            raise ValueError
    except (KeyError, TypeError, ValueError, OverflowError):
        raise ValueError(
            f"expected {count} vectors by their index, of numbers and of one dimension"
        ) from None
    if len(by_index) != count or not np.isfinite(vectors).all():
        raise ValueError(f"expected {count} vectors of finite numbers, got {len(by_index)}")
    return vectors


def same_model(requested: str, returned: str) -> bool:
    """Tell whether a returned name is the requested one, or a dated version of it.

    A dated version is ``gpt-4o-mini-2024-07-18``. Folders and providers before the last ``/`` do
    not count.
    """
    short, long = (name.casefold().rstrip("/").rpartition("/")[2] for name in (requested, returned))
    if not long.startswith(short):
        return False
    return long == short or _VERSION_DATE.fullmatch(long[len(short) :]) is not None
