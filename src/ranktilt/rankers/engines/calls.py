"""Call an engine in threads, several queries at the same time, with a time limit and retries.

A *hit* is a document in the answer to a query, with its score. The client of an engine may wait for
ever, and Python cannot stop a thread. So a call that takes too long is given up: its thread is left
alone, and another one takes its place.
"""

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
_MOST_SECONDS_OF_FIRST = 20.0
"""Most seconds that other calls wait for the first one."""
_SECONDS_OF_WAIT = 0.2
"""Seconds of a single wait for a reply.

Waits are short because, once polars is imported, Ctrl-C does not interrupt a wait without an end.
"""
_MOST_CHARACTERS = 200
"""Most characters of an error's summary: some two lines of a terminal."""


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
    """Whether hits with equal scores are in no order, so that they are tied."""


class PartialResponse(Exception):
    """The response of an engine that is an error, or incomplete."""


def ask_engine(
    ask: Callable[[int], Hits], total: int, concurrency: int, *, timeout: float = math.inf
) -> Generator[EngineReply, None, None]:
    """Ask about queries 0 to `total` − 1 in threads, and yield their replies in any order.

    Only a `UserError` ends everything; any other error is a failed call, and so is a call of more
    than `timeout` seconds. Nothing more is asked once the iterator is closed. Other calls begin
    when the first call has ended: it may create a client, of which there should not be two.

    Parameters
    ----------
    ask : callable
        Returns the hits of the query with this number.
    total : int
        Number of queries.
    concurrency : int
        Number of calls that run at the same time.
    timeout : float, optional
        Seconds for all attempts of a call.
    """
    calls = _EngineCalls(ask, total)
    for thread in range(min(concurrency, total)):
        calls.start_thread(is_first=thread == 0)
    try:
        left = total
        while left:
            late_numbers = calls.give_up_late_calls(timeout)
            for number in late_numbers:
                yield EngineReply(number=number, failure=f"no answer within {timeout:g} s")
            left -= len(late_numbers)
            with suppress(queue.Empty):
                reply = calls.replies.get(timeout=min(_SECONDS_OF_WAIT, timeout))
                if isinstance(reply, UserError):
                    raise reply
                yield reply
                left -= 1
    finally:
        calls.closed.set()


class _EngineCalls:
    """The calls of an engine in threads; a thread whose call does not end is replaced."""

    def __init__(self, ask: Callable[[int], Hits], total: int) -> None:
        self._ask = ask
        self._numbers_left = queue.SimpleQueue[int]()
        for number in range(total):
            self._numbers_left.put(number)
        self._start_times = dict[int, float]()  # of the calls that are under way, by number
        self._first_has_ended = threading.Event()
        self.closed = threading.Event()
        self.replies = queue.SimpleQueue[EngineReply | UserError]()

    def start_thread(self, *, is_first: bool) -> None:
        """Start a thread, which does not delay the end of the program if its call hangs."""
        threading.Thread(target=self._work, args=(is_first,), daemon=True).start()

    def give_up_late_calls(self, timeout: float) -> list[int]:
        """Return the numbers of calls that take too long; their replies will not count."""
        earliest = time.monotonic() - timeout
        late = [number for number, start in self._start_times.copy().items() if start < earliest]
        # A call is taken out of the dictionary only once: here, where it is given up, or in its
        # thread, which then puts its reply into the queue.
        given_up = [number for number in late if self._start_times.pop(number, None) is not None]
        for _ in given_up:
            self._first_has_ended.set()  # other threads wait for the first call no longer
            self.start_thread(is_first=False)
        return given_up

    def _work(self, is_first: bool) -> None:
        """Ask about queries until none is left; the first thread does not wait."""
        if not is_first:
            self._first_has_ended.wait(_MOST_SECONDS_OF_FIRST)
        with suppress(queue.Empty):
            while not self.closed.is_set():
                number = self._numbers_left.get_nowait()
                self._start_times[number] = time.monotonic()
                reply = _reply(self._ask, number)
                if self._start_times.pop(number, None) is None:  # given up; another thread goes on
                    return
                self.replies.put(reply)
                self._first_has_ended.set()


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
    """Return the kind and the message of an error in one line, of at most 200 characters.

    `hide` removes secrets, before the message is cut: a cut secret would not be recognised. The
    text of an error of gRPC or Milvus is ``<…>``, and its message is in an attribute.
    """
    name, text = type(error).__name__, str(error)
    if text.startswith("<"):
        text = str(getattr(error, "message", "") or text)
    message = " ".join(hide(text).split())
    if not message:
        message = name
    elif not message.startswith(f"{name}("):
        message = f"{name}: {message}"
    is_short = len(message) <= _MOST_CHARACTERS
    return message if is_short else message[: _MOST_CHARACTERS - 1] + "…"
