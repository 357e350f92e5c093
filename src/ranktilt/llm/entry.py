"""One answer and what was asked for it: the key it is found by, and its line in the journal."""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson

from ranktilt.llm.base import LLM, Answer, Prompt, Sampling

KEY_BYTES = 16
_CHECK = b',"check":"%08x"}'
_CHECK_BYTES = len(_CHECK % 0)
_KEPT = ("key", "time", "document", "prompt", "attempt", "parameters", "asked")
_FIELDS = {*_KEPT, "answered", "revision", "finish", "prompt_tokens", "completion_tokens", "text", "logprobs"}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One answer and what was asked for it: a line of the journal.

    Parameters
    ----------
    key : str
        As `key` makes it.
    prompt : str
        SHA-256 of the messages; `Prompt.digest`.
    document : str
        Hash of the content that the prompt was made of.
    attempt : int
        From 1 on.
    parameters : mapping
        How the answer was drawn.
    asked : str
        Name of the model that was asked for; that of the model that answered is the answer's.
    answer : Answer
        What came.
    time : str
        When, in UTC, as ISO 8601.
    """

    key: str
    prompt: str
    document: str
    attempt: int
    parameters: Mapping[str, Any]
    asked: str
    answer: Answer
    time: str = field(default_factory=_now)

    def line(self) -> bytes:
        """Return the entry as a line of JSON, its end included; its last field is the checksum of all before."""
        answer = self.answer
        content = {
            "key": self.key,
            "time": self.time,
            "document": self.document,
            "prompt": self.prompt,
            "attempt": self.attempt,
            "parameters": dict(self.parameters),
            "asked": self.asked,
            "answered": answer.model,
            "revision": answer.revision,
            "finish": answer.finish,
            "prompt_tokens": answer.prompt_tokens,
            "completion_tokens": answer.completion_tokens,
            "text": answer.text,
        }
        logprobs = {} if answer.logprobs is None else {"logprobs": list(answer.logprobs)}
        plain = orjson.dumps(content | logprobs)[:-1]
        return plain + _CHECK % zlib.crc32(plain) + b"\n"


def parameters(sampling: Sampling, *, seed: int | None) -> dict[str, Any]:
    """Return how an answer is drawn, as it stands in the journal.

    Parameters
    ----------
    sampling : Sampling
        For all prompts.
    seed : int or None
        Of this prompt.

    Returns
    -------
    dict
        Plain JSON values.
    """
    return {
        "temperature": float(sampling.temperature),
        "top_p": float(sampling.top_p),
        "max_tokens": sampling.max_tokens,
        "seed": seed,
        "logprobs": sampling.logprobs,
    }


def seed_of(prompt: Prompt, sampling: Sampling, attempt: int) -> int | None:
    """Return the seed of an attempt: the prompt's own or that of all, one more with each attempt; None stays None."""
    seed = sampling.seed if prompt.seed is None else prompt.seed
    return None if seed is None else seed + attempt - 1


def key(llm: LLM, prompt: Prompt, sampling: Sampling, attempt: int = 1) -> str:
    """Hash a request: equal for equal model, messages, parameters and attempt, and for no other.

    Parameters
    ----------
    llm : LLM
        Who is asked.
    prompt : Prompt
        What is asked.
    sampling : Sampling
        How answers are drawn.
    attempt : int, optional
        From 1 on; another attempt is another request.

    Returns
    -------
    str
        32 hexadecimal digits.
    """
    drawn = parameters(sampling, seed=seed_of(prompt, sampling, attempt))
    whole = orjson.dumps([llm.identity, prompt.digest, drawn, attempt])
    return hashlib.blake2b(whole, digest_size=KEY_BYTES).hexdigest()


def key_of(line: bytes) -> str | None:
    """Return the key that a line of the journal has; None where it is no whole entry."""
    try:
        entry = read(line)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return entry.key if isinstance(entry.key, str) and isinstance(entry.answer.text, str) else None


def read(line: bytes) -> Entry:
    """Read a line of the journal.

    Parameters
    ----------
    line : bytes
        With its end or without.

    Returns
    -------
    Entry
        What was written; a log-probability that JSON could not hold is NaN.

    Raises
    ------
    ValueError, KeyError, TypeError
        If it is no whole entry, or has changed since it was written. A line of an earlier version, which has no
        checksum, is taken as it is.
    """
    content = orjson.loads(line)
    plain = line.rstrip(b"\n")
    if "check" in content:
        if plain[-_CHECK_BYTES:] != _CHECK % zlib.crc32(plain[:-_CHECK_BYTES]):
            raise ValueError("the line has changed since it was written")
    elif not content.keys() <= _FIELDS:
        raise ValueError("the line has a field that no version writes")
    logprobs = content.get("logprobs")
    answer = Answer(
        text=content["text"],
        finish=content["finish"],
        prompt_tokens=content["prompt_tokens"],
        completion_tokens=content["completion_tokens"],
        model=content["answered"],
        revision=content["revision"],
        logprobs=None if logprobs is None else tuple(math.nan if p is None else p for p in logprobs),
    )
    return Entry(answer=answer, **{name: content[name] for name in _KEPT})
