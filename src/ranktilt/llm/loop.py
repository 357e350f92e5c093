"""An asynchronous loop in a thread of its own: items in, results out, as many at once as allowed."""

from __future__ import annotations

import asyncio
import queue
import threading
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


def flow(
    opened: Callable[[], AbstractAsyncContextManager[Client[Item, Result]]], items: Iterable[Item], concurrency: int
) -> Generator[list[Result], None, None]:
    """Serve items in an asynchronous loop in a thread of its own, and yield the results that are there, one or more.

    `opened` gives the context in which the client is open; entered and left inside the loop. Items are pulled in the
    caller's thread, at most `concurrency` and a quarter beyond the results taken. Closing the iterator cancels what is
    under way.
    """
    source, most, waiting = enumerate(items), concurrency + max(concurrency // 4, 1), 0
    given = list(islice(source, most))
    if not given:
        return
    loop = _Loop(opened, concurrency)
    try:
        while given or waiting:
            loop.send(given)
            results = loop.receive()
            waiting += len(given) - len(results)
            yield results
            given = list(islice(source, most - waiting))
    finally:
        loop.stop()


class _Loop(Generic[Item, Result]):
    """The loop in a daemon thread; results are handed over in batches."""

    def __init__(
        self, opened: Callable[[], AbstractAsyncContextManager[Client[Item, Result]]], concurrency: int
    ) -> None:
        self._opened, self._places = opened, asyncio.Semaphore(concurrency)
        self._given: asyncio.Queue[list[tuple[int, Item]] | None] = asyncio.Queue()
        self._out: queue.SimpleQueue[list[Result] | BaseException] = queue.SimpleQueue()
        self._made: list[Result] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True, name="ranktilt-llm")
        self._thread.start()

    def send(self, given: list[tuple[int, Item]] | None) -> None:
        with suppress(RuntimeError):  # ended by an error, which `receive` gives
            self._loop.call_soon_threadsafe(self._given.put_nowait, given)

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
        self.send(None)
        self._thread.join(_GOODBYE)

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._serve())
        except BaseExceptionGroup as group:
            self._out.put(group.exceptions[0])
        except BaseException as error:
            self._out.put(error)

    async def _serve(self) -> None:
        async with self._opened() as client, asyncio.TaskGroup() as tasks:
            while (given := await self._given.get()) is not None:
                for number, item in given:
                    tasks.create_task(self._one(client, number, item))
            raise asyncio.CancelledError  # which gives up what is under way

    async def _one(self, client: Client[Item, Result], number: int, item: Item) -> None:
        await self._places.acquire()
        result = await client.serve(number, item)
        self._places.release()  # not after an error, which ends everything
        if not self._made:
            self._loop.call_soon(self._hand_over)
        self._made.append(result)

    def _hand_over(self) -> None:
        self._out.put(self._made)
        self._made = []
