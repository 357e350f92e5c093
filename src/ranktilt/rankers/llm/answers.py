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

from ranktilt.data.text.quality import refusal
from ranktilt.errors import UserError, counted, shorten
from ranktilt.llm.base import Answer, Reply
from ranktilt.llm.cleaning import CleanAnswer, clean_answer

OK, REPAIRED, MISSING, REPEATED = "ok", "repaired", "missing", "repeated"
REFUSED, AMBIGUOUS, OFF_FORMAT = "refused", "ambiguous", "off-format"
CUT_OFF, UNANSWERED = "cut off", "unanswered"
KINDS = (OK, REPAIRED, MISSING, REPEATED, REFUSED, AMBIGUOUS, OFF_FORMAT, CUT_OFF, UNANSWERED)
"""Of answers, the best first: as asked for; with words around it, other signs, or numbers beyond the list; some
passages left out; some named twice; a refusal; more than one ranking; no ranking that could be read; reasoning that
never ends, and so no answer; nothing at all."""
READABLE = frozenset((OK, REPAIRED, MISSING, REPEATED))
"""Kinds of answers that say which passages come first."""

_ID = r"(?:\[\s*\d{1,6}\s*\]|(?<![\w.])\d{1,6}(?:\s*\]|(?![\w.]*\w)))"
"""Of the first one the opening bracket may be the prompt's last sign."""
_NUMBER = r"\d{1,3}[.)]\s*(?=\[)"
"""Of a line, or of a place in a list; it names no passage."""
_CHAIN = re.compile(rf"{_ID}(?:\s*>\s*(?:{_NUMBER})?{_ID})+")
_LIST = re.compile(
    rf"\[\d{{1,6}}\](?:(?:\s*,\s*|\s*\n\s*(?:{_NUMBER}|[-*]\s+)?|[ \t]+{_NUMBER})\[\d{{1,6}}\])+"
)
_CHOICE = re.compile(r"(?:passage\s*)?(?:\[\s*\d{1,6}\s*\]|\d{1,6})", re.I)
_BARE = re.compile(r"\[?\s*\d{1,6}\s*\](?:[\s,]*\[\s*\d{1,6}\s*\])*")
"""An answer of nothing but identifiers, one or several."""
_NAMED = re.compile(r"\[\s*\d{1,6}\s*\]|\bpassage\s+\d{1,6}\b", re.I)
_YES_NO = re.compile(r"(?P<word>yes|no)(?P<rest>$|\s*\n.*|\s*[.,:;!)–—-].*)", re.I | re.S)
_REFUSAL = re.compile(
    r"\b(?:I|we)\s*(?:cannot|can.?t|can not|could not|am unable to|.m unable to|am not able to|will not|won.t)\s+"
    r"(?:rank|compare|judge|determine|choose)\b",
    re.I,
)
_OBJECT = re.compile(r"\{[^{}\[\]]*\[[^{}\[\]]*\]\s*\}")
"""A JSON object with one list, among other words."""
END_OF_THOUGHT = "</think>"
"""Where published code looks for the end of reasoning."""
_BLANKS = re.compile("[\\s\u2581\u0120\u010a]+")
"""White space, and what SentencePiece and byte-level tokenizers write for it."""
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
        return {
            "llm_answers": {"kinds": counts, **asked, "tokens_written": self.written, **example}
        }


def read_ranking(text: str, count: int) -> Reading:
    """Read a ranking of `count` passages: identifiers joined by ``>``, as a JSON list, or a list of ``[1]``, ``[2]``.

    Identifiers with nothing but blanks between are a list where nothing else is said. A ranking may
    stand among other words, but there must be one alone: of two, nobody knows which was meant.
    """
    cleaned = clean_answer(text)
    answer, is_bare = cleaned.text, not cleaned.is_wrapped
    if cleaned.is_cut_off:
        return Reading(CUT_OFF, ())
    numbers = _json_numbers(answer)
    if numbers is not None:
        return _judged(numbers, count, wanted=count, strict=is_bare, answer=answer)
    if _BARE.fullmatch(answer.removesuffix(".")):
        return _judged(_numbers(answer), count, wanted=count, strict=False, answer=answer)
    objects = [
        numbers for part in _OBJECT.findall(answer) if (numbers := _json_numbers(part)) is not None
    ]
    chains = _CHAIN.findall(answer)
    if not objects and not chains:
        chains = _LIST.findall(answer)
    if len(objects) + len(chains) > 1:
        rankings = [*objects, *map(_numbers, chains)]
        valid = [ranking for ranking in rankings if any(1 <= number <= count for number in ranking)]
        return _none(answer, AMBIGUOUS if len(valid) > 1 else OFF_FORMAT)
    if objects:
        return _judged(objects[0], count, wanted=count, strict=False, answer=answer)
    if chains:
        whole = ">" in chains[0] and answer.removesuffix(".").strip() == chains[0]
        strict = (
            whole
            and chains[0].count("[") == chains[0].count("]")
            and not re.search(_NUMBER, chains[0])
        )
        return _judged(
            _numbers(chains[0]), count, wanted=count, strict=strict and is_bare, answer=answer
        )
    return _none(answer)


def read_choice(text: str, count: int) -> Reading:
    """Read which one of `count` passages was chosen: its identifier alone, or the first of a ranking."""
    cleaned = clean_answer(text)
    answer, is_bare = cleaned.text, not cleaned.is_wrapped
    if cleaned.is_cut_off:
        return Reading(CUT_OFF, ())
    numbers = _json_numbers(answer)
    if numbers is not None:
        return _judged(numbers, count, wanted=1, strict=is_bare, answer=answer)
    chains = _CHAIN.findall(answer)
    if len(chains) == 1:
        strict = is_bare and answer.removesuffix(".").strip() == chains[0]
        return _judged(_numbers(chains[0]), count, wanted=1, strict=strict, answer=answer)
    if _CHOICE.fullmatch(answer.removesuffix(".")):
        return _judged(_numbers(answer), count, wanted=1, strict=is_bare, answer=answer)
    named = dict.fromkeys(number for text in _NAMED.findall(answer) for number in _numbers(text))
    if not chains and len(named) == 1:
        return _judged(list(named), count, wanted=1, strict=False, answer=answer)
    valid = [number for number in named if 1 <= number <= count]
    return _none(answer, AMBIGUOUS if len(chains) > 1 or len(valid) > 1 else OFF_FORMAT)


def read_yes_no(answer: Answer) -> Reading:
    """Read whether a passage answers a query, from the answer's first word, which must be yes or no.

    The score is 1 + P(yes), or 1 − P(no), of the word's token, as in HELM (Liang et al., TMLR
    2023): from 0 to 2, above 1 where the answer is yes; NaN for an answer without
    log-probabilities. Where reasoning or wrappers stand before the word, its token must be known,
    for that of what came first says nothing.
    """
    cleaned = clean_answer(answer.text)
    if cleaned.is_cut_off:
        return Reading(CUT_OFF, ())
    match = _YES_NO.match(cleaned.text)
    if match is None:
        return _none(cleaned.text)
    logprob = _first_logprob(answer, cleaned)
    if logprob is None:
        return _none(cleaned.text)
    chance = math.exp(min(logprob, 0.0))
    is_alone = not cleaned.is_wrapped and not match["rest"].strip(" \n.")
    score = 1 + chance if match["word"].lower() == "yes" else 1 - chance
    return Reading(OK if is_alone else REPAIRED, (0,), score)


def _first_logprob(answer: Answer, cleaned: CleanAnswer) -> float | None:
    """Return the log-probability of the first token of what is left; None where that is unknown, NaN without any."""
    logprobs, whole, text = answer.logprobs, answer.text, cleaned.text
    if not logprobs:
        return math.nan
    if answer.tokens is None:
        return (
            logprobs[0]
            if whole.removeprefix(" ").startswith(text) and not cleaned.is_wrapped
            else None
        )
    matches = list(re.finditer(rf"(?<!\w){re.escape(text)}(?!\w)", whole))
    if not matches or (cleaned.is_wrapped and len(matches) > 1):
        return None  # what stood in a wrapper may be any of several equal words
    signs, tokens = _signs(whole), [_signs(token) for token in answer.tokens]
    # tokens may begin with reasoning that the server gives apart from the text, and end with marks
    # that it drops
    start = "".join(tokens).rfind(signs)
    if start < 0:
        return None
    place = start + len(_signs(whole[: matches[-1].start()]))
    for token, logprob in zip(tokens, logprobs, strict=True):
        if place < len(token):
            return logprob
        place -= len(token)
    return None


def _signs(text: str) -> str:
    """A text without blanks, which servers write in tokens as they like."""
    return _BLANKS.sub("", text)


def published_ranking(text: str, count: int, *, after_thought: bool = True) -> tuple[int, ...]:
    """Read an answer as the code of RankGPT (Sun et al., 2023) and rank_llm does: every number anywhere counts.

    Digits are taken in the order in which they come, the first of equal ones counts, and what is
    not named follows in the order in which it was shown; so any answer gives a ranking, and one
    without a number the input order. With `after_thought` only what follows the last ``</think>``
    counts, as in rank_llm since it knows models that reason.
    """
    digits = re.findall(r"[0-9]+", text.rpartition(END_OF_THOUGHT)[2] if after_thought else text)
    found = (number.lstrip("0") for number in digits)
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
        shown = (
            f" (first: {shorten(said['unreadable'], _EXAMPLE)})" if said.get("unreadable") else ""
        )
        raise UserError(
            f"{stage}: {failed:.0%} of {counted(kinds.total(), 'answer', 'answers')} could not be read"
            f"{unread_reasons(kinds)}, {limit} allows {100 * most:g}%{shown}"
        )


def unread_reasons(kinds: Mapping[str, int]) -> str:
    """Say in brackets, after a count of unreadable answers, how many have a reason that one can act on."""
    reasons = {
        AMBIGUOUS: "with more than one ranking or choice",
        CUT_OFF: "cut off within their reasoning",
    }
    counts = [f"{kinds[kind]:,} {reason}" for kind, reason in reasons.items() if kinds.get(kind)]
    return f" ({', '.join(counts)})" if counts else ""


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


def _none(answer: str, kind: str = OFF_FORMAT) -> Reading:
    return Reading(REFUSED if _refuses(answer) else kind, ())


@lru_cache(maxsize=4096)
def _refuses(answer: str) -> bool:
    """Whether a model refuses; prose is often the same, and a look at it takes milliseconds."""
    return _REFUSAL.search(answer) is not None or bool(
        refusal(pl.Series([answer], dtype=pl.String))[0]
    )
