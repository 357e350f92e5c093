"""The places by name where work can be done; of all modules this one alone knows Ray."""

from __future__ import annotations

import logging
import os
import socket
import warnings
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from ranktilt._version import __version__
from ranktilt.errors import DataWarning, UserError, first_line, shorten
from ranktilt.optional import need
from ranktilt.parallel.executor import Executor, Item, Result, Stage, working_on
from ranktilt.parallel.memory_limits import (
    MemoryLimits,
    limited,
    memory_limit,
    processors,
    set_memory_limit,
)

_PARTS_A_WORKER = 2
"""Parts under way: one that is done, and one that waits, so that no worker does."""
_RETRIES = 3
"""How often Ray does a part again whose worker died."""
_CONTACT = 10.0
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": "^",  # or Ray would tell of dead workers among what a command prints
}
_PASSED_ON = ("HF_HUB_OFFLINE", "OPENAI_BASE_URL")


@dataclass(frozen=True)
class RayExecutor(Executor):
    """The workers of a cluster: one a processor, or one a GPU where work is neural and there are some."""

    name: str
    workers: int = field(kw_only=True)
    gpus: int = field(kw_only=True)

    def map(
        self,
        stage: Stage[Item, Result],
        items: Iterable[Item],
        *,
        at_once: int = 1,
        ordered: bool = True,
        neural: bool = False,
    ) -> Generator[Result, None, None]:
        """Send parts to workers that are free; see `Executor.map`."""
        ray, gpu, source = _ray(), neural and self.gpus > 0, iter(items)
        if not ray.is_initialized():
            raise UserError(f"{self.name}: used after its block ended")
        task = ray.remote(max_retries=_RETRIES, num_cpus=1, num_gpus=int(gpu))(_do)
        held = ray.put((__version__, set_memory_limit(), stage))
        parts = iter(lambda: list(islice(source, at_once)), [])
        room, waiting, failure = (
            _PARTS_A_WORKER * (self.gpus if gpu else self.workers),
            list[Any](),
            None,
        )
        try:
            while not failure or (
                waiting and not ordered
            ):  # what is under way, and may be paid for, is kept
                waiting += [
                    task.remote(held, part)
                    for part in islice(parts, 0 if failure else room - len(waiting))
                ]
                if not waiting:
                    return
                ready = waiting[0] if ordered else ray.wait(waiting)[0][0]
                results, messages, error = self._get(ray, ready)
                waiting.remove(ready)
                yield from results
                for message in messages:
                    warnings.warn(message, DataWarning, stacklevel=2)
                failure = failure or error
            raise failure
        finally:
            for ref in waiting if ray.is_initialized() else ():
                ray.cancel(ref, force=False)

    def _get(self, ray: Any, ref: Any) -> tuple[list[Any], list[str], UserError | None]:
        """What came of a part; of one that no worker survives or that has a bug, nothing and the reason."""
        try:
            found: tuple[list[Any], list[str], UserError | None] = ray.get(ref)
        except ray.exceptions.RayError as error:
            cause = getattr(error, "cause", None) or error
            reason = f"{type(cause).__name__}: {first_line(cause)}"
            return (
                [],
                [],
                UserError(f"{self.name} failed ({reason}); finished work is kept: run it again"),
            )
        return found


def _do(
    held: tuple[str, int | None, Stage[Any, Any]], part: list[Any]
) -> tuple[list[Any], list[str], Any]:
    """Do a part, on a worker: its results, its warnings, and what ended it."""
    version, memory, stage = held
    if version != __version__:
        return (
            [],
            [],
            UserError(f"a machine of the cluster has ranktilt {__version__}, not {version}"),
        )
    # The workers of a machine share what one process would have.
    limits = MemoryLimits(memory=max((memory or memory_limit()) // processors(), 1))
    results, failure = list[Any](), None
    with warnings.catch_warnings(record=True) as caught, limited(limits):
        warnings.simplefilter("always", DataWarning)
        try:
            results.extend(
                stage(iter(part))
            )  # as they come: what was paid for is kept where a later one fails
        except UserError as error:
            failure = UserError(str(error))
    return (
        results,
        [str(one.message) for one in caught if issubclass(one.category, DataWarning)],
        failure,
    )


@contextmanager
def run_on(where: str = "local") -> Iterator[None]:
    """Let what is computed inside the ``with`` block be computed elsewhere, with the same results.

    Parameters
    ----------
    where : {"local", "ray", "ray:ADDRESS"}
        ``local``: in this process. ``ray``: on a Ray cluster of this machine alone, one worker a
        processor (and GPU), which is started here and ended with the block. ``ray:ADDRESS``: on a
        cluster that is up, from one of its machines; ``ray:auto`` finds it. Models are read on each
        machine from the folders that they are in here, and what is computed comes back to this
        process, which alone writes it.

    Raises
    ------
    MissingExtra
        If it is Ray and Ray is not installed.
    UserError
        If there is no such place, or no cluster answers there.
    """
    kind, colon, address = where.partition(":")
    if where != "local" and (kind != "ray" or (colon and not address.strip())):
        raise UserError(
            f"cannot run on {shorten(where)}: expected local, ray or ray:ADDRESS, such as ray:10.0.0.1:6379"
        )
    with (
        nullcontext(Executor()) if kind == "local" else _cluster(address.strip() or None) as place,
        working_on(place),
    ):
        yield


@contextmanager
def _cluster(address: str | None) -> Iterator[RayExecutor]:
    """Join the cluster at an address, or start one on this machine and end it with the block."""
    os.environ.update({name: os.environ.get(name, value) for name, value in _ENVIRONMENT.items()})
    name = "the Ray cluster of this machine" if address is None else f"the Ray cluster at {address}"
    ray = _ray()
    # A worker is one processor's: neither polars nor OpenBLAS may take the others (to torch, Ray
    # says so itself).
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environment = {"env_vars": {"POLARS_MAX_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **passed}}
    own = {"num_cpus": processors(), "include_dashboard": False} if address is None else {}
    try:
        _require_listener(address or "")
        ray.init(
            address=address or "local",
            runtime_env=environment,
            log_to_driver=False,
            logging_level=logging.ERROR,
            **own,
        )
        found = ray.cluster_resources()
    except (ConnectionError, RuntimeError, ValueError, OSError, ray.exceptions.RayError) as error:
        hint = (
            "can it start processes here?"
            if address is None
            else "is it up, and is this one of its machines?"
        )
        raise UserError(f"{name} does not answer: {first_line(error)}; {hint}") from error
    try:
        yield RayExecutor(
            name, workers=max(int(found.get("CPU", 1)), 1), gpus=int(found.get("GPU", 0))
        )
    finally:
        ray.shutdown()


def _require_listener(address: str) -> None:
    """Refuse at once an address where nobody listens: Ray would try for minutes."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONTACT).close()


def _ray() -> Any:
    return need("ray", extra="ray", for_="--executor ray")
