"""What asking a language model would cost: requests, tokens, price and time, before anything is asked."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ranktilt.errors import UserError
from ranktilt.llm.base import LLM, Answer, Reply, Sampling
from ranktilt.llm.journal import Journal, Request, request_key
from ranktilt.llm.prompts import BYTES_A_TOKEN

TOKENS_A_SECOND = 50.0
"""Speed of one answer of a server that is assumed where no rate is given."""
BATCH_PRICE = 0.5
"""What a batch costs of the price of its requests."""
LATENCY = 0.5
"""Seconds until an answer begins, assumed likewise."""
TEMPLATE_TOKENS = 12
"""What a chat template adds to a prompt, about."""
_LOGPROB = -0.5


@dataclass(frozen=True)
class Counting:
    """A way to count the tokens of texts, and what it is in words."""

    count: Callable[[Sequence[str]], list[int]]
    how: str


def counting(llm: LLM) -> Counting:
    """Choose how tokens are counted for a model: by its own ``count_tokens``, or one token for four bytes."""
    own = getattr(llm, "count_tokens", None)
    if own is not None:
        return Counting(own, "counted by the model's own tokenizer")
    return Counting(_by_bytes, f"estimated, one token for {BYTES_A_TOKEN} bytes of UTF-8")


def _by_bytes(texts: Sequence[str]) -> list[int]:
    return [-(-len(text.encode()) // BYTES_A_TOKEN) for text in texts]


def price_of(read: int, written: int, price: tuple[float, float] | None) -> float | None:
    """Return what tokens cost by the price of a million tokens read, and of a million written; None without one."""
    if price is None:
        return None
    if not all(0 <= one < math.inf for one in price):
        raise UserError(f"a price must be 0 or more, got {price[0]:g},{price[1]:g}")
    return (read * price[0] + written * price[1]) / 1e6


def time_of(
    llm: LLM, left: Sequence[int], requests_per_minute: float | None = None
) -> tuple[float | None, str]:
    """Return seconds by the narrower limit, None where nothing is known, and what they rest on.

    `left` are requests, tokens read and tokens written.
    """
    requests, _, written = left
    if llm.batched:
        return None, "within 24 hours, as a batch"
    if hasattr(llm, "count_tokens"):  # a model on this machine
        return None, "unknown for a model on this machine; try some documents with --limit"
    each = LATENCY + written / requests / TOKENS_A_SECOND if requests else 0.0
    speed = f", {llm.concurrency} at a time, if an answer takes {each:.1f} s"
    times = {speed: each * max(1.0, requests / llm.concurrency)}
    if requests_per_minute:
        times[f", by {requests_per_minute:g} requests a minute"] = (
            60 * requests / requests_per_minute
        )
    pace = max(times, key=times.__getitem__)
    return times[pace], pace


def duration(seconds: float | None) -> str:
    """Write seconds as a reader takes them in; nothing for None."""
    if seconds is None:
        return ""
    minutes = int(seconds // 60)
    if minutes >= 6000:
        return f"{minutes / 1440:,.0f} days"
    return (
        f"{seconds:.0f} s"
        if seconds < 100
        else f"{minutes // 60} h {minutes % 60} min"
        if minutes > 99
        else f"{minutes} min"
    )


class Rehearsal:
    """Answers in place of a model, as `journalled` does: from the journal, or by `answers` to the next requests.

    Nothing is asked and nothing written. `prompts` counts all, `requests` equal ones once,
    `journalled` those of them that have an answer; tokens are those of the others. `most` is how
    many prompts any answers can lead to, and `certain` says whether all answers so far are the
    model's own, so that what it is asked next is sure.
    """

    def __init__(self, llm: LLM, *, certain: bool = True) -> None:
        self.llm, self._counting = llm, counting(llm)
        self.answers: Sequence[str] = ()
        self.prompts = self.requests = self.journalled = self.tokens_in = self.tokens_out = 0
        self.certain, self.most = certain, 0
        self._spared = 0  # prompts that are sure to be asked for and cost nothing
        self._seen = set[str]()

    def __call__(
        self,
        llm: LLM,
        requests: Iterable[Request],
        journal: Journal,
        *,
        sampling: Sampling,
        **others: Any,
    ) -> Generator[Reply, None, None]:
        """Reply to each request."""
        asked = [
            (request_key(llm, one.prompt, sampling, one.attempt), one.prompt.text)
            for one in requests
        ]
        self.prompts += len(asked)
        known = journal.read([key for key, _ in asked])
        found = set(known) - self._seen
        self.journalled, self.requests = self.journalled + len(found), self.requests + len(found)
        new = {
            key: number
            for number, (key, _) in enumerate(asked)
            if key not in known and key not in self._seen
        }
        self._add(
            [asked[number][1] for number in new.values()],
            [self.answers[number] for number in new.values()],
        )
        self._count_spared(len(asked) - len(new), bool(new))
        self._seen |= {key for key, _ in asked}
        for number, (key, _) in enumerate(asked):
            answer = (
                known[key].answer
                if key in known
                else Answer(
                    self.answers[number], "stop", None, None, llm.name, logprobs=(_LOGPROB,)
                )
            )
            yield Reply(number, answer, None, fresh=key not in known)

    def add_unanswered(self, prompts: Sequence[str]) -> None:
        """Count prompts that want scores and no answer; those that are kept are not looked up."""
        distinct = list(dict.fromkeys(prompts))
        self.prompts += len(prompts)
        self._add(distinct, [""] * len(distinct))
        self._count_spared(len(prompts) - len(distinct), bool(distinct))

    def _count_spared(self, spared: int, new: bool) -> None:
        self._spared += spared if self.certain else 0
        self.certain = self.certain and not new

    @property
    def left(self) -> int:
        """Requests that are not answered already."""
        return self.requests - self.journalled

    @property
    def at_most(self) -> int:
        """How many requests would be asked at most, whatever the answers."""
        return max(self.left, 0 if self.certain else self.most - self._spared)

    def totals(self) -> tuple[int, int, int]:
        """Requests, and about how many tokens in and out, at most; those of a request as in what was rehearsed."""
        share = self.at_most / self.left if self.left else 1.0
        return self.at_most, math.ceil(self.tokens_in * share), math.ceil(self.tokens_out * share)

    def _add(self, prompts: Sequence[str], answers: Sequence[str]) -> None:
        """Count prompts that would be asked, and their answers: words and signs, which mostly are a token each."""
        self.requests += len(prompts)
        self.tokens_in += sum(self._counting.count(prompts)) + TEMPLATE_TOKENS * len(prompts)
        self.tokens_out += sum(len(re.findall(r"\w+|[^\w\s]", answer)) for answer in answers)

    def lines(self, price: tuple[float, float] | None) -> tuple[tuple[str, str], ...]:
        """What was counted, in words: what, and how much; where the answers decide, at most how much."""
        kept = f"{self.journalled:,} of {self.requests:,} are answered already"
        pace = time_of(self.llm, (self.left, self.tokens_in, self.tokens_out))[1]
        now = self._amounts((self.left, self.tokens_in, self.tokens_out), price)
        requests, read, written, cost, time = (
            "" if most == text else f"; at most {most}"
            for text, most in zip(now, self._amounts(self.totals(), price), strict=True)
        )
        return (
            ("requests", f"{now[0]} ({kept}){requests and f'{requests}, as the answers go'}"),
            ("tokens in", f"{now[1]}{read}, {self._counting.how}"),
            ("tokens out", f"{now[2]}{written}, if every answer has its form"),
            ("price", f"{now[3]}{cost}" or "give one with --price IN,OUT per million tokens"),
            ("time", f"{now[4]}{time}{pace}" if now[4] else "unknown for a model on this machine"),
        )

    def _amounts(
        self, totals: tuple[int, int, int], price: tuple[float, float] | None
    ) -> tuple[str, ...]:
        """Requests, tokens in and out, price and time as text; empty where nothing is known."""
        cost, (seconds, _) = price_of(*totals[1:], price), time_of(self.llm, totals)
        return (
            *(f"{number:,}" for number in totals),
            "" if cost is None else f"{cost:,.2f}",
            duration(seconds),
        )
