"""One request to the server and what becomes of it, inside the loop."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

from ranktilt.errors import UserError, counted
from ranktilt.llm import responses
from ranktilt.llm.address import OWN, Address
from ranktilt.llm.base import Answer, Failure, Prompt, Reply, Sampling, Vectors
from ranktilt.llm.faults import LONG_KEY, Filtered, NotTaken, Scene, judged, redacted
from ranktilt.llm.traffic import Again, Line
from ranktilt.optional import need

Texts = list[tuple[int, str]]
"""Positions and texts of one request for vectors."""
Made = tuple[list[int], Vectors, str]
"""Positions, vectors, and the name of the model that made them."""
CONNECT = 10.0
"""Seconds until a connection is given up, if the time limit of a request is not shorter."""
REDIRECTS = 5
PARAMETERS = ("temperature", "top_p", "max_tokens", "max_completion_tokens", "seed", "logprobs")


def estimated(text: str) -> float:
    """Tokens of a text, roughly: a quarter of its bytes in UTF-8."""
    return len(text.encode()) / 4


class Desk(ABC):
    """Sends requests over one line, and reads what comes back.

    Parameters
    ----------
    client : openai.AsyncOpenAI
        The client, open.
    line : Line
        Limits and attempts.
    scene : callable
        Makes the `Scene` of an error, of the parameters that were sent and whether one was answered before.
    """

    path = ""

    def __init__(self, client: Any, line: Line, scene: Callable[..., Scene]) -> None:
        self.client, self.line, self._scene = client, line, scene
        self._openai = need("openai", extra="llm", for_="openai:")
        self._response = importlib.import_module(_http(self._openai)).Response
        self._answered = False
        plain = scene(sent=(), answered=False)
        self._where, self._clean, self._secret = plain.where, plain.clean, plain.secret

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
            raise self._judged(given.status_code, given.headers, given.content, body) from None
        except self._openai.APIConnectionError as error:
            if isinstance(error.__cause__, NotTaken | UserError):
                raise error.__cause__ from None
            raise Again(f"connection failed: {_cause(error, self._clean)}", reached=False) from None
        data = responses.opened(response.content, self._clean)
        if "error" in data and data["error"] and not (data.get("choices") or data.get("data")):
            code = data["error"].get("code") if isinstance(data["error"], dict) else None
            status = code if isinstance(code, int) and 400 <= code < 600 else 500
            raise self._judged(status, response.headers, response.content, body)
        return data, responses.used(data)

    def _judged(self, status: int, headers: Any, content: bytes, body: dict[str, Any]) -> Exception:
        sent = () if self._answered else [name for name in PARAMETERS if name in body]
        return judged(status, headers, content, self._scene(sent=sent, answered=self._answered))


class Chat(Desk):
    """Prompts in, replies out.

    Parameters
    ----------
    client, line, scene
        As in `Desk`.
    sampling : Sampling
        How answers are drawn.
    new_style : bool
        Whether this is OpenAI's own server: it wants ``max_completion_tokens`` for ``max_tokens``, and models that
        take no temperature take its default when it is left out.
    """

    path = "/chat/completions"

    def __init__(
        self, client: Any, line: Line, scene: Callable[..., Scene], *, sampling: Sampling, new_style: bool
    ) -> None:
        super().__init__(client, line, scene)
        self._seed = sampling.seed
        self._most = sampling.max_tokens
        self._model = scene(sent=(), answered=False).model
        given: dict[str, Any] = {"temperature": sampling.temperature, "top_p": sampling.top_p}
        if new_style:
            given = {name: value for name, value in given.items() if value != 1}
        if sampling.max_tokens is not None:
            given["max_completion_tokens" if new_style else "max_tokens"] = sampling.max_tokens
        if sampling.logprobs:
            given["logprobs"] = True
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
            return responses.answer(data, self._model, self._secret), used

        try:
            came, calls = await self.line.call(ask, self._estimate(item))
        except Filtered:
            self._answered = True
            return Reply(number, Answer("", "content_filter", None, None, self._model), None, calls)
        except NotTaken as error:
            return Reply(number, None, Failure(error.kind, error.message), calls)
        if isinstance(came, Again):
            return Reply(number, None, Failure("unavailable", _given_up(came, calls)), calls)
        self._answered = True
        return Reply(number, came, None, calls)

    def _estimate(self, item: Prompt) -> float:
        if not self.line.limits.counts_tokens:
            return 0.0
        read = estimated(item.text) + (estimated(item.system) if item.system else 0.0)
        return read + (read if self._most is None else self._most)


class Embedding(Desk):
    """Texts in, vectors out."""

    path = "/embeddings"

    async def serve(self, number: int, item: Texts) -> list[Made]:
        """Ask for the vectors of some texts; requests that are not taken are cut in two, down to the text at fault."""
        try:
            return [await self._made(item)]
        except (NotTaken, Filtered) as error:
            if len(item) == 1:
                position, text = item[0]
                words = counted(len(text.split()), "word", "words")
                too_long = isinstance(error, NotTaken) and error.kind == "too long"
                hint = "; cut texts, as dense:openai:MODEL(max_tokens=…) does" if too_long else ""
                raise UserError(f"{self._where} does not take text {position} ({words}): {error}{hint}") from None
        half = len(item) // 2
        return [*await self.serve(number, item[:half]), *await self.serve(number, item[half:])]

    async def _made(self, item: Texts) -> Made:
        scene = self._scene(sent=(), answered=self._answered)
        body = {"model": scene.model, "input": [text or " " for _, text in item]}

        async def ask() -> tuple[tuple[Vectors, str], int | None]:
            data, used = await self.post(body)
            return (responses.vectors(data, len(item)), self._secret(str(data.get("model") or scene.model))), used

        came, calls = await self.line.call(ask, sum(estimated(text) for _, text in item))
        if isinstance(came, Again):
            raise UserError(f"{scene.where} gave no vectors of model {scene.model!r}: {_given_up(came, calls)}")
        self._answered = True
        return [position for position, _ in item], *came


@asynccontextmanager
async def connected(
    kind: Callable[..., Desk],
    line: Line,
    address: Address,
    *,
    model: str,
    key: str | None,
    concurrency: int,
    most: int,
) -> AsyncGenerator[Desk, None]:
    """Open a client and a desk that uses it; closed at the end.

    Parameters
    ----------
    kind : callable
        `Chat` or `Embedding`, their own options given.
    line : Line
        Limits and attempts.
    address : Address
        The server.
    model : str
        The model.
    key : str or None
        The key; None sends a word that is none.
    concurrency : int
        Connections held.
    most : int
        Bytes of an answer; a longer one is refused unread.
    """
    openai = need("openai", extra="llm", for_=f"openai:{model}")
    http = importlib.import_module(_http(openai))
    clean, secret, keyed = redacted(key), redacted(key, least=LONG_KEY), key is not None

    def scene(*, sent: Any, answered: bool) -> Scene:
        return Scene(
            model=model, where=address.where, keyed=keyed, sent=sent, answered=answered, clean=clean, secret=secret
        )

    # The time limit of a request is the line's: this one only cuts off a server that takes no connection.
    timeout = http.Timeout(None, connect=min(CONNECT, line.patience.timeout))
    limits = http.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
    # What is on this machine is not asked through a proxy, whatever the environment says.
    direct = address.loopback and str(address.url).startswith("http:")
    try:
        guarded = _guarded(openai.DefaultAsyncHttpxClient, http, address.where, most)
        transport = guarded(timeout=timeout, limits=limits, trust_env=not direct)
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
        yield kind(client, line, scene)


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


def _too_large(most: int) -> NotTaken:
    return NotTaken("refused", f"the answer has more than {most:,} bytes, and is not read (--max-answer, max_answer)")


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


def _given_up(came: Again, calls: int) -> str:
    return came.message if calls == 1 else f"{came.message} ({calls} attempts)"
