"""An asynchronous loop in a thread of its own: items in, results out, as many at once as allowed."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractAsyncContextManager, suppress
from itertools import islice
from typing import Generic, Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Given = TypeVar("Given", contravariant=True)
Made = TypeVar("Made", covariant=True)

_TURN = 0.2
_GOODBYE = 2.0


class Client(Protocol[Given, Made]):
    """What turns one item into one result, inside the loop."""

    async def serve(self, number: int, item: Given) -> Made:
        """Make the result of one item; what it raises ends everything."""


def ahead(concurrency: int) -> int:
    """Most items that `flow` has pulled and not given back."""
    return concurrency + max(concurrency // 4, 1)


def flow(
    opened: Callable[[], AbstractAsyncContextManager[Client[Item, Result]]], items: Iterable[Item], concurrency: int
) -> Generator[list[Result], None, None]:
    """Serve items in an asynchronous loop in a thread of its own, and yield the results that are there, one or more.

    `opened` gives the context in which the client is open; entered and left inside the loop. Items are pulled in the
    caller's thread, at most `concurrency` and a quarter beyond the results taken. Closing the iterator cancels what is
    under way.
    """
    source = enumerate(items)
    most, waiting, more = ahead(concurrency), 0, True
    loop = _Loop(opened, concurrency)
    try:
        while True:
            if more and (given := list(islice(source, most - waiting))):
                waiting += len(given)
                loop.send(given)
            more = more and waiting == most
            if not waiting:
                return
            results = loop.receive()
            waiting -= len(results)
            yield results
    finally:
        loop.stop()


class _Loop(Generic[Item, Result]):
    """The loop in a daemon thread; results are handed over in batches."""

    def __init__(
        self, opened: Callable[[], AbstractAsyncContextManager[Client[Item, Result]]], concurrency: int
    ) -> None:
        self._opened, self._concurrency = opened, concurrency
        self._out: queue.SimpleQueue[list[Result] | BaseException] = queue.SimpleQueue()
        self._pending: deque[tuple[int, Item]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._made: list[Result] = []
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._thread: threading.Thread | None = None
        self._client: Client[Item, Result] | None = None

    def send(self, given: list[tuple[int, Item]]) -> None:
        if self._thread is None:
            self._pending.extend(given)
            self._thread = threading.Thread(target=self._run, daemon=True, name="ranktilt-llm")
            self._thread.start()
        else:
            with suppress(RuntimeError):  # ended by an error, which `receive` gives
                self._loop.call_soon_threadsafe(self._accept, given)

    def receive(self) -> list[Result]:
        """Wait in short turns: once polars is imported, Ctrl-C does not interrupt a wait without an end."""
        while True:
            with suppress(queue.Empty):
                results = self._out.get(timeout=_TURN)
                break
        if isinstance(results, BaseException):
            raise results
        return results

    def stop(self) -> None:
        if self._thread is None:
            self._loop.close()
            return
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(_GOODBYE)

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            self._out.put(error)

    async def _serve(self) -> None:
        async with self._opened() as client:
            self._client = client
            self._start()
            await self._stopped.wait()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, given: list[tuple[int, Item]]) -> None:
        self._pending.extend(given)
        self._start()

    def _start(self) -> None:
        if self._client is None or self._stopped.is_set():
            return
        while self._pending and len(self._tasks) < self._concurrency:
            task = self._loop.create_task(self._one(self._client, *self._pending.popleft()))
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._start()

    async def _one(self, client: Client[Item, Result], number: int, item: Item) -> None:
        try:
            result = await client.serve(number, item)
        except Exception as error:
            self._hand_over()
            self._out.put(error)
            self._stopped.set()
            return
        if not self._made:
            self._loop.call_soon(self._hand_over)
        self._made.append(result)

    def _hand_over(self) -> None:
        if self._made:
            self._out.put(self._made)
            self._made = []
