"""Any engine, asked through a function of the user's own."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import os
import pkgutil
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ranktilt.collection import Collection
from ranktilt.errors import UserError, shorten
from ranktilt.io.files import sha256
from ranktilt.rankers.engines.base import LiveEngine, Session
from ranktilt.rankers.engines.client import error_summary

Search = Callable[[str, int], Any]

FORM = "engine:MODULE:FUNCTION"
SIGNATURE = "search(query, k)"


@dataclass(frozen=True)
class Engine(LiveEngine):
    """Ranks by asking a Python function, ``search(query: str, k: int) -> list[(doc_id, score)]``, best first.

    `function` is ``module:function``; the module is a file of the current folder, or installed. It is called in several
    threads at once and must bear that. One that is declared ``async def`` is awaited, all calls in one event loop.
    """

    name: ClassVar[str] = "engine"
    argument: ClassVar[str | None] = "function"

    function: str

    def __post_init__(self) -> None:
        super().__post_init__()
        module, _, function = self.function.partition(":")
        if not (module and function.isidentifier()):
            raise UserError(f"engine: expected {FORM}, such as engine:my_engine:search, got {self.function!r}")

    def check(self) -> None:
        """Find out without a call whether the function is there and takes what it will be given."""
        self._found()

    @contextmanager
    def connected(self, collection: Collection, depth: int) -> Iterator[Session]:
        """Import the function; see `LiveEngine.connected`."""
        search, file = self._found()
        spec = {"function": {"file": file.name, "sha256": sha256(file)}} if file else {}
        if not _is_async(search):
            yield Session(lambda texts, k: [_as_list(search(text, k)) for text in texts], spec)
            return
        with _loop() as loop:

            def ask(texts: list[str], k: int) -> Sequence[Any]:
                # Time is limited by whoever asks; here it only ends what nobody waits for any more.
                calls = (asyncio.wait_for(search(text, k), self.timeout + 1) for text in texts)
                return [_as_list(asyncio.run_coroutine_threadsafe(call, loop).result()) for call in calls]

            yield Session(ask, spec)

    def _found(self) -> tuple[Search, Path | None]:
        """The function, and the file of its module where it has one."""
        folder = os.getcwd()
        if folder not in sys.path and "" not in sys.path:
            sys.path.insert(0, folder)  # stays there, because a function may import its neighbours when it is called
        importlib.invalidate_caches()
        try:
            search = pkgutil.resolve_name(self.function)
        except Exception as error:
            raise UserError(
                f"{self!r}: nothing to import in {folder} or among installed packages: {error_summary(error)}"
            ) from error
        if not callable(search):
            raise UserError(f"{self!r}: expected a function {SIGNATURE}, got {shorten(search)}")
        _check_signature(search, f"{self!r}: expected {SIGNATURE}, got {self.function.partition(':')[2]}")
        file = getattr(sys.modules[self.function.partition(":")[0]], "__file__", None)
        return search, Path(file) if file and Path(file).is_file() else None


def _is_async(search: Any) -> bool:
    return inspect.iscoroutinefunction(search) or inspect.iscoroutinefunction(getattr(search, "__call__", None))  # noqa: B004


@contextmanager
def _loop() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop in a thread of its own; what still runs at the end is cancelled."""
    loop = asyncio.new_event_loop()

    def run() -> None:
        loop.run_forever()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    threading.Thread(target=run, daemon=True).start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)


def _check_signature(search: Search, message: str) -> None:
    """Refuse a function that cannot be called with a query and a depth."""
    try:
        signature = inspect.signature(search)
    except (TypeError, ValueError):
        return  # functions in C need not have one
    try:
        signature.bind("query", 1)
    except TypeError as error:
        raise UserError(f"{message}{signature}") from error


def _as_list(answer: Any) -> Any:
    """A list of what an iterator yields, made where time is limited; anything else as it is."""
    known = isinstance(answer, list | tuple | str | bytes | dict | set)
    return list(answer) if isinstance(answer, Iterable) and not known else answer
