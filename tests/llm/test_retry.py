"""Attempts, pauses and limits a minute: what every call to a server or an engine goes through."""

import asyncio
import time
from email.utils import formatdate
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt.llm.retry import LONGEST_PAUSE, MINUTE, RateLimiter, Retrier, RetryableError, RetryPolicy, retry_after


class FakeClock:
    """Seconds that pass only when told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def sent(limits: RateLimiter, clock: FakeClock, sizes: list[int]) -> list[float]:
    """Send requests one after the other as soon as each may go; return when each went."""
    times = []
    for size in sizes:
        for _ in range(10):
            if (seconds := limits.wait(size)) <= 0:
                break
            clock.now += seconds
        else:
            raise AssertionError("waited ten times for one request")
        limits.take(size)
        times.append(clock.now)
    return times


# Limits


def test_requests_beyond_the_limit_wait_until_the_first_is_a_minute_old() -> None:
    clock = FakeClock()
    limits = RateLimiter(3, None, clock=clock)
    assert [t - 1000 for t in sent(limits, clock, [1] * 7)] == [0, 0, 0, 60, 60, 60, 120]


def test_tokens_have_a_limit_of_their_own() -> None:
    clock = FakeClock()
    limits = RateLimiter(None, 100, clock=clock)
    assert [t - 1000 for t in sent(limits, clock, [60, 40, 10, 95])] == [0, 0, 60, 120]


def test_the_stricter_of_both_limits_holds() -> None:
    clock = FakeClock()
    limits = RateLimiter(2, 100, clock=clock)
    assert [t - 1000 for t in sent(limits, clock, [10, 10, 10, 95])] == [0, 0, 60, 120]


def test_a_request_above_the_limit_goes_alone() -> None:
    clock = FakeClock()
    limits = RateLimiter(None, 100, clock=clock)
    assert [t - 1000 for t in sent(limits, clock, [50, 500, 50])] == [0, 60, 120]


def test_the_true_count_takes_the_place_of_the_estimate() -> None:
    clock = FakeClock()
    limits = RateLimiter(None, 100, clock=clock)
    low = limits.take(10)
    limits.correct(low, 90)
    assert limits.wait(20) == MINUTE
    high = limits.take(90)
    limits.correct(high, 5)
    assert limits.wait(5) == 0


def test_a_count_that_comes_after_its_minute_changes_nothing() -> None:
    clock = FakeClock()
    limits = RateLimiter(None, 100, clock=clock)
    late = limits.take(10)
    clock.now += 61
    limits.take(10)
    limits.correct(late, 1000)
    assert limits.wait(90) == 0


def test_no_count_leaves_the_estimate() -> None:
    limits = RateLimiter(None, 100, clock=FakeClock())
    limits.correct(limits.take(100), None)
    assert limits.wait(1) == MINUTE


def test_without_limits_nothing_waits_and_no_tokens_are_counted() -> None:
    limits = RateLimiter(None, None, clock=FakeClock())
    assert limits.take(10**9) is None
    assert limits.wait(10**9) == 0
    assert not limits.counts_tokens


def test_a_pause_holds_for_all_and_the_longer_one_stays() -> None:
    clock = FakeClock()
    limits = RateLimiter(None, None, clock=clock)
    limits.pause(5)
    limits.pause(2)
    assert limits.wait() == 5
    clock.now += 5
    assert limits.wait() == 0


@settings(max_examples=50)
@given(
    rpm=st.integers(1, 20),
    tpm=st.integers(50, 500),
    requests=st.lists(st.tuples(st.integers(1, 50), st.floats(0, 30)), min_size=1, max_size=60),
)
def test_no_minute_holds_more_than_the_limits(rpm: int, tpm: int, requests: list[tuple[int, float]]) -> None:
    clock = FakeClock()
    limits = RateLimiter(rpm, tpm, clock=clock)
    log: list[tuple[float, int]] = []
    for size, idle in requests:
        log.append((sent(limits, clock, [size])[0], size))
        clock.now += idle
    for start, _ in log:
        within = [size for time, size in log if start <= time < start + MINUTE - 1e-6]
        assert len(within) <= rpm
        assert sum(within) <= tpm


# Pauses between attempts


def test_pauses_double_up_to_a_limit() -> None:
    policy = RetryPolicy(timeout=1, attempts=9, pause=0.25)
    pauses = [policy.wait(calls) for calls in range(1, 12)]
    assert pauses[:4] == [0.25, 0.5, 1.0, 2.0]
    assert pauses[-1] == LONGEST_PAUSE
    assert [policy.wait(1, chance=chance) for chance in (0.0, 1.0)] == [0.125, 0.375], "give or take half"


def test_what_the_server_asks_for_is_not_cut_short_and_nothing_says_nothing() -> None:
    policy = RetryPolicy(timeout=1, attempts=9, pause=0.25)
    assert policy.wait(1, 300.0, chance=0.0) == 300.0
    assert 300.0 < policy.wait(9, 300.0, chance=0.9) <= 330.0
    assert [policy.wait(calls, 0.0) for calls in (1, 2, 3)] == [0.25, 0.5, 1.0]
    assert RetryPolicy(timeout=1, attempts=9, pause=0.25, longest_wait=30.0).wait(1, 300.0) == 30.0


# One call over a line


class Script:
    """Plays one step a call: an exception is raised, anything else comes back; times of the calls are kept."""

    def __init__(self, *steps: object) -> None:
        self.steps = list(steps)
        self.times: list[float] = []

    async def __call__(self) -> tuple[object, int | None]:
        self.times.append(time.monotonic())
        step = self.steps.pop(0)
        if step == "hang":
            await asyncio.sleep(60)
        if isinstance(step, BaseException):
            raise step
        return step, 5


def retrier(
    attempts: int = 4,
    pause: float = 0.0,
    timeout: float = 5.0,
    limits: RateLimiter | None = None,
    first: int | None = 4,
) -> Retrier:
    return Retrier(RetryPolicy(timeout=timeout, attempts=attempts, pause=pause, first_contact=first), limits)


def test_a_failed_call_is_repeated_until_there_is_an_answer() -> None:
    script = Script(RetryableError("a"), RetryableError("b"), "yes", "never asked for")
    assert asyncio.run(retrier().call(script)) == "yes"
    assert len(script.times) == 3


def test_the_last_failure_is_raised_when_no_attempt_is_left() -> None:
    script = Script(*[RetryableError(str(n)) for n in range(5)])
    with pytest.raises(RetryableError, match=r"^2$"):
        asyncio.run(retrier(attempts=3).call(script))


def test_a_call_that_hangs_is_given_up_and_repeated() -> None:
    assert asyncio.run(retrier(timeout=0.05).call(Script("hang", "yes"))) == "yes"
    with pytest.raises(RetryableError, match=r"^no answer within 0\.05 s$"):
        asyncio.run(retrier(timeout=0.05, attempts=2).call(Script("hang", "hang")))


@pytest.mark.parametrize("reached", [True, False])
@pytest.mark.parametrize(("first", "calls"), [(4, 4), (None, 10)])
def test_a_server_that_never_answered_gets_few_attempts(reached: bool, first: int | None, calls: int) -> None:
    script, way = Script(*[RetryableError("error", reached=reached) for _ in range(20)]), retrier(10, first=first)
    with pytest.raises(RetryableError):
        asyncio.run(way.call(script))
    assert (len(script.times), way.reached) == (calls, reached)


def test_a_busy_server_and_one_that_answered_once_get_them_all() -> None:
    async def twice(way: Retrier) -> object:
        await way.call(Script("yes"))
        return await way.call(Script(*[RetryableError("refused", reached=False) for _ in range(7)], "yes"))

    busy = Script(*[RetryableError("busy", busy=True) for _ in range(7)], "yes")
    assert asyncio.run(retrier(20).call(busy)) == "yes"
    assert asyncio.run(twice(retrier(20))) == "yes"


def test_other_errors_end_the_call_and_come_from_a_server() -> None:
    way = retrier()
    with pytest.raises(KeyError):
        asyncio.run(way.call(Script(KeyError("x"), "yes")))
    assert way.reached


def test_a_request_to_wait_holds_the_others_back() -> None:
    async def both() -> tuple[Script, Script, float]:
        way = retrier()
        first, second = Script(RetryableError("slow", after=0.1, everyone=True), "yes"), Script("yes")
        asked = asyncio.create_task(way.call(first))
        await asyncio.sleep(0.02)
        await way.call(second)
        await asked
        return first, second, first.times[0]

    first, second, start = asyncio.run(both())
    assert second.times[0] - start >= 0.1
    assert first.times[1] - start >= 0.1


def test_tokens_are_counted_by_what_was_used() -> None:
    limits = RateLimiter(None, 100, clock=FakeClock())
    asyncio.run(retrier(limits=limits).call(Script("yes"), 90))
    assert limits.wait(95) == 0
    assert limits.wait(96) == MINUTE


def test_requests_wait_their_turn_under_a_limit() -> None:
    async def all_of_them(way: Retrier, clock: FakeClock) -> list[float]:
        times = []

        async def ask() -> tuple[int, None]:
            times.append(clock.now)
            return 1, None

        async def hurry() -> None:
            while len(times) < 5:
                await asyncio.sleep(0)
                if way._queue.locked():
                    clock.now += 1.0

        await asyncio.gather(hurry(), *(way.call(ask) for _ in range(5)))
        return times

    class Quick(RateLimiter):
        def wait(self, tokens: float = 0) -> float:
            return min(super().wait(tokens), 1e-6)

    clock = FakeClock()
    times = asyncio.run(all_of_them(retrier(limits=Quick(2, None, clock=clock)), clock))
    assert all(later - earlier >= MINUTE - 1e-6 for earlier, later in zip(times, times[2:], strict=False))
    assert [b >= a for a, b in pairwise(times)] == [True] * 4


# Retry-After

NOON = 1_700_000_000.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "5"}, 5.0),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"Retry-After-Ms": "250", "Retry-After": "9"}, 0.25),
        ({"Retry-After": formatdate(NOON + 30, usegmt=True)}, 30.0),
        ({"Retry-After": formatdate(NOON - 30, usegmt=True)}, 0.0),
        ({"Retry-After": "-3"}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": ""}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "nan"}, None),
        ({}, None),
    ],
)
def test_retry_after_in_seconds_or_as_a_date(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=NOON) == seconds
