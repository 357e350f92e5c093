"""Models behind a server that speaks OpenAI's protocol: OpenAI, vLLM, Ollama, llama.cpp, `transformers serve`."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, closing
from functools import partial
from itertools import chain
from typing import Any

from ranktilt.errors import UserError
from ranktilt.llm.address import Address
from ranktilt.llm.base import LLM, Prompt, Reply, Sampling, Vectors
from ranktilt.llm.desk import Chat, Desk, Embedding, Texts, connected, estimated
from ranktilt.llm.faults import LONG_KEY, VARIABLE
from ranktilt.llm.limits import Limits
from ranktilt.llm.loop import ahead, flow
from ranktilt.llm.traffic import Line, Patience
from ranktilt.llm.watch import Watch
from ranktilt.optional import need

TEXTS_A_REQUEST = 64
TOKENS_A_REQUEST = 16_384
MOST_BYTES = 1_000_000
_BESIDE = 2_048
"""Bytes that a line of the journal holds beside the answer."""


class OpenAI(LLM):
    """A model behind an OpenAI-compatible server, asked through the openai client.

    The key comes from the environment variable ``OPENAI_API_KEY`` alone and is kept nowhere; a server on this
    machine's loopback needs none. ``OPENAI_BASE_URL`` names the server where `base_url` does not.

    Parameters
    ----------
    model : str
        Name of the model, as the server knows it.
    base_url : str, optional
        Where the server is, such as ``http://localhost:8000/v1``; OpenAI's own by default.
    concurrency : int, optional
        Most requests under way at once.
    timeout : float, optional
        Seconds until a request is given up.
    retries : int, optional
        Further attempts after one that failed for a reason that may pass.
    rpm, tpm : int, optional
        Most requests, and most tokens read and written, in any minute; no limit by default. Tokens are estimated
        before a request and put right by what the server counts.
    pause : float, optional
        Seconds before the second attempt, give or take half; twice as many before each further one. A server that
        says how long to wait (Retry-After) is obeyed, by all requests if it says that there are too many.
    max_answer : int, optional
        Bytes of an answer as it comes, and for each text of a request for vectors; a longer one is refused unread.

    Raises
    ------
    UserError
        If an option is out of its range, or the URL is none or holds a name or a query.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        concurrency: int = 8,
        timeout: float = 120.0,
        retries: int = 8,
        rpm: int | None = None,
        tpm: int | None = None,
        pause: float = 0.25,
        max_answer: int = MOST_BYTES,
    ) -> None:
        if not model.strip():
            raise UserError("openai: needs the name of a model, such as openai:gpt-4o-mini")
        for name, value, least in (("concurrency", concurrency, 1), ("retries", retries, 0), ("rpm", rpm, 1)):
            _at_least(name, value, least)
        _at_least("tpm", tpm, 1)
        _at_least("max_answer", max_answer, 1)
        if not 0 < timeout < float("inf"):
            raise UserError(f"timeout must be above 0 seconds, got {timeout!r}")
        if not 0 <= pause < float("inf"):
            raise UserError(f"pause must be 0 seconds or more, got {pause!r}")
        self.name, self.concurrency = model.strip(), concurrency
        self._address = Address.of(base_url)
        self.identity = f"openai:{self.name}" + (f" at {self._address.url}" if self._address.url else "")
        self._patience = Patience(timeout=timeout, retries=retries, pause=pause)
        self._limits = Limits(rpm, tpm)
        self._max_answer = max_answer

    @property
    def room(self) -> int:  # type: ignore[override]
        """Bytes that all answers under way can take in a journal."""
        return ahead(self.concurrency) * (self._max_answer + _BESIDE)

    @property
    def spec(self) -> dict[str, Any]:
        """What a data card says: kind and model, the model's name, and the server where it is not OpenAI's own."""
        return {"llm": f"openai:{self.name}", "model": self.name, "base_url": self._address.url}

    def check(self) -> None:
        """Check that the openai package and a key are there; asks nothing.

        Raises
        ------
        UserError
            If one is missing, or the key stands in the model's name or the server's address, which are kept.
        """
        need("openai", extra="llm", for_=f"openai:{self.name}")
        key = _key()
        if key is not None and len(key) >= LONG_KEY and key.casefold() in self.identity.casefold():
            raise UserError(
                f"the key in {VARIABLE} is part of the model's name or base URL, which are kept: take it out"
            )
        if key is None and not self._address.loopback:
            other = "; any word will do for a server that asks for none" if self._address.url else ""
            raise UserError(f"openai:{self.name} needs a key: set the environment variable {VARIABLE}{other}")

    def arrivals(self, prompts: Iterable[Prompt], sampling: Sampling) -> Generator[list[Reply], None, None]:
        """Answer prompts; see `LLM.arrivals`."""
        self.check()
        line, watch = Line(self._limits, self._patience), Watch(self.name, self._address.where, self.concurrency)
        chat = partial(Chat, sampling=sampling, new_style=self._address.url is None)
        with closing(flow(partial(self._opened, line, chat), prompts, self.concurrency)) as stream:
            for replies in stream:
                yield replies
                watch.over(replies, reached=line.reached)

    def embed(self, texts: Sequence[str]) -> Iterator[tuple[list[int], Vectors]]:
        """Turn texts into vectors, up to 64 a request; see `LLM.embed`. An empty text is sent as a blank."""
        self.check()
        line, watch = Line(self._limits, self._patience), Watch(self.name, self._address.where, self.concurrency)
        dimension = 0
        with closing(flow(partial(self._opened, line, Embedding), batches(texts), self.concurrency)) as stream:
            for positions, vectors, model in chain.from_iterable(chain.from_iterable(stream)):
                watch.model(model)
                dimension = dimension or vectors.shape[1]
                if vectors.shape[1] != dimension:
                    raise UserError(
                        f"{self._address.where} gave vectors of {dimension} and of {vectors.shape[1]} values "
                        f"for model {self.name!r}: two models seem to answer under one name"
                    )
                yield positions, vectors

    def _opened(self, line: Line, kind: Callable[..., Desk]) -> AbstractAsyncContextManager[Any]:
        most = self._max_answer * (TEXTS_A_REQUEST if kind is Embedding else 1)
        return connected(
            kind, line, self._address, model=self.name, key=_key(), concurrency=self.concurrency, most=most
        )


def batches(texts: Sequence[str]) -> Iterator[Texts]:
    """Cut texts into requests: at most 64 texts, and about 16,384 tokens, each.

    Parameters
    ----------
    texts : sequence of str
        The texts.

    Yields
    ------
    list of tuple of int and str
        Positions and texts. A text above the budget goes alone.
    """
    batch: Texts = []
    tokens = 0.0
    for position, text in enumerate(texts):
        size = estimated(text)
        if batch and (len(batch) == TEXTS_A_REQUEST or tokens + size > TOKENS_A_REQUEST):
            yield batch
            batch, tokens = [], 0.0
        batch.append((position, text))
        tokens += size
    if batch:
        yield batch


def _key() -> str | None:
    key = os.environ.get(VARIABLE, "").strip()
    if not key.isascii() or any(sign.isspace() or not sign.isprintable() for sign in key):
        raise UserError(f"the environment variable {VARIABLE} holds signs that no key has: copy the key again")
    return key or None


def _at_least(name: str, value: int | None, least: int) -> None:
    if value is not None and value < least:
        raise UserError(f"{name} must be {least} or more, got {value!r}")
