"""Queries asked at once, with a limit, a time limit and retries."""

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from ranktilt import UserError
from ranktilt.rankers.engines.client import EngineReply, ask_engine, error_summary

Ask = Callable[[int], str]


def asked(ask: Ask, total: int, *, concurrency: int = 4, **given: float) -> list[EngineReply[str]]:
    how: dict[str, Any] = {"timeout": 30, "attempts": 3, "pause": 0, **given}
    return sorted(ask_engine(ask, total, concurrency=concurrency, **how), key=lambda reply: reply.number)


def words(number: int) -> str:
    return f"answer {number}"


@pytest.mark.parametrize(("total", "concurrency"), [(20, 1), (20, 4), (20, 50), (0, 4)])
def test_each_question_is_answered_once(total: int, concurrency: int) -> None:
    got = asked(words, total, concurrency=concurrency)
    assert got == [EngineReply(number, f"answer {number}") for number in range(total)]


def test_as_many_calls_at_once_as_allowed_and_no_more() -> None:
    lock, now, most = threading.Lock(), [0], [0]
    full = threading.Barrier(4)  # passed only by four at once, so that fewer would hang

    def ask(number: int) -> str:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        full.wait(timeout=20)
        with lock:
            now[0] -= 1
        return words(number)

    assert not any(reply.failure for reply in asked(ask, 16, attempts=1))
    assert most == [4]


def test_a_call_that_fails_is_repeated() -> None:
    calls = Counter[int]()

    def ask(number: int) -> str:
        calls[number] += 1
        if calls[number] <= number:
            raise ConnectionError("not yet")
        return words(number)

    got = asked(ask, 5)
    assert got[:3] == [EngineReply(n, f"answer {n}", repeated=n) for n in range(3)]
    assert got[3:] == [EngineReply(n, None, "ConnectionError: not yet", 2) for n in (3, 4)]
    assert calls == {0: 1, 1: 2, 2: 3, 3: 3, 4: 3}


def test_pauses_double_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    slept = list[float]()
    monkeypatch.setattr("ranktilt.rankers.engines.client.time.sleep", slept.append)

    def ask(number: int) -> str:
        raise ConnectionError

    asked(ask, 1, attempts=9, pause=1.0)
    wanted = [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]
    assert all(0.5 * pause <= one <= 1.5 * pause for one, pause in zip(slept, wanted, strict=True)), "give or take half"


def test_a_call_that_hangs_is_given_up_and_holds_up_no_other() -> None:
    never = threading.Event()

    def ask(number: int) -> str:
        if number == 0:
            never.wait()
        return words(number)

    got = asked(ask, 3, concurrency=1, timeout=0.05, attempts=2)
    never.set()
    assert got == [
        EngineReply(0, None, "TimeoutError: no answer within 0.05 s", 1),
        *(EngineReply(n, f"answer {n}") for n in (1, 2)),
    ]


def test_the_program_ends_though_a_call_hangs() -> None:
    code = """
import threading
from ranktilt.rankers.engines.client import ask_engine
def ask(number): threading.Event().wait()
print([reply.failure for reply in ask_engine(ask, 2, timeout=0.01, attempts=1, concurrency=2)])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "['TimeoutError: no answer within 0.01 s', 'TimeoutError: no answer within 0.01 s']\n"


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (UserError("that is no model"), None),
        (SystemExit(3), "RuntimeError: ended by SystemExit"),
        (KeyboardInterrupt(), "RuntimeError: ended by KeyboardInterrupt"),
    ],
)
def test_only_a_mistake_of_the_user_ends_everything(error: BaseException, failure: str | None) -> None:
    calls = []

    def ask(number: int) -> str:
        calls.append(number)
        raise error

    if failure is None:
        with pytest.raises(UserError, match="that is no model"):
            asked(ask, 1000, concurrency=1)
        assert calls == [0]
    else:
        assert [reply.failure for reply in asked(ask, 2, attempts=1)] == [failure] * 2


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("a\n  b"), "ValueError: a b"),
        (TimeoutError(), "TimeoutError"),
        (KeyError("x"), "KeyError: 'x'"),
        (ValueError("z" * 300), "ValueError: " + "z" * 187 + "…"),
    ],
)
def test_an_error_is_told_in_one_line(error: Exception, text: str) -> None:
    assert error_summary(error) == text
