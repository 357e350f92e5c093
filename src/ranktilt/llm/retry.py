"""Retries and rate limits: one engine for language models, embedding servers and live search engines."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type

Result = TypeVar("Result")

MINUTE = 60.0
LONGEST_PAUSE = 30.0
"""Most seconds between two attempts, unless the server asks for more."""


class RetryableError(Exception):
    """A failed call that is worth repeating.

    `after` are seconds that the server asks to wait, `busy` whether it says that it has too much to do just now,
    `everyone` whether other requests should wait too, `reached` whether it was the server that said so, and not the
    connection.
    """

    def __init__(
        self,
        message: str,
        *,
        after: float | None = None,
        busy: bool = False,
        everyone: bool = False,
        reached: bool = True,
    ) -> None:
        self.message, self.after, self.busy, self.everyone, self.reached = message, after, busy, everyone, reached
        super().__init__(message)


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """How long and how often to ask.

    `timeout` are seconds until a call is given up, `attempts` the calls that a request is worth, `pause` seconds before
    the second call, twice as many before each further one, give or take half. While nothing has ever been answered, and
    the server is not busy, a request gets `first_contact` calls only: what is wrong for all is said soon.
    `longest_wait` are the most seconds that are waited because the server asks for it.
    """

    timeout: float
    attempts: int
    pause: float
    first_contact: int | None = None
    longest_wait: float = math.inf

    def wait(self, calls: int, asked: float | None = None, *, chance: float = 0.5) -> float:
        """Seconds to wait after so many calls; `chance` is the jitter, 0 to 1.

        What the server asks for is kept, and up to a tenth more. To be asked for 0 seconds, which is also what a date
        in the past comes to, says nothing: attempts without a pause would all be used up at once.
        """
        if asked:
            return min(asked * (1 + 0.1 * chance), self.longest_wait)
        return min(self.pause * 2.0 ** min(calls - 1, 30), LONGEST_PAUSE) * (0.5 + chance)


class _Window:
    """An amount that may be used up in any minute: requests, or tokens.

    Not aiolimiter: its leaky bucket lets 199 requests through in a minute where 100 are the limit (measured), and it
    cannot take back an estimate once the server has said how many tokens it was.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._used: deque[list[float]] = deque()
        self._sum = 0.0

    def wait(self, now: float, amount: float) -> float:
        """Seconds from `now` until there is room for `amount`; an amount above the limit waits for an empty minute."""
        while self._used and self._used[0][0] + MINUTE <= now + 1e-9:
            self._sum -= self._used.popleft()[1]
        left = self._sum
        if not self._used or left + amount <= self.limit:
            return 0.0
        for start, used in self._used:
            left -= used
            if left + amount <= self.limit:
                return start + MINUTE - now
        return self._used[-1][0] + MINUTE - now

    def take(self, now: float, amount: float) -> list[float]:
        entry = [now, float(amount)]
        self._used.append(entry)
        self._sum += amount
        return entry

    def correct(self, entry: list[float], amount: float) -> None:
        if self._used and entry[0] >= self._used[0][0]:  # it still counts
            self._sum += amount - entry[1]
            entry[1] = amount


class RateLimiter:
    """Requests and tokens a minute, apart, and pauses that hold for everyone: no minute holds more than the limits.

    `rpm` and `tpm` are the most requests and tokens (read and written) in any minute; None sets no limit.
    """

    def __init__(
        self, rpm: int | None = None, tpm: int | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.clock = clock
        self._requests = _Window(rpm) if rpm is not None else None
        self._tokens = _Window(tpm) if tpm is not None else None
        self._resume = float("-inf")

    @property
    def counts_tokens(self) -> bool:
        """Whether estimates of tokens are of use."""
        return self._tokens is not None

    def wait(self, tokens: float = 0) -> float:
        """Seconds until a request of so many tokens may be sent; 0 for at once."""
        now = self.clock()
        waits = [self._resume - now, 0.0]
        if self._requests is not None:
            waits.append(self._requests.wait(now, 1))
        if self._tokens is not None:
            waits.append(self._tokens.wait(now, tokens))
        return max(waits)

    def take(self, tokens: float = 0) -> list[float] | None:
        """Count a request that is sent now; returns what `correct` takes."""
        now = self.clock()
        if self._requests is not None:
            self._requests.take(now, 1)
        return self._tokens.take(now, tokens) if self._tokens is not None else None

    def correct(self, ticket: list[float] | None, tokens: int | None) -> None:
        """Count the tokens that were really used, once the server has said how many."""
        if ticket is not None and tokens is not None and self._tokens is not None:
            self._tokens.correct(ticket, tokens)

    def pause(self, seconds: float) -> None:
        """Send nothing for so long; a longer pause that holds already stays."""
        self._resume = max(self._resume, self.clock() + seconds)


class Retrier:
    """All calls to one server: each with a time limit, within the rate limits, and repeated where that may help."""

    def __init__(self, policy: RetryPolicy, limiter: RateLimiter | None = None) -> None:
        self.policy, self.limiter = policy, limiter or RateLimiter()
        self.reached = self.answered = False
        """Whether the server ever said anything, if only an error; and whether it ever answered."""
        self._queue = asyncio.Lock()
        self._random = random.Random()

    async def call(self, ask: Callable[[], Awaitable[tuple[Result, int | None]]], tokens: float = 0) -> Result:
        """Ask until there is a result, or raise the last `RetryableError`; any other error ends it at once.

        `ask` gives a result and the tokens it took, `tokens` is an estimate of them.
        """
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(RetryableError),
            stop=self._stop,
            wait=self._wait,
            before_sleep=self._before_sleep,
            sleep=asyncio.sleep,
            reraise=True,
        )
        return await retrying(self._once, ask, tokens)

    async def _once(self, ask: Callable[[], Awaitable[tuple[Result, int | None]]], tokens: float) -> Result:
        # In line, or a large request would wait for ever behind small ones.
        if self._queue.locked() or self.limiter.wait(tokens) > 0:
            async with self._queue:
                while (seconds := self.limiter.wait(tokens)) > 0:
                    await asyncio.sleep(seconds)
        ticket = self.limiter.take(tokens)
        try:
            async with asyncio.timeout(self.policy.timeout):
                result, used = await ask()
        except TimeoutError:
            late = TimeoutError(f"no answer within {self.policy.timeout:g} s")
            raise RetryableError(str(late), reached=False) from late
        except Exception as error:
            self.reached = self.reached or not isinstance(error, RetryableError) or error.reached
            raise
        self.reached = self.answered = True
        self.limiter.correct(ticket, used)
        return result

    def _stop(self, state: RetryCallState) -> bool:
        first, calls = self.policy.first_contact, state.attempt_number
        hopeless = first is not None and calls >= first and not (self.answered or _error(state).busy)
        return hopeless or calls >= self.policy.attempts

    def _wait(self, state: RetryCallState) -> float:
        return self.policy.wait(state.attempt_number, _error(state).after, chance=self._random.random())

    def _before_sleep(self, state: RetryCallState) -> None:
        if _error(state).everyone:
            self.limiter.pause(state.upcoming_sleep)


def _error(state: RetryCallState) -> RetryableError:
    error = None if state.outcome is None else state.outcome.exception()
    return error if isinstance(error, RetryableError) else RetryableError("")


def retry_after(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """Seconds that a response asks to wait, by ``retry-after-ms`` or ``retry-after`` (seconds or an HTTP date).

    None where nothing usable is said; `now` is seconds since the epoch, the clock's by default.
    """
    lower = {name.casefold(): value for name, value in headers.items()}
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(lower[name]) / unit
        except (KeyError, ValueError):
            continue
        if math.isfinite(seconds):
            return max(seconds, 0.0)
    try:
        until = parsedate_to_datetime(lower["retry-after"]).timestamp()
    except (KeyError, ValueError, TypeError):
        return None
    return max(until - (time.time() if now is None else now), 0.0)
