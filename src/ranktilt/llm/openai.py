"""Models behind a server with OpenAI's protocol.

OpenAI, vLLM, Ollama, llama.cpp and `transformers serve` have it. Requests are sent by the openai
client, a Python package.

A *reply* is the outcome of a prompt: an answer, or a *failure* with the reason why there is none. A
*journal* is the file that keeps all answers of a model. The *key* is the secret one with which a
server knows its customers.
"""

from __future__ import annotations

import asyncio
import os
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from itertools import chain
from typing import Any, ClassVar, Self

from ranktilt.errors import DataWarning, UserError, counted
from ranktilt.llm.base import LLM, Failure, Prompt, Reply, Sampling, Vectors
from ranktilt.llm.event_loop import flow
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
from ranktilt.llm.server import LONG_KEY, OPENAI_URL, SHORT_KEY, VARIABLE, Server, base_url
from ranktilt.llm.untrusted import LARGEST_COUNT, plain_line
from ranktilt.optional import need
from ranktilt.parallel.executor import Portable

Texts = list[tuple[int, str]]
"""Position and text of each text of a request for vectors."""
CONNECT = 10.0
"""Most seconds to wait for a connection; fewer if the time limit of a request is shorter."""
MINUTE = 60.0
"""Seconds over which requests are counted, for a rate limit."""
_NO_COOKIES = DefaultCookiePolicy(allowed_domains=[])
"""Accepts no cookies: one that cannot be sent back, such as ``a=ÿ``, would break later requests."""


@dataclass(frozen=True, kw_only=True)
class TextVectors:
    """Vectors of some texts."""

    positions: list[int]
    """Positions of the texts."""
    vectors: Vectors
    """A row of numbers for each of the texts."""
    model: str
    """Name of the model that made them."""


class ServerClient(ABC):
    """Sends requests of one kind through the openai client, which is open within ``async with``."""

    path: ClassVar[str]
    """Address of the requests, below the base URL: ``/chat/completions``."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._openai = need("openai", extra="llm", for_=f"openai:{server.model}")
        # Different versions of the client use different HTTP packages. The one at hand is that of
        # the class from which the client's own class derives.
        http_client = self._openai.DefaultAsyncHttpxClient.__mro__[1]
        self._http = sys.modules[http_client.__module__.partition(".")[0]]

    async def __aenter__(self) -> Self:
        server = self.server
        # Delays requests as the rate limit demands; None without a limit.
        limiter = None
        if server.requests_per_minute is not None:
            limiters = need("aiolimiter", extra="llm", for_="requests_per_minute")
            # One request in this many seconds, instead of all requests of a minute at once.
            limiter = limiters.AsyncLimiter(1, MINUTE / server.requests_per_minute)
            if server.reached:  # earlier calls count too, so the first request has to wait as well
                await limiter.acquire()
        # A server on this machine is asked without a proxy, and without certificates, which are
        # slow to read.
        is_direct = server.loopback and str(server.url).startswith("http:")
        client_in_time = _client_in_time(self._openai.DefaultAsyncHttpxClient, self._http, limiter)
        try:
            transport = client_in_time(
                follow_redirects=False,
                trust_env=not is_direct,
                verify=not is_direct,
                cookies=CookieJar(_NO_COOKIES),
            )
        except (ImportError, ValueError, OSError) as error:
            raise UserError(
                "the environment's proxy or certificate cannot be used (ALL_PROXY, HTTPS_PROXY, "
                f"SSL_CERT_FILE): {self._cause(error)}"
            ) from error
        self._client = self._openai.AsyncOpenAI(
            api_key=server.key or "none",
            # If it is None, the client would read it from the environment, where it may be empty.
            base_url=server.url or OPENAI_URL,
            max_retries=server.retries,
            timeout=self._openai.Timeout(server.timeout, connect=min(CONNECT, server.timeout)),
            http_client=transport,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    @abstractmethod
    async def serve(self, number: int, work: Any) -> Any:
        """Return the result of a piece of work, such as a prompt; `number` is its position."""

    async def post(self, body: dict[str, Any], read: Callable[[dict[str, Any]], Any]) -> Any:
        """Send a request and return what `read` makes of the response.

        If `read` raises a `ValueError`, the request is sent again. Raises `FailedRequest`, or a
        `UserError` if all other requests would fail as well. The client's classes for responses are
        not used: they would take as much time as the rest of the request.
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
        """Return the response to a request of the client; its errors are those of `post`."""
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
        """Return the exception for an error of the server, by its status code and body.

        `wait` is the number of seconds for which the server asks to be left alone.
        """
        return classify_error(status, body, self.server, wait)

    def _cause(self, error: BaseException) -> str:
        """Return the message of the first error in a chain of causes, without the key."""
        while error.__cause__ is not None:
            error = error.__cause__
        # The key is hidden before the message is cut: a part of the key would not be recognised.
        return plain_line(self.server.clean(str(error))) or type(error).__name__


def _client_in_time(client: Any, http: Any, limiter: Any) -> Any:
    """Return a class of HTTP clients whose requests keep to the time limit and the rate limit.

    The time limit of the HTTP package is for each read, so that the response of a server that sends
    a byte now and then would never end. Here it is for the whole request. `client` is the class to
    derive from, `http` its package, and `limiter` the rate limit, or None.
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
            # JSON is UTF-8, whatever the server says.
            response.encoding = "utf-8"
            return response

    return ClientInTime


class ChatClient(ServerClient):
    """Sends prompts and returns replies."""

    path = "/chat/completions"

    def __init__(self, server: Server, *, sampling: Sampling) -> None:
        super().__init__(server)
        self._sampling = sampling

    async def serve(self, number: int, work: Prompt) -> Reply:
        """Return the reply to a prompt."""
        body = chat_body(self.server, self._sampling, work)
        model = self.server.model
        try:
            answer = await self.post(body, lambda data: read_answer(data, model, self.server))
        except FailedRequest as error:
            if error.kind == "filtered":
                return Reply(number=number, answer=filtered_answer(model))
            return Reply(number=number, failure=Failure(kind=error.kind, message=error.message))
        self.server.has_answered = True
        return Reply(number=number, answer=answer)


def chat_body(server: Server, sampling: Sampling, prompt: Prompt) -> dict[str, Any]:
    """Return the body of a request for a chat completion."""
    body = {
        "model": server.model,
        **sampling_fields(sampling, is_openai=server.url is None),
        "messages": prompt.messages(),
    }
    seed = sampling.seed if prompt.seed is None else prompt.seed
    if seed is not None:
        body["seed"] = seed
    return body


def sampling_fields(sampling: Sampling, *, is_openai: bool) -> dict[str, Any]:
    """Return the fields of a request that say how its answer is drawn.

    OpenAI's server calls ``max_tokens`` ``max_completion_tokens``, and its models that take no
    temperature accept a request that leaves the default out.
    """
    fields: dict[str, Any] = {"temperature": sampling.temperature, "top_p": sampling.top_p}
    if is_openai:
        fields = {name: value for name, value in fields.items() if value != 1}
    if sampling.max_tokens is not None:
        fields["max_completion_tokens" if is_openai else "max_tokens"] = sampling.max_tokens
    if sampling.logprobs:
        fields["logprobs"] = True
    return fields


class EmbeddingClient(ServerClient):
    """Sends texts and returns their vectors."""

    path = "/embeddings"

    async def serve(self, number: int, work: Texts) -> list[TextVectors]:
        """Return the vectors of some texts.

        If the server refuses them, both halves are sent alone, and so on, until the text at fault
        is alone.
        """
        where, model = self.server.where, self.server.model
        body = {"model": model, "input": [text or " " for _, text in work]}
        try:
            vectors, returned = await self.post(
                body, lambda data: (read_vectors(data, len(work)), data.get("model"))
            )
        except FailedRequest as error:
            if error.kind == "unavailable":
                raise UserError(
                    f"{where} gave no vectors from model {model!r}: {error.message}"
                ) from None
            if len(work) == 1:
                position, text = work[0]
                words = counted(len(text.split()), "word", "words")
                is_too_long = error.kind == "too long"
                hint = (
                    "; cut texts, as dense:openai:MODEL(max_tokens=…) does" if is_too_long else ""
                )
                raise UserError(
                    f"{where} rejects text {position} ({words}): {error.message}{hint}"
                ) from None
            half = len(work) // 2
            return [*await self.serve(number, work[:half]), *await self.serve(number, work[half:])]
        name = model
        if isinstance(returned, str) and returned != model:
            name = plain_line(self.server.clean(returned)) or model
        positions = [position for position, _ in work]
        return [TextVectors(positions=positions, vectors=vectors, model=name)]


TEXTS_A_REQUEST = 64
"""Texts that are sent together for their vectors."""
FEWEST_FAILURES = 8
"""Fewest failures in a row after which the server is considered broken, and nothing more is
asked."""
_PATIENCE_FACTOR = 8
"""Factor of this number if a journal has answers: the other prompts may be those that always
fail."""


@dataclass(eq=False)
class OpenAI(Portable, LLM):
    """A model behind an OpenAI-compatible server, asked through the openai client.

    The key is read only from the environment variable ``OPENAI_API_KEY``, and is never stored; a
    server on this machine needs none. If `base_url` is None, ``OPENAI_BASE_URL`` names the server.
    """

    model: str
    """Name of the model, as the server knows it."""
    _: KW_ONLY
    base_url: str | None = None
    """Address of the server; None for the environment's, or else OpenAI's."""
    concurrency: int = 8
    """Number of requests that are under way together."""
    timeout: float = 120.0
    """Time limit of a request, in seconds."""
    retries: int = 5
    """Number of times that a failed request is sent again."""
    requests_per_minute: int | None = None
    """Most requests in a minute; None for no limit."""

    def __post_init__(self) -> None:
        for option, least in (("concurrency", 1), ("retries", 0), ("requests_per_minute", 1)):
            value = getattr(self, option)
            if value is not None and value < least:
                raise UserError(f"{option} must be {least} or more, got {value!r}")
            if value is not None and value > LARGEST_COUNT:
                raise UserError(f"{option} must be at most {LARGEST_COUNT:,}, got {value!r}")
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

    def share_of(self, workers: int) -> OpenAI:
        limit = self.requests_per_minute
        if workers == 1 or limit is None:
            return self
        if limit < workers:
            raise UserError(
                f"requests_per_minute={limit} is too few to divide among {workers} workers; "
                "omit --executor"
            )
        return replace(self, requests_per_minute=limit // workers)

    @property
    def spec(self) -> dict[str, Any]:
        return {"llm": f"openai:{self.name}", "model": self.name, "base_url": self._server.url}

    def check(self) -> None:
        """Refuse missing packages, a missing key, and a key that would be stored in a name.

        Warns of a key that is so short that an answer may contain it by chance.
        """
        need("openai", extra="llm", for_=f"openai:{self.name}")
        if self.requests_per_minute is not None:
            need("aiolimiter", extra="llm", for_="requests_per_minute")
        key = key_of_environment()
        if key is not None and len(key) >= LONG_KEY and key.casefold() in self.identity.casefold():
            raise UserError(
                f"the key in {VARIABLE} is part of the model's name or base URL, which are stored: "
                "remove it"
            )
        if key is not None and len(key) < SHORT_KEY and not self._warned:
            self._warned = True
            warnings.warn(
                f"the key in {VARIABLE} has fewer than {SHORT_KEY} characters: an answer may "
                "contain it by chance, so answers are kept as they come, even if they repeat the "
                "key",
                DataWarning,
                stacklevel=2,
            )
        if key is None and not self._server.loopback:
            hint = "; any word will do for a server that asks for none" if self._server.url else ""
            raise UserError(
                f"openai:{self.name} needs a key: set the environment variable {VARIABLE}{hint}"
            )

    def arrivals(
        self, prompts: Iterable[Prompt], sampling: Sampling
    ) -> Generator[list[Reply], None, None]:
        """Ask the server and yield replies; end with an error if it does not answer any more."""
        with closing(self._served(prompts, ChatClient, sampling=sampling)) as stream:
            for replies in stream:
                yield replies
                self.monitor.check_replies(
                    replies, reached=self._server.reached, has_answered=self.has_answered
                )

    def embed(self, texts: Sequence[str]) -> Iterator[tuple[list[int], Vectors]]:
        """Yield the positions and vectors of texts, up to 64 for each request.

        An empty text is sent as a blank.
        """
        numbered = list(enumerate(texts))
        starts = range(0, len(texts), TEXTS_A_REQUEST)
        parts = (numbered[start : start + TEXTS_A_REQUEST] for start in starts)
        with closing(self._served(parts, EmbeddingClient)) as stream:
            for part in chain.from_iterable(chain.from_iterable(stream)):
                self.monitor.warn_of_other_model(part.model)
                yield part.positions, part.vectors

    def _served(
        self, work: Iterable[Any], client: Callable[..., ServerClient], **options: Any
    ) -> Generator[list[Any], None, None]:
        """Do pieces of work through a client of this class, and yield their results."""
        self.check()
        self._server = self._current_server()
        yield from flow(partial(client, self._server, **options), work, self.concurrency)

    def _current_server(self) -> Server:
        """Return the server with the present key, and with all that is known about it."""
        has_answered = self.has_answered or self._server.has_answered
        return replace(self._server, key=key_of_environment(), has_answered=has_answered)


class ServerMonitor:
    """Watches replies: raises an error if a server answers no more, and warns of another model."""

    def __init__(self, requested: str, where: str, concurrency: int) -> None:
        self.requested = requested
        """Name of the model that is asked for."""
        self.where = where
        """The server's name in messages."""
        # Failures in a row that end everything. All requests that are under way may fail together,
        # so there must be at least as many.
        self._most = max(FEWEST_FAILURES, concurrency)
        # Names of models of which the user was warned, or need not be.
        self._known = {requested}
        self._failed_in_a_row = 0
        # Whether any prompt has had an answer.
        self._answered = False

    def check_replies(
        self, replies: Iterable[Reply], *, reached: bool, has_answered: bool = False
    ) -> None:
        """Raise a `UserError` if the server was never reached, or if too many replies failed.

        Prompts that are too long do not count, and refused ones only until the first answer.
        `has_answered` says whether a journal has an answer already.
        """
        self._answered = self._answered or has_answered
        most = self._most * (_PATIENCE_FACTOR if has_answered else 1)
        for reply in replies:
            if reply.answer is not None:
                self._answered = True
                self.warn_of_other_model(reply.answer.model)
            failed = self._failed_in_a_row + 1 if self._counts(reply) else 0
            self._failed_in_a_row = failed
            if reply.failure is not None and failed and (not reached or failed >= most):
                fault = f"{self.where} answers nobody" if reached else f"cannot reach {self.where}"
                raise UserError(
                    f"{fault}: {reply.failure.message}; is the server well, the base URL right, "
                    "the timeout long enough, and does it serve a model named "
                    f"{self.requested!r}?"
                )

    def _counts(self, reply: Reply) -> bool:
        """Tell whether a reply counts as a failure of the server."""
        kind = None if reply.failure is None else reply.failure.kind
        return kind == "unavailable" or (kind == "refused" and not self._answered)

    def warn_of_other_model(self, returned: str) -> None:
        """Warn once of each name that is not the requested model or a dated version of it."""
        if returned not in self._known and not same_model(self.requested, returned):
            warnings.warn(
                f"asked {self.where} for model {self.requested!r}, and {returned!r} answered: "
                "both names are recorded",
                DataWarning,
                stacklevel=2,
            )
        self._known.add(returned)


def key_of_environment() -> str | None:
    """Return the key of the environment; None where there is none."""
    key = os.environ.get(VARIABLE, "").strip()
    if not key.isascii() or any(sign.isspace() or not sign.isprintable() for sign in key):
        raise UserError(
            f"the environment variable {VARIABLE} holds characters that no key has: "
            "copy the key again"
        )
    return key or None
