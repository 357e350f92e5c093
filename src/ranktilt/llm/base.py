"""What a language model is here: prompts in, answers out, each as soon as it is there."""

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

from ranktilt.errors import UserError, shorten, unknown
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
_PROMPTS_A_PLACE = 4
"""Prompts that travel together, for each that a worker has under way at once."""
LARGEST_SEED = LARGEST_COUNT
_MESSAGE_WIDTH = 1_000
"""Characters of a failure's message; a server's own words in it are shorter."""
FailureKind = Literal["too long", "refused", "unavailable"]
"""Why a prompt has no answer: it does not fit the context; the server does not take it (its rules, or a bad
request); or every attempt failed (errors of the server, of the line, or no answer in time)."""


@dataclass(frozen=True)
class Prompt:
    """What one answer is asked for: the user's message, and the system message before it (None sends none).

    A `seed` is for this prompt alone, in place of that of the `Sampling`; it is not part of the
    digest.
    """

    text: str
    system: str | None = None
    seed: int | None = None

    def messages(self) -> list[dict[str, str]]:
        """Return the chat messages, as every compatible server takes them: dicts of ``role`` and ``content``."""
        system = [] if self.system is None else [{"role": "system", "content": self.system}]
        return [*system, {"role": "user", "content": self.text}]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the messages as compact JSON, 64 hexadecimal digits."""
        return hashlib.sha256(orjson.dumps(self.messages())).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How answers are drawn; the default is that of Dai et al. (KDD 2024).

    A `temperature` of 0 takes the likeliest token each time; tokens are drawn from the share
    `top_p` of the probability. `max_tokens` of an answer are left to the server where None, and a
    `seed` is for servers that can repeat themselves. `logprobs` asks for the log-probability of
    each token.
    """

    temperature: float = 0.2
    top_p: float = 1.0
    max_tokens: int | None = None
    seed: int | None = None
    logprobs: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise UserError(f"temperature must be 0 or more, got {self.temperature!r}")
        if not 0 < self.top_p <= 1:
            raise UserError(f"top_p must be above 0 and at most 1, got {self.top_p!r}")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise UserError(f"max_tokens must be 1 or more, got {self.max_tokens!r}")
        if self.seed is not None and not -LARGEST_SEED <= self.seed <= LARGEST_SEED:
            raise UserError(f"seed must be at most {LARGEST_SEED:,} either way, got {self.seed!r}")


@dataclass(frozen=True)
class Answer:
    """What a model said; token counts are the server's, None where it does not say."""

    text: str
    """As it came; empty where a content filter kept it back."""
    finish: str
    """Why it ended: ``stop``, ``length`` (cut off), ``content_filter``, or another word of the server."""
    prompt_tokens: int | None
    completion_tokens: int | None
    model: str
    """Name of the model that answered, as the server gives it."""
    revision: str | None = None
    """This state of the model: the server's ``system_fingerprint``, or the fingerprint of a local folder."""
    logprobs: tuple[float, ...] | None = None
    """Natural log-probability of each token of the text, 0 or less; None where not asked for or not offered."""
    tokens: tuple[str, ...] | None = None
    """The text of each of these tokens; None where there is none, or the model does not say."""

    def __post_init__(self) -> None:
        """Clean what a server, or a journal, may hold: an answer is paid for, and goes into tables and files."""
        logprobs, tokens = log_probabilities(self.logprobs), token_texts(self.tokens)
        cleaned: dict[str, Any] = {
            "text": whole_characters(self.text),
            "finish": plain_line(self.finish) or "stop",
            "prompt_tokens": whole_number(self.prompt_tokens),
            "completion_tokens": whole_number(self.completion_tokens),
            "model": plain_line(self.model),
            "revision": plain_line(self.revision) or None,
            "logprobs": logprobs,
            "tokens": tokens if len(tokens or ()) == len(logprobs or ()) else None,
        }
        for name, value in cleaned.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class Failure:
    """Why one prompt has no answer (see `FailureKind`), in one line with the server's own words.

    It is not kept: the prompt is asked again by the next run.
    """

    kind: FailureKind
    message: str

    def __post_init__(self) -> None:
        """Clean the server's words; see `Answer`."""
        object.__setattr__(self, "message", plain_line(self.message, _MESSAGE_WIDTH))


@dataclass(frozen=True)
class Reply:
    """What came of one prompt: an answer or a failure, never both."""

    number: int
    """Position of the prompt among those given, from 0 on."""
    answer: Answer | None
    failure: Failure | None
    fresh: bool = True
    """False where the answer was in the journal, or was asked for an equal request."""
    time: str | None = None
    """When the answer was journalled, in UTC, as ISO 8601; None where it is not."""


class LLM(ABC):
    """A language model that answers prompts.

    A subclass sets `name`, `identity` and `concurrency` and gives `arrivals`; `check` and `embed`
    where it has something to check, or makes vectors.
    """

    name: str
    """Of the model as asked for."""
    identity: str
    """What tells it from every other: kind, model and where it is asked. Never a key; part of a journal's key."""
    neural: ClassVar[bool] = False
    """Whether it computes where it is asked, and so wants a GPU there."""
    batched: ClassVar[bool] = False
    """Whether it answers in batches, within a day and at half the price."""
    concurrency: int = 1
    """Prompts it wants under way at once."""
    context: int | None = None
    """Tokens that a prompt and its answer may have together; None where that is not known before it is asked."""
    has_answered: bool = False
    """Whether a journal holds answers of it to requests like these: what it refuses is then no fault of all of them."""
    training_queries: frozenset[str] = frozenset()
    """Ids of queries that it was trained on, as far as that is known."""

    @property
    def spec(self) -> dict[str, Any]:
        """What a data card says about it; plain JSON values, never a key."""
        return {"llm": self.identity, "model": self.name}

    def check(self) -> None:  # noqa: B027 - some have nothing to check
        """Check what can be checked without asking (packages, keys, folders); `UserError` if it could not answer."""

    def generate(self, prompts: Iterable[Prompt], **sampling: Any) -> Generator[Reply, None, None]:
        """Answer prompts, each as soon as its answer is there; see `arrivals`, and `Sampling` for the keywords."""
        with closing(self.arrivals(prompts, Sampling(**sampling))) as arrivals:
            for replies in arrivals:
                yield from replies

    def one_of(self, workers: int) -> LLM:
        """Return the model as one of so many workers asks it: each with its part of what all may ask in a minute."""
        return self

    @abstractmethod
    def arrivals(
        self, prompts: Iterable[Prompt], sampling: Sampling
    ) -> Generator[list[Reply], None, None]:
        """Answer prompts, in any order, and yield together what has arrived together: exactly one reply a prompt.

        Prompts are pulled as they are needed, in the caller's thread. Closing the iterator gives up
        what is under way and asks nothing more. `UserError` if no prompt can be answered.
        """

    def journal_arrivals(
        self, requests: Iterable[tuple[str, Prompt]], sampling: Sampling, journal: Any
    ) -> Generator[list[Reply], None, None]:
        """Answer prompts for a journal, each given with the key of its request there; see `arrivals`.

        All machines there are take part. A model that is asked in batches keeps in the journal
        which are under way.
        """
        return spread(self, (prompt for _, prompt in requests), sampling)

    def embed(self, texts: Sequence[str]) -> Iterator[tuple[list[int], Vectors]]:
        """Turn texts into vectors; `UserError` if the model makes none, or cannot be asked.

        Yields positions of some of the texts and their vectors, float32 (texts, dimension), one
        pair a request, in any order; every text exactly once.
        """
        raise UserError(
            f"{self.name} makes no vectors here: name a model behind a server, such as openai:MODEL"
        )


def spread(
    model: LLM, prompts: Iterable[Prompt], sampling: Sampling
) -> Generator[list[Reply], None, None]:
    """Answer prompts as `LLM.arrivals` does, on all machines there are; their rate limits together are the model's."""
    place = executor()
    stage = partial(_answered, model.one_of(place.workers), sampling, model.has_answered)
    at_once = _PROMPTS_A_PLACE * model.concurrency
    yield from place.map(
        stage, enumerate(prompts), at_once=at_once, ordered=False, neural=model.neural
    )


def _answered(
    model: LLM, sampling: Sampling, has_answered: bool, prompts: Iterator[tuple[int, Prompt]]
) -> Iterator[list[Reply]]:
    model.has_answered = model.has_answered or has_answered  # which does not travel with the model
    numbers = list[int]()

    def pulled() -> Iterator[Prompt]:
        for number, prompt in prompts:
            numbers.append(number)
            yield prompt

    with closing(model.arrivals(pulled(), sampling)) as arrivals:
        for replies in arrivals:
            yield [replace(reply, number=numbers[reply.number]) for reply in replies]


KINDS = {
    "openai": "ranktilt.llm.openai:OpenAI",
    "transformers": "ranktilt.llm.transformers:Transformers",
}
"""Module and class by the name before the colon."""


def llm(text: str, **options: Any) -> LLM:
    """Make a language model of ``openai:MODEL`` or ``transformers:FOLDER``; asks and loads nothing.

    `options` are those of the class, by name; None leaves one as it is by default.
    """
    kind, _, name = text.strip().partition(":")
    if kind not in KINDS:
        raise unknown("language model", shorten(kind)[1:-1], (f"{one}:…" for one in KINDS))
    if not name.strip():
        raise UserError(f"{kind}: no model is named; expected openai:MODEL or transformers:FOLDER")
    model = pkgutil.resolve_name(KINDS[kind])
    given = {option: value for option, value in options.items() if value is not None}
    taken = list(inspect.signature(model).parameters)[1:]
    for option in given:
        if option not in taken:
            raise unknown(f"option of {kind}", option, taken)
    built: LLM = model(name.strip(), **given)
    return built
