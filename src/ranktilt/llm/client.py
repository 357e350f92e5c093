"""The client of one server: its address, one request, and what becomes of it, inside the loop."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

from ranktilt.errors import UserError, counted
from ranktilt.llm.base import Answer, Failure, Prompt, Reply, Sampling, Vectors
from ranktilt.llm.responses import FailedRequest, classify_error, json_body, read_answer, read_vectors
from ranktilt.llm.server import OWN, Server
from ranktilt.optional import need

Texts = list[tuple[int, str]]
"""Positions and texts of one request for vectors."""
TextVectors = tuple[list[int], Vectors, str]
"""Positions, vectors, and the name of the model that made them."""
CONNECT = 10.0
"""Seconds until a connection is given up, if the time limit of a request is not shorter."""
MINUTE = 60.0


class ServerClient(ABC):
    """Requests of one kind, sent through the openai client, which is open within ``async with``."""

    path: ClassVar[str]

    def __init__(self, server: Server) -> None:
        self.server = server
        self._openai = need("openai", extra="llm", for_=f"openai:{server.model}")
        # The HTTP package below the client differs with its version.
        self._http = importlib.import_module(self._openai.DefaultAsyncHttpxClient.__mro__[1].__module__.split(".")[0])

    async def __aenter__(self) -> Self:
        server, hooks = self.server, dict[str, Any]()
        if server.requests_per_minute is not None:
            limiter = need("aiolimiter", extra="llm", for_="requests_per_minute").AsyncLimiter(
                1, MINUTE / server.requests_per_minute
            )
            hooks["request"] = [lambda _: limiter.acquire()]
            if server.reached:  # the first request waits its turn behind those of earlier calls
                await limiter.acquire()
        # What is on this machine is not asked through a proxy, and needs no certificates, which take long to read.
        direct = server.loopback and str(server.url).startswith("http:")
        try:
            transport = self._openai.DefaultAsyncHttpxClient(
                event_hooks=hooks, follow_redirects=False, trust_env=not direct, verify=not direct
            )
        except (ImportError, ValueError, OSError) as error:
            said = self._cause(error)
            raise UserError(
                f"the environment's proxy or certificate cannot be used (ALL_PROXY, HTTPS_PROXY, SSL_CERT_FILE): {said}"
            ) from error
        self._client = self._openai.AsyncOpenAI(
            api_key=server.key or "none",
            base_url=server.url or OWN,  # without one it would read the environment, and take an empty one
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

        Raises `FailedRequest`, or `UserError` where everything ends. The response comes as it is: the client's own
        models would cost as much time as the rest of the request.
        """
        left = self.server.retries
        while True:
            try:
                response = await self._client.post(self.path, cast_to=self._http.Response, body=body)
            except self._openai.APIStatusError as error:
                self.server.reached = True
                raise classify_error(error.status_code, error.body, self.server) from None
            except self._openai.APITimeoutError:
                raise FailedRequest("unavailable", f"no answer within {self.server.timeout:g} s") from None
            except self._openai.APIConnectionError as error:
                raise FailedRequest("unavailable", f"connection failed: {self._cause(error)}") from None
            self.server.reached = True
            try:
                return read(json_body(response.content, self.server.clean))
            except ValueError as error:
                if not left:
                    raise FailedRequest("unavailable", str(error)) from None
                left -= 1

    def _cause(self, error: BaseException) -> str:
        while error.__cause__ is not None:
            error = error.__cause__
        # Cleaned before it is cut, or the beginning of a key could stay.
        return " ".join(self.server.clean(str(error)).split())[:200] or type(error).__name__


class ChatClient(ServerClient):
    """Prompts in, replies out.

    OpenAI's own server wants ``max_completion_tokens`` for ``max_tokens``, and models that take no temperature take its
    default when it is left out.
    """

    path = "/chat/completions"

    def __init__(self, server: Server, *, sampling: Sampling) -> None:
        super().__init__(server)
        self._body = {"model": server.model, **drawn(sampling, own=server.url is None)}
        self._seed = sampling.seed

    async def serve(self, number: int, item: Prompt) -> Reply:
        body = {**self._body, "messages": item.messages()}
        seed = self._seed if item.seed is None else item.seed
        if seed is not None:
            body["seed"] = seed
        model, secret = self.server.model, self.server.secret
        try:
            answer = await self.post(body, lambda data: read_answer(data, model, secret))
        except FailedRequest as error:
            if error.kind == "filtered":
                return Reply(number, Answer("", "content_filter", None, None, model), None)
            return Reply(number, None, Failure(error.kind, error.message))
        return Reply(number, answer, None)


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
                body, lambda data: (read_vectors(data, len(item)), str(data.get("model") or model))
            )
        except FailedRequest as error:
            if error.kind == "unavailable":
                raise UserError(f"{where} gave no vectors of model {model!r}: {error.message}") from None
            if len(item) == 1:
                position, text = item[0]
                words = counted(len(text.split()), "word", "words")
                hint = "; cut texts, as dense:openai:MODEL(max_tokens=…) does" if error.kind == "too long" else ""
                raise UserError(f"{where} does not take text {position} ({words}): {error.message}{hint}") from None
            half = len(item) // 2
            return [*await self.serve(number, item[:half]), *await self.serve(number, item[half:])]
        return [([position for position, _ in item], vectors, self.server.secret(name))]
