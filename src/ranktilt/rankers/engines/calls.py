"""Call an engine in threads, several queries at the same time, with a time limit and retries."""

from __future__ import annotations

import math
import queue
import random
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ranktilt.errors import UserError

Hits = list[tuple[Any, float]]
"""Names of documents with their scores; after `LiveEngine.name_documents` the names are ids."""
PAUSES = (0.5, 1.0)
"""Seconds, give or take half, before a failed call is tried for the second and the third time."""
_FIRST = 20.0
"""Most seconds that other calls wait for the first one."""
_TURN = 0.2
"""Seconds of a single wait: once polars is imported, Ctrl-C interrupts no wait without an end."""
_WIDTH = 200
"""Most characters of an error's summary."""


@dataclass(frozen=True, kw_only=True)
class EngineReply:
    """The hits of a query, or the reason why there are none."""

    number: int
    """Number of the query, from 0."""
    hits: Sequence[tuple[Any, float]] = ()
    """Documents and scores, best first."""
    failure: str = ""
    """Reason why the query failed; empty if it did not."""
    is_unordered: bool = False
    """Whether only the scores order the hits, so that equal scores are ties."""


class PartialResponse(Exception):
    """The response of an engine that is an error, or incomplete."""


def ask_engine(
    ask: Callable[[int], Hits], total: int, concurrency: int, *, timeout: float = math.inf
) -> Generator[EngineReply, None, None]:
    """Ask about queries 0 to `total` − 1 in threads, and yield their replies in any order.

    Only a `UserError` ends everything; any other error is a failed call, and so is a call of more
    than `timeout` seconds. Nothing more is asked once the iterator is closed. The first call ends
    before others begin: a function may create its client in it, and two calls would create two.
    """
    calls = _EngineCalls(ask, total)
    for thread in range(min(concurrency, total)):
        calls.start_thread(is_first=thread == 0)
    try:
        left = total
        while left:
            late = calls.give_up(timeout)
            for number in late:
                yield EngineReply(number=number, failure=f"no answer within {timeout:g} s")
            left -= len(late)
            with suppress(queue.Empty):
                reply = calls.replies.get(timeout=min(_TURN, timeout))
                if isinstance(reply, UserError):
                    raise reply
                yield reply
                left -= 1
    finally:
        calls.closed.set()


class _EngineCalls:
    """The calls of an engine in threads; another thread replaces one whose call does not end."""

    def __init__(self, ask: Callable[[int], Hits], total: int) -> None:
        self._ask = ask
        self._todo = queue.SimpleQueue[int]()
        for number in range(total):
            self._todo.put(number)
        self._start_times = dict[int, float]()  # of the calls that are under way
        self._may_begin = threading.Event()
        self.closed = threading.Event()
        self.replies = queue.SimpleQueue[EngineReply | UserError]()

    def start_thread(self, *, is_first: bool) -> None:
        """Start a thread, which does not delay the end of the program if its call hangs."""
        threading.Thread(target=self._work, args=(is_first,), daemon=True).start()

    def give_up(self, timeout: float) -> list[int]:
        """Return the numbers of calls that take too long; their replies will not count."""
        earliest = time.monotonic() - timeout
        late = [number for number, start in self._start_times.copy().items() if start < earliest]
        # Whoever takes a call out of the dictionary, here or where the call ends, replies.
        given_up = [number for number in late if self._start_times.pop(number, None) is not None]
        for _ in given_up:
            self._may_begin.set()
            self.start_thread(is_first=False)
        return given_up

    def _work(self, is_first: bool) -> None:
        """Ask about queries until none is left; the first thread does not wait."""
        if not is_first:
            self._may_begin.wait(_FIRST)
        with suppress(queue.Empty):
            while not self.closed.is_set():
                number = self._todo.get_nowait()
                self._start_times[number] = time.monotonic()
                reply = _reply(self._ask, number)
                if self._start_times.pop(number, None) is None:
                    return
                self.replies.put(reply)
                self._may_begin.set()


def _reply(ask: Callable[[int], Hits], number: int) -> EngineReply | UserError:
    """Ask about one query, up to three times."""
    for pause in (*PAUSES, 0.0):
        try:
            return EngineReply(number=number, hits=ask(number))
        except UserError as error:
            return error
        except PartialResponse as error:
            failure = str(error)
        except BaseException as error:  # no error, of whatever kind, may end the thread
            failure = error_summary(error)
        time.sleep(pause * random.uniform(0.5, 1.5))
    return EngineReply(number=number, failure=failure)


def error_summary(error: BaseException, hide: Callable[[str], str] = str) -> str:
    """Say in one line, of at most 200 characters, the kind of an error and its message.

    `hide` removes secrets before the message is cut; a cut could leave the start of a token. The
    errors of gRPC and Milvus call themselves ``<…>`` and have their message in an attribute.
    """
    name, text = type(error).__name__, str(error)
    if text.startswith("<"):
        text = str(getattr(error, "message", "") or text)
    message = " ".join(hide(text).split())
    if not message:
        message = name
    elif not message.startswith(f"{name}("):
        message = f"{name}: {message}"
    return message if len(message) <= _WIDTH else message[: _WIDTH - 1] + "…"
