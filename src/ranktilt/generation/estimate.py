"""What texts of a language model would cost, before anything is asked."""

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


@dataclass(frozen=True)
class CostEstimate:
    """What would be asked: documents to be written for each source, of which `empty` ones would not be asked for.

    `requests` are the different first ones of each text, of which `journalled` are answered;
    flagged answers come on top, up to `retries` times. `counted`, `pace` and `length` say what
    tokens, time and answers rest on.
    """

    documents: int
    empty: int
    sources: tuple[str, ...]
    requests: int
    journalled: int
    tokens_in: int
    tokens_out: int
    counted: str
    price: float | None
    seconds: float | None
    pace: str
    retries: int
    length: str
    noun: str = "document"
    """What is counted in `documents`."""
    batched: bool = False
    """Whether the price is that of batches, half of it."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {**asdict(self), "sources": list(self.sources)}

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """The estimate in words: what, and how much."""
        left = self.requests - self.journalled
        empty = f" (not asked for: {self.empty:,} empty)" if self.empty else ""
        retries = (
            f"; up to {self.retries} more for each text whose answers are flagged"
            if self.retries
            else ""
        )
        price = (
            "give one with --price IN,OUT per million tokens"
            if self.price is None
            else f"{self.price:,.2f}"
        )
        price += ", at half price, as a batch" if self.batched and self.price is not None else ""
        return (
            (f"{self.noun}s", counted(self.documents, self.noun, f"{self.noun}s") + empty),
            ("sources", ", ".join(self.sources)),
            (
                "requests",
                f"{left:,} ({self.journalled:,} of {self.requests:,} are answered already){retries}",
            ),
            ("tokens in", f"{self.tokens_in:,}, {self.counted}"),
            ("tokens out", f"{self.tokens_out:,}, if {self.length}"),
            ("price", price),
            ("time", f"{duration(self.seconds)}{self.pace}"),
        )


def estimate(
    inputs: GenerationInputs,
    llm: LLM,
    *,
    price: tuple[float, float] | None = None,
    requests_per_minute: float | None = None,
    journal: Journal | None = None,
) -> CostEstimate:
    """Estimate what is left to ask; asks nothing and needs no key.

    `price` is that of a million tokens read, and of a million written. Tokens are counted by the
    model's tokenizer if it lies on this machine, or else estimated.
    """
    price_of(0, 0, price)  # refuses a wrong one before anything is counted
    with journal_of(llm) if journal is None else nullcontext(journal) as known:
        requests, left = _requests(inputs, llm, known)
    by = counting(llm)
    read = sum(by.count([prompt.text for prompt, _ in left])) + TEMPLATE_TOKENS * len(left)
    each = inputs.answer_tokens
    answers = by.count([text for _, text in left]) if each is None else [each] * len(left)
    most = inputs.settings.max_tokens
    written = sum(answers if most is None else [min(most, n) for n in answers])
    cost = price_of(read, written, price)
    workload = Workload(requests=len(left), tokens_in=read, tokens_out=written)
    pace = time_of(llm, workload, requests_per_minute)
    return CostEstimate(
        documents=inputs.chosen,
        empty=sum(one.reason == EMPTY for one in inputs.rejected),
        sources=tuple(inputs.sources),
        requests=requests,
        journalled=requests - len(left),
        tokens_in=read,
        tokens_out=written,
        counted=by.description,
        price=None if cost is None else cost * (BATCH_PRICE if llm.batched else 1),
        seconds=pace.seconds,
        pace=pace.basis,
        retries=inputs.settings.attempts - 1,
        length="a rewrite is as long as its text"
        if each is None
        else f"{inputs.answer_noun} has {each:,} tokens",
        noun=inputs.noun,
        batched=llm.batched,
    )


def _requests(
    inputs: GenerationInputs, llm: LLM, journal: Journal
) -> tuple[int, list[tuple[Prompt, str]]]:
    """Number of different requests, and prompt and text of those without an answer."""
    asked = dict[str, tuple[Prompt, str]]()
    for sampling in inputs.sources.values():
        for template, task in inputs.questions():
            prompt = Prompt(template.render(task.text, task.title))
            asked.setdefault(
                request_key(llm, prompt, sampling, task.attempt(1)), (prompt, task.text)
            )
    known = journal.read(asked)
    return len(asked), [one for key, one in asked.items() if key not in known]
