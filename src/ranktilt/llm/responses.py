"""What a server's response means: an answer, read strictly; or an error, for one prompt, for now, or for all."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np

from ranktilt.errors import UserError
from ranktilt.llm.base import Answer, Failure, FailureKind, Vectors
from ranktilt.llm.server import VARIABLE, Server
from ranktilt.llm.stored_answers import stored_answer

_WIDTH = 200
_DATED = re.compile(r"[-@:]?(\d{4}-\d\d-\d\d|\d{4,8}|latest|main)")
_PASSING = {408, 409, 429}
_QUOTA = re.compile(r"insufficient_quota|billing_\w*limit|billing_not_active|insufficient.balance", re.I)
_CONTEXT = re.compile(
    r"context_length_exceeded|exceed_context_size|max_tokens must be at least 1, got -"
    r"|context[ _-]?(length|size|window)\b.*\b(exceed|maximum|too|reduce|requested)"
    r"|(exceed\w*|maximum|longer than|too \w+ for)\b.{0,60}\bcontext\b"
    r"|\b(prompt|input|message|request)s?\b.{0,40}\btoo (long|large)|string_above_max_length",
    re.I | re.S,
)
_FILTER = re.compile(
    r"content_filter|content_policy|ResponsibleAIPolicy|data_inspection_failed|content (management )?(policy|filter)",
    re.I,
)


class FailedRequest(Exception):
    """A request without an answer; `kind` is that of `Failure`, or ``filtered``."""

    def __init__(self, kind: FailureKind | Literal["filtered"], message: str) -> None:
        self.kind, self.message = kind, message
        super().__init__(message)


def classify_error(status: int, body: object, server: Server) -> FailedRequest | UserError:
    """Return the exception that an error of a server calls for; `UserError` where everything ends."""
    words, labels = error_text(body, server.clean)
    shown = f"({status}): {words}" if words else f"({status})"
    whole = f"{labels} {words}"
    if 300 <= status < 400:
        return UserError(
            f"{server.where} redirects elsewhere ({status}); redirects are not followed: check the base URL"
        )
    if status in (400, 403, 422, 451) and _FILTER.search(whole):
        return FailedRequest("filtered", shown)
    if status == 402 or (status == 429 and _QUOTA.search(labels)):
        return UserError(
            f"the quota of the key in {VARIABLE} is used up at {server.where} {shown}; raise it and run this again"
        )
    if status in (401, 403):
        what = "asks for a key" if server.key is None else f"does not accept the key for model {server.model!r}"
        return UserError(f"{server.where} {what} (the environment variable {VARIABLE}) {shown}")
    if status in (400, 413, 422, 500) and _CONTEXT.search(whole):
        return FailedRequest("too long", f"longer than the model's context {shown}")
    if status == 404:
        return UserError(
            f"{server.where} has no model {server.model!r} {shown}; name one that it serves, under a base URL that "
            "usually ends in /v1"
        )
    if status in _PASSING or status >= 500:
        return FailedRequest("unavailable", f"error of the server {shown}")
    return FailedRequest("too long" if status == 413 else "refused", f"not taken by the server {shown}")


def error_text(body: object, clean: Callable[[str], str] = str) -> tuple[str, str]:
    """Read the words of an error's body (one line, at most 200 characters), and its code and type.

    The body is as the client gives it: what stands under ``error``, or all of it, which may be any text.
    """
    fields = body if isinstance(body, dict) else {"message": body}
    text = clean(str(fields.get("message") or fields.get("detail") or ""))
    folded = " ".join(re.sub(r"<[^>]*>", " ", text).split()).rstrip(".")
    short = folded if len(folded) <= _WIDTH else folded[: _WIDTH - 1] + "…"
    return short, f"{fields.get('code')} {fields.get('type')}"


def json_body(content: bytes, clean: Callable[[str], str] = str) -> dict[str, Any]:
    """Parse a body; raises `ValueError` where it is not a JSON object, and shows its beginning, cleaned."""
    try:
        data = json.loads(content)  # with NaN, Infinity or halves of characters, as Python's servers write
    except (ValueError, RecursionError):
        start = " ".join(clean(content.decode(errors="replace")).split())[:60]
        raise ValueError(f"malformed JSON: {start!r}" if start else "an empty body") from None
    if not isinstance(data, dict):
        raise ValueError(f"expected a JSON object, got {type(data).__name__}")
    return data


def read_answer(data: dict[str, Any], model: str, clean: Callable[[str], str] = str) -> Answer:
    """Read a chat completion; `ValueError` where there is no choice, or not what it should hold.

    `model` is its name where the server does not say; `clean` takes out what must not be kept. A refusal that the
    server gives apart from the text stands as the text.
    """
    if not data.get("choices"):
        raise ValueError("no choice in the answer")
    try:
        choice, usage = data["choices"][0], data.get("usage") or {}
        message, tokens = choice["message"], (choice.get("logprobs") or {}).get("content")
        content = stored_answer(message.get("content"))  # a text, or parts of which reasoning is none
        text = clean(message.get("refusal") or "" if content is None else content)
        return Answer(
            text.encode(errors="replace").decode(),  # no file can hold half a character
            clean(str(choice.get("finish_reason") or "stop")),
            usage.get("prompt_tokens"),
            usage.get("completion_tokens"),
            clean(str(data.get("model") or model)),
            clean(str(data.get("system_fingerprint") or "")) or None,
            None if tokens is None else tuple(float(token["logprob"]) for token in tokens),
            _token_texts(tokens or [], clean),
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ValueError("no message in the answer") from None


def _token_texts(tokens: list[dict[str, Any]], clean: Callable[[str], str]) -> tuple[str, ...] | None:
    """Return the text of each token; None where one has none, or all together hold what must not be kept."""
    texts = [token["token"].encode(errors="replace").decode() for token in tokens if token.get("token") is not None]
    whole = "".join(texts)
    return tuple(texts) if whole and len(texts) == len(tokens) and clean(whole) == whole else None


def read_batch(content: bytes, server: Server) -> Iterator[tuple[str, Answer | Failure | UserError]]:
    """Read what became of each request of a batch, by its key, from the lines of its answers and its errors.

    A `UserError` ends everything; a line that cannot be read is none.
    """
    for line in content.splitlines():
        try:
            row = json.loads(line)
            yield str(row["custom_id"]), _batch_outcome(row, server)
        except (ValueError, LookupError, TypeError, AttributeError):
            continue


def _batch_outcome(row: dict[str, Any], server: Server) -> Answer | Failure | UserError:
    response, body = row.get("response") or {}, (row.get("response") or {}).get("body") or {}
    if response.get("status_code") == 200:
        return read_answer(body, server.model, server.secret)
    if response:
        error = classify_error(int(response["status_code"]), body.get("error", body), server)
    else:
        error = FailedRequest("unavailable", error_text(row.get("error") or {}, server.clean)[0])
    if isinstance(error, UserError):
        return error
    if error.kind == "filtered":
        return Answer("", "content_filter", None, None, server.model)
    return Failure(error.kind, error.message)


def read_vectors(data: dict[str, Any], count: int) -> Vectors:
    """Read embeddings, in the order of their index: float32 (count, dimension).

    `ValueError` where there is not exactly one finite vector a text, all of one dimension.
    """
    try:
        by_index = {row["index"]: row["embedding"] for row in data.get("data") or []}
        with np.errstate(over="ignore"):
            made = np.array([by_index[number] for number in range(count)], dtype=np.float32)
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"expected {count} vectors by their index, of numbers and of one dimension") from None
    if len(by_index) != count or not np.isfinite(made).all():
        raise ValueError(f"expected {count} vectors of finite numbers, got {len(by_index)}")
    return made


def same_model(requested: str, returned: str) -> bool:
    """Tell whether a returned name is the requested one, or a dated version of it, as ``gpt-4o-mini-2024-07-18``.

    Folders and providers before the last ``/`` do not count.
    """
    short, long = (name.casefold().rstrip("/").rpartition("/")[2] for name in (requested, returned))
    return long.startswith(short) and (long == short or _DATED.fullmatch(long[len(short) :]) is not None)
