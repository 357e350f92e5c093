"""The executors by name; this module alone knows Ray."""

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
"""Parts under way for each worker: one in work, and one that waits, so that no worker does."""
_RETRIES = 3
"""Number of times that Ray repeats a part whose worker died."""
_CONTACT = 10.0
"""Seconds to wait for a cluster's answer."""
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # Ray would report dead workers in the output of a command.
    "RAY_DEDUP_LOGS_SKIP_REGEX": "^",
}
"""Settings of Ray: it reports to nobody, and leaves GPUs to us."""
_PASSED_ON = ("HF_HUB_OFFLINE", "OPENAI_BASE_URL")
"""Environment variables that workers get."""


_PartResult = tuple[list[Any], list[str], UserError | None]
"""Results of a part, messages of its warnings, and the error that ended it."""


@dataclass(frozen=True)
class RayExecutor(Executor):
    """The workers of a cluster: one for each processor, or for each GPU if work is neural."""

    name: str
    """Name in messages."""
    workers: int = field(kw_only=True)
    """Number of processors of the cluster."""
    gpus: int = field(kw_only=True)
    """Number of its GPUs."""

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
        ray = _ray()
        if not ray.is_initialized():
            raise UserError(f"{self.name}: used after its block ended")
        uses_gpus = neural and self.gpus > 0
        pending = _PendingParts(
            ray=ray,
            task=ray.remote(max_retries=_RETRIES, num_cpus=1, num_gpus=int(uses_gpus))(_do),
            # A plain tuple, which a worker of another version can read, too.
            job=ray.put((__version__, set_memory_limit(), stage)),
            room=_PARTS_A_WORKER * (self.gpus if uses_gpus else self.workers),
            ordered=ordered,
        )
        parts, failure = _parts(items, at_once), None
        try:
            pending.send(parts)
            while pending.references:
                reference = pending.next()
                results, messages, error = self._get(ray, reference)
                pending.references.remove(reference)
                yield from results
                for message in messages:
                    warnings.warn(message, DataWarning, stacklevel=2)
                failure = failure or error
                if failure is None:
                    pending.send(parts)
                elif ordered:
                    break
                # Unordered parts under way may be paid for: their results are still taken.
            if failure is not None:
                raise failure
        finally:
            pending.cancel()

    def _get(self, ray: Any, reference: Any) -> _PartResult:
        """Fetch the result of a part; an error if no worker survives it or its code has a bug."""
        try:
            result: _PartResult = ray.get(reference)
        except ray.exceptions.RayError as error:
            cause = getattr(error, "cause", None) or error
            reason = f"{type(cause).__name__}: {first_line(cause)}"
            failure = UserError(
                f"{self.name} failed ({reason}); finished work is kept, so run it again"
            )
            return [], [], failure
        return result


def _parts(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Cut items into lists, pulling them as they are needed."""
    source = iter(items)
    while part := list(islice(source, size)):
        yield part


@dataclass(kw_only=True)
class _PendingParts:
    """Parts that workers have and are not done with."""

    ray: Any
    """The library."""
    task: Any
    """`_do` as Ray calls it."""
    job: Any
    """Reference to the first argument of `_do`."""
    room: int
    """Most parts at a time."""
    ordered: bool
    """Whether results are given in the order of the parts."""
    references: list[Any] = field(default_factory=list)
    """Parts that are under way."""

    def send(self, parts: Iterator[list[Any]]) -> None:
        """Send parts until the workers have enough."""
        for part in islice(parts, self.room - len(self.references)):
            self.references.append(self.task.remote(self.job, part))

    def next(self) -> Any:
        """Return the reference of the next part: in order, or the first that is done."""
        if self.ordered:
            return self.references[0]
        ready, _busy = self.ray.wait(self.references)
        return ready[0]

    def cancel(self) -> None:
        """Cancel the parts that are left, if the cluster is still there."""
        if self.ray.is_initialized():
            for reference in self.references:
                self.ray.cancel(reference, force=False)


def _do(job: tuple[str, int | None, Stage[Any, Any]], part: list[Any]) -> _PartResult:
    """Do a part, on a worker."""
    version, memory, stage = job
    if version != __version__:
        error = UserError(f"a machine of the cluster has ranktilt {__version__}, not {version}")
        return [], [], error
    # The workers of a machine share the memory that a single process would have.
    limits = MemoryLimits(memory=max((memory or memory_limit()) // processors(), 1))
    results, failure = list[Any](), None
    with warnings.catch_warnings(record=True) as caught, limited(limits):
        warnings.simplefilter("always", DataWarning)
        try:
            # Extended as results come: those before a failure are kept, as they may be paid for.
            results.extend(stage(iter(part)))
        except UserError as error:
            failure = UserError(str(error))
    messages = [
        str(warning.message) for warning in caught if issubclass(warning.category, DataWarning)
    ]
    return results, messages, failure


@contextmanager
def run_on(where: str = "local") -> Iterator[None]:
    """Run the computations inside a ``with`` block elsewhere, with the same results.

    Parameters
    ----------
    where : {"local", "ray", "ray:ADDRESS"}
        ``local``: in this process. ``ray``: on a Ray cluster of this machine alone, with a worker
        for each processor (and GPU), which the block starts and stops. ``ray:ADDRESS``: on a
        running cluster, from one of its machines; ``ray:auto`` finds it. Each machine reads models
        from the same folders as this one. Results come back to this process; only it writes them.

    Raises
    ------
    MissingExtra
        If you ask for Ray and Ray is not installed.
    UserError
        If `where` is none of these, or no cluster answers at the address.
    """
    kind, colon, address = where.partition(":")
    if where != "local" and (kind != "ray" or (colon and not address.strip())):
        raise UserError(
            f"cannot run on {shorten(where)}: expected local, ray or ray:ADDRESS, "
            "such as ray:10.0.0.1:6379"
        )
    is_local = kind == "local"
    context = nullcontext(Executor()) if is_local else _cluster(address.strip() or None)
    with context as target, working_on(target):
        yield


@contextmanager
def _cluster(address: str | None) -> Iterator[RayExecutor]:
    """Join the cluster at an address, or start one on this machine and end it with the block."""
    os.environ.update({name: os.environ.get(name, value) for name, value in _ENVIRONMENT.items()})
    name = "the Ray cluster of this machine" if address is None else f"the Ray cluster at {address}"
    ray = _ray()
    # A worker has a single processor: neither polars nor OpenBLAS may take the others (Ray itself
    # limits torch).
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environment = {"env_vars": {"POLARS_MAX_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **passed}}
    is_started = address is None
    try:
        _require_listener(address or "")
        ray.init(
            address=address or "local",
            runtime_env=environment,
            log_to_driver=False,
            logging_level=logging.ERROR,
            # A cluster that is up has its own.
            num_cpus=processors() if is_started else None,
            include_dashboard=False if is_started else None,
        )
        resources = ray.cluster_resources()
    except (ConnectionError, RuntimeError, ValueError, OSError, ray.exceptions.RayError) as error:
        hint = "is it running, and is this one of its machines?"
        if is_started:
            hint = "can it start processes here?"
        raise UserError(f"{name} does not answer: {first_line(error)}; {hint}") from error
    try:
        workers = max(int(resources.get("CPU", 1)), 1)
        yield RayExecutor(name, workers=workers, gpus=int(resources.get("GPU", 0)))
    finally:
        ray.shutdown()


def _require_listener(address: str) -> None:
    """Refuse an address where nobody listens, for which Ray would try for minutes."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONTACT).close()


def _ray() -> Any:
    """Import Ray."""
    return need("ray", extra="ray", for_="--executor ray")
