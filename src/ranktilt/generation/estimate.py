"""Estimate the cost of a language model's texts before any request is sent.

The *journal* is the file that keeps all answers of a model: what it has need not be asked again. An
answer is *flagged* if it has a fault; its text is then asked for once more. How many answers will
be flagged is not known beforehand, so only the first request for each text is estimated.
"""

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
    """Number of documents to write for each source."""
    empty: int
    """Number of documents without text, for which no request would be sent."""
    sources: tuple[str, ...]
    """Names of the new sources."""
    requests: int
    """Number of different first requests; requests after a flagged answer come on top."""
    journalled: int
    """Number of these requests that the journal answers already."""
    tokens_in: int
    """Number of tokens that the model would read."""
    tokens_out: int
    """Number of tokens that it would write."""
    counted: str
    """How tokens were counted, as a phrase."""
    price: float | None
    """Price, in the currency of the price per token; None if that is not given."""
    seconds: float | None
    """Time; None where it is not known."""
    pace: str
    """Pace from which the time follows, as a phrase."""
    retries: int
    """Maximum number of further requests for a text after flagged answers."""
    length: str
    """Assumed length of an answer, as a clause."""
    noun: str = "document"
    """Noun of `documents`, in print."""
    batched: bool = False
    """Whether the price is that of batches, which is half."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {**asdict(self), "sources": list(self.sources)}

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """Names and values of the estimate, as they are printed."""
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
            ("requests", self._request_words()),
            ("tokens in", tokens_in),
            ("tokens out", tokens_out),
            ("price", self._price_words()),
            ("time", time),
        )

    def _request_words(self) -> str:
        """Write the number of requests, and how many may be repeated."""
        left = self.requests - self.journalled
        words = f"{left:,} ({self.journalled:,} of {self.requests:,} are answered already)"
        if self.retries:
            words += f"; up to {self.retries} more for each text whose answers are flagged"
        return words

    def _price_words(self) -> str:
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
    """Estimate the cost of the requests that the journal does not answer; sends none of them.

    Tokens are counted by the model's tokenizer if it is on this machine, or else estimated.

    Parameters
    ----------
    inputs : GenerationInputs
        The requests.
    llm : LLM
        The model; no key is needed.
    price : pair of float, optional
        Price of a million tokens read, and of a million tokens written.
    requests_per_minute : float, optional
        Pace that the server allows.
    journal : Journal, optional
        Earlier answers; by default the model's journal in the cache.
    """
    price_of(0, 0, price)  # refuses a wrong price before anything is counted
    # Only a journal that was opened here is closed.
    with journal_of(llm) if journal is None else nullcontext(journal) as open_journal:
        request_count, unanswered = _unanswered_requests(inputs, llm, open_journal)
    counter = counting(llm)
    prompt_tokens = counter.count([prompt.text for prompt, _ in unanswered])
    tokens_in = sum(prompt_tokens) + TEMPLATE_TOKENS * len(unanswered)
    if inputs.answer_tokens is None:
        length = "a rewrite is as long as its text"
        answer_tokens = counter.count([text for _, text in unanswered])
    else:
        length = f"{inputs.answer_noun} has {inputs.answer_tokens:,} tokens"
        answer_tokens = [inputs.answer_tokens] * len(unanswered)
    limit = inputs.settings.max_tokens
    if limit is not None:
        answer_tokens = [min(limit, tokens) for tokens in answer_tokens]
    tokens_out = sum(answer_tokens)
    cost = price_of(tokens_in, tokens_out, price)
    if cost is not None and llm.batched:
        cost *= BATCH_PRICE
    workload = Workload(requests=len(unanswered), tokens_in=tokens_in, tokens_out=tokens_out)
    pace = time_of(llm, workload, requests_per_minute)
    empty_count = sum(rejected.reason == EMPTY for rejected in inputs.rejected)
    return CostEstimate(
        documents=inputs.text_count,
        empty=empty_count,
        sources=tuple(inputs.sources),
        requests=request_count,
        journalled=request_count - len(unanswered),
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        counted=counter.description,
        price=cost,
        seconds=pace.seconds,
        pace=pace.basis,
        retries=inputs.settings.attempts - 1,
        length=length,
        noun=inputs.noun,
        batched=llm.batched,
    )


def _unanswered_requests(
    inputs: GenerationInputs, llm: LLM, journal: Journal
) -> tuple[int, list[tuple[Prompt, str]]]:
    """Return the number of different requests, and prompt and text of those without an answer."""
    requests = dict[str, tuple[Prompt, str]]()
    for sampling in inputs.sources.values():
        for template, task in inputs.first_requests():
            prompt = Prompt(text=template.render(task.text, task.title))
            key = request_key(llm, prompt, sampling, task.request_number(1))
            requests.setdefault(key, (prompt, task.text))
    answered = journal.read(requests)
    return len(requests), [request for key, request in requests.items() if key not in answered]
