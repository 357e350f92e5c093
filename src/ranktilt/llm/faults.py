"""What a server's error means: ask again, leave one prompt out, or end everything with a word on what to do."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

import orjson

from ranktilt.errors import UserError
from ranktilt.llm.base import Trouble
from ranktilt.llm.traffic import Again

LONGEST_WAIT = 600.0
"""Seconds a server may ask to wait; beyond that everything ends, to be taken up later."""
VARIABLE = "OPENAI_API_KEY"
LONG_KEY = 16
"""Signs from which a key is taken out of what is kept; a shorter one, such as the word that a server of one's own takes
for a key, could be a word of the text."""
_WIDTH = 200
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


class NotTaken(Exception):
    """A request that the server does not take; others may do better.

    Parameters
    ----------
    kind : {"too long", "refused", "unavailable"}
        As in `Failure`.
    message : str
        Why, in one line.
    """

    def __init__(self, kind: Trouble, message: str) -> None:
        self.kind, self.message = kind, message
        super().__init__(message)


class Filtered(Exception):
    """A request that a content filter kept back: an answer of its own kind."""


@dataclass(frozen=True, kw_only=True)
class Scene:
    """Where an error happened.

    Parameters
    ----------
    model : str
        The model that was asked.
    where : str
        The server, as a reader knows it.
    keyed : bool
        Whether a key was sent.
    sent : collection of str
        Parameters that the server may not know; none once a request with them was answered.
    answered : bool
        Whether this server has answered with this model.
    clean : callable
        Takes the key out of a text that is shown.
    secret : callable, optional
        Takes the key out of a text that is kept.
    """

    model: str
    where: str
    keyed: bool
    sent: Collection[str]
    answered: bool
    clean: Callable[[str], str]
    secret: Callable[[str], str] = str


def judged(status: int, headers: Mapping[str, str], content: bytes, scene: Scene) -> Exception:
    """Say what an error of a server means.

    Parameters
    ----------
    status : int
        HTTP status, 400 or above.
    headers : mapping
        The response's headers, names in any case.
    content : bytes
        Its body.
    scene : Scene
        What was asked, and where.

    Returns
    -------
    Exception
        To be raised: `Again` (another attempt may help), `NotTaken` or `Filtered` (this prompt alone), or `UserError`
        (everything ends).
    """
    words, error = said(content, scene.clean)
    labels = f"{error.get('code')} {error.get('type')} {_inner(error)}"
    shown = f"({status}): {words}" if words else f"({status})"
    whole = f"{labels} {words}"
    if status in (400, 403, 422, 451) and _FILTER.search(whole):
        return Filtered(shown)
    if status in (401, 402, 403) or (status == 429 and _QUOTA.search(labels)):
        return _of_the_key(status, shown, scene)
    if status in (400, 413, 422, 500) and _CONTEXT.search(whole):
        return NotTaken("too long", f"longer than the model's context {shown}")
    if status == 404 or (status in (400, 422, 500) and not scene.answered and _MODEL.search(whole)):
        return _of_the_model(status, whole, shown, scene)
    if status in _TRANSIENT or status >= 500:
        return _later(status, headers, shown, scene)
    if name := _parameter(error, words, scene.sent):
        return UserError(
            f"{scene.where} does not take the parameter {name} with model {scene.model!r} {shown}; "
            f"leave it out or give it a value that the model takes"
        )
    return NotTaken("too long" if status == 413 else "refused", f"not taken by the server {shown}")


def _of_the_key(status: int, shown: str, scene: Scene) -> UserError:
    if status in (402, 429):
        return UserError(
            f"the quota of the key in {VARIABLE} is used up at {scene.where} {shown}; raise it and run this again"
        )
    if not scene.keyed:
        return UserError(f"{scene.where} asks for a key {shown}; set the environment variable {VARIABLE}")
    if status == 401:
        return UserError(f"{scene.where} does not accept the key in the environment variable {VARIABLE} {shown}")
    return UserError(f"{scene.where} does not let the key in {VARIABLE} use model {scene.model!r} {shown}")


def _of_the_model(status: int, whole: str, shown: str, scene: Scene) -> UserError:
    if status == 404 and "model" not in whole.casefold():
        return UserError(f"there is no such service at {scene.where} {shown}; a base URL usually ends in /v1")
    return UserError(f"{scene.where} has no model {scene.model!r} {shown}; name one that it serves")


def _later(status: int, headers: Mapping[str, str], shown: str, scene: Scene) -> Exception:
    after = retry_after(headers)
    if after is not None and after > LONGEST_WAIT:
        minutes = math.ceil(after / 60)
        return UserError(f"{scene.where} asks to wait {minutes:,} minutes {shown}; run this again after that")
    wait = after is not None
    busy, everyone = status in _BUSY or wait, status == 429 or wait
    return Again(f"error of the server {shown}", after=after, busy=busy, everyone=everyone)


def _parameter(error: Mapping[str, Any], words: str, sent: Collection[str]) -> str | None:
    if error.get("param") in sent:
        return str(error["param"])
    found = [name for name in sent if re.search(rf"\b{name}\b", words)]
    return found[0] if found and _UNWANTED.search(words) else None


def _inner(error: Mapping[str, Any]) -> str:
    inner = error.get("innererror") or error.get("inner_error")
    return str(inner.get("code")) if isinstance(inner, dict) else ""


def said(content: bytes, clean: Callable[[str], str] = str) -> tuple[str, dict[str, Any]]:
    """Read the words and the fields of an error's body, in the shapes that servers give it.

    Parameters
    ----------
    content : bytes
        The body: ``{"error": {"message": …}}``, ``{"error": …}``, ``{"detail": …}``, ``{"message": …}``, or anything.
    clean : callable, optional
        Takes out what must not be shown.

    Returns
    -------
    tuple of str and dict
        The words in one line, at most 200 characters, and the object with the fields; empty where there is none.
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
        text = "; ".join(_listed(one) for one in text)
    folded = " ".join(clean(text if isinstance(text, str) else str(text or "")).split()).rstrip(".")
    return (folded if len(folded) <= _WIDTH else folded[: _WIDTH - 1] + "…"), error


def _listed(one: Any) -> str:
    if isinstance(one, dict) and "msg" in one:
        return f"{'.'.join(str(step) for step in one.get('loc', ()))}: {one['msg']}"
    return str(one)


def retry_after(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """Seconds that a response asks to wait.

    Parameters
    ----------
    headers : mapping
        Headers; ``retry-after-ms`` and ``retry-after`` (seconds or an HTTP date) are read.
    now : float, optional
        Seconds since the epoch; the clock's by default.

    Returns
    -------
    float or None
        0 or more; None where nothing usable is said.
    """
    lower = {name.casefold(): value for name, value in headers.items()}
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(lower[name]) / unit
        except (KeyError, ValueError):
            continue
        if math.isfinite(seconds):
            return max(seconds, 0.0)
    try:
        until = parsedate_to_datetime(lower["retry-after"]).timestamp()
    except (KeyError, ValueError, TypeError):
        return None
    return max(until - (time.time() if now is None else now), 0.0)


def redacted(key: str | None, *, least: int = 1) -> Callable[[str], str]:
    """Make a function that takes a key out of a text.

    Parameters
    ----------
    key : str or None
        The secret; None for none.
    least : int, optional
        A key of fewer signs is left alone.

    Returns
    -------
    callable
        Text to text, whatever the case of the key in it. A short key is only replaced where it stands alone, so that
        it does not eat into words.
    """
    if not key or len(key) < least:
        return str
    edge = r"(?<![A-Za-z0-9]){}(?![A-Za-z0-9])" if len(key) < 8 else "{}"
    pattern = re.compile(edge.format(re.escape(key)), re.I)
    return lambda text: pattern.sub("[key]", text)
