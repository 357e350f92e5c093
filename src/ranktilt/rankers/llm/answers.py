"""What an answer says about the passages a model was shown, read strictly; and as published code reads it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import orjson
import polars as pl

from ranktilt.errors import UserError, counted, shorten
from ranktilt.llm.base import Reply
from ranktilt.text.quality import refusal

OK, REPAIRED, MISSING, REPEATED = "ok", "repaired", "missing", "repeated"
REFUSED, OFF_FORMAT, UNANSWERED = "refused", "off-format", "unanswered"
KINDS = (OK, REPAIRED, MISSING, REPEATED, REFUSED, OFF_FORMAT, UNANSWERED)
"""Of answers, the best first: as asked for; with words around it, other signs, or numbers beyond the list; some
passages left out; some named twice; a refusal; no ranking that could be read, or more than one; no answer at all."""
READABLE = frozenset((OK, REPAIRED, MISSING, REPEATED))
"""Kinds of answers that say which passages come first."""

_ID = r"(?:\[\s*\d{1,6}\s*\]|(?<![\w.])\d{1,6}(?:\s*\]|(?![\w.]*\w)))"
"""Of the first one the opening bracket may be the prompt's last sign."""
_NUMBER = r"\d{1,3}[.)]\s*(?=\[)"
"""Of a line, or of a place in a list; it names no passage."""
_CHAIN = re.compile(rf"{_ID}(?:\s*>\s*(?:{_NUMBER})?{_ID})+")
_LIST = re.compile(rf"\[\d{{1,6}}\](?:(?:\s*,\s*|\s*\n\s*(?:{_NUMBER}|[-*]\s+)?|[ \t]+{_NUMBER})\[\d{{1,6}}\])+")
_CHOICE = re.compile(r"(?:passage\s*)?(?:\[\s*\d{1,6}\s*\]|\d{1,6})", re.I)
_BARE = re.compile(r"\[?\s*\d{1,6}\s*\](?:[\s,]*\[\s*\d{1,6}\s*\])*")
"""An answer of nothing but identifiers, one or several."""
_NAMED = re.compile(r"\[\s*\d{1,6}\s*\]|\bpassage\s+\d{1,6}\b", re.I)
_YES_NO = re.compile(r" ?(?P<word>yes|no)(?P<rest>$|\s*\n.*|\s*[.,:;!)–—-].*)", re.I | re.S)
_REFUSAL = re.compile(
    r"\b(?:I|we)\s*(?:cannot|can.?t|can not|could not|am unable to|.m unable to|am not able to|will not|won.t)\s+"
    r"(?:rank|compare|judge|determine|choose)\b",
    re.I,
)
_LONGEST = 20_000
"""Characters of an answer that are read; no ranking of what was shown is longer."""
_EXAMPLE = 120


class Reading(NamedTuple):
    """What an answer says: its kind, and the passages it names, best first, by their place among those shown.

    `score` is that of the one passage shown, where it was asked about alone.
    """

    kind: str
    order: tuple[int, ...]
    score: float | None = None


@dataclass
class AnswerCounts:
    """What was asked and answered over all queries: kinds of answers, tokens, and the first unreadable answer."""

    kinds: Counter[str] = field(default_factory=Counter)
    requests: int = 0
    fresh: int = 0
    read: int = 0
    written: int = 0
    example: str = ""

    def add(self, reply: Reply, reading: Reading) -> None:
        """Count one more reply, and what it was read as."""
        self.kinds[reading.kind] += 1
        self.requests += 1
        self.fresh += reply.fresh
        if reply.answer is not None:
            self.read += reply.answer.prompt_tokens or 0
            self.written += reply.answer.completion_tokens or 0
        if not self.example and reading.kind not in READABLE:
            failed = reply.failure.message if reply.failure else ""
            self.example = (failed if reply.answer is None else reply.answer.text)[:2_000]

    @property
    def spec(self) -> dict[str, Any]:
        """What a run's spec says of them."""
        counts = {kind: self.kinds[kind] for kind in KINDS if self.kinds[kind]}
        asked = {"requests": self.requests, "fresh": self.fresh, "tokens_read": self.read}
        example = {"unreadable": self.example} if self.example else {}
        return {"llm_answers": {"kinds": counts, **asked, "tokens_written": self.written, **example}}


def read_ranking(text: str, count: int) -> Reading:
    """Read a ranking of `count` passages: identifiers joined by ``>``, as a JSON list, or a list of ``[1]``, ``[2]``.

    Identifiers with nothing but blanks between are a list where nothing else is said. A ranking may stand among other
    words, but there must be one alone: of two, nobody knows which was meant.
    """
    answer = text[:_LONGEST].strip()
    found = _json_numbers(answer)
    if found is not None:
        return _judged(found, count, wanted=count, strict=True, answer=answer)
    if _BARE.fullmatch(answer.removesuffix(".")):
        return _judged(_numbers(answer), count, wanted=count, strict=False, answer=answer)
    chains = _CHAIN.findall(answer) or _LIST.findall(answer)
    if len(chains) == 1:
        whole = ">" in chains[0] and answer.removesuffix(".").strip() == chains[0]
        strict = whole and chains[0].count("[") == chains[0].count("]") and not re.search(_NUMBER, chains[0])
        return _judged(_numbers(chains[0]), count, wanted=count, strict=strict, answer=answer)
    return _none(answer)


def read_choice(text: str, count: int) -> Reading:
    """Read which one of `count` passages was chosen: its identifier alone, or the first of a ranking."""
    answer = text[:_LONGEST].strip()
    found = _json_numbers(answer)
    if found is not None:
        return _judged(found, count, wanted=1, strict=True, answer=answer)
    chains = _CHAIN.findall(answer)
    if len(chains) == 1:
        strict = answer.removesuffix(".").strip() == chains[0]
        return _judged(_numbers(chains[0]), count, wanted=1, strict=strict, answer=answer)
    if _CHOICE.fullmatch(answer.removesuffix(".")):
        return _judged(_numbers(answer), count, wanted=1, strict=True, answer=answer)
    named = dict.fromkeys(number for one in _NAMED.findall(answer) for number in _numbers(one))
    if not chains and len(named) == 1:
        return _judged(list(named), count, wanted=1, strict=False, answer=answer)
    return _none(answer)


def read_yes_no(text: str, logprob: float) -> Reading:
    """Read whether a passage answers a query: the first word is yes or no, and `logprob` is ln P of that token.

    The score is 1 + P(yes), or 1 − P(no), as in HELM (Liang et al., TMLR 2023): from 0 to 2, above 1 where the answer
    is yes. What is written before the word would take its token's place, so it must come first.
    """
    found = _YES_NO.match(text[:_LONGEST])
    if found is None:
        return _none(text[:_LONGEST].strip())
    chance = math.exp(logprob)
    alone = not found["rest"].strip(" \n.")
    return Reading(OK if alone else REPAIRED, (0,), 1 + chance if found["word"].lower() == "yes" else 1 - chance)


def published_ranking(text: str, count: int) -> tuple[int, ...]:
    """Read an answer as the code of RankGPT (Sun et al., 2023) and rank_llm does: every number anywhere counts.

    Digits are taken in the order in which they come, the first of equal ones counts, and what is not named follows in
    the order in which it was shown; so any answer gives a ranking, and one without a number the input order.
    """
    found = (number.lstrip("0") for number in re.findall(r"[0-9]+", text))
    named = dict.fromkeys(int(number) - 1 for number in found if 0 < len(number) <= len(str(count)))
    valid = [place for place in named if 0 <= place < count]
    return (*valid, *(place for place in range(count) if place not in named))


def require_answers(stage: str, said: Mapping[str, Any], most: float, limit: str) -> None:
    """Refuse a stage with more unreadable answers than the share `most`, which `limit` sets; `said` counts them.

    They count as an audit counts them: ``kinds``, and the first one, ``unreadable``.
    """
    kinds = Counter({str(kind): int(number) for kind, number in said["kinds"].items()})
    failed = 1 - sum(kinds[kind] for kind in READABLE) / kinds.total() if kinds else 0.0
    if failed > most + 1e-9:
        shown = f" (first: {shorten(said['unreadable'], _EXAMPLE)})" if said.get("unreadable") else ""
        raise UserError(
            f"{stage}: {failed:.0%} of {counted(kinds.total(), 'answer', 'answers')} could not be read, "
            f"{limit} allows {100 * most:g}%{shown}"
        )


def _json_numbers(answer: str) -> list[int] | None:
    """The numbers of a JSON list, alone or as the only value of an object; None where the answer is neither."""
    if not answer.startswith(("{", "[")):
        return None
    try:
        value = orjson.loads(answer)
    except orjson.JSONDecodeError:
        return None
    if isinstance(value, dict) and len(value) == 1:
        value = next(iter(value.values()))
    if isinstance(value, int) and not isinstance(value, bool):
        return [value]
    whole = isinstance(value, list) and value and all(type(one) is int for one in value)
    return value if whole else None


def _numbers(text: str) -> list[int]:
    """The identifiers in a chain, list or choice; the numbers of a list's lines are none."""
    return [int(number) for number in re.findall(r"\d+", re.sub(_NUMBER, "", text))]


def _judged(numbers: list[int], count: int, *, wanted: int, strict: bool, answer: str) -> Reading:
    valid = [number - 1 for number in numbers if 1 <= number <= count]
    order = tuple(dict.fromkeys(valid))
    if not order:
        return _none(answer)
    if len(order) < len(valid):
        return Reading(REPEATED, order)
    if len(order) < wanted:
        return Reading(MISSING, order)
    return Reading(OK if strict and len(valid) == len(numbers) else REPAIRED, order)


def _none(answer: str) -> Reading:
    return Reading(REFUSED if _refuses(answer) else OFF_FORMAT, ())


@lru_cache(maxsize=4096)
def _refuses(answer: str) -> bool:
    """Whether a model refuses; prose is often the same, and a look at it takes milliseconds."""
    return _REFUSAL.search(answer) is not None or bool(refusal(pl.Series([answer], dtype=pl.String))[0])
