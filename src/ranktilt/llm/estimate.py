"""Estimate requests, tokens, price and time, before a language model is asked.

A *rehearsal* is a run of a verb that does not ask the model. It uses *pretended* answers, which
have the form of the model's answers. The *journal* is the file that keeps all answers of a model:
what it has need not be asked again.
"""

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
"""Assumed speed at which a model writes."""
BATCH_PRICE = 0.5
"""Price of a batch, as a share of the price of its requests."""
LATENCY = 0.5
"""Assumed seconds until an answer begins."""
TEMPLATE_TOKENS = 12
"""Approximate number of tokens that a chat template adds to a prompt."""
_LOGPROB = -0.5
"""Log-probability of each pretended answer."""
_PRICE_HINT = "give one with --price IN,OUT per million tokens"
"""Text that is printed instead of an unknown price."""
_UNKNOWN_TIME = "unknown for a model on this machine"
"""Text that is printed instead of an unknown time."""


@dataclass(frozen=True, kw_only=True)
class TokenCounter:
    """A way to count the tokens of texts."""

    count: Callable[[Sequence[str]], list[int]]
    """Function from texts to the number of tokens of each."""
    description: str
    """How the tokens are counted, in words."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Requests to a model, and the approximate number of tokens that it reads and writes."""

    requests: int
    """Number of requests that are sent."""
    tokens_in: int
    """Number of tokens that the model reads."""
    tokens_out: int
    """Number of tokens that the model writes."""


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How long requests take, and the assumption behind it."""

    seconds: float | None
    """Seconds for all requests; None if nothing is known."""
    basis: str
    """The assumption, in words that follow the time."""


def counting(llm: LLM) -> TokenCounter:
    """Return the token counter of a model: its own, or else one that counts bytes."""
    count_tokens = getattr(llm, "count_tokens", None)
    if count_tokens is not None:
        return TokenCounter(count=count_tokens, description="counted by the model's own tokenizer")
    description = f"estimated, one token per {BYTES_A_TOKEN} bytes of UTF-8"
    return TokenCounter(count=_count_by_bytes, description=description)


def _count_by_bytes(texts: Sequence[str]) -> list[int]:
    """Estimate the tokens of each text by its bytes, rounded up."""
    return [math.ceil(len(text.encode()) / BYTES_A_TOKEN) for text in texts]


def price_of(tokens_in: int, tokens_out: int, price: tuple[float, float] | None) -> float | None:
    """Return the price of tokens; None if `price` is None.

    `price` is the price of a million tokens that the model reads, and of a million that it writes.
    """
    if price is None:
        return None
    price_in, price_out = price
    if not (0 <= price_in < math.inf and 0 <= price_out < math.inf):
        raise UserError(f"a price must be 0 or more, got {price_in:g},{price_out:g}")
    return (tokens_in * price_in + tokens_out * price_out) / 1e6


def time_of(llm: LLM, workload: Workload, requests_per_minute: float | None = None) -> Pace:
    """Return how long requests take, by the model's speed or by the rate, whichever is slower.

    `requests_per_minute` is the rate that the user sets; None for no limit.
    """
    if llm.batched:
        return Pace(seconds=None, basis="within 24 hours, as a batch")
    if hasattr(llm, "count_tokens"):  # a model on this machine
        return Pace(seconds=None, basis=f"{_UNKNOWN_TIME}; try some documents with --limit")
    requests = workload.requests
    answer_seconds = LATENCY + workload.tokens_out / requests / TOKENS_A_SECOND if requests else 0.0
    by_speed = Pace(
        seconds=answer_seconds * max(1.0, requests / llm.concurrency),
        basis=f", {llm.concurrency} at a time, if an answer takes {answer_seconds:.1f} s",
    )
    if not requests_per_minute:
        return by_speed
    by_rate = Pace(
        seconds=60 * requests / requests_per_minute,
        basis=f", at {requests_per_minute:g} requests per minute",
    )
    return max(by_speed, by_rate, key=lambda pace: pace.seconds or 0.0)


def duration(seconds: float | None) -> str:
    """Write seconds in seconds, minutes, hours or days; nothing for None."""
    if seconds is None:
        return ""
    minutes = int(seconds // 60)
    if minutes >= 6000:  # 100 hours
        return f"{minutes / 1440:,.0f} days"
    if minutes > 99:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{seconds:.0f} s" if seconds < 100 else f"{minutes} min"


class Rehearsal:
    """Answers in place of a model and counts the requests and tokens that asking it would take.

    It is called as `journalled` is, but nothing is asked and nothing written. An answer comes from
    the journal. If the journal has none, it comes from `answers`, the pretended answers, which the
    caller sets before each call.

    A ranker that sorts documents asks the model which of some comes first, so its next prompts
    depend on the answers. As long as all answers are the model's own, the prompts are `certain`.
    After a pretended answer, only an upper limit of their number is known.

    Parameters
    ----------
    llm : LLM
        The model that would be asked.
    certain : bool, optional
        Whether the first prompts are certain: whether they do not depend on pretended answers.
    """

    def __init__(self, llm: LLM, *, certain: bool = True) -> None:
        self.llm, self._counting = llm, counting(llm)
        self.answers: Sequence[str] = ()
        """The pretended answer to each prompt of the next call."""
        self.prompts = 0
        """Number of prompts so far."""
        self.requests = 0
        """Number of different prompts so far."""
        self.journalled = 0
        """Number of these to which the journal has an answer."""
        self.tokens_in = 0
        """Number of tokens of the prompts that would be asked."""
        self.tokens_out = 0
        """Number of tokens of the pretended answers."""
        self.certain = certain
        """Whether all answers so far are the model's, so that its next prompts are certain."""
        self.most = 0
        """Largest number of prompts that any answers can lead to, set by the caller."""
        # Number of prompts that are certain to be needed and cost nothing.
        self._free_prompts = 0
        self._seen_keys = set[str]()

    def __call__(
        self,
        llm: LLM,
        requests: Iterable[Request],
        journal: Journal,
        *,
        sampling: Sampling,
        **_progress: Any,
    ) -> Generator[Reply, None, None]:
        """Reply to each request; progress bars, which `journalled` draws, are ignored."""
        requests = list(requests)
        keys = [request_key(llm, request.prompt, sampling, request.attempt) for request in requests]
        self.prompts += len(requests)
        records = journal.read(keys)
        new_records = set(records) - self._seen_keys
        self.journalled += len(new_records)
        self.requests += len(new_records)
        unasked = dict[str, int]()  # position of each request that would be asked; equal ones once
        for position, key in enumerate(keys):
            if key not in records and key not in self._seen_keys:
                unasked[key] = position
        self._add(
            [requests[position].prompt.text for position in unasked.values()],
            [self.answers[position] for position in unasked.values()],
        )
        self._count_free(len(requests) - len(unasked), has_new=bool(unasked))
        self._seen_keys.update(keys)
        for number, key in enumerate(keys):
            record = records.get(key)
            answer = self._pretended_answer(number) if record is None else record.answer
            yield Reply(number=number, answer=answer, fresh=record is None)

    def _pretended_answer(self, number: int) -> Answer:
        """Return the answer to the prompt at a position, as if the model had given it."""
        return Answer(
            text=self.answers[number],
            finish="stop",
            prompt_tokens=None,
            completion_tokens=None,
            model=self.llm.name,
            logprobs=(_LOGPROB,),
        )

    def add_unanswered(self, prompts: Sequence[str]) -> None:
        """Count prompts that are scored without an answer; scores in the cache count too."""
        distinct = list(dict.fromkeys(prompts))
        self.prompts += len(prompts)
        self._add(distinct, [""] * len(distinct))
        self._count_free(len(prompts) - len(distinct), has_new=bool(distinct))

    def _count_free(self, free_prompts: int, *, has_new: bool) -> None:
        """Count prompts that cost nothing; after new prompts, later ones are no longer certain."""
        self._free_prompts += free_prompts if self.certain else 0
        self.certain = self.certain and not has_new

    @property
    def left(self) -> int:
        """Number of requests that have no answer yet."""
        return self.requests - self.journalled

    @property
    def at_most(self) -> int:
        """Largest number of requests that would be asked, whatever the answers."""
        return max(self.left, 0 if self.certain else self.most - self._free_prompts)

    def workload(self) -> Workload:
        """Return what asking takes if the answers are those of the rehearsal."""
        return Workload(requests=self.left, tokens_in=self.tokens_in, tokens_out=self.tokens_out)

    def largest_workload(self) -> Workload:
        """Return what asking takes at most, with requests as long as those of the rehearsal."""
        share = self.at_most / self.left if self.left else 1.0
        return Workload(
            requests=self.at_most,
            tokens_in=math.ceil(self.tokens_in * share),
            tokens_out=math.ceil(self.tokens_out * share),
        )

    def _add(self, prompts: Sequence[str], answers: Sequence[str]) -> None:
        """Count prompts that would be asked, and the tokens of their answers.

        In an answer, each word and each punctuation mark counts as a token.
        """
        self.requests += len(prompts)
        self.tokens_in += sum(self._counting.count(prompts)) + TEMPLATE_TOKENS * len(prompts)
        self.tokens_out += sum(len(re.findall(r"\w+|[^\w\s]", answer)) for answer in answers)

    def lines(self, price: tuple[float, float] | None) -> tuple[tuple[str, str], ...]:
        """Return what asking takes, as pairs of a name and a text.

        If the number of requests depends on the answers, the texts also say the most that it can
        be.
        """
        workload, most = self.workload(), self.largest_workload()
        requests = (
            f"{workload.requests:,} ({self.journalled:,} of {self.requests:,} are answered already)"
        )
        if most.requests != workload.requests:
            requests += f"; at most {most.requests:,}, depending on the answers"
        tokens_in = _up_to(f"{workload.tokens_in:,}", f"{most.tokens_in:,}")
        tokens_out = _up_to(f"{workload.tokens_out:,}", f"{most.tokens_out:,}")
        cost = _up_to(_price_text(workload, price), _price_text(most, price))
        pace, longest = time_of(self.llm, workload), time_of(self.llm, most)
        time = _up_to(duration(pace.seconds), duration(longest.seconds))
        return (
            ("requests", requests),
            ("tokens in", f"{tokens_in}, {self._counting.description}"),
            ("tokens out", f"{tokens_out}, if every answer has the expected form"),
            ("price", cost or _PRICE_HINT),
            ("time", f"{time}{pace.basis}" if time else _UNKNOWN_TIME),
        )


def _up_to(amount: str, most: str) -> str:
    """Write an amount, and the most that it can become if that differs."""
    return amount if amount == most else f"{amount}; at most {most}"


def _price_text(workload: Workload, price: tuple[float, float] | None) -> str:
    """Write the price of a workload; nothing if `price` is None."""
    cost = price_of(workload.tokens_in, workload.tokens_out, price)
    return "" if cost is None else f"{cost:,.2f}"
