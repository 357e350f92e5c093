"""Models behind a server that speaks OpenAI's protocol: OpenAI, vLLM, Ollama, llama.cpp, `transformers serve`."""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractAsyncContextManager, closing
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import Any

from ranktilt.errors import DataWarning, UserError
from ranktilt.executing.executor import Portable
from ranktilt.llm.base import LLM, Prompt, Reply, Sampling, Vectors
from ranktilt.llm.client import ChatClient, EmbeddingClient, ServerClient, Texts
from ranktilt.llm.prompts import BYTES_A_TOKEN
from ranktilt.llm.responses import same_model
from ranktilt.llm.server import LONG_KEY, VARIABLE, Address, Server
from ranktilt.optional import need

TEXTS_A_REQUEST = 64
TOKENS_A_REQUEST = 16_384
FEWEST = 8
"""Prompts that fail in a row until the server is taken to answer nobody."""
_TURN = 0.2
Opened = Callable[[], AbstractAsyncContextManager[Any]]
"""Gives the context in which a client is open, whose ``serve`` makes the result of one item."""


@dataclass(eq=False)
class OpenAI(Portable, LLM):
    """A model behind an OpenAI-compatible server, asked through the openai client.

    The key comes from the environment variable ``OPENAI_API_KEY`` alone and is kept nowhere; a server on this
    machine's loopback needs none. ``OPENAI_BASE_URL`` names the server where `base_url` does not. At most
    `concurrency` requests are under way at once; each is given up where the server says nothing for `timeout` seconds,
    and followed by up to `retries` further attempts where the reason may pass, after the pause that the server asks for
    (Retry-After) or the client's own. `requests_per_minute` requests are sent in a minute at most, evenly.
    """

    model: str
    _: KW_ONLY
    base_url: str | None = None
    concurrency: int = 8
    timeout: float = 120.0
    retries: int = 5
    requests_per_minute: int | None = None

    def __post_init__(self) -> None:
        for option, least in (("concurrency", 1), ("retries", 0), ("requests_per_minute", 1)):
            value = getattr(self, option)
            if value is not None and value < least:
                raise UserError(f"{option} must be {least} or more, got {value!r}")
        if not 0 < self.timeout < float("inf"):
            raise UserError(f"timeout must be above 0 seconds, got {self.timeout!r}")
        self.name, address = self.model.strip(), Address.of(self.base_url)
        self.identity = f"openai:{self.name}" + (f" at {address.url}" if address.url else "")
        self._server = Server(
            model=self.name, address=address, timeout=self.timeout, retries=self.retries,
            requests_per_minute=self.requests_per_minute,
        )  # fmt: skip
        self._monitor = ServerMonitor(self.name, address.where, self.concurrency)

    def one_of(self, workers: int) -> OpenAI:
        limit = self.requests_per_minute
        if workers == 1 or limit is None:
            return self
        if limit < workers:
            raise UserError(
                f"requests_per_minute={limit} is too little to be divided among {workers} workers; leave --executor out"
            )
        return replace(self, requests_per_minute=limit // workers)

    @property
    def spec(self) -> dict[str, Any]:
        return {"llm": f"openai:{self.name}", "model": self.name, "base_url": self._server.address.url}

    def check(self) -> None:
        need("openai", extra="llm", for_=f"openai:{self.name}")
        if self.requests_per_minute is not None:
            need("aiolimiter", extra="llm", for_="requests_per_minute")
        key, address = _key(), self._server.address
        if key is not None and len(key) >= LONG_KEY and key.casefold() in self.identity.casefold():
            raise UserError(
                f"the key in {VARIABLE} is part of the model's name or base URL, which are kept: take it out"
            )
        if key is None and not address.loopback:
            other = "; any word will do for a server that asks for none" if address.url else ""
            raise UserError(f"openai:{self.name} needs a key: set the environment variable {VARIABLE}{other}")

    def arrivals(self, prompts: Iterable[Prompt], sampling: Sampling) -> Generator[list[Reply], None, None]:
        with closing(self._served(prompts, ChatClient, sampling=sampling)) as stream:
            for replies in stream:
                yield replies
                self._monitor.look(replies, reached=self._server.reached)

    def embed(self, texts: Sequence[str]) -> Iterator[tuple[list[int], Vectors]]:
        """Turn texts into vectors, up to 64 a request; see `LLM.embed`. An empty text is sent as a blank."""
        with closing(self._served(batches(texts), EmbeddingClient)) as stream:
            for positions, vectors, model in chain.from_iterable(chain.from_iterable(stream)):
                self._monitor.model(model)
                yield positions, vectors

    def _served(
        self, items: Iterable[Any], kind: Callable[..., ServerClient], **options: Any
    ) -> Generator[list[Any], None, None]:
        """Send items through a client of some kind; what was found out of the server before is still known."""
        self.check()
        self._server = replace(self._server, key=_key())
        yield from flow(partial(kind, self._server, **options), items, self.concurrency)


class ServerMonitor:
    """Looks at replies as they come: a server that answers nobody ends everything, another model is warned of."""

    def __init__(self, asked: str, where: str, concurrency: int) -> None:
        self.asked, self.where = asked, where
        self._most = max(FEWEST, concurrency)
        self._known = {asked}
        self._row = 0
        self._answered = False

    def look(self, replies: Iterable[Reply], *, reached: bool) -> None:
        """Raise a `UserError` once the server can be taken to answer nobody.

        It was never reached, or `FEWEST` prompts in a row, or as many as are under way at once if that is more, failed
        for good. Prompts that are too long do not count, and refused ones only as long as none was answered.
        """
        for reply in replies:
            if reply.answer is not None:
                self._answered = True
                self.model(reply.answer.model)
            kind = None if reply.failure is None else reply.failure.kind
            counts = kind == "unavailable" or (kind == "refused" and not self._answered)
            self._row = self._row + 1 if counts else 0
            if reply.failure is not None and counts and (not reached or self._row >= self._most):
                failed = f"cannot reach {self.where}" if not reached else f"{self.where} answers nobody"
                raise UserError(
                    f"{failed}: {reply.failure.message}; is the server well, the base URL right, the timeout long "
                    f"enough, and does it serve a model named {self.asked!r}?"
                )

    def model(self, returned: str) -> None:
        """Warn once a name if it is not the asked model or a dated version of it."""
        if returned not in self._known and not same_model(self.asked, returned):
            warnings.warn(
                f"asked {self.where} for model {self.asked!r}, and {returned!r} answered: both names are recorded",
                DataWarning,
                stacklevel=2,
            )
        self._known.add(returned)


def batches(texts: Sequence[str]) -> Iterator[Texts]:
    """Cut texts into requests of at most 64 texts and about 16,384 tokens; a text above that goes alone."""
    batch: Texts = []
    tokens = 0.0
    for position, text in enumerate(texts):
        size = len(text.encode()) / BYTES_A_TOKEN
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


def flow(opened: Opened, items: Iterable[Any], concurrency: int) -> Generator[list[Any], None, None]:
    """Serve items in an event loop in a thread of its own, and yield the results that are there, one or more.

    Items are pulled in the caller's thread, at most `concurrency` and a quarter beyond the results taken; what serving
    one raises ends everything. Closing the iterator cancels what is under way.
    """
    source, most = enumerate(items), concurrency + max(concurrency // 4, 1)
    given = list(islice(source, most))
    if not given:
        return
    slots, pending = asyncio.Semaphore(concurrency), list[Future[Any]]()

    async def served(number: int, item: Any) -> Any:
        await slots.acquire()
        result = await client.serve(number, item)
        slots.release()  # not after an error, which ends everything
        return result

    portals = need("anyio.from_thread", extra="llm", for_="a server")
    with (
        portals.start_blocking_portal(name="ranktilt-llm") as portal,
        portal.wrap_async_context_manager(opened()) as client,
    ):
        loop = portal.call(asyncio.get_running_loop)
        try:
            while given or pending:  # the portal's own way to begin a task would wait for the loop each time
                pending += [asyncio.run_coroutine_threadsafe(served(*numbered), loop) for numbered in given]
                # In short turns: once polars is imported, Ctrl-C does not interrupt a wait without an end.
                done, _ = wait(pending, _TURN, FIRST_COMPLETED)
                finished = [task for task in pending if task in done]  # in the order of their items
                pending = [task for task in pending if task not in done]
                if results := [task.result() for task in finished if task.exception() is None]:
                    yield results
                for failed in finished:
                    failed.result()
                given = list(islice(source, most - len(pending)))
        finally:
            for task in pending:
                task.cancel()
