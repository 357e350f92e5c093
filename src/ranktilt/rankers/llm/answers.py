"""Read answers about the passages of a prompt: strictly, and as published code reads them.

A prompt shows passages with numbers in brackets, their *identifiers*: ``[1]``, ``[2]``. An answer
is a *ranking* of them (``[2] > [1]``), a *choice* of one, or yes or no. An answer that could mean
two things is not read; answers are counted by kind, which says what is wrong with them. A *reading*
is what was made of an answer: its kind, and the order of the passages that it names.

An answer is *wrapped* if it comes after reasoning or in a block of code (`clean_answer` unwraps
it). `read_ranking`, `read_choice` and `read_yes_no` read one, `AnswerCounts` counts them, and
`require_answers` refuses a ranker of which too many cannot be read.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import orjson
import polars as pl

from ranktilt.data.text.quality import refusal
from ranktilt.errors import UserError, counted, shorten
from ranktilt.llm.base import Answer, Reply
from ranktilt.llm.cleaning import CleanAnswer, clean_answer

# The kinds of answers, which `KINDS` explains one by one.
OK, REPAIRED, MISSING, REPEATED = "ok", "repaired", "missing", "repeated"
REFUSED, AMBIGUOUS, OFF_FORMAT = "refused", "ambiguous", "off-format"
CUT_OFF, UNANSWERED = "cut off", "unanswered"
KINDS = (OK, REPAIRED, MISSING, REPEATED, REFUSED, AMBIGUOUS, OFF_FORMAT, CUT_OFF, UNANSWERED)
"""Kinds of answers, the best first.

- ok: in the form that the prompt asks for
- repaired: with other words around it, other characters, or numbers of no passage
- missing: passages are left out
- repeated: passages are named twice
- refused: the model says that it will not rank, or a filter of the server held the answer back
- ambiguous: more than one ranking or choice
- off-format: no ranking or choice that can be read
- cut off: reasoning that never ends, and so no answer
- unanswered: the request failed
"""
READABLE = frozenset((OK, REPAIRED, MISSING, REPEATED))
"""Kinds of answers that say which passages come first."""
END_OF_THOUGHT = "</think>"
"""Mark at which reasoning ends for the published code of rank_llm."""
_ID = r"(?:\[\s*\d{1,6}\s*\]|(?<![\w.])\d{1,6}(?:\s*\]|(?![\w.]*\w)))"
"""Identifier of a passage.

An opening bracket may be missing, because it may have been the last character of the prompt.
"""
_NUMBER = r"\d{1,3}[.)]\s*(?=\[)"
"""Number of a line in a list, such as ``1.``, which names no passage."""
_CHAIN = re.compile(rf"{_ID}(?:\s*>\s*(?:{_NUMBER})?{_ID})+")
"""A ranking as prompts ask for it: ``[2] > [1] > [3]``."""
_LIST = re.compile(
    rf"\[\d{{1,6}}\](?:(?:\s*,\s*|\s*\n\s*(?:{_NUMBER}|[-*]\s+)?|[ \t]+{_NUMBER})\[\d{{1,6}}\])+"
)
"""A ranking as a list, on one line or several: ``[2], [1]``, ``1. [2]``, ``- [2]``."""
_CHOICE = re.compile(r"(?:passage\s*)?(?:\[\s*\d{1,6}\s*\]|\d{1,6})", re.I)
"""A choice and nothing else: ``[2]``, ``2``, ``Passage 2``."""
_BARE = re.compile(r"\[?\s*\d{1,6}\s*\](?:[\s,]*\[\s*\d{1,6}\s*\])*")
"""An answer of nothing but identifiers, one or several."""
_NAMED = re.compile(r"\[\s*\d{1,6}\s*\]|\bpassage\s+\d{1,6}\b", re.I)
"""A passage that is mentioned among other words."""
_YES_NO = re.compile(r"(?P<word>yes|no)(?P<rest>$|\s*\n.*|\s*[.,:;!)–—-].*)", re.I | re.S)
"""Yes or no as the first word of an answer, and what follows."""
_REFUSAL = re.compile(
    r"\b(?:I|we)\s*(?:cannot|can.?t|can not|could not|am unable to|.m unable to|am not able to"
    r"|will not|won.t)\s+(?:rank|compare|judge|determine|choose)\b",
    re.I,
)
"""Words by which a model refuses to rank or to choose."""
_OBJECT = re.compile(r"\{[^{}\[\]]*\[[^{}\[\]]*\]\s*\}")
"""A JSON object with one list, among other words."""
_BLANKS = re.compile("[\\s\u2581\u0120\u010a]+")
"""White space, and what SentencePiece and byte-level tokenizers write for it."""
_EXAMPLE_LENGTH = 120
"""Most characters of an unreadable answer in a message, so that it stays on a line or two."""
_STORED_LENGTH = 2_000
"""Most characters of an unreadable answer in a run's spec, which shows what went wrong."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """An answer as it was read."""

    kind: str
    """One of `KINDS`."""
    order: tuple[int, ...] = ()
    """Passages that the answer names, best first, by their position in the prompt."""
    score: float | None = None
    """Score of the prompt's only passage; None if the answer is a ranking or a choice."""


@dataclass(kw_only=True)
class AnswerCounts:
    """Counts of requests, tokens and kinds of answers, over all queries."""

    kinds: Counter[str] = field(default_factory=Counter)
    """Answers by kind."""
    requests: int = 0
    """Prompts that were asked."""
    fresh: int = 0
    """Answers that were not in the journal."""
    read: int = 0
    """Number of tokens that the model read."""
    written: int = 0
    """Number of tokens that the model wrote."""
    example: str = ""
    """First answer that could not be read."""

    def add(self, reply: Reply, reading: Reading) -> None:
        """Count a reply by how it was read."""
        self.kinds[reading.kind] += 1
        self.requests += 1
        self.fresh += reply.fresh
        if reply.answer is not None:
            self.read += reply.answer.prompt_tokens or 0
            self.written += reply.answer.completion_tokens or 0
        if not self.example and reading.kind not in READABLE:
            failure = reply.failure.message if reply.failure else ""
            example = failure if reply.answer is None else reply.answer.text
            self.example = example[:_STORED_LENGTH]

    @property
    def spec(self) -> dict[str, Any]:
        """All counts, for a run's spec."""
        counts: dict[str, Any] = {
            "kinds": {kind: self.kinds[kind] for kind in KINDS if self.kinds[kind]},
            "requests": self.requests,
            "fresh": self.fresh,
            "tokens_read": self.read,
            "tokens_written": self.written,
        }
        if self.example:
            counts["unreadable"] = self.example
        return {"llm_answers": counts}


def read_ranking(text: str, count: int) -> Reading:
    """Read a ranking of `count` passages.

    Its identifiers are joined by ``>``, or are a JSON list, or a list of ``[1]``, ``[2]``.
    Identifiers with nothing but blanks between them are a list if the answer has no other words.
    There may be other words around a ranking, but no second ranking: nobody would know which of two
    is meant.
    """
    cleaned = clean_answer(text)
    if cleaned.is_cut_off:
        return Reading(kind=CUT_OFF)
    answer, is_bare = cleaned.text, not cleaned.is_wrapped
    numbers = _json_numbers(answer)
    if numbers is not None:
        return _reading(numbers, count, least=count, is_strict=is_bare, answer=answer)
    if _BARE.fullmatch(answer.removesuffix(".")):
        return _reading(_numbers(answer), count, least=count, is_strict=False, answer=answer)
    objects = _json_objects(answer)
    chains = _CHAIN.findall(answer)
    if not objects and not chains:
        chains = _LIST.findall(answer)
    rankings = [*objects, *map(_numbers, chains)]
    if not rankings:
        return _unread(answer)
    if len(rankings) > 1:
        valid_count = sum(_has_valid_number(ranking, count) for ranking in rankings)
        return _unread(answer, AMBIGUOUS if valid_count > 1 else OFF_FORMAT)
    is_strict = is_bare and bool(chains) and _is_strict_chain(chains[0], answer)
    return _reading(rankings[0], count, least=count, is_strict=is_strict, answer=answer)


def _json_objects(answer: str) -> list[list[int]]:
    """Return the lists of numbers in the JSON objects of an answer with other words."""
    lists = []
    for part in _OBJECT.findall(answer):
        numbers = _json_numbers(part)
        if numbers is not None:
            lists.append(numbers)
    return lists


def _has_valid_number(ranking: list[int], count: int) -> bool:
    """Tell whether any number of a ranking is the number of a passage."""
    return any(1 <= number <= count for number in ranking)


def _is_strict_chain(chain: str, answer: str) -> bool:
    """Tell whether an answer is nothing but ``[2] > [1]``, exactly as the prompt asks for it."""
    is_alone = ">" in chain and answer.removesuffix(".").strip() == chain
    has_pairs_of_brackets = chain.count("[") == chain.count("]")
    return is_alone and has_pairs_of_brackets and re.search(_NUMBER, chain) is None


def read_choice(text: str, count: int) -> Reading:
    """Read which of `count` passages is chosen: the only identifier, or the first of a ranking."""
    cleaned = clean_answer(text)
    if cleaned.is_cut_off:
        return Reading(kind=CUT_OFF)
    answer, is_bare = cleaned.text, not cleaned.is_wrapped
    numbers = _json_numbers(answer)
    if numbers is not None:
        return _reading(numbers, count, least=1, is_strict=is_bare, answer=answer)
    chains = _CHAIN.findall(answer)
    if len(chains) == 1:
        is_strict = is_bare and answer.removesuffix(".").strip() == chains[0]
        return _reading(_numbers(chains[0]), count, least=1, is_strict=is_strict, answer=answer)
    if _CHOICE.fullmatch(answer.removesuffix(".")):
        return _reading(_numbers(answer), count, least=1, is_strict=is_bare, answer=answer)
    mentions = dict.fromkeys(_numbers(" ".join(_NAMED.findall(answer))))
    if not chains and len(mentions) == 1:
        return _reading(list(mentions), count, least=1, is_strict=False, answer=answer)
    valid = [number for number in mentions if 1 <= number <= count]
    return _unread(answer, AMBIGUOUS if len(chains) > 1 or len(valid) > 1 else OFF_FORMAT)


def read_yes_no(answer: Answer) -> Reading:
    """Read whether a passage answers a query, from the answer's first word, yes or no.

    The score is 1 + P(yes), or 1 − P(no), where P is the probability of the word's token, as in
    HELM (Liang et al., TMLR 2023). It is from 0 to 2, above 1 if the answer is yes, and NaN for an
    answer without log-probabilities. In a wrapped answer, the first token is not the word, so the
    word's token must be known.
    """
    cleaned = clean_answer(answer.text)
    if cleaned.is_cut_off:
        return Reading(kind=CUT_OFF)
    match = _YES_NO.match(cleaned.text)
    if match is None:
        return _unread(cleaned.text)
    logprob = _first_logprob(answer, cleaned)
    if logprob is None:
        return _unread(cleaned.text)
    probability = math.exp(min(logprob, 0.0))
    is_alone = not cleaned.is_wrapped and not match["rest"].strip(" \n.")
    score = 1 + probability if match["word"].lower() == "yes" else 1 - probability
    return Reading(kind=OK if is_alone else REPAIRED, order=(0,), score=score)


def _first_logprob(answer: Answer, cleaned: CleanAnswer) -> float | None:
    """Return the log-probability of the first token of a cleaned answer.

    None if the token is not known, NaN if the answer has no log-probabilities.
    """
    if not answer.logprobs:
        return math.nan
    if answer.tokens is None:
        is_first = answer.text.removeprefix(" ").startswith(cleaned.text)
        return answer.logprobs[0] if is_first and not cleaned.is_wrapped else None
    matches = list(re.finditer(rf"(?<!\w){re.escape(cleaned.text)}(?!\w)", answer.text))
    if not matches or (cleaned.is_wrapped and len(matches) > 1):
        return None  # of several equal words, nobody knows which the cleaned answer came from
    tokens = [_without_blanks(token) for token in answer.tokens]
    # Tokens may begin with reasoning that the server does not put into the text, and end with marks
    # that it drops.
    start = "".join(tokens).rfind(_without_blanks(answer.text))
    if start < 0:
        return None
    # The token that has the character at this position, counted without blanks.
    position = start + len(_without_blanks(answer.text[: matches[-1].start()]))
    for token, logprob in zip(tokens, answer.logprobs, strict=True):
        if position < len(token):
            return logprob
        position -= len(token)
    return None


def _without_blanks(text: str) -> str:
    """Remove blanks, which each server writes differently in tokens."""
    return _BLANKS.sub("", text)


def published_ranking(text: str, count: int, *, after_thought: bool = True) -> tuple[int, ...]:
    """Read an answer as the code of RankGPT (Sun et al., 2023) and of rank_llm does.

    Every number in the answer is taken for a passage, in the order of first mention. Passages that
    the answer does not name follow in the order of the prompt. So any answer gives a ranking, and
    an answer without a number gives the order of the prompt. With `after_thought`, only the text
    after the last ``</think>`` counts, as in newer versions of rank_llm.

    Returns the positions of the `count` passages in the prompt, from 0, best first.
    """
    answer = text.rpartition(END_OF_THOUGHT)[2] if after_thought else text
    numbers = (number.lstrip("0") for number in re.findall(r"[0-9]+", answer))
    # A number with more digits than `count` is no passage. It may have millions of digits, which
    # `int` refuses.
    short_numbers = (number for number in numbers if 0 < len(number) <= len(str(count)))
    positions = dict.fromkeys(int(number) - 1 for number in short_numbers)
    valid = [position for position in positions if 0 <= position < count]
    return (*valid, *(position for position in range(count) if position not in positions))


def require_answers(stage: str, llm_answers: Mapping[str, Any], most: float, limit: str) -> None:
    """Refuse a stage if more than `most` percent of its answers are unreadable.

    `stage` and `limit` are for the error: the ranker, and the option that sets `most`.
    `llm_answers` has the counts of a run's spec.
    """
    kinds = Counter({str(kind): int(number) for kind, number in llm_answers["kinds"].items()})
    failed = 1 - sum(kinds[kind] for kind in READABLE) / kinds.total() if kinds else 0.0
    if failed > most / 100 + 1e-9:
        example = llm_answers.get("unreadable")
        first = f" (first: {shorten(example, _EXAMPLE_LENGTH)})" if example else ""
        answers = counted(kinds.total(), "answer", "answers")
        raise UserError(
            f"{stage}: {100 * failed:.0f} % of {answers} could not be read{unread_reasons(kinds)}, "
            f"{limit} allows {most:g} %{first}"
        )


def unread_reasons(kinds: Mapping[str, int]) -> str:
    """Say in brackets how many unreadable answers are ambiguous, and how many are cut off."""
    reasons = {
        AMBIGUOUS: "with more than one ranking or choice",
        CUT_OFF: "cut off in their reasoning",
    }
    counts = [f"{kinds[kind]:,} {reason}" for kind, reason in reasons.items() if kinds.get(kind)]
    return f" ({', '.join(counts)})" if counts else ""


def _json_numbers(answer: str) -> list[int] | None:
    """Return the numbers of a JSON list, or of an object whose only value is one; else None.

    The value of an object may also be a single number.
    """
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
    # Not isinstance: True would pass as 1.
    if not isinstance(value, list) or not all(type(number) is int for number in value):
        return None
    return value or None


def _numbers(text: str) -> list[int]:
    """Return the identifiers in a ranking or choice, without the numbers of a list's lines."""
    return [int(number) for number in re.findall(r"\d+", re.sub(_NUMBER, "", text))]


def _reading(
    numbers: list[int], count: int, *, least: int, is_strict: bool, answer: str
) -> Reading:
    """Return the reading of an answer's numbers.

    Parameters
    ----------
    numbers : list of int
        Identifiers in the order of the answer.
    count : int
        Number of passages in the prompt.
    least : int
        Number of passages that the answer should name.
    is_strict : bool
        Whether the answer has exactly the form that the prompt asks for.
    answer : str
        Text of the answer, which may be a refusal if no number is a passage's.
    """
    valid = [number - 1 for number in numbers if 1 <= number <= count]
    order = tuple(dict.fromkeys(valid))
    if not order:
        return _unread(answer)
    if len(order) < len(valid):
        return Reading(kind=REPEATED, order=order)
    if len(order) < least:
        return Reading(kind=MISSING, order=order)
    is_ok = is_strict and len(valid) == len(numbers)
    return Reading(kind=OK if is_ok else REPAIRED, order=order)


def _unread(answer: str, kind: str = OFF_FORMAT) -> Reading:
    """Return the reading of an answer without a ranking: a refusal, or else of this kind."""
    return Reading(kind=REFUSED if _refuses(answer) else kind)


# Answers in prose are often equal, and looking for a refusal takes milliseconds.
@lru_cache(maxsize=4096)
def _refuses(answer: str) -> bool:
    """Tell whether an answer refuses to rank."""
    if _REFUSAL.search(answer) is not None:
        return True
    return bool(refusal(pl.Series([answer], dtype=pl.String))[0])
