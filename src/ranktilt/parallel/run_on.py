"""Choose where to compute, by name: in this process, or on a Ray cluster.

Ray is a library for computing on several machines; only this module knows it. Work is a *stage*, a
function from a stream of items to a stream of results (`executor`). On a cluster the items are
divided into *parts*, each of which a worker computes. A *reference* stands for a result that a
worker still has, or is computing.
"""

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
from ranktilt.parallel.executor import Executor, Item, Result, Stage, use_executor
from ranktilt.parallel.memory_limits import (
    MemoryLimits,
    chosen_memory_limit,
    limit_memory,
    memory_limit,
    processors,
)
from ranktilt.sizes import read_whole_number

_PARTS_PER_WORKER = 2
"""Number of parts that each worker has: it computes one, and the other waits for it."""
_RETRIES = 3
"""Number of times that Ray repeats a part whose worker died."""
_CONTACT_SECONDS = 10.0
"""Seconds to wait for a cluster's answer; Ray itself would try for minutes."""
_LARGEST_PORT = 65_535
"""Largest number of a port."""
_RAY_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # Ray would report dead workers in the output of a command.
    "RAY_DEDUP_LOGS_SKIP_REGEX": "^",
}
"""Settings of Ray, as environment variables: it reports no usage, and hides no GPU."""
_PASSED_VARIABLES = ("HF_HUB_OFFLINE", "OPENAI_BASE_URL")
"""Environment variables of this process that workers get too."""
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
        """Yield the results of a stage over items, as `Executor.map` explains."""
        ray = _ray()
        if not ray.is_initialized():
            raise UserError(f"{self.name}: used after its block ended")
        uses_gpus = neural and self.gpus > 0
        pending = _PendingParts(
            ray=ray,
            task=ray.remote(max_retries=_RETRIES, num_cpus=1, num_gpus=int(uses_gpus))(
                _compute_part
            ),
            # A plain tuple, because a worker may have another version of RankTilt.
            job=ray.put((__version__, chosen_memory_limit(), stage)),
            most=_PARTS_PER_WORKER * (self.gpus if uses_gpus else self.workers),
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
                # Without an order, the results of the parts that workers already have are still
                # taken, because they may have cost money.
            if failure is not None:
                raise failure
        finally:
            pending.cancel()

    def _get(self, ray: Any, reference: Any) -> _PartResult:
        """Fetch the result of a part.

        It has an error if every worker that computed the part died, or its code has a bug.
        """
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
    """Yield items in lists of this size, reading them as they are needed."""
    iterator = iter(items)
    while part := list(islice(iterator, size)):
        yield part


@dataclass(kw_only=True)
class _PendingParts:
    """Parts that were sent to workers, and whose results were not fetched yet."""

    ray: Any
    """The module ``ray``."""
    task: Any
    """`_compute_part` as a task of Ray."""
    job: Any
    """Ray's reference to the first argument of `_compute_part`."""
    most: int
    """Most parts that workers have at a time."""
    ordered: bool
    """Whether results are fetched in the order of the parts."""
    references: list[Any] = field(default_factory=list)
    """Ray's references to the results of the parts, in the order of the parts."""

    def send(self, parts: Iterator[list[Any]]) -> None:
        """Send parts until the workers have as many as they may."""
        for part in islice(parts, self.most - len(self.references)):
            self.references.append(self.task.remote(self.job, part))

    def next(self) -> Any:
        """Return the reference to the result to fetch next: in order, or the first ready one."""
        if self.ordered:
            return self.references[0]
        ready, _busy = self.ray.wait(self.references)
        return ready[0]

    def cancel(self) -> None:
        """Cancel the parts that are left, if the cluster is still running."""
        if self.ray.is_initialized():
            for reference in self.references:
                self.ray.cancel(reference, force=False)


def _compute_part(job: tuple[str, int | None, Stage[Any, Any]], part: list[Any]) -> _PartResult:
    """Compute a part, on a worker.

    `job` has the version of RankTilt and the memory limit of the process that sent the part, and
    the stage.
    """
    version, memory, stage = job
    if version != __version__:
        error = UserError(f"a machine of the cluster has ranktilt {__version__}, not {version}")
        return [], [], error
    # The workers of a machine share the memory that a single process would have.
    limits = MemoryLimits(memory=max((memory or memory_limit()) // processors(), 1))
    results, failure = list[Any](), None
    with warnings.catch_warnings(record=True) as caught, limit_memory(limits):
        warnings.simplefilter("always", DataWarning)
        try:
            # The list grows as results come, so that those before a failure are kept. They may have
            # cost money.
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
        ``local``: in this process. ``ray``: on a Ray cluster of only this machine, with a worker
        for each processor (and GPU), which the block starts and stops. ``ray:ADDRESS``: on a
        running cluster to which this machine belongs; ``ray:auto`` finds it. Each machine reads
        models from the same folders as this machine. Results come back to this process, and only
        this process writes them.

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
    with context as target, use_executor(target):
        yield


@contextmanager
def _cluster(address: str | None) -> Iterator[RayExecutor]:
    """Join the cluster at an address; without one, start a cluster on this machine.

    A cluster that was started here ends with the ``with`` block.
    """
    for variable, value in _RAY_ENVIRONMENT.items():
        os.environ.setdefault(variable, value)
    name = "the Ray cluster of this machine" if address is None else f"the Ray cluster at {address}"
    ray = _ray()
    # A worker has a single processor: neither polars nor OpenBLAS may take the others (Ray itself
    # limits torch).
    passed = {name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ}
    environment = {"env_vars": {"POLARS_MAX_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **passed}}
    is_started = address is None
    try:
        _require_listener(address or "")
        ray.init(
            address=address or "local",
            runtime_env=environment,
            log_to_driver=False,
            logging_level=logging.ERROR,
            # A running cluster has its own processors and dashboard.
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
    """Refuse an address where nothing listens, to which Ray would try to connect for minutes."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdecimal():
        host = host.strip("[]")  # of an IPv6 address
        number = read_whole_number(port)
        if number is None or number > _LARGEST_PORT:
            raise ValueError(f"expected a port of at most {_LARGEST_PORT}")
        socket.create_connection((host, number), timeout=_CONTACT_SECONDS).close()


def _ray() -> Any:
    """Import Ray; `MissingExtra` if it is not installed."""
    return need("ray", extra="ray", for_="--executor ray")
