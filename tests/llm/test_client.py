"""The client of servers: items in, results out, from a loop in a thread of its own, and when it gives a server up."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest

from ranktilt.errors import DataWarning, UserError
from ranktilt.llm.base import Answer, Failure, FailureKind, Reply
from ranktilt.llm.openai import ServerMonitor, flow
from tests.refusals import refused


class Worker:
    """Serves an item by a function of it, and keeps the most that were served at once."""

    def __init__(self, made: Callable[[int], object], *, wait: float = 0.0) -> None:
        self.made, self.wait = made, wait
        self.now = self.peak = self.started = 0
        self.closed = threading.Event()

    async def serve(self, number: int, item: int) -> object:
        self.started += 1
        self.now += 1
        self.peak = max(self.peak, self.now)
        try:
            await asyncio.sleep(self.wait)
            return number, self.made(item)
        finally:
            self.now -= 1

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator["Worker", None]:
        try:
            yield self
        finally:
            self.closed.set()


def fail(item: int) -> object:
    if item == 3:
        raise ValueError("three")
    return item


def test_every_item_comes_back_once() -> None:
    worker = Worker(lambda item: item * 2, wait=0.001)
    results = [one for batch in flow(worker.opened, range(200), 16) for one in batch]
    assert sorted(results) == [(n, n * 2) for n in range(200)]
    assert worker.closed.is_set()


def test_no_items_no_thread() -> None:
    before = threading.active_count()
    worker = Worker(int)
    assert list(flow(worker.opened, [], 4)) == []
    assert threading.active_count() == before
    assert not worker.closed.is_set()


def test_items_are_pulled_as_they_are_needed_in_the_thread_of_the_caller() -> None:
    pulled, threads = list[int](), set[int]()

    def items() -> Iterator[int]:
        for n in range(1000):
            pulled.append(n)
            threads.add(threading.get_ident())
            yield n

    taken, worker = 0, Worker(int, wait=0.0001)
    for batch in flow(worker.opened, items(), 8):
        taken += len(batch)
        assert len(pulled) <= taken + 10
    assert (taken, worker.peak, threads) == (1000, 8, {threading.get_ident()})


def test_an_error_ends_everything_after_what_was_ready() -> None:
    worker = Worker(fail, wait=0.001)
    got: list[object] = []
    with pytest.raises(ValueError, match="three"):
        got.extend(one for batch in flow(worker.opened, range(100), 1) for one in batch)
    assert got == [(0, 0), (1, 1), (2, 2)]
    assert worker.closed.wait(5)
    assert worker.started == 4


def test_closing_stops_what_is_under_way_and_starts_nothing_more() -> None:
    worker = Worker(int, wait=0.005)
    stream = flow(worker.opened, range(1000), 4)
    next(stream)
    stream.close()
    assert worker.closed.is_set()
    assert worker.now == 0
    assert worker.started < 20


def test_a_worker_that_cannot_open_says_so() -> None:
    @asynccontextmanager
    async def closed() -> AsyncGenerator[Worker, None]:
        raise OSError("no door")
        yield Worker(int)

    with pytest.raises(OSError, match="no door"):
        list(flow(closed, range(3), 2))


GOOD = Reply(0, Answer("a", "stop", 1, 1, "tiny"), None)


def failed(kind: FailureKind = "unavailable") -> Reply:
    return Reply(0, None, Failure(kind, "busy"))


def monitor(concurrency: int = 1) -> ServerMonitor:
    return ServerMonitor("tiny", "http://h/v1", concurrency)


def test_a_server_never_reached_ends_with_the_first() -> None:
    with refused(
        "cannot reach http://h/v1: busy; is the server well, the base URL right, the timeout long enough, "
        "and does it serve a model named 'tiny'?"
    ):
        monitor().look([failed()], reached=False)


@pytest.mark.parametrize(("concurrency", "most"), [(1, 8), (8, 8), (20, 20)])
def test_how_many_in_a_row_are_too_many(concurrency: int, most: int) -> None:
    one = monitor(concurrency)
    one.look([failed()] * (most - 1), reached=True)
    with pytest.raises(UserError, match=r"^http://h/v1 answers nobody: busy"):
        one.look([failed()], reached=True)


def test_an_answer_or_a_prompt_too_long_between_starts_the_count_again() -> None:
    one = monitor()
    one.look([failed()] * 7 + [GOOD] + [failed()] * 7 + [failed("too long")] * 100 + [failed()] * 7, reached=True)
    with pytest.raises(UserError, match="answers nobody: busy"):
        one.look([failed()], reached=True)


def test_refused_prompts_end_it_only_where_none_was_answered() -> None:
    monitor().look([GOOD] + [failed("refused")] * 100, reached=True)
    with pytest.raises(UserError, match="answers nobody"):
        monitor().look([failed("refused")] * 8, reached=True)


def test_another_model_is_told_once_a_name() -> None:
    one = monitor()
    names = ("tiny", "huge", "huge", "tiny-2024-07-18", "vast")
    with pytest.warns(DataWarning) as warned:
        assert [one.model(name) for name in names] == [None] * 5
    assert [str(w.message) for w in warned] == [
        "asked http://h/v1 for model 'tiny', and 'huge' answered: both names are recorded",
        "asked http://h/v1 for model 'tiny', and 'vast' answered: both names are recorded",
    ]
