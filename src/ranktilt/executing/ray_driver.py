"""The process that uses a Ray cluster for another one, and what its workers do; no other module knows Ray.

It takes a stage and its parts as bytes, hands them to workers, and gives back what they make of them, as bytes.
"""

from __future__ import annotations

import logging
import os
import pickle
import queue
import shutil
import signal
import socket
import sys
import threading
import warnings
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ranktilt._version import __version__
from ranktilt.errors import DataWarning, UserError
from ranktilt.executing.memory_limits import MemoryLimits, limited, memory_limit, processors
from ranktilt.optional import need

_RETRIES = 3
"""How often a part is done again whose worker died."""
_TURN, _CONTACT = 0.02, 10.0
_ENVIRONMENT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
_PASSED_ON = ("HF_HUB_OFFLINE", "OPENAI_BASE_URL")


def main() -> None:
    """Serve the process at the other end of a socket, whose number is the argument, until it closes it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the other process, which then closes the socket
    os.set_inheritable(int(sys.argv[1]), False)  # or Ray's processes would keep it open after this one's death
    if (Path.home() / ".ray" / "auth_token").is_file():
        os.environ.setdefault("RAY_AUTH_MODE", "token")  # Ray starts clusters so, and would join them without it
    os.environ.update({name: os.environ.get(name, value) for name, value in _ENVIRONMENT.items()})
    folder = ""
    with Connection(int(sys.argv[1])) as user, suppress(EOFError, OSError):
        try:
            address, folder, processors = user.recv()
            answer = _join(address, folder, processors)
            user.send(answer)
            if not isinstance(answer, str):
                _Relay(user).run()
        finally:
            _ray().shutdown()
            shutil.rmtree(folder, ignore_errors=True)  # also where the other process was killed


def _join(address: str | None, folder: str, processors: int) -> tuple[int, int] | str:
    """Join a cluster, or start one that keeps its files in a folder; its processors and GPUs, or why there is none."""
    ray = _ray()
    own = {"num_cpus": processors, "include_dashboard": False, "_temp_dir": folder}
    # A worker is one processor's: neither polars nor OpenBLAS may take the others (to torch, Ray says so itself).
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environment = {"env_vars": {"POLARS_MAX_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **passed}}
    try:
        _require_listener(address or "")
        ray.init(
            address=address or "local", runtime_env=environment, log_to_driver=False, logging_level=logging.ERROR,
            **(own if address is None else {}),
        )  # fmt: skip
        found = ray.cluster_resources()
    except (ConnectionError, RuntimeError, ValueError, OSError, ray.exceptions.RayError) as error:
        start = "can it start processes here?" if address is None else "is it up, and is this one of its machines?"
        return f"{_first(error)}; {start}"
    return max(int(found.get("CPU", 1)), 1), int(found.get("GPU", 0))


def _require_listener(address: str) -> None:
    """Refuse at once an address where nobody listens: Ray would try for minutes."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONTACT).close()


def _ray() -> Any:
    return need("ray", extra="ray", for_="--on ray")


class _Relay:
    """Passes parts to workers, and what they make of them back."""

    def __init__(self, user: Connection) -> None:
        self.user, self.ray = user, _ray()
        self.stages: dict[int, tuple[Any, Any]] = {}
        self.waiting: dict[Any, tuple[int, int]] = {}
        self.inbox = queue.SimpleQueue[tuple[Any, ...] | None]()

    def run(self) -> None:
        """Go on until the socket is closed."""
        threading.Thread(target=self._read, daemon=True).start()
        while True:
            while not self.waiting or not self.inbox.empty():
                message = self.inbox.get()
                if message is None:
                    return
                getattr(self, f"_{message[0]}")(*message[1:])
            for ref in self.ray.wait(list(self.waiting), timeout=_TURN)[0]:
                job, number = self.waiting.pop(ref)
                self.user.send((job, number, self._found(ref)))

    def _read(self) -> None:
        """Read all the time: were both processes to write to a full socket, both would wait for ever."""
        with suppress(EOFError, OSError):
            while True:
                self.inbox.put(self.user.recv())
        self.inbox.put(None)

    def _stage(self, job: int, gpu: bool, whole: bytes, buffers: list[bytes]) -> None:
        arrays = [self.ray.put(_array(one)) for one in buffers]
        task = self.ray.remote(max_retries=_RETRIES, max_calls=0, num_cpus=1, num_gpus=int(gpu))(do)
        self.stages[job] = task, [self.ray.put(whole), *arrays]

    def _part(self, job: int, number: int, whole: bytes, buffers: list[bytes]) -> None:
        task, held = self.stages[job]
        self.waiting[task.remote(held, whole, buffers)] = job, number

    def _drop(self, job: int) -> None:
        for ref in [ref for ref, (mine, _) in self.waiting.items() if mine == job]:
            del self.waiting[ref]
            self.ray.cancel(ref, force=False)
        self.stages.pop(job, None)

    def _found(self, ref: Any) -> tuple[str, Any]:
        try:
            return "done", self.ray.get(ref)
        except self.ray.exceptions.RayTaskError as error:
            cause = error.cause if isinstance(error.cause, Exception) else error
            return "died", f"a worker's {type(cause).__name__}: {_first(cause)}"
        except self.ray.exceptions.RayError as error:
            return "died", f"{type(error).__name__}: {_first(error)}"


def _first(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "no reason given")


def _array(buffer: bytes) -> Any:
    """Bytes as an array, which Ray shares between workers."""
    import numpy as np

    return np.frombuffer(buffer, dtype=np.uint8)


_last: list[tuple[Any, Any, MemoryLimits]] = []


def do(held: list[Any], whole: bytes, buffers: list[bytes]) -> bytes:
    """Do a part, on a worker: its results, its warnings, and what ended it, as bytes."""
    results, failure = list[Any](), None
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", DataWarning)
        try:
            # As they come: what was paid for is kept where a later one fails.
            stage, limits = _stage_of(held)
            with limited(limits):
                results.extend(stage(iter(pickle.loads(whole, buffers=buffers))))
        except UserError as error:
            failure = UserError(str(error))
    said = [str(one.message) for one in found if issubclass(one.category, DataWarning)]
    return pickle.dumps((results, said, failure), protocol=5)


def _stage_of(held: list[Any]) -> tuple[Any, MemoryLimits]:
    """Read what is the same for all parts, once."""
    if not _last or _last[0][0] != held[0]:
        _last.clear()
        whole, *buffers = _ray().get(held)
        version, stage, memory = pickle.loads(whole, buffers=buffers)
        if version != __version__:
            raise UserError(f"a machine of the cluster has ranktilt {__version__}, not {version}")
        # The workers of a machine share what one process would have.
        _last.append((held[0], stage, MemoryLimits(memory=max((memory or memory_limit()) // processors(), 1))))
    return _last[0][1:]
