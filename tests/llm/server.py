"""A real OpenAI-compatible HTTP server for tests and benchmarks: chat and embeddings, with faults
on demand.

In a test: ``with Server(script=["500", None]) as server: ... server.url``. In a process of its own,
for a benchmark: ``python -m tests.llm.server --port 0 --delay 0.05``; its first line on stdout is
the base URL.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import random
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

Body = dict[str, Any]
AnswerWith = Callable[[list[dict[str, str]], Body], str]

PASSING = ("429", "429-retry-after", "500", "503", "hang", "drop", "malformed", "empty-choices")
"""Faults that a client survives by asking again."""
ERRORS: dict[str, tuple[int, Body]] = {
    "401": (401, {"message": "Incorrect API key provided: {key}.", "code": "invalid_api_key"}),
    "403": (403, {"message": "Your key {key} may not use this model.", "code": "forbidden"}),
    "404-model": (
        404,
        {"message": "The model `{model}` does not exist.", "code": "model_not_found"},
    ),
    "429": (
        429,
        {"message": "Rate limit reached.", "code": "rate_limit_exceeded", "type": "requests"},
    ),
    "429-retry-after": (
        429,
        {"message": "Rate limit reached.", "code": "rate_limit_exceeded", "type": "requests"},
    ),
    "429-quota": (
        429,
        {"message": "You exceeded your current quota.", "code": "insufficient_quota"},
    ),
    "500": (500, {"message": "The server had an error.", "code": None}),
    "503": (503, {"message": "The engine is overloaded.", "code": None}),
    "content-filter-400": (
        400,
        {"message": "Filtered by our content policy.", "code": "content_filter"},
    ),
    "too-long": (
        400,
        {"message": "Maximum context length is 8 tokens.", "code": "context_length_exceeded"},
    ),
}
FAULTS = (
    *ERRORS,
    "hang",
    "drop",
    "malformed",
    "empty-choices",
    "empty",
    "length",
    "content-filter",
)
_DIMENSION = 16


@dataclass(frozen=True)
class Faults:
    """Each request fails with the probability `share`, in one of the ways of `kinds`, drawn in
    order of arrival.
    """

    seed: int = 0
    share: float = 0.3
    kinds: Sequence[str] = PASSING


@dataclass(frozen=True)
class Raw:
    """A response as given, for a script: status, body (JSON if a mapping, else text) and
    headers.
    """

    status: int
    body: Mapping[str, Any] | str
    headers: Mapping[str, str] | None = None


def rewritten(messages: list[dict[str, str]], body: Body) -> str:
    """Rewrite the document of a prompt by a fixed rule: every sentence stays, its clauses or halves
    change places.
    """
    text = messages[-1]["content"]
    head, colon, rest = text.partition(":")
    document = " ".join((rest if colon and len(head) < 300 and rest.strip() else text).split())
    words = document.split()
    if len(words) < 4:
        return ["", "This.", "This one.", "This is it."][len(words)]
    sentences = re.findall(r"\S.*?[.!?](?=\s|$)|\S.*$", document)
    return " ".join(
        _turned(sentence) for sentence in (sentences if len(sentences) > 1 else [document])
    )


def _turned(sentence: str) -> str:
    bare = sentence.rstrip(".!? ,;")
    clauses = bare.split(", ")
    if len(clauses) < 2:
        words = bare.split()
        half = (len(words) + 1) // 2
        clauses = [" ".join(words[:half]), " ".join(words[half:])]
    turned = ", ".join(clause for clause in reversed(clauses) if clause)
    turned = re.sub(r"[\s(]*\b(e\.g|i\.e)\.?$", "", turned)  # would look cut off
    return turned[:1].upper() + turned[1:] + "."


def vector(text: str) -> list[float]:
    """Return the vector of a text: unit length, drawn from its hash."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    vector = np.random.default_rng(seed).standard_normal(_DIMENSION)
    return [float(x) for x in (vector / np.linalg.norm(vector)).astype(np.float32)]


class Server:
    """An OpenAI-compatible server on loopback, in a thread of its own.

    `requests` holds (path, body, time) of every request in order of arrival, `faulted` the fault
    (or None) each got, `answered` the bodies that got a full 200 without a fault that asks for a
    repetition, `peak` the most requests that were under way at once. `script` gives the fault of
    the first requests, one each; then `faults` draws.
    """

    def __init__(
        self,
        answer: AnswerWith = rewritten,
        *,
        delay: float = 0.0,
        faults: Faults | None = None,
        script: Sequence[str | Raw | None] = (),
        key: str | None = None,
        context: int | None = None,
        retry_after: str = "0.05",
        port: int = 0,
    ) -> None:
        kinds = {
            kind for kind in (*script, *(faults.kinds if faults else ())) if isinstance(kind, str)
        }
        if unknown := kinds - set(FAULTS):
            raise ValueError(f"no such fault: {sorted(unknown)}; there are {FAULTS}")
        self.answer, self.delay, self.faults = answer, delay, faults
        self.script, self.key, self.context = list(script), key, context
        self.retry_after, self.port = retry_after, port
        self.requests: list[tuple[str, Body, float]] = []
        self.faulted: list[str | None] = []
        self.answered: list[Body] = []
        self.keys: list[str] = []
        self.connections = self.under_way = self.peak = 0
        self._random = random.Random(faults.seed if faults else 0)
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def bodies(self) -> list[Body]:
        return [body for _, body, _ in self.requests]

    def __enter__(self) -> Server:
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_server(
            self._connected, "127.0.0.1", self.port, limit=1 << 24, backlog=1024
        )
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while (request := await _read(reader)) is not None:
                self.under_way += 1
                self.peak = max(self.peak, self.under_way)
                try:
                    goes_on = await self._respond(request, reader, writer)
                finally:
                    self.under_way -= 1
                if not goes_on:
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            with suppress(Exception):
                writer.close()

    async def _respond(
        self, request: _Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        number = len(self.requests)
        self.requests.append((request.path, request.body, time.time()))
        self.keys.append(request.key)
        fault = self._next_fault(number)
        self.faulted.append(fault if fault is None or isinstance(fault, str) else "raw")
        if self.delay:
            await asyncio.sleep(self.delay)
        if fault == "hang":
            await reader.read(1)
            return False
        status, body, headers = self._response(request, fault)
        head, content = _encoded(status, body, headers)
        if fault == "drop":
            writer.write(head + content[: len(content) // 2])
            await writer.drain()
            return False
        if fault == "malformed":
            head, content = _encoded(
                status, content[: len(content) // 2].decode(errors="ignore"), headers
            )
        writer.write(head + content)
        await writer.drain()
        if status == 200 and fault not in ("malformed", "empty-choices"):
            self.answered.append(request.body)
        return True

    def _next_fault(self, number: int) -> str | Raw | None:
        if number < len(self.script):
            return self.script[number]
        if self.faults is not None and self._random.random() < self.faults.share:
            return self._random.choice(self.faults.kinds)
        return None

    def _response(
        self, request: _Request, fault: str | Raw | None
    ) -> tuple[int, Any, Mapping[str, str]]:
        if isinstance(fault, Raw):
            return fault.status, fault.body, fault.headers or {}
        if self.key is not None and request.key != self.key:
            fault = "401"
        elif request.body.get("model") != "tiny":
            fault = "404-model"
        elif self.context is not None and _length(request.body) > self.context:
            fault = "too-long"
        if fault in ERRORS:
            status, error = ERRORS[fault]
            message = (
                error["message"]
                .replace("{key}", request.key)
                .replace("{model}", request.body["model"])
            )
            headers = {"Retry-After": self.retry_after} if fault == "429-retry-after" else {}
            return (
                status,
                {"error": {"type": "error", "param": None, **error, "message": message}},
                headers,
            )
        if request.path == "/v1/embeddings":
            return 200, self._embedded(request.body, fault), {}
        return 200, self._completion(request.body, fault), {}

    def _completion(self, body: Body, fault: str | None) -> Body:
        text = "" if fault in ("empty", "content-filter") else self.answer(body["messages"], body)
        finish = {"length": "length", "content-filter": "content_filter"}.get(fault or "", "stop")
        most = body.get("max_tokens") or body.get("max_completion_tokens")
        words = text.split()
        if fault == "length":
            text = " ".join(words[: len(words) // 2])
        elif most is not None and len(words) > most:
            text, finish = " ".join(words[:most]), "length"
        choice: Body = {
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "finish_reason": finish,
        }
        if body.get("logprobs"):
            tokens = [
                {"token": w, "logprob": -0.5, "bytes": None, "top_logprobs": []}
                for w in text.split()
            ]
            choice["logprobs"] = {"content": tokens, "refusal": None}
        read, written = _length(body), len(text.split())
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "system_fingerprint": "fp_tiny",
            "choices": [] if fault == "empty-choices" else [choice],
            "usage": {
                "prompt_tokens": read,
                "completion_tokens": written,
                "total_tokens": read + written,
            },
        }

    def _embedded(self, body: Body, fault: str | None) -> Body:
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        rows = [
            {"object": "embedding", "index": i, "embedding": vector(text)}
            for i, text in enumerate(texts)
        ]
        # In reverse: a client must go by the index.
        data = [] if fault in ("empty-choices", "empty") else rows[::-1]
        usage = {"prompt_tokens": _length(body), "total_tokens": _length(body)}
        return {"object": "list", "model": body["model"], "data": data, "usage": usage}


@dataclass(frozen=True)
class _Request:
    path: str
    key: str
    body: Body


async def _read(reader: asyncio.StreamReader) -> _Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *rest = head.split("\r\n")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)
    }
    content = await reader.readexactly(int(headers.get("content-length", 0)))
    path = first.split()[1]
    if headers.get("content-type", "").startswith("multipart/"):  # a file of requests, for a batch
        lines = [
            json.loads(line) for line in content.splitlines() if line.startswith(b'{"custom_id"')
        ]
        return _Request(
            path, headers.get("authorization", "").removeprefix("Bearer "), {"lines": lines}
        )
    return _Request(
        path, headers.get("authorization", "").removeprefix("Bearer "), json.loads(content or b"{}")
    )


def _encoded(status: int, body: Any, headers: Mapping[str, str]) -> tuple[bytes, bytes]:
    content = (body if isinstance(body, str) else json.dumps(body)).encode()
    lines = [f"HTTP/1.1 {status} Status", "Content-Type: application/json"]
    lines += [
        f"Content-Length: {len(content)}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode(), content


def _length(body: Body) -> int:
    texts = [message["content"] for message in body.get("messages", [])]
    inputs = body.get("input", [])
    texts += [inputs] if isinstance(inputs, str) else inputs
    return sum(len(text.split()) for text in texts)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
    arguments = parser.parse_args()
    with Server(delay=arguments.delay, port=arguments.port) as server:
        print(server.url, flush=True)
        with suppress(KeyboardInterrupt):
            while True:
                time.sleep(1)


if __name__ == "__main__":
    main()
