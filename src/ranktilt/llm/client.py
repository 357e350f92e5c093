"""The client of one server: its address, one request, and what becomes of it, inside the loop."""

from __future__ import annotations

import importlib
import ipaddress
import json
import os
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from ranktilt.errors import UserError, counted, shorten
from ranktilt.llm import responses
from ranktilt.llm.base import Answer, Failure, Prompt, Reply, Sampling, Vectors
from ranktilt.llm.responses import LONG_KEY, FilteredRequest, RejectedRequest, RequestContext, classify_error, redactor
from ranktilt.llm.retry import Retrier, RetryableError
from ranktilt.optional import need

BASE = "OPENAI_BASE_URL"
OWN = "https://api.openai.com/v1"
"""OpenAI's own server, which is meant too where no address is given."""
Texts = list[tuple[int, str]]
"""Positions and texts of one request for vectors."""
TextVectors = tuple[list[int], Vectors, str]
"""Positions, vectors, and the name of the model that made them."""
CONNECT = 10.0
"""Seconds until a connection is given up, if the time limit of a request is not shorter."""
REDIRECTS = 5
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
PARAMETERS = ("temperature", "top_p", "max_tokens", "max_completion_tokens", "seed", "logprobs", "response_format")


@dataclass(frozen=True)
class Address:
    """A server's base URL without a slash at its end (None for OpenAI's own), and whether it is on this machine."""

    url: str | None
    loopback: bool

    @property
    def where(self) -> str:
        """The server as a message names it."""
        return self.url or "the OpenAI API"

    @classmethod
    def of(cls, given: str | None) -> Address:
        """Check a base URL; None or an empty one takes that of ``OPENAI_BASE_URL``, if there is one.

        A user, a password, a query or a fragment could be secrets: such a URL is refused, and not repeated in the
        message.
        """
        name = "base_url" if given else BASE
        text = (given or os.environ.get(BASE) or "").strip()
        if not text:
            return cls(None, False)
        try:
            parts = urlsplit(text)
            host, port = parts.hostname, parts.port
        except ValueError:
            raise _wrong(name, text) from None
        if parts.username is not None or parts.password is not None or parts.query or parts.fragment or "?" in text:
            raise UserError(
                f"{name} must hold no user, password or query: a key is read from OPENAI_API_KEY alone "
                f"(expected something like http://localhost:8000/v1)"
            )
        if parts.scheme.lower() not in ("http", "https") or not host or any(sign.isspace() for sign in text):
            raise _wrong(name, text)
        place = f"[{host}]" if ":" in host else host
        url = f"{parts.scheme.lower()}://{place}{f':{port}' if port else ''}{parts.path.rstrip('/')}"
        return cls(None, False) if url == OWN else cls(url, _loopback(host))


def _wrong(name: str, text: str) -> UserError:
    # What stands before an @ may be a password.
    shown = shorten(text) if "@" not in text else "a URL with an @"
    return UserError(f"{name} must be a URL such as http://localhost:8000/v1, got {shown}")


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def estimated_tokens(text: str) -> float:
    """Tokens of a text, roughly: a quarter of its bytes in UTF-8."""
    return len(text.encode()) / 4


class ServerClient(ABC):
    """Sends requests through an open `openai.AsyncOpenAI`, and reads what comes back.

    `context` makes the `RequestContext` of an error, of the parameters that were sent and whether one was answered.
    """

    path = ""

    def __init__(self, client: Any, retrier: Retrier, context: Callable[..., RequestContext]) -> None:
        self.client, self.retrier, self._context = client, retrier, context
        self._openai = need("openai", extra="llm", for_="openai:")
        self._response = importlib.import_module(_http(self._openai)).Response
        self._answered = False
        plain = context(sent=(), answered=False)
        self._where, self._clean, self._secret, self._model = plain.where, plain.clean, plain.secret, plain.model

    @abstractmethod
    async def serve(self, number: int, item: Any) -> Any:
        """Make the result of one item."""

    async def post(self, body: dict[str, Any]) -> tuple[dict[str, Any], int | None]:
        """Send one request; returns the body that came back and the tokens it took.

        The response comes as it is: the client's own models would cost as much time as the rest of the request.
        """
        try:
            response = await self.client.post(self.path, cast_to=self._response, body=body)
        except self._openai.APIStatusError as error:
            given = error.response
            raise self._error(given.status_code, given.headers, given.content, body) from None
        except self._openai.APIConnectionError as error:
            if isinstance(error.__cause__, RejectedRequest | UserError):
                raise error.__cause__ from None
            raise RetryableError(f"connection failed: {_cause(error, self._clean)}", reached=False) from None
        data = responses.json_body(response.content, self._clean)
        if "error" in data and data["error"] and not (data.get("choices") or data.get("data")):
            code = data["error"].get("code") if isinstance(data["error"], dict) else None
            status = code if isinstance(code, int) and 400 <= code < 600 else 500
            raise self._error(status, response.headers, response.content, body)
        return data, responses.used_tokens(data)

    def _error(self, status: int, headers: Any, content: bytes, body: dict[str, Any]) -> Exception:
        sent = () if self._answered else [name for name in PARAMETERS if name in body]
        return classify_error(status, headers, content, self._context(sent=sent, answered=self._answered))


class ChatClient(ServerClient):
    """Prompts in, replies out.

    OpenAI's own server (`own`) wants ``max_completion_tokens`` for ``max_tokens``, and models that take no temperature
    take its default when it is left out.
    """

    path = "/chat/completions"

    def __init__(
        self, client: Any, retrier: Retrier, context: Callable[..., RequestContext], *, sampling: Sampling, own: bool
    ) -> None:
        super().__init__(client, retrier, context)
        self._seed, self._most = sampling.seed, sampling.max_tokens
        given: dict[str, Any] = {"temperature": sampling.temperature, "top_p": sampling.top_p}
        if own:
            given = {name: value for name, value in given.items() if value != 1}
        if sampling.max_tokens is not None:
            given["max_completion_tokens" if own else "max_tokens"] = sampling.max_tokens
        if sampling.logprobs:
            given["logprobs"] = True
        if sampling.schema is not None:
            held = {"name": "answer", "strict": True, "schema": json.loads(sampling.schema)}
            given["response_format"] = {"type": "json_schema", "json_schema": held}
        self._body = {"model": self._model, **given}

    async def serve(self, number: int, item: Prompt) -> Reply:
        """Ask one prompt until it has an answer or is given up."""
        body = {**self._body, "messages": item.messages()}
        seed = self._seed if item.seed is None else item.seed
        if seed is not None:
            body["seed"] = seed
        calls = 0

        async def ask() -> tuple[Answer, int | None]:
            nonlocal calls
            calls += 1
            data, used = await self.post(body)
            return responses.read_answer(data, self._model, self._secret), used

        try:
            answer = await self.retrier.call(ask, self._estimate(item))
        except FilteredRequest:
            answer = Answer("", "content_filter", None, None, self._model)
        except RejectedRequest as error:
            return Reply(number, None, Failure(error.kind, error.message), calls)
        except RetryableError as error:
            return Reply(number, None, Failure("unavailable", _given_up(error, calls)), calls)
        self._answered = True
        return Reply(number, answer, None, calls)

    def _estimate(self, item: Prompt) -> float:
        if not self.retrier.limiter.counts_tokens:
            return 0.0
        read = estimated_tokens(item.text) + (estimated_tokens(item.system) if item.system else 0.0)
        return read + (read if self._most is None else self._most)


class EmbeddingClient(ServerClient):
    """Texts in, vectors out."""

    path = "/embeddings"

    async def serve(self, number: int, item: Texts) -> list[TextVectors]:
        """Ask for the vectors of some texts; requests that are not taken are cut in two, down to the text at fault."""
        try:
            return [await self._embedded(item)]
        except (RejectedRequest, FilteredRequest) as error:
            if len(item) == 1:
                position, text = item[0]
                words = counted(len(text.split()), "word", "words")
                too_long = isinstance(error, RejectedRequest) and error.kind == "too long"
                hint = "; cut texts, as dense:openai:MODEL(max_tokens=…) does" if too_long else ""
                raise UserError(f"{self._where} does not take text {position} ({words}): {error}{hint}") from None
        half = len(item) // 2
        return [*await self.serve(number, item[:half]), *await self.serve(number, item[half:])]

    async def _embedded(self, item: Texts) -> TextVectors:
        body = {"model": self._model, "input": [text or " " for _, text in item]}
        calls = 0

        async def ask() -> tuple[tuple[Vectors, str], int | None]:
            nonlocal calls
            calls += 1
            data, used = await self.post(body)
            name = self._secret(str(data.get("model") or self._model))
            return (responses.read_vectors(data, len(item)), name), used

        try:
            vectors, name = await self.retrier.call(ask, sum(estimated_tokens(text) for _, text in item))
        except RetryableError as error:
            given_up = _given_up(error, calls)
            raise UserError(f"{self._where} gave no vectors of model {self._model!r}: {given_up}") from None
        self._answered = True
        return [position for position, _ in item], vectors, name


@asynccontextmanager
async def connected(
    kind: Callable[..., ServerClient],
    retrier: Retrier,
    address: Address,
    *,
    model: str,
    key: str | None,
    concurrency: int,
    most: int,
) -> AsyncGenerator[ServerClient, None]:
    """Open a client of the given kind (its own options given) for a model at an address; closed at the end.

    An answer of more than `most` bytes is refused unread.
    """
    openai = need("openai", extra="llm", for_=f"openai:{model}")
    http = importlib.import_module(_http(openai))
    clean, secret, keyed = redactor(key), redactor(key, least=LONG_KEY), key is not None

    def context(*, sent: Any, answered: bool) -> RequestContext:
        return RequestContext(
            model=model, where=address.where, keyed=keyed, sent=sent, answered=answered, clean=clean, secret=secret
        )

    # The time limit of a request is the retrier's: this one only cuts off a server that takes no connection.
    timeout = http.Timeout(None, connect=min(CONNECT, retrier.policy.timeout))
    limits = http.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
    # What is on this machine is not asked through a proxy, whatever the environment says.
    direct = address.loopback and str(address.url).startswith("http:")
    try:
        guarded = _guarded(openai.DefaultAsyncHttpxClient, http, address.where, most)
        # Certificates take longer to read than most requests take: never here, and once for all clients elsewhere.
        verify = False if direct else _certificates(http, *map(os.environ.get, _CERTIFICATES))
        transport = guarded(timeout=timeout, limits=limits, trust_env=not direct, verify=verify)
    except (ImportError, ValueError, OSError) as error:
        said = _cause(error, clean)
        raise UserError(
            f"the environment's proxy or certificate cannot be used (ALL_PROXY, HTTPS_PROXY, SSL_CERT_FILE): {said}"
        ) from error
    client = openai.AsyncOpenAI(
        api_key=key or "none",
        base_url=address.url or OWN,  # without one it would read the environment again, and take an empty one
        max_retries=0,
        http_client=transport,
        timeout=timeout,
    )
    async with client:
        yield kind(client, retrier, context)


@cache
def _certificates(http: Any, *named: str | None) -> Any:
    """Read the certificates that the environment names, or else the usual ones."""
    return http.create_ssl_context()


def _guarded(client: Any, http: Any, where: str, most: int) -> Any:
    """The client with two limits: texts go to no other origin than that which was named, and an answer has an end."""

    class Guarded(client):  # type: ignore[misc]
        async def send(self, request: Any, **options: Any) -> Any:
            for _ in range(REDIRECTS):
                came = await super().send(request, **{**options, "stream": True, "follow_redirects": False})
                try:
                    if came.next_request is None:
                        return await _read(came, http, most)
                finally:
                    await came.aclose()
                if _origin(came.next_request.url) != _origin(request.url):
                    to = _origin(came.next_request.url)
                    raise UserError(
                        f"{where} redirects to {to}, where no text is sent; name that as the base URL if it may"
                    )
                request = came.next_request
            raise UserError(f"{where} redirects more than {REDIRECTS} times; is the base URL right?")

    return Guarded


async def _read(came: Any, http: Any, most: int) -> Any:
    """Read a response up to its limit: an error's beginning will do, an answer is refused."""
    content, told = bytearray(), came.headers.get("content-length", "")
    if not came.is_error and told.isdecimal() and int(told) > most:
        raise _too_large(most)
    async for block in came.aiter_bytes():
        content += block
        if len(content) > most:
            if not came.is_error:
                raise _too_large(most)
            break
    packed = ("content-encoding", "content-length", "transfer-encoding")
    headers = [(name, value) for name, value in came.headers.multi_items() if name.lower() not in packed]
    whole = bytes(content[:most])
    return http.Response(
        came.status_code, headers=headers, content=whole, request=came.request, extensions=came.extensions
    )


def _too_large(most: int) -> RejectedRequest:
    return RejectedRequest(
        "refused", f"the answer has more than {most:,} bytes, and is not read (--max-answer, max_answer)"
    )


def _origin(url: Any) -> str:
    return f"{url.scheme}://{url.netloc.decode('ascii')}"


def _http(openai: Any) -> str:
    """Name of the HTTP package below the client, which differs with its version."""
    return str(openai.DefaultAsyncHttpxClient.__mro__[1].__module__.partition(".")[0])


def _cause(error: BaseException, clean: Callable[[str], str]) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    # Cleaned before it is cut, or the beginning of a key could stay.
    return " ".join(clean(str(error)).split())[:200] or type(error).__name__


def _given_up(error: RetryableError, calls: int) -> str:
    return error.message if calls == 1 else f"{error.message} ({calls} attempts)"
