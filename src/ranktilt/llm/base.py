"""The base of language models: prompts in, answers out, each as soon as it arrives.

A *prompt* is the messages that a model reads, and an *answer* what it writes. A *reply* is the
outcome of a prompt: its answer, or a *failure* with the reason why there is none. A *journal* is
the file that keeps all answers of a model (`ranktilt.llm.journal`), each under its request's *key*.
"""

from __future__ import annotations

import hashlib
import inspect
import math
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import orjson

from ranktilt.errors import UserError, shorten, unknown_name
from ranktilt.llm.untrusted import (
    LARGEST_COUNT,
    log_probabilities,
    plain_line,
    token_texts,
    whole_characters,
    whole_number,
)
from ranktilt.parallel.executor import executor

Vectors = npt.NDArray[np.float32]
"""Vectors of texts, shape (n, dimension)."""
_PROMPTS_PER_CALL = 4
"""Number of prompts that are sent to a worker together, for each call that it has under way."""
LARGEST_SEED = LARGEST_COUNT
"""Largest absolute value of a seed: not every server's JSON has larger numbers."""
_MESSAGE_LENGTH = 1_000
"""Most characters of a failure's message; the server's words in it are shorter."""
FailureKind = Literal["too long", "refused", "unavailable"]
"""Kinds of failures.

- too long: the prompt does not fit the model's context
- refused: the server refuses it, by its rules or as a bad request
- unavailable: every attempt failed, because of the server or the connection, or because no answer
  came in time
"""


@dataclass(frozen=True)
class Prompt:
    """A prompt: the user's message, and a system message before it.

    A prompt is recognised by its digest, a hash of its messages without the seed.
    """

    text: str
    """The user's message."""
    system: str | None = None
    """The system message; None sends none."""
    seed: int | None = None
    """Seed that replaces the sampling's for this prompt."""

    def messages(self) -> list[dict[str, str]]:
        """Return the chat messages as every compatible server takes them.

        Each is a dict with ``role`` and ``content``.
        """
        system = [] if self.system is None else [{"role": "system", "content": self.system}]
        return [*system, {"role": "user", "content": self.text}]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the messages as compact JSON, 64 hexadecimal digits."""
        return hashlib.sha256(orjson.dumps(self.messages())).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How answers are drawn from a model's distribution; defaults follow Dai et al. (KDD 2024)."""

    temperature: float = 0.2
    """Sampling temperature; with 0, each token is the likeliest one."""
    top_p: float = 1.0
    """Share of the probability that belongs to the likeliest tokens, from which one is drawn."""
    max_tokens: int | None = None
    """Most tokens of an answer; with None the server decides."""
    seed: int | None = None
    """Seed, for a server that can give the same answer again."""
    logprobs: bool = False
    """Whether to ask for the log-probability of each token."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise UserError(f"temperature must be 0 or more, got {self.temperature!r}")
        if not 0 < self.top_p <= 1:
            raise UserError(f"top_p must be above 0 and at most 1, got {self.top_p!r}")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise UserError(f"max_tokens must be 1 or more, got {self.max_tokens!r}")
        if self.max_tokens is not None and self.max_tokens > LARGEST_COUNT:
            raise UserError(
                f"max_tokens must be at most {LARGEST_COUNT:,}, got {self.max_tokens!r}"
            )
        if self.seed is not None and not -LARGEST_SEED <= self.seed <= LARGEST_SEED:
            raise UserError(f"seed must be at most {LARGEST_SEED:,} either way, got {self.seed!r}")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer of a model."""

    text: str
    """The text as it arrived; empty if a content filter withheld it."""
    finish: str
    """Reason of the end: ``stop``, ``length`` (cut off), ``content_filter``, or a server's word."""
    prompt_tokens: int | None
    """Number of tokens of the prompt, by the server's count; None if it has none."""
    completion_tokens: int | None
    """Number of tokens of the answer, by the server's count; None if it has none."""
    model: str
    """Name of the model that answered, as the server calls it."""
    revision: str | None = None
    """State of the model: the server's ``system_fingerprint``, or a local folder's fingerprint."""
    logprobs: tuple[float, ...] | None = None
    """Natural log-probability of each token of the text; None if there are none."""
    tokens: tuple[str, ...] | None = None
    """Text of each of these tokens; None if there are none, or if one has no text."""

    def __post_init__(self) -> None:
        """Clean all fields.

        A server may send anything, and a journal stores it. An answer that was paid for is not
        refused, and it must fit into tables and files.
        """
        logprobs, tokens = log_probabilities(self.logprobs), token_texts(self.tokens)
        has_text_of_each = len(tokens or ()) == len(logprobs or ())
        self._set("text", whole_characters(self.text))
        self._set("finish", plain_line(self.finish) or "stop")
        self._set("prompt_tokens", whole_number(self.prompt_tokens))
        self._set("completion_tokens", whole_number(self.completion_tokens))
        self._set("model", plain_line(self.model))
        self._set("revision", plain_line(self.revision) or None)
        self._set("logprobs", logprobs)
        self._set("tokens", tokens if has_text_of_each else None)

    def _set(self, name: str, value: Any) -> None:
        """Set a field of this frozen object."""
        object.__setattr__(self, name, value)


@dataclass(frozen=True, kw_only=True)
class Failure:
    """The reason why a prompt has no answer, in one line with the server's words.

    A failure is not stored: the next run asks for the prompt again.
    """

    kind: FailureKind
    """What went wrong; `FailureKind` explains each."""
    message: str
    """The server's words, in one line."""

    def __post_init__(self) -> None:
        """Clean the server's words, which are written into tables and files."""
        object.__setattr__(self, "message", plain_line(self.message, _MESSAGE_LENGTH))


@dataclass(frozen=True, kw_only=True)
class Reply:
    """The outcome of a prompt: an answer or a failure, never both."""

    number: int
    """Position of the prompt, from 0."""
    answer: Answer | None = None
    """What the model wrote; None if it failed."""
    failure: Failure | None = None
    """Why there is no answer; None if there is one."""
    fresh: bool = True
    """Whether the model was asked for this reply.

    False if the answer was in the journal, or if an equal request was asked instead.
    """
    time: str | None = None
    """Time at which the answer was written to the journal, in UTC, as ISO 8601; None if it was not.
    """


class LLM(ABC):
    """A language model that answers prompts.

    A subclass sets `name`, `identity` and `concurrency` and defines `arrivals`. It defines `check`
    if it has something to check, and `embed` if it makes vectors.
    """

    name: str
    """Name of the model, as it is requested."""
    identity: str
    """Kind, model and address, which distinguish it from all others; part of a journal's key.

    It never has a server's secret key in it.
    """
    neural: ClassVar[bool] = False
    """Whether the model computes on this machine, and should have a GPU."""
    batched: ClassVar[bool] = False
    """Whether requests are sent in batches: as files that are answered within a day, at half the
    price."""
    concurrency: int = 1
    """Number of prompts that should be under way together."""
    context: int | None = None
    """Most tokens of a prompt and its answer; None if that is not known beforehand."""
    has_answered: bool = False
    """Whether a journal has answers to requests like these.

    If so, a refusal is about the refused request, and not about the key or the model.
    """
    training_queries: frozenset[str] = frozenset()
    """Ids of queries that the model was trained on, as far as they are known."""

    @property
    def spec(self) -> dict[str, Any]:
        """Description for a data card, of plain JSON values and without a key."""
        return {"llm": self.identity, "model": self.name}

    def check(self) -> None:  # noqa: B027 - some have nothing to check
        """Raise a `UserError` if the model cannot answer, as far as that shows without asking it.

        Packages, keys and folders are checked.
        """

    def generate(self, prompts: Iterable[Prompt], **sampling: Any) -> Generator[Reply, None, None]:
        """Yield a reply for each prompt as soon as it arrives, in any order.

        `sampling` are the fields of `Sampling`.
        """
        with closing(self.arrivals(prompts, Sampling(**sampling))) as arrivals:
            for replies in arrivals:
                yield from replies

    def share_of(self, workers: int) -> LLM:
        """Return the model for one of several workers, which ask it at the same time.

        Together they must keep to the limit of requests per minute, so each gets a share of it.
        """
        return self

    @abstractmethod
    def arrivals(
        self, prompts: Iterable[Prompt], sampling: Sampling
    ) -> Generator[list[Reply], None, None]:
        """Ask the model: yield exactly one reply for each prompt, in any order.

        Replies that arrive together are yielded as a list. Prompts are pulled from the iterable
        when they are needed, in the caller's thread. If the generator is closed, requests under way
        are given up, and nothing more is asked.

        Raises
        ------
        UserError
            If no prompt can be answered.
        """

    def journal_arrivals(
        self, requests: Iterable[tuple[str, Prompt]], sampling: Sampling, journal: Any
    ) -> Generator[list[Reply], None, None]:
        """Ask the model for answers that are written to a journal; otherwise as `arrivals`.

        Each request is a pair: its key in the journal, and its prompt. All machines of a cluster
        take part. A model that is asked in batches also keeps in the journal which batches are
        under way.
        """
        return spread(self, (prompt for _, prompt in requests), sampling)

    def embed(self, texts: Sequence[str]) -> Iterator[tuple[list[int], Vectors]]:
        """Turn texts into vectors; `UserError` if the model makes none, or cannot be asked.

        Yields for each request the positions of some texts and their vectors, float32 of shape
        (texts, dimension), in any order; every text once.
        """
        raise UserError(
            f"{self.name} makes no vectors here: name a model behind a server, such as openai:MODEL"
        )


def spread(
    model: LLM, prompts: Iterable[Prompt], sampling: Sampling
) -> Generator[list[Reply], None, None]:
    """Answer prompts as `LLM.arrivals` does, on all machines of a cluster.

    Together the machines keep to the model's rate limit.
    """
    machines = executor()
    stage = partial(_replies, model.share_of(machines.workers), sampling, model.has_answered)
    yield from machines.map(
        stage,
        enumerate(prompts),
        at_once=_PROMPTS_PER_CALL * model.concurrency,
        ordered=False,
        neural=model.neural,
    )


def _replies(
    model: LLM, sampling: Sampling, has_answered: bool, prompts: Iterator[tuple[int, Prompt]]
) -> Iterator[list[Reply]]:
    """Answer one worker's prompts, and number its replies as all prompts are numbered."""
    # A model that is sent to a worker loses what it has learned, so this is sent beside it.
    model.has_answered = model.has_answered or has_answered
    numbers = list[int]()

    def unnumbered() -> Iterator[Prompt]:
        for number, prompt in prompts:
            numbers.append(number)
            yield prompt

    with closing(model.arrivals(unnumbered(), sampling)) as arrivals:
        for replies in arrivals:
            yield [replace(reply, number=numbers[reply.number]) for reply in replies]


KINDS = {
    "openai": "ranktilt.llm.openai:OpenAI",
    "transformers": "ranktilt.llm.transformers:Transformers",
}
"""Module and class by the name before the colon."""


def llm(text: str, **options: Any) -> LLM:
    """Return the model of ``openai:MODEL`` or ``transformers:FOLDER``.

    It is neither asked nor loaded yet. `options` are fields of its class; an option that is None
    gets its default.
    """
    kind, _, name = text.strip().partition(":")
    if kind not in KINDS:
        # `shorten` puts quotation marks around the text, and `unknown_name` does so again.
        short_kind = shorten(kind)[1:-1]
        raise unknown_name("language model", short_kind, (f"{known}:…" for known in KINDS))
    if not name.strip():
        raise UserError(f"{kind}: no model is named; expected openai:MODEL or transformers:FOLDER")
    model_class = pkgutil.resolve_name(KINDS[kind])
    chosen = {option: value for option, value in options.items() if value is not None}
    _, *valid = inspect.signature(model_class).parameters  # the first is the model's name
    for option in chosen:
        if option not in valid:
            raise unknown_name(f"option of {kind}", option, valid)
    model: LLM = model_class(name.strip(), **chosen)
    return model
