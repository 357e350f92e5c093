"""The client of a live engine: queries asked in threads, each within a time limit and again where it failed."""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from ranktilt.errors import UserError

T = TypeVar("T")

LONGEST_PAUSE = 30.0
_WIDTH = 200
_TURN = 0.2
"""Seconds of one wait: once polars is imported, Ctrl-C does not interrupt one without an end."""


@dataclass(frozen=True)
class EngineReply(Generic[T]):
    """What came of one query: a value, or why there is none; `repeated` counts the calls beyond the first."""

    number: int
    value: T | None
    failure: str = ""
    repeated: int = 0


def ask_engine(
    ask: Callable[[int], T], total: int, *, concurrency: int, timeout: float, attempts: int, pause: float = 0.5
) -> Generator[EngineReply[T], None, None]:
    """Ask queries by number, from 0 on, and yield what comes of each, in any order.

    What `ask` raises is a failed call; only a `UserError` ends everything. `timeout` and `pause` are seconds: until a
    call is given up, and before the second one; before each further call it is twice as long, give or take half. Calls
    run in daemon threads: one that hangs holds up neither the others nor the end of the program, and no longer counts
    once its time is out. Closing the iterator asks nothing more.
    """
    todo, closed = queue.SimpleQueue[int](), threading.Event()
    replies = queue.SimpleQueue[EngineReply[T] | Exception]()
    for number in range(total):
        todo.put(number)

    def work() -> None:
        with suppress(queue.Empty):
            while not closed.is_set():
                number = todo.get_nowait()
                try:
                    replies.put(_reply(ask, number, timeout, attempts, pause))
                except Exception as error:
                    return replies.put(error)

    for _ in range(min(concurrency, total)):
        threading.Thread(target=work, daemon=True).start()
    try:
        left = total
        while left:
            with suppress(queue.Empty):
                reply = replies.get(timeout=_TURN)
                if isinstance(reply, Exception):
                    raise reply
                yield reply
                left -= 1
    finally:
        closed.set()


def _reply(ask: Callable[[int], T], number: int, timeout: float, attempts: int, pause: float) -> EngineReply[T]:
    failure = ""
    for call in range(attempts):
        if call:
            time.sleep(min(pause * 2.0 ** min(call - 1, 30), LONGEST_PAUSE) * random.uniform(0.5, 1.5))
        try:
            return EngineReply(number, _called(ask, number, timeout), repeated=call)
        except UserError:
            raise
        except Exception as error:
            failure = error_summary(error)
    return EngineReply(number, None, failure, attempts - 1)


def _called(ask: Callable[[int], T], number: int, timeout: float) -> T:
    """Call in a thread of its own, which is left behind where its time is out."""
    found = queue.SimpleQueue[tuple[T | None, BaseException | None]]()

    def run() -> None:
        try:
            found.put((ask(number), None))
        except BaseException as error:
            found.put((None, error))

    threading.Thread(target=run, daemon=True).start()
    try:
        value, error = found.get(timeout=timeout)
    except queue.Empty:
        raise TimeoutError(f"no answer within {timeout:g} s") from None
    if error is not None:
        raise error if isinstance(error, Exception) else RuntimeError(f"ended by {type(error).__name__}")
    return value  # type: ignore[return-value]  # what `ask` returned


def error_summary(error: BaseException) -> str:
    """Say in one line what kind of error it is and its message, white space folded, at most 200 characters.

    An error of gRPC or of a client library may hold its message in an attribute.
    """
    text = getattr(error, "message", None)
    folded = " ".join(str(text if isinstance(text, str) and text else error).split())
    whole = f"{type(error).__name__}: {folded}" if folded else type(error).__name__
    return whole if len(whole) <= _WIDTH else whole[: _WIDTH - 1] + "…"
