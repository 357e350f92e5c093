"""A Ray cluster as the place where parts of work are done, through a process of its own.

Where its cluster dies, Ray ends the process that uses it, without a word. So another one does, `ray_driver`, and should
it die, what was done is here, and an error says so.
"""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import count, islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ranktilt._version import __version__
from ranktilt.errors import DataWarning, MissingExtra, UserError
from ranktilt.executing.executor import Executor, Item, Result, Stage
from ranktilt.executing.memory_limits import processors, set_memory_limit
from ranktilt.optional import need

_PARTS_A_WORKER = 2
"""Parts under way: one that is done, and one that waits, so that no worker does."""
_GOODBYE = 20.0
_SHORT = "/tmp" if os.path.isdir("/tmp") else None
"""Ray's sockets lie in the folder, and a socket's name has at most 107 bytes."""
_DRIVER = "ranktilt.executing.ray_driver"
_AGAIN = "what was done is kept: run it again"


@dataclass
class RayExecutor(Executor):
    """The workers of a cluster: one a processor, or one a GPU where work is neural and there are some."""

    name: str
    workers: int
    gpus: int
    driver: Connection
    _numbers: Iterator[int] = field(default_factory=count)
    _arrived: dict[int, dict[int, Any]] = field(default_factory=dict)
    """What each map has not taken yet, by the numbers of its parts."""

    def map(
        self,
        stage: Stage[Item, Result],
        items: Iterable[Item],
        *,
        at_once: int = 1,
        ordered: bool = True,
        neural: bool = False,
    ) -> Generator[Result, None, None]:
        """Send parts to workers that are free; see `Executor.map`."""  # fmt: skip
        gpu = neural and self.gpus > 0
        job, done, parts = next(self._numbers), dict[int, Any](), enumerate(_divided(items, at_once))
        self._arrived[job] = done
        room, sent, taken, failure = _PARTS_A_WORKER * (self.gpus if gpu else self.workers), 0, 0, None
        try:
            self._send("stage", job, gpu, *packed((__version__, stage, set_memory_limit())))
            while True:
                for number, part in islice(parts, 0 if failure else room - (sent - taken)):
                    self._send("part", job, number, *packed(part))
                    sent += 1
                if taken == sent:
                    break
                while (found := _pop(done, taken, ordered=ordered)) is None:
                    self._receive()
                taken += 1
                error = yield from self._results(found)
                failure = failure or error
                if failure and ordered:
                    break
            if failure:  # what was under way then, and may have been paid for, has come
                raise failure
        except _ClusterGoneError:
            while (found := _pop(done, taken, ordered=ordered)) is not None:
                taken += 1
                yield from self._results(found)
            raise
        finally:
            del self._arrived[job]
            with suppress(UserError):  # the cluster may be gone
                self._send("drop", job)

    def _send(self, *message: Any) -> None:
        try:
            self.driver.send(message)
        except OSError as error:
            while True:  # what has come before is kept, and its end says so
                self._receive(error)

    def _receive(self, before: Exception | None = None) -> None:
        try:
            job, number, found = self.driver.recv()
        except (EOFError, OSError) as error:
            if self.driver.closed:
                raise UserError(f"{self.name}: its work was asked for after the end of its block") from error
            raise _ClusterGoneError(f"{self.name} is gone; {_AGAIN}") from before or error
        if job in self._arrived:
            self._arrived[job][number] = found

    def _results(self, found: tuple[str, Any]) -> Generator[Any, None, UserError | None]:
        """What a worker made of a part, with what it warned of; returns why there is no more of it."""
        kind, value = found
        if kind == "died":
            return UserError(f"{self.name} failed ({value}); {_AGAIN}")
        results, said, failure = pickle.loads(value)
        yield from results
        for message in said:
            warnings.warn(message, DataWarning, stacklevel=3)
        return failure if isinstance(failure, UserError) else None


class _ClusterGoneError(UserError):
    """The process that uses the cluster has ended."""


def _pop(done: dict[int, Any], number: int, *, ordered: bool) -> tuple[str, Any] | None:
    """Take a part that is done, where it matters the one of this number."""
    found: tuple[str, Any] | None = done.pop(number if ordered else next(iter(done), number), None)
    return found


def packed(value: Any) -> tuple[bytes, list[bytes | bytearray]]:
    """Return a value as bytes, and its large arrays beside it, which workers of one machine then share."""
    buffers: list[Any] = []
    try:
        whole = need("cloudpickle", extra="ray", for_="--on ray").dumps(value, 5, buffers.append)
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise UserError(f"what is to be done cannot travel to another process: {error}") from error
    return whole, [bytes(one.raw()) for one in buffers]


def _divided(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    source = iter(items)
    while part := list(islice(source, size)):
        yield part


@contextmanager
def cluster(address: str | None) -> Iterator[RayExecutor]:
    """Join the cluster at an address, or start one on this machine and end it with the block."""
    if find_spec("ray") is None:
        raise MissingExtra("ray", extra="ray", for_="--on ray")
    where = "the Ray cluster of this machine" if address is None else f"the Ray cluster at {address}"
    here, there = socket.socketpair()
    command = [sys.executable, "-c", f"from {_DRIVER} import main; main()", str(there.fileno())]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "PYTHONSAFEPATH": "1",
    }
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="ray-", dir=_SHORT, ignore_cleanup_errors=True))
        )
        said = stack.enter_context((folder / "said").open("wb"))
        process = subprocess.Popen(
            command, pass_fds=[there.fileno()], env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said
        )
        stack.callback(_end, process)
        driver = stack.enter_context(Connection(here.detach()))
        there.close()
        yield RayExecutor(where, *_joined(where, driver, (address, str(folder), processors())), driver)


def _joined(where: str, driver: Connection, request: tuple[Any, ...]) -> tuple[int, int]:
    """Let the other process join or start the cluster; its processors and GPUs."""
    try:
        driver.send(request)
        answer = driver.recv()
    except (EOFError, OSError) as error:
        said = (Path(request[1]) / "said").read_text(errors="replace").strip().splitlines()
        raise UserError(f"{where} does not answer: {said[-1] if said else 'its process ended at once'}") from error
    if isinstance(answer, str):
        raise UserError(f"{where} does not answer: {answer}")
    workers, gpus = answer
    return workers, gpus


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let the other process end, which it does where its socket is closed."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GOODBYE)
    process.kill()
    process.wait()
