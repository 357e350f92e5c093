"""Items in, results out, from a loop in a thread of its own."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest

from ranktilt.llm.openai import flow


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
