"""Models behind a server that speaks OpenAI's protocol: OpenAI, vLLM, Ollama, llama.cpp, `transformers serve`."""

from __future__ import annotations

import asyncio
import importlib
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractAsyncContextManager, closing
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from itertools import chain, islice
from typing import Any, ClassVar, Self

from ranktilt.errors import DataWarning, UserError, counted
from ranktilt.llm.base import LLM, Failure, Prompt, Reply, Sampling, Vectors
from ranktilt.llm.responses import (
    FailedRequest,
    classify_error,
    filtered_answer,
    json_body,
    read_answer,
    read_vectors,
    retry_delay,
    same_model,
)
from ranktilt.llm.server import LONG_KEY, OWN, SHORT_KEY, VARIABLE, Server, base_url
from ranktilt.llm.untrusted import plain_line
from ranktilt.optional import need
from ranktilt.parallel.executor import Portable

Texts = list[tuple[int, str]]
"""Positions and texts of one request for vectors."""
TextVectors = tuple[list[int], Vectors, str]
"""Positions, vectors, and the name of the model that made them."""
CONNECT = 10.0
"""Seconds until a connection is given up, if the time limit of a request is not shorter."""
MINUTE = 60.0
_NO_COOKIES = DefaultCookiePolicy(allowed_domains=[])
"""Requests are independent; one that cannot be sent back, such as ``a=ÿ``, would spoil all that follow."""


class ServerClient(ABC):
    """Requests of one kind, sent through the openai client, which is open within ``async with``."""

    path: ClassVar[str]

    def __init__(self, server: Server) -> None:
        self.server = server
        self._openai = need("openai", extra="llm", for_=f"openai:{server.model}")
        # The HTTP package below the client differs with its version.
        self._http = importlib.import_module(
            self._openai.DefaultAsyncHttpxClient.__mro__[1].__module__.split(".")[0]
        )

    async def __aenter__(self) -> Self:
        server, limiter = self.server, None
        if server.requests_per_minute is not None:
            limiter = need("aiolimiter", extra="llm", for_="requests_per_minute").AsyncLimiter(
                1, MINUTE / server.requests_per_minute
            )
            if server.reached:  # the first request waits its turn behind those of earlier calls
                await limiter.acquire()
        # What is on this machine is not asked through a proxy, and needs no certificates, which
        # take long to read.
        direct = server.loopback and str(server.url).startswith("http:")
        try:
            transport = _in_time(self._openai.DefaultAsyncHttpxClient, self._http, limiter)(
                follow_redirects=False,
                trust_env=not direct,
                verify=not direct,
                cookies=CookieJar(_NO_COOKIES),
            )
        except (ImportError, ValueError, OSError) as error:
            said = self._cause(error)
            raise UserError(
                f"the environment's proxy or certificate cannot be used (ALL_PROXY, HTTPS_PROXY, SSL_CERT_FILE): {said}"
            ) from error
        self._client = self._openai.AsyncOpenAI(
            api_key=server.key or "none",
            base_url=server.url
            or OWN,  # without one it would read the environment, and take an empty one
            max_retries=server.retries,
            timeout=self._openai.Timeout(server.timeout, connect=min(CONNECT, server.timeout)),
            http_client=transport,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    @abstractmethod
    async def serve(self, number: int, item: Any) -> Any:
        """Make the result of one item."""

    async def post(self, body: dict[str, Any], read: Callable[[dict[str, Any]], Any]) -> Any:
        """Send a request and return what `read` makes of the answer; one that is none is asked for again.

        Raises `FailedRequest`, or `UserError` where everything ends. The response comes as it is:
        the client's own models would cost as much time as the rest of the request.
        """
        left = self.server.retries
        while True:
            response = await self.response(
                self._client.post(self.path, cast_to=self._http.Response, body=body)
            )
            try:
                return read(json_body(response.content, self.server.clean))
            except ValueError as error:
                if not left:
                    raise FailedRequest("unavailable", str(error)) from None
                left -= 1

    async def response(self, request: Awaitable[Any]) -> Any:
        """Wait for the response to a request of the client; raises as `post` does."""
        try:
            response = await request
        except self._openai.APIStatusError as error:
            self.server.reached = True
            wait = retry_delay(error.response.headers)
            raise self.status_error(error.status_code, error.body, wait) from None
        except self._openai.APITimeoutError as error:
            limit = error.request.extensions["timeout"]["read"]
            raise FailedRequest("unavailable", f"no answer within {limit:g} s") from None
        except self._openai.APIConnectionError as error:
            raise FailedRequest("unavailable", f"connection failed: {self._cause(error)}") from None
        except (ValueError, LookupError, RecursionError) as error:
            raise FailedRequest(
                "unavailable", f"a response that cannot be read: {self._cause(error)}"
            ) from None
        self.server.reached = True
        return response

    def status_error(self, status: int, body: object, wait: float | None) -> Exception:
        """Return the exception that an error of the server calls for; `wait` as of `classify_error`."""
        return classify_error(status, body, self.server, wait)

    def _cause(self, error: BaseException) -> str:
        while error.__cause__ is not None:
            error = error.__cause__
        # Cleaned before it is cut, or the beginning of a key could stay.
        return plain_line(self.server.clean(str(error))) or type(error).__name__


def _in_time(client: Any, http: Any, limiter: Any) -> Any:
    """Return a kind of HTTP client whose requests end in time as a whole, each after its turn in the `limiter`.

    The client's own limit is one for each read: a server that sends a byte now and then is waited
    for without an end.
    """

    class ClientInTime(client):  # type: ignore[misc]
        async def send(self, request: Any, **options: Any) -> Any:
            if limiter is not None:
                await limiter.acquire()
            try:
                async with asyncio.timeout(request.extensions["timeout"]["read"]):
                    response = await super().send(request, **options)
            except TimeoutError:
                raise http.ReadTimeout("the whole request took too long", request=request) from None
            response.encoding = (
                "utf-8"  # as JSON is; another one that is stated may not even be one of text
            )
            return response

    return ClientInTime


class ChatClient(ServerClient):
    """Prompts in, replies out.

    OpenAI's own server wants ``max_completion_tokens`` for ``max_tokens``, and models that take no
    temperature take its default when it is left out.
    """

    path = "/chat/completions"

    def __init__(self, server: Server, *, sampling: Sampling) -> None:
        super().__init__(server)
        self._sampling = sampling

    async def serve(self, number: int, item: Prompt) -> Reply:
        body = chat_body(self.server, self._sampling, item)
        model = self.server.model
        try:
            answer = await self.post(body, lambda data: read_answer(data, model, self.server))
        except FailedRequest as error:
            if error.kind == "filtered":
                return Reply(number, filtered_answer(model), None)
            return Reply(number, None, Failure(error.kind, error.message))
        self.server.has_answered = True
        return Reply(number, answer, None)


def chat_body(server: Server, sampling: Sampling, prompt: Prompt) -> dict[str, Any]:
    """Return what a request for a chat completion holds."""
    seed = sampling.seed if prompt.seed is None else prompt.seed
    seeded = {} if seed is None else {"seed": seed}
    sampled = drawn(sampling, own=server.url is None)
    return {"model": server.model, **sampled, "messages": prompt.messages(), **seeded}


def drawn(sampling: Sampling, *, own: bool) -> dict[str, Any]:
    """Return a sampling as OpenAI's `own` server takes it, or another one."""
    given: dict[str, Any] = {"temperature": sampling.temperature, "top_p": sampling.top_p}
    if own:
        given = {name: value for name, value in given.items() if value != 1}
    if sampling.max_tokens is not None:
        given["max_completion_tokens" if own else "max_tokens"] = sampling.max_tokens
    if sampling.logprobs:
        given["logprobs"] = True
    return given


class EmbeddingClient(ServerClient):
    """Texts in, vectors out, with the name of the model that made them."""

    path = "/embeddings"

    async def serve(self, number: int, item: Texts) -> list[TextVectors]:
        """Ask for the vectors of some texts; requests that are not taken are cut in two, down to the text at fault."""
        where, model = self.server.where, self.server.model
        body = {"model": model, "input": [text or " " for _, text in item]}
        try:
            vectors, name = await self.post(
                body, lambda data: (read_vectors(data, len(item)), data.get("model"))
            )
        except FailedRequest as error:
            if error.kind == "unavailable":
                raise UserError(
                    f"{where} gave no vectors of model {model!r}: {error.message}"
                ) from None
            if len(item) == 1:
                position, text = item[0]
                words = counted(len(text.split()), "word", "words")
                hint = (
                    "; cut texts, as dense:openai:MODEL(max_tokens=…) does"
                    if error.kind == "too long"
                    else ""
                )
                raise UserError(
                    f"{where} does not take text {position} ({words}): {error.message}{hint}"
                ) from None
            half = len(item) // 2
            return [*await self.serve(number, item[:half]), *await self.serve(number, item[half:])]
        returned = (
            plain_line(self.server.clean(name))
            if isinstance(name, str) and name != model
            else model
        )
        return [([position for position, _ in item], vectors, returned or model)]


TEXTS_A_REQUEST = 64
FEWEST = 8
"""Prompts that fail in a row until the server is taken to answer nobody."""
_PATIENCE = 8
"""How many times as many it takes where answers are known: what is left may be what the server cannot answer."""
_TURN = 0.2
Opened = Callable[[], AbstractAsyncContextManager[Any]]
"""Gives the context in which a client is open, whose ``serve`` makes the result of one item."""


@dataclass(eq=False)
class OpenAI(Portable, LLM):
    """A model behind an OpenAI-compatible server, asked through the openai client.

    The key comes from the environment variable ``OPENAI_API_KEY`` alone and is kept nowhere; a
    server on this machine needs none. ``OPENAI_BASE_URL`` names the server where `base_url` does
    not.
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
        self.name, url = self.model.strip(), base_url(self.base_url)
        self.identity = f"openai:{self.name}" + (f" at {url}" if url else "")
        self._server = Server(
            model=self.name,
            url=url,
            timeout=self.timeout,
            retries=self.retries,
            requests_per_minute=self.requests_per_minute,
        )
        self.monitor = ServerMonitor(self.name, self._server.where, self.concurrency)
        self._warned = False

    def one_of(self, workers: int) -> OpenAI:
        limit = self.requests_per_minute
        if workers == 1 or limit is None:
            return self
        if limit < workers:
            raise UserError(
                f"requests_per_minute={limit} is too little to be divided among {workers} workers; omit --executor"
            )
        return replace(self, requests_per_minute=limit // workers)

    @property
    def spec(self) -> dict[str, Any]:
        return {"llm": f"openai:{self.name}", "model": self.name, "base_url": self._server.url}

    def check(self) -> None:
        need("openai", extra="llm", for_=f"openai:{self.name}")
        if self.requests_per_minute is not None:
            need("aiolimiter", extra="llm", for_="requests_per_minute")
        key = key_of_environment()
        if key is not None and len(key) >= LONG_KEY and key.casefold() in self.identity.casefold():
            raise UserError(
                f"the key in {VARIABLE} is part of the model's name or base URL, which are stored: remove it"
            )
        if key is not None and len(key) < SHORT_KEY and not self._warned:
            self._warned = True
            warnings.warn(
                f"the key in {VARIABLE} has fewer than {SHORT_KEY} characters: an answer may hold it by chance, so "
                "that texts of answers are kept as they come, even where they repeat the key",
                DataWarning,
                stacklevel=2,
            )
        if key is None and not self._server.loopback:
            other = "; any word will do for a server that asks for none" if self._server.url else ""
            raise UserError(
                f"openai:{self.name} needs a key: set the environment variable {VARIABLE}{other}"
            )

    def arrivals(
        self, prompts: Iterable[Prompt], sampling: Sampling
    ) -> Generator[list[Reply], None, None]:
        with closing(self._served(prompts, ChatClient, sampling=sampling)) as stream:
            for replies in stream:
                yield replies
                self.monitor.look(
                    replies, reached=self._server.reached, has_answered=self.has_answered
                )

    def embed(self, texts: Sequence[str]) -> Iterator[tuple[list[int], Vectors]]:
        """Turn texts into vectors, up to 64 a request; see `LLM.embed`. An empty text is sent as a blank."""
        numbered = list(enumerate(texts))
        parts = (
            numbered[start : start + TEXTS_A_REQUEST]
            for start in range(0, len(texts), TEXTS_A_REQUEST)
        )
        with closing(self._served(parts, EmbeddingClient)) as stream:
            for positions, vectors, model in chain.from_iterable(chain.from_iterable(stream)):
                self.monitor.model(model)
                yield positions, vectors

    def _served(
        self, items: Iterable[Any], kind: Callable[..., ServerClient], **options: Any
    ) -> Generator[list[Any], None, None]:
        """Send items through a client of some kind; what was found out of the server before is still known."""
        self.check()
        self._server = self._current_server()
        yield from flow(partial(kind, self._server, **options), items, self.concurrency)

    def _current_server(self) -> Server:
        """Return the server with the key of now, and all that is known of it."""
        has_answered = self.has_answered or self._server.has_answered
        return replace(self._server, key=key_of_environment(), has_answered=has_answered)


class ServerMonitor:
    """Looks at replies as they come: a server that answers nobody ends everything, another model is warned of."""

    def __init__(self, requested: str, where: str, concurrency: int) -> None:
        self.requested, self.where = requested, where
        self._most = max(FEWEST, concurrency)
        self._known = {requested}
        self._row = 0
        self._answered = False

    def look(self, replies: Iterable[Reply], *, reached: bool, has_answered: bool = False) -> None:
        """Raise a `UserError` once the server can be taken to answer nobody: never reached, or many failed in a row.

        Prompts that are too long do not count, and refused ones only as long as none was answered;
        `has_answered` is whether one was before, by what a journal holds.
        """
        self._answered = self._answered or has_answered
        most = self._most * (_PATIENCE if has_answered else 1)
        for reply in replies:
            if reply.answer is not None:
                self._answered = True
                self.model(reply.answer.model)
            self._row = self._row + 1 if self._counts(reply) else 0
            if reply.failure is not None and self._row and (not reached or self._row >= most):
                failed = (
                    f"cannot reach {self.where}" if not reached else f"{self.where} answers nobody"
                )
                raise UserError(
                    f"{failed}: {reply.failure.message}; is the server well, the base URL right, the timeout long "
                    f"enough, and does it serve a model named {self.requested!r}?"
                )

    def _counts(self, reply: Reply) -> bool:
        """Tell whether a reply may mean that the server answers nobody."""
        kind = None if reply.failure is None else reply.failure.kind
        return kind == "unavailable" or (kind == "refused" and not self._answered)

    def model(self, returned: str) -> None:
        """Warn once a name if it is not the asked model or a dated version of it."""
        if returned not in self._known and not same_model(self.requested, returned):
            warnings.warn(
                f"asked {self.where} for model {self.requested!r}, and {returned!r} answered: both names are recorded",
                DataWarning,
                stacklevel=2,
            )
        self._known.add(returned)


def key_of_environment() -> str | None:
    key = os.environ.get(VARIABLE, "").strip()
    if not key.isascii() or any(sign.isspace() or not sign.isprintable() for sign in key):
        raise UserError(
            f"the environment variable {VARIABLE} holds characters that no key has: copy the key again"
        )
    return key or None


def flow(
    opened: Opened, items: Iterable[Any], concurrency: int
) -> Generator[list[Any], None, None]:
    """Serve items in an event loop in a thread of its own, and yield the results that are there, one or more.

    Items are pulled in the caller's thread, at most `concurrency` and a quarter beyond the results
    taken; what serving one raises ends everything. Closing the iterator cancels what is under way.
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
            while (
                given or pending
            ):  # the portal's own way to begin a task would wait for the loop each time
                pending += [
                    asyncio.run_coroutine_threadsafe(served(*numbered), loop) for numbered in given
                ]
                # In short turns: once polars is imported, Ctrl-C does not interrupt a wait without
                # an end.
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
