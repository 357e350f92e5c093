"""Questions to something that may be slow, fail or hang: several at once, each with a time limit and retries."""

from __future__ import annotations

import queue
import random
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ranktilt.errors import UserError
from ranktilt.llm.faults import retry_after

T = TypeVar("T")

PAUSE = 0.5
"""Seconds before the second attempt; twice as many before each further one, with jitter."""
LONGEST_PAUSE = 30.0
_WIDTH = 200
_GLANCE = 0.2


@dataclass(frozen=True)
class Patience:
    """How long and how often to ask.

    Parameters
    ----------
    concurrency : int
        Most questions under way at once. A call that ran out of time is given up and no longer counts.
    timeout : float
        Seconds until a call is given up.
    attempts : int
        Calls a question is worth.
    batch : int, optional
        Most questions a call. A call for several that fails is taken apart, and each asked alone.
    pause : float, optional
        Seconds before the second attempt.
    """

    concurrency: int
    timeout: float
    attempts: int
    batch: int = 1
    pause: float = PAUSE


@dataclass(frozen=True)
class Reply(Generic[T]):
    """What came of one question.

    Parameters
    ----------
    number : int
        Which question.
    value : object
        The answer; None where there is none.
    failure : str
        Why there is none; empty where there is one.
    repeated : int
        Calls beyond the first.
    """

    number: int
    value: T | None
    failure: str = ""
    repeated: int = 0


def replies(ask: Callable[[list[int]], Sequence[T]], total: int, how: Patience) -> Generator[Reply[T], None, None]:
    """Ask questions, and yield what comes of each, in any order.

    Everything runs in daemon threads: one that hangs holds up neither the others nor the end of the program.

    Parameters
    ----------
    ask : callable
        Takes numbers of questions and returns as many answers. What it raises is a failed call; only a `UserError`
        ends everything.
    total : int
        Questions there are; they are asked by number, from 0 on.
    how : Patience
        Limits.

    Yields
    ------
    Reply
        One a question. Closing the iterator asks nothing more.

    Raises
    ------
    UserError
        As `ask` raises it.
    """
    asking = _Asking(ask, total, how)
    try:
        for _ in range(total):
            reply = _next(asking.out)
            if isinstance(reply, BaseException):
                raise reply
            yield reply
    finally:
        asking.stop.set()


def _next(out: queue.SimpleQueue[Reply[T] | BaseException]) -> Reply[T] | BaseException:
    """Wait in short turns: once polars is imported, Ctrl-C does not interrupt a wait without an end."""
    while True:
        with suppress(queue.Empty):
            return out.get(timeout=_GLANCE)


class _Asking(Generic[T]):
    """The workers: each takes the next part, asks until there is an answer or no attempt left, and passes it on."""

    def __init__(self, ask: Callable[[list[int]], Sequence[T]], total: int, how: Patience) -> None:
        self.ask, self.how = ask, how
        self.stop = threading.Event()
        self.out: queue.SimpleQueue[Reply[T] | BaseException] = queue.SimpleQueue()
        self._parts: queue.SimpleQueue[list[int]] = queue.SimpleQueue()
        for start in range(0, total, how.batch):
            self._parts.put(list(range(start, min(start + how.batch, total))))
        for _ in range(min(how.concurrency, self._parts.qsize())):
            threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        with suppress(queue.Empty):
            while not self.stop.is_set():
                part = self._parts.get_nowait()
                try:
                    for reply in self._answer(part):
                        self.out.put(reply)
                except BaseException as error:
                    self.out.put(error)
                    return

    def _answer(self, part: list[int], repeated: int = 0) -> Iterator[Reply[T]]:
        failure = ""
        for attempt in range(1 if len(part) > 1 else self.how.attempts):
            try:
                values = _within(self.how.timeout, self.ask, part)
            except UserError:
                raise
            except Exception as error:
                failure = said(error)
                if attempt + 1 < self.how.attempts:
                    self.stop.wait(_pause(error, attempt, self.how.pause))
            else:
                yield from (Reply(n, v, repeated=repeated + attempt) for n, v in zip(part, values, strict=True))
                return
            if self.stop.is_set():
                return
        if len(part) == 1:
            yield Reply(part[0], None, failure, repeated + self.how.attempts - 1)
        else:
            for number in part:
                yield from self._answer([number], repeated=1)


def _within(seconds: float, ask: Callable[[list[int]], Sequence[T]], part: list[int]) -> Sequence[T]:
    """Call in a thread of its own, which is left behind where it takes too long."""
    box: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

    def call() -> None:
        try:
            box.put((ask(part), None))
        except BaseException as error:
            box.put((None, error))

    threading.Thread(target=call, daemon=True).start()
    try:
        value, error = box.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"no answer within {seconds:g} s") from None
    if error is None:
        return value  # type: ignore[no-any-return]
    if not isinstance(error, Exception):
        raise RuntimeError(f"ended by {type(error).__name__}") from error
    raise error


def _pause(error: Exception, attempt: int, first: float) -> float:
    """Seconds to wait: what the server asks for, else twice as long each time, give or take half."""
    asked = _asked(error)
    if asked is not None:
        return min(asked, LONGEST_PAUSE)
    return min(first * 2.0**attempt, LONGEST_PAUSE) * random.uniform(0.5, 1.5)


def _asked(error: Exception) -> float | None:
    """Seconds of the header Retry-After, where the error has headers, as those of urllib, requests and httpx do."""
    headers: Any = getattr(error, "headers", None) or getattr(getattr(error, "response", None), "headers", None)
    return retry_after(dict(headers.items())) if hasattr(headers, "items") else None


def said(error: BaseException) -> str:
    """Say in one line what kind of error it is and its message.

    Parameters
    ----------
    error : BaseException
        Any; an error of gRPC or of a client library may hold its message in an attribute.

    Returns
    -------
    str
        ``Kind: message``, white space folded, at most 200 characters.
    """
    text = getattr(error, "message", None)
    folded = " ".join(str(text if isinstance(text, str) and text else error).split())
    whole = f"{type(error).__name__}: {folded}" if folded else type(error).__name__
    return whole if len(whole) <= _WIDTH else whole[: _WIDTH - 1] + "…"
