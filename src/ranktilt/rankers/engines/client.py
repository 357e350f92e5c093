"""The client of a live engine: parts of the queries, asked in threads, within one time limit and retry policy."""

from __future__ import annotations

import asyncio
import math
import random
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from itertools import chain
from typing import Any, Generic, TypeVar

from ranktilt.errors import UserError
from ranktilt.llm.loop import flow

T = TypeVar("T")

PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds before the second attempt, twice as many before each further one; and the most, whatever an engine asks."""
_WIDTH = 200


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """How long and how often an engine is asked: seconds until a call is given up, and calls that a query is worth."""

    timeout: float
    attempts: int
    pause: float

    def wait(self, calls: int, asked: float | None = None) -> float:
        """Seconds to wait after so many calls, give or take half; as long as the engine asks, if it does."""
        pause = self.pause * 2.0 ** min(calls - 1, 30) * (0.5 + random.random())
        return min(asked or pause, LONGEST_PAUSE)


def retry_policy(timeout: float, attempts: int, *, pause: float = PAUSE) -> RetryPolicy:
    """Return how long and how often an engine is asked."""
    return RetryPolicy(timeout=timeout, attempts=attempts, pause=pause)


@dataclass(frozen=True)
class EngineReply(Generic[T]):
    """What came of one query: a value, or why there is none; `repeated` counts the calls beyond the first."""

    number: int
    value: T | None
    failure: str = ""
    repeated: int = 0


def ask_engine(
    ask: Callable[[list[int]], Sequence[T]], total: int, policy: RetryPolicy, *, concurrency: int, batch: int = 1
) -> Generator[EngineReply[T], None, None]:
    """Ask queries by number, from 0 on, and yield what comes of each, in any order.

    `ask` takes up to `batch` numbers and returns as many answers; what it raises is a failed call, only a `UserError`
    ends everything. A call for several that fails is taken apart, and each asked alone. It runs in daemon threads:
    one that hangs holds up neither the others nor the end of the program, and no longer counts once its time is out.
    Closing the iterator asks nothing more.
    """
    parts = (list(range(start, min(start + batch, total))) for start in range(0, total, batch))

    @asynccontextmanager
    async def opened() -> AsyncGenerator[_EngineClient[T], None]:
        yield _EngineClient(ask, policy)

    with closing(flow(opened, parts, concurrency)) as stream:
        yield from chain.from_iterable(chain.from_iterable(stream))


class _EngineClient(Generic[T]):
    def __init__(self, ask: Callable[[list[int]], Sequence[T]], policy: RetryPolicy) -> None:
        self._ask, self._policy = ask, policy

    async def serve(self, number: int, item: list[int]) -> list[EngineReply[T]]:
        """Ask for some queries; where that fails, for each of them alone."""
        if len(item) == 1:
            return [await self._reply(item[0])]
        values = await self._called(item)
        if isinstance(values, Exception):
            return [await self._reply(number, repeated=1) for number in item]
        return [EngineReply(number, value) for number, value in zip(item, values, strict=True)]

    async def _reply(self, number: int, *, repeated: int = 0) -> EngineReply[T]:
        calls = 0
        while True:
            calls, values = calls + 1, await self._called([number])
            if not isinstance(values, Exception):
                return EngineReply(number, values[0], repeated=repeated + calls - 1)
            if calls >= self._policy.attempts:
                return EngineReply(number, None, error_summary(values), repeated + calls - 1)
            await asyncio.sleep(self._policy.wait(calls, _retry_seconds(values)))

    async def _called(self, part: list[int]) -> Sequence[T] | Exception:
        """Answers of one call, or what went wrong; only a `UserError` ends everything."""
        try:
            async with asyncio.timeout(self._policy.timeout) as limit:
                values = await _in_thread(lambda: self._ask(part))
        except UserError:
            raise
        except Exception as error:
            return TimeoutError(f"no answer within {self._policy.timeout:g} s") if limit.expired() else error
        if len(values) != len(part):
            raise ValueError(f"expected {len(part)} answers, got {len(values)}")
        return values


async def _in_thread(function: Callable[[], T]) -> T:
    """Call in a daemon thread, which is left behind where nobody waits any more."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[T | None, BaseException | None]] = loop.create_future()

    def settle(value: T | None, error: BaseException | None) -> None:
        if not done.done():
            done.set_result((value, error))

    def run() -> None:
        try:
            result: tuple[T | None, BaseException | None] = (function(), None)
        except BaseException as error:
            result = (None, error)
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, *result)

    threading.Thread(target=run, daemon=True).start()
    value, error = await done
    if error is None:
        return value  # type: ignore[return-value]
    if not isinstance(error, Exception):
        raise RuntimeError(f"ended by {type(error).__name__}") from error
    raise error


def _retry_seconds(error: Exception) -> float | None:
    """Seconds of the header Retry-After, a number or a date; None where the error has no headers, or none that helps.

    Errors of urllib, requests and httpx have them.
    """
    headers: Any = getattr(error, "headers", None) or getattr(getattr(error, "response", None), "headers", None)
    said = str(headers.get("retry-after")) if hasattr(headers, "get") else ""
    try:
        seconds = float(said)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(said).timestamp() - time.time()
        except (ValueError, TypeError):
            return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def error_summary(error: BaseException) -> str:
    """Say in one line what kind of error it is and its message, white space folded, at most 200 characters.

    An error of gRPC or of a client library may hold its message in an attribute.
    """
    text = getattr(error, "message", None)
    folded = " ".join(str(text if isinstance(text, str) and text else error).split())
    whole = f"{type(error).__name__}: {folded}" if folded else type(error).__name__
    return whole if len(whole) <= _WIDTH else whole[: _WIDTH - 1] + "…"
