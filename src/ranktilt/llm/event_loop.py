"""Do work in an event loop that runs in a thread, while the caller takes the results.

A piece of work is whatever an open client can do, such as the request for one answer. The caller is
ordinary code that need not be asynchronous.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractAsyncContextManager
from itertools import islice
from typing import Any

from ranktilt.optional import need

_WAIT_SECONDS = 0.2
"""Seconds of a single wait for results.

Waits are short because, once polars is imported, Ctrl-C does not interrupt a wait without an end.
"""
OpenClient = Callable[[], AbstractAsyncContextManager[Any]]
"""Returns the context in which a client is open; the client's ``serve`` does a piece of work."""


def flow(
    open_client: OpenClient, work: Iterable[Any], concurrency: int
) -> Generator[list[Any], None, None]:
    """Do pieces of work in an event loop, in a thread of its own, and yield results as they arrive.

    Work is pulled in the caller's thread. A quarter more than `concurrency` is pulled, so that
    another piece is ready whenever one ends. An error of a piece of work ends everything. If the
    generator is closed, work under way is cancelled.

    Parameters
    ----------
    open_client : callable
        Returns the context in which a client is open; its ``serve(number, piece)`` does a piece.
    work : iterable
        Pieces of work.
    concurrency : int
        Number of pieces that are under way together.
    """
    source, most_pulled = enumerate(work), concurrency + max(concurrency // 4, 1)
    next_work = list(islice(source, most_pulled))
    if not next_work:
        return
    slots, pending = asyncio.Semaphore(concurrency), list[Future[Any]]()

    async def serve(number: int, piece: Any) -> Any:
        await slots.acquire()
        result = await client.serve(number, piece)
        slots.release()  # not after an error, which ends everything
        return result

    # A portal of anyio runs an event loop in a thread, and takes calls from other threads.
    portals = need("anyio.from_thread", extra="llm", for_="a server")
    with (
        portals.start_blocking_portal(name="ranktilt-llm") as portal,
        portal.wrap_async_context_manager(open_client()) as client,
    ):
        loop = portal.call(asyncio.get_running_loop)
        try:
            while next_work or pending:
                # The portal's own function to start a task would wait for the loop each time.
                for number, piece in next_work:
                    task = asyncio.run_coroutine_threadsafe(serve(number, piece), loop)
                    pending.append(task)
                done, _ = wait(pending, _WAIT_SECONDS, FIRST_COMPLETED)
                finished = [task for task in pending if task in done]  # in the order of the work
                pending = [task for task in pending if task not in done]
                yield from _results(finished)
                next_work = list(islice(source, most_pulled - len(pending)))
        finally:
            for task in pending:
                task.cancel()


def _results(finished: Sequence[Future[Any]]) -> Iterator[list[Any]]:
    """Yield the results of finished tasks together, and then raise the first error of a task."""
    results = [task.result() for task in finished if task.exception() is None]
    if results:
        yield results
    for task in finished:
        task.result()
