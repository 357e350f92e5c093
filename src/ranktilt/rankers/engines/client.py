"""The client of a live engine: parts of the queries, asked in threads, within one time limit and with retries."""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ranktilt.errors import UserError

T = TypeVar("T")

LONGEST_PAUSE = 30.0
_WIDTH = 200
_TURN = 0.2
"""Seconds of one wait: once polars is imported, Ctrl-C does not interrupt one without an end."""


@dataclass(frozen=True)
class CallLimits:
    """How long and how often an engine is asked.

    `timeout` are seconds until a call is given up, `attempts` the calls that a query is worth, `pause` seconds before
    the second one, twice as many before each further one, give or take half.
    """

    timeout: float
    attempts: int
    pause: float = 0.5

    def wait(self, calls: int, error: Exception) -> float:
        """Return seconds to wait after so many calls; what the server asks for comes first, but for 0 seconds."""
        pause = min(self.pause * 2.0 ** min(calls - 1, 30), LONGEST_PAUSE) * random.uniform(0.5, 1.5)
        return _retry_seconds(error) or pause


@dataclass(frozen=True)
class EngineReply(Generic[T]):
    """What came of one query: a value, or why there is none; `repeated` counts the calls beyond the first."""

    number: int
    value: T | None
    failure: str = ""
    repeated: int = 0


def ask_engine(
    ask: Callable[[list[int]], Sequence[T]], total: int, limits: CallLimits, *, concurrency: int, batch: int = 1
) -> Generator[EngineReply[T], None, None]:
    """Ask queries by number, from 0 on, and yield what comes of each, in any order.

    `ask` takes up to `batch` numbers and returns as many answers; what it raises is a failed call, only a `UserError`
    ends everything. A call for several that fails is taken apart, and each asked alone. It runs in daemon threads:
    one that hangs holds up neither the others nor the end of the program, and no longer counts once its time is out.
    Closing the iterator asks nothing more.
    """
    client = _EngineClient(ask, limits)
    todo = iter([list(range(start, min(start + batch, total))) for start in range(0, total, batch)])
    lock, closed = threading.Lock(), threading.Event()
    replies = queue.SimpleQueue[EngineReply[T] | Exception]()

    def work() -> None:
        try:
            while not closed.is_set():
                with lock:
                    part = next(todo, None)
                if part is None:
                    return
                for reply in client.replies(part):
                    replies.put(reply)
        except Exception as error:
            replies.put(error)

    for _ in range(min(concurrency, total)):
        threading.Thread(target=work, daemon=True).start()
    try:
        for _ in range(total):
            reply = _next(replies)
            if isinstance(reply, Exception):
                raise reply
            yield reply
    finally:
        closed.set()


def _next(replies: queue.SimpleQueue[T]) -> T:
    while True:
        with suppress(queue.Empty):
            return replies.get(timeout=_TURN)


class _EngineClient(Generic[T]):
    def __init__(self, ask: Callable[[list[int]], Sequence[T]], limits: CallLimits) -> None:
        self._ask, self._limits = ask, limits

    def replies(self, part: list[int]) -> Iterator[EngineReply[T]]:
        """Ask for some queries; where that fails, for each of them alone."""
        if len(part) > 1:
            try:
                values = self._called(part)
            except UserError:
                raise
            except Exception:
                yield from (self._alone(number, repeated=1) for number in part)
            else:
                yield from (EngineReply(number, value) for number, value in zip(part, values, strict=True))
        else:
            yield self._alone(part[0])

    def _alone(self, number: int, *, repeated: int = 0) -> EngineReply[T]:
        calls, failure = 0, ""
        while calls < self._limits.attempts:
            calls += 1
            try:
                values = self._called([number])
            except UserError:
                raise
            except Exception as error:
                failure = error_summary(error)
                if calls < self._limits.attempts:
                    time.sleep(self._limits.wait(calls, error))
            else:
                [value] = values
                return EngineReply(number, value, repeated=repeated + calls - 1)
        return EngineReply(number, None, failure, repeated + calls - 1)

    def _called(self, part: list[int]) -> Sequence[T]:
        """Call in a thread of its own, which is left behind where its time is out."""
        found = queue.SimpleQueue[tuple[Sequence[T], BaseException | None]]()

        def run() -> None:
            try:
                found.put((self._ask(part), None))
            except BaseException as error:
                found.put(((), error))

        threading.Thread(target=run, daemon=True).start()
        try:
            values, error = found.get(timeout=self._limits.timeout)
        except queue.Empty:
            raise TimeoutError(f"no answer within {self._limits.timeout:g} s") from None
        if error is None:
            return values
        raise error if isinstance(error, Exception) else RuntimeError(f"ended by {type(error).__name__}")


def _retry_seconds(error: Exception) -> float:
    """Seconds of the header Retry-After, where the error has headers, as those of urllib, requests and httpx do."""
    headers: Any = getattr(error, "headers", None) or getattr(getattr(error, "response", None), "headers", None)
    try:
        return min(max(0.0, float(headers["Retry-After"])), LONGEST_PAUSE)
    except (TypeError, KeyError, ValueError):
        return 0.0


def error_summary(error: BaseException) -> str:
    """Say in one line what kind of error it is and its message, white space folded, at most 200 characters.

    An error of gRPC or of a client library may hold its message in an attribute.
    """
    text = getattr(error, "message", None)
    folded = " ".join(str(text if isinstance(text, str) and text else error).split())
    whole = f"{type(error).__name__}: {folded}" if folded else type(error).__name__
    return whole if len(whole) <= _WIDTH else whole[: _WIDTH - 1] + "…"
