"""What a server's response means: an answer, read strictly; or an error, for one prompt, for now, or for all."""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

from ranktilt.errors import UserError
from ranktilt.llm.base import Answer, FailureKind, Vectors
from ranktilt.llm.retry import RetryableError, retry_after

LONGEST_WAIT = 600.0
"""Seconds a server may ask to wait; beyond that everything ends, to be taken up later."""
VARIABLE = "OPENAI_API_KEY"
LONG_KEY = 16
"""Signs from which a key is taken out of what is kept; a shorter one, such as the word that a server of one's own takes
for a key, could be a word of the text."""
_WIDTH = 200
_DATED = re.compile(r"[-@:]?(\d{4}-\d\d-\d\d|\d{4,8}|latest|main)")
_TRANSIENT = {408, 409, 425, 429}
_BUSY = {429, 503, 529}
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
_MODEL = re.compile(
    r"model_not_(found|exist)|invalid_model|not a valid model identifier|(unknown|no such|invalid) model"
    r"|\bmodels?\b.{0,120}\b(not found|(does )?not exist|not available|not served)|\bpinned to\b",
    re.I | re.S,
)
_UNWANTED = re.compile(
    r"unsupported|unknown|unrecogni[sz]ed|unexpected|not (be )?(support|allow|permit|accept)"
    r"|invalid|extra|only|must|should|(greater|less) than",
    re.I,
)


class RejectedRequest(Exception):
    """A request that the server does not take, though it may take others; `kind` is that of `Failure`."""

    def __init__(self, kind: FailureKind, message: str) -> None:
        self.kind, self.message = kind, message
        super().__init__(message)


class UnsupportedParameter(UserError):
    """A parameter that the server does not take, whatever the prompt."""

    def __init__(self, parameter: str, message: str) -> None:
        self.parameter = parameter
        super().__init__(message)


class FilteredRequest(Exception):
    """A request that a content filter kept back: an answer of its own kind."""


@dataclass(frozen=True, kw_only=True)
class RequestContext:
    """What was asked of whom, to judge an error by.

    `sent` are parameters that the server may not know (none once a request with them was answered); `answered`, whether
    it has answered with this model; `clean` takes the key out of what is shown, `secret` out of what is kept.
    """

    model: str
    where: str
    keyed: bool
    sent: Collection[str]
    answered: bool
    clean: Callable[[str], str]
    secret: Callable[[str], str] = str


def classify_error(status: int, headers: Mapping[str, str], content: bytes, context: RequestContext) -> Exception:
    """Return the exception that an error of a server calls for.

    `RetryableError` where another attempt may help, `RejectedRequest` or `FilteredRequest` where it is about this
    prompt alone, `UserError` where everything ends. Names of headers come in any case.
    """
    words, error = error_text(content, context.clean)
    labels = f"{error.get('code')} {error.get('type')} {_inner(error)}"
    shown = f"({status}): {words}" if words else f"({status})"
    whole = f"{labels} {words}"
    if status in (400, 403, 422, 451) and _FILTER.search(whole):
        return FilteredRequest(shown)
    if status in (401, 402, 403) or (status == 429 and _QUOTA.search(labels)):
        return _of_the_key(status, shown, context)
    if status in (400, 413, 422, 500) and _CONTEXT.search(whole):
        return RejectedRequest("too long", f"longer than the model's context {shown}")
    if status == 404 or (status in (400, 422, 500) and not context.answered and _MODEL.search(whole)):
        return _of_the_model(status, whole, shown, context)
    if status in _TRANSIENT or status >= 500:
        return _later(status, headers, shown, context)
    if name := _parameter(error, words, context.sent):
        return UnsupportedParameter(
            name,
            f"{context.where} does not take the parameter {name} with model {context.model!r} {shown}; "
            f"leave it out or give it a value that the model takes",
        )
    return RejectedRequest("too long" if status == 413 else "refused", f"not taken by the server {shown}")


def _of_the_key(status: int, shown: str, context: RequestContext) -> UserError:
    if status in (402, 429):
        return UserError(
            f"the quota of the key in {VARIABLE} is used up at {context.where} {shown}; raise it and run this again"
        )
    if not context.keyed:
        return UserError(f"{context.where} asks for a key {shown}; set the environment variable {VARIABLE}")
    if status == 401:
        return UserError(f"{context.where} does not accept the key in the environment variable {VARIABLE} {shown}")
    return UserError(f"{context.where} does not let the key in {VARIABLE} use model {context.model!r} {shown}")


def _of_the_model(status: int, whole: str, shown: str, context: RequestContext) -> UserError:
    if status == 404 and "model" not in whole.casefold():
        return UserError(f"there is no such service at {context.where} {shown}; a base URL usually ends in /v1")
    return UserError(f"{context.where} has no model {context.model!r} {shown}; name one that it serves")


def _later(status: int, headers: Mapping[str, str], shown: str, context: RequestContext) -> Exception:
    after = retry_after(headers)
    if after is not None and after > LONGEST_WAIT:
        minutes = math.ceil(after / 60)
        return UserError(f"{context.where} asks to wait {minutes:,} minutes {shown}; run this again after that")
    wait = after is not None
    busy, everyone = status in _BUSY or wait, status == 429 or wait
    return RetryableError(f"error of the server {shown}", after=after, busy=busy, everyone=everyone)


def _parameter(error: Mapping[str, Any], words: str, sent: Collection[str]) -> str | None:
    if error.get("param") in sent:
        return str(error["param"])
    found = [name for name in sent if re.search(rf"\b{name}\b", words)]
    return found[0] if found and _UNWANTED.search(words) else None


def _inner(error: Mapping[str, Any]) -> str:
    inner = error.get("innererror") or error.get("inner_error")
    return str(inner.get("code")) if isinstance(inner, dict) else ""


def error_text(content: bytes, clean: Callable[[str], str] = str) -> tuple[str, dict[str, Any]]:
    """Read the words of an error's body (one line, at most 200 characters) and the object with its fields.

    Servers write ``{"error": {"message": …}}``, ``{"error": …}``, ``{"detail": …}``, ``{"message": …}``, or anything.
    """
    try:
        data = orjson.loads(content)
    except orjson.JSONDecodeError:
        data = re.sub(r"<[^>]*>", " ", clean(content.decode(errors="replace"))[:4000])
    outer = data if isinstance(data, dict) else {}
    inner = outer.get("error", outer)
    error = inner if isinstance(inner, dict) else {}
    text = data if isinstance(data, str) else error.get("message") or outer.get("detail") or inner
    if isinstance(text, list):
        text = "; ".join(_error_line(one) for one in text)
    folded = " ".join(clean(text if isinstance(text, str) else str(text or "")).split()).rstrip(".")
    return (folded if len(folded) <= _WIDTH else folded[: _WIDTH - 1] + "…"), error


def _error_line(one: Any) -> str:
    if isinstance(one, dict) and "msg" in one:
        return f"{'.'.join(str(step) for step in one.get('loc', ()))}: {one['msg']}"
    return str(one)


def redactor(key: str | None, *, least: int = 1) -> Callable[[str], str]:
    """Make a function that takes a key out of a text, in whatever case it stands there.

    A key of fewer signs than `least` is left alone; a short one is only replaced where it stands by itself, so that it
    does not eat into words.
    """
    if not key or len(key) < least:
        return str
    edge = r"(?<![A-Za-z0-9]){}(?![A-Za-z0-9])" if len(key) < 8 else "{}"
    pattern = re.compile(edge.format(re.escape(key)), re.I)
    return lambda text: pattern.sub("[key]", text)


def json_body(content: bytes, clean: Callable[[str], str] = str) -> dict[str, Any]:
    """Parse a body; raises `RetryableError` where it is not a JSON object, and shows its beginning, cleaned."""
    try:
        data = _parsed(content)
    except (ValueError, RecursionError):
        start = " ".join(clean(content.decode(errors="replace")).split())[:60]
        raise RetryableError(f"malformed JSON: {start!r}" if start else "an empty body") from None
    if not isinstance(data, dict):
        raise RetryableError(f"expected a JSON object, got {type(data).__name__}")
    return data


def _parsed(content: bytes) -> Any:
    """Parse strictly, and if that fails as Python's servers write: with NaN, Infinity or halves of characters."""
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        return json.loads(content)


def read_answer(data: dict[str, Any], asked: str, clean: Callable[[str], str] = str) -> Answer:
    """Read a chat completion; `RetryableError` where there is no choice, or not what it should hold.

    `asked` names the model where the server does not; `clean` takes out what must not be kept. A refusal that the
    server gives apart from the text stands as the text.
    """
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices:
        raise RetryableError("no choice in the answer")
    choice = next((one for one in choices if isinstance(one, dict) and one.get("index") == 0), choices[0])
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        raise RetryableError("no message in the answer")
    text = _text(message)
    usage = data.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return Answer(
        clean(text),
        clean(str(choice.get("finish_reason") or "stop")),
        _count(usage.get("prompt_tokens")),
        _count(usage.get("completion_tokens")),
        clean(str(data.get("model") or asked)),
        clean(str(data.get("system_fingerprint") or "")) or None,
        _logprobs(choice.get("logprobs")),
    )


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    if content is None:
        content = message.get("refusal") or ""
    if not isinstance(content, str):
        raise RetryableError(f"expected text as the message's content, got {type(content).__name__}")
    return content


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _logprobs(given: Any) -> tuple[float, ...] | None:
    tokens = given.get("content") if isinstance(given, dict) else None
    if not isinstance(tokens, list):
        return None
    try:
        return tuple(float(token["logprob"]) for token in tokens)
    except (KeyError, TypeError, ValueError):
        return None


def read_vectors(data: dict[str, Any], count: int) -> Vectors:
    """Read embeddings, in the order of their index: float32 (count, dimension).

    `RetryableError` where there is not exactly one finite vector a text, all of one dimension.
    """
    rows = data.get("data")
    if not isinstance(rows, list) or len(rows) != count:
        raise RetryableError(f"expected {count} vectors, got {len(rows) if isinstance(rows, list) else 'none'}")
    try:
        places = [operator.index(row["index"]) for row in rows]
        each_once = sorted(places) == list(range(count))
        with np.errstate(over="ignore"):
            made = np.asarray([row["embedding"] for row in rows], dtype=np.float32)
    except (KeyError, TypeError, ValueError):
        raise RetryableError("vectors without an index, not of numbers, or not of one dimension") from None
    if not each_once:
        raise RetryableError(f"expected the indices 0 to {count - 1}, each once")
    if made.ndim != 2 or not made.shape[1] or not np.isfinite(made).all():
        raise RetryableError("vectors with values that are no finite numbers")
    ordered = np.empty_like(made)
    ordered[places] = made
    return ordered


def used_tokens(data: dict[str, Any]) -> int | None:
    """Return the tokens that a request took in all; None where the server does not say."""
    usage = data.get("usage")
    return _count(usage.get("total_tokens")) if isinstance(usage, dict) else None


def same_model(asked: str, returned: str) -> bool:
    """Tell whether a returned name is the asked one, or a dated version of it, as ``gpt-4o-mini-2024-07-18``.

    Folders and providers before the last ``/`` do not count.
    """
    short, long = (name.casefold().rstrip("/").rpartition("/")[2] for name in (asked, returned))
    return long.startswith(short) and (long == short or _DATED.fullmatch(long[len(short) :]) is not None)
