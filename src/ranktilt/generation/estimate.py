"""Estimate the cost of a language model's texts before any request is sent."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import Any

from ranktilt.errors import counted
from ranktilt.generation.batched_requests import EMPTY, GenerationInputs
from ranktilt.llm.base import LLM, Prompt
from ranktilt.llm.estimate import (
    BATCH_PRICE,
    TEMPLATE_TOKENS,
    Workload,
    counting,
    duration,
    price_of,
    time_of,
)
from ranktilt.llm.journal import Journal, journal_of, request_key


@dataclass(frozen=True, kw_only=True)
class CostEstimate:
    """The requests for documents, their tokens, price and time."""

    documents: int
    """Documents to write for each source."""
    empty: int
    """Documents without text, for which no request would be sent."""
    sources: tuple[str, ...]
    """Names of the new sources."""
    requests: int
    """Different first requests of all texts; requests after a flagged answer are added to them."""
    journalled: int
    """Requests that are answered already."""
    tokens_in: int
    """Tokens that the model reads."""
    tokens_out: int
    """Tokens that it writes."""
    counted: str
    """How tokens were counted, in words."""
    price: float | None
    """Price; None where none is given."""
    seconds: float | None
    """Time; None where it is not known."""
    pace: str
    """Pace behind the time, in words."""
    retries: int
    """Most requests for a text after flagged answers."""
    length: str
    """Expected length of an answer, in words."""
    noun: str = "document"
    """Noun of `documents`."""
    batched: bool = False
    """Whether the price is that of batches, which is half."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {**asdict(self), "sources": list(self.sources)}

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """Names and values of the estimate, in words."""
        nouns = f"{self.noun}s"
        documents = counted(self.documents, self.noun, nouns)
        if self.empty:
            documents += f" (not requested: {self.empty:,} empty)"
        tokens_in = f"{self.tokens_in:,}, {self.counted}"
        tokens_out = f"{self.tokens_out:,}, if {self.length}"
        time = f"{duration(self.seconds)}{self.pace}"
        return (
            (nouns, documents),
            ("sources", ", ".join(self.sources)),
            ("requests", self._requests_in_words()),
            ("tokens in", tokens_in),
            ("tokens out", tokens_out),
            ("price", self._price_in_words()),
            ("time", time),
        )

    def _requests_in_words(self) -> str:
        """Write the number of requests, and how many may be repeated."""
        left = self.requests - self.journalled
        words = f"{left:,} ({self.journalled:,} of {self.requests:,} are answered already)"
        if self.retries:
            words += f"; up to {self.retries} more for each text whose answers are flagged"
        return words

    def _price_in_words(self) -> str:
        """Write the price, or how to give one."""
        if self.price is None:
            return "give one with --price IN,OUT per million tokens"
        return f"{self.price:,.2f}" + (", at half price, as a batch" if self.batched else "")


def estimate(
    inputs: GenerationInputs,
    llm: LLM,
    *,
    price: tuple[float, float] | None = None,
    requests_per_minute: float | None = None,
    journal: Journal | None = None,
) -> CostEstimate:
    """Estimate the cost of the requests that are left; sends none and needs no key.

    `price` is the price of a million tokens read, and of a million tokens written. Tokens are
    counted by the model's tokenizer if it is on this machine, or else estimated.
    """
    price_of(0, 0, price)  # refuses a wrong price before anything is counted
    with journal_of(llm) if journal is None else nullcontext(journal) as known:
        requests, left = _requests(inputs, llm, known)
    counter = counting(llm)
    read = sum(counter.count([prompt.text for prompt, _ in left])) + TEMPLATE_TOKENS * len(left)
    if inputs.answer_tokens is None:
        length = "a rewrite is as long as its text"
        answers = counter.count([text for _, text in left])
    else:
        length = f"{inputs.answer_noun} has {inputs.answer_tokens:,} tokens"
        answers = [inputs.answer_tokens] * len(left)
    most = inputs.settings.max_tokens
    written = sum(answers if most is None else [min(most, tokens) for tokens in answers])
    cost = price_of(read, written, price)
    if cost is not None and llm.batched:
        cost *= BATCH_PRICE
    workload = Workload(requests=len(left), tokens_in=read, tokens_out=written)
    pace = time_of(llm, workload, requests_per_minute)
    empty = sum(rejected.reason == EMPTY for rejected in inputs.rejected)
    journalled, retries = requests - len(left), inputs.settings.attempts - 1
    return CostEstimate(
        documents=inputs.chosen,
        empty=empty,
        sources=tuple(inputs.sources),
        requests=requests,
        journalled=journalled,
        tokens_in=read,
        tokens_out=written,
        counted=counter.description,
        price=cost,
        seconds=pace.seconds,
        pace=pace.basis,
        retries=retries,
        length=length,
        noun=inputs.noun,
        batched=llm.batched,
    )


def _requests(
    inputs: GenerationInputs, llm: LLM, journal: Journal
) -> tuple[int, list[tuple[Prompt, str]]]:
    """Count the different requests; also return prompt and text of those without an answer."""
    requests = dict[str, tuple[Prompt, str]]()
    for sampling in inputs.sources.values():
        for template, task in inputs.questions():
            prompt = Prompt(text=template.render(task.text, task.title))
            key = request_key(llm, prompt, sampling, task.attempt(1))
            requests.setdefault(key, (prompt, task.text))
    answered = journal.read(requests)
    return len(requests), [request for key, request in requests.items() if key not in answered]
