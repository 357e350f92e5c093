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
from typing import Any

from ranktilt._version import __version__
from ranktilt.errors import DataWarning, MissingExtra, UserError
from ranktilt.executing.executor import Executor, Item, Result, Stage
from ranktilt.executing.memory_limits import processors
from ranktilt.optional import need

_PARTS_A_WORKER = 2
"""Parts under way: one that is done, and one that waits, so that no worker does."""
_GOODBYE = 20.0
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
        most = _PARTS_A_WORKER * (self.gpus if gpu else self.workers)
        job, done, parts = next(self._numbers), dict[int, Any](), enumerate(_divided(items, at_once))
        self._arrived[job] = done
        sent = taken = 0
        try:
            self._send("stage", job, gpu, *packed((__version__, stage)))
            while True:
                for number, part in islice(parts, most - (sent - taken)):
                    self._send("part", job, number, *packed(part))
                    sent += 1
                if taken == sent:
                    return
                while not (taken in done or (done and not ordered)):
                    self._receive()
                found = done.pop(taken if ordered else next(iter(done)))
                taken += 1
                yield from self._results(found)
        finally:
            del self._arrived[job]
            with suppress(UserError):  # the cluster may be gone
                self._send("drop", job)

    def _send(self, *message: Any) -> None:
        try:
            self.driver.send(message)
        except OSError as error:
            raise self._cluster_gone() from error

    def _receive(self) -> None:
        try:
            job, number, found = self.driver.recv()
        except (EOFError, OSError) as error:
            raise self._cluster_gone() from error
        if job in self._arrived:
            self._arrived[job][number] = found

    def _cluster_gone(self) -> UserError:
        return UserError(f"{self.name} is gone; {_AGAIN}")

    def _results(self, found: tuple[str, Any]) -> Iterator[Any]:
        """What a worker made of a part, what it warned of, and why there is no more of it."""
        kind, value = found
        if kind == "died":
            raise UserError(f"{self.name} failed ({value}); {_AGAIN}")
        results, said, error = pickle.loads(value)
        yield from results
        for message in said:
            warnings.warn(message, DataWarning, stacklevel=3)
        if error is not None:
            raise error


def packed(value: Any) -> tuple[bytes, list[bytes | bytearray]]:
    """Return a value as bytes, and its large arrays beside it, which workers of one machine then share."""
    buffers: list[Any] = []
    whole = need("cloudpickle", extra="ray", for_="--on ray").dumps(value, protocol=5, buffer_callback=buffers.append)
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
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    null = subprocess.DEVNULL
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True))
        process = subprocess.Popen(
            command, pass_fds=[there.fileno()], env=environment, stdin=null, stdout=null, stderr=null
        )
        stack.callback(_end, process)
        driver = stack.enter_context(Connection(here.detach()))
        there.close()
        yield RayExecutor(where, *_joined(where, driver, (address, folder, processors())), driver)


def _joined(where: str, driver: Connection, request: tuple[Any, ...]) -> tuple[int, int]:
    """Let the other process join or start the cluster; its processors and GPUs."""
    try:
        driver.send(request)
        answer = driver.recv()
    except (EOFError, OSError) as error:
        raise UserError(f"{where} does not answer: its process ended at once") from error
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
