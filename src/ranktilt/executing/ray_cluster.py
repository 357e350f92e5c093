"""A Ray cluster as the place where parts of work are done; no other module knows Ray."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import warnings
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from ranktilt._version import __version__
from ranktilt.errors import DataWarning, UserError
from ranktilt.executing.executor import Executor, Item, Result, Stage
from ranktilt.executing.memory_limits import processors
from ranktilt.optional import need

_RETRIES = 3
"""How often a part is done again whose worker died."""
_PARTS_A_WORKER = 2
"""Parts under way: one that is done, and one that waits, so that no worker does."""
_TURN = 0.5
_ENVIRONMENT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
_PASSED_ON = ("HF_HUB_OFFLINE", "OPENAI_BASE_URL")
_AGAIN = "what was done is kept: run it again"


class _Part(NamedTuple):
    """What a worker makes of some items, what it warns of, and why there is no more of it."""

    results: list[Any]
    warnings: list[str]
    error: str | None

    def finish(self) -> None:
        """Say here what was said there."""
        for message in self.warnings:
            warnings.warn(message, DataWarning, stacklevel=3)
        if self.error is not None:
            raise UserError(self.error)


@dataclass(frozen=True)
class RayExecutor(Executor):
    """The workers of a cluster: one a processor, or one a GPU where work is neural and there are some."""

    name: str
    workers: int
    gpus: int

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
        ray = _ray()
        gpu = neural and self.gpus > 0
        task = ray.remote(max_retries=_RETRIES, max_calls=0, num_cpus=1, num_gpus=int(gpu))(_do)
        most = _PARTS_A_WORKER * (self.gpus if gpu else self.workers)
        waiting, done, following = dict[Any, int](), dict[int, _Part](), 0
        try:
            held = ray.put((__version__, stage))
            parts = enumerate(_divided(items, at_once))
            while True:
                for number, part in islice(parts, max(most - len(waiting) - len(done), 0)):
                    waiting[task.remote([held], part)] = number
                if not waiting:
                    break
                for ref in ray.wait(list(waiting), timeout=_TURN)[0]:
                    done[waiting.pop(ref)] = ray.get(ref)
                while following in done or (done and not ordered):
                    found = done.pop(following if ordered else next(iter(done)))
                    following += 1
                    yield from found.results
                    found.finish()
        except ray.exceptions.RayTaskError as error:
            raise self._failed(error) from error
        except (ray.exceptions.RayError, ConnectionError) as error:
            raise UserError(f"{self.name} failed ({type(error).__name__}: {_first(error)}); {_AGAIN}") from error
        finally:
            for ref in waiting:
                with suppress(Exception):  # the cluster may be gone
                    ray.cancel(ref, force=False)

    def _failed(self, error: Any) -> Exception:
        """What a part's own failure says: that the other machine is not as this one, or the error as it is here."""
        cause = error.cause if isinstance(error.cause, Exception) else error
        if isinstance(cause, ModuleNotFoundError | AttributeError) and "ranktilt" in str(cause):
            return UserError(f"{self.name}: a machine's ranktilt is missing or another version, not {__version__}")
        return cause


def _divided(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    source = iter(items)
    while part := list(islice(source, size)):
        yield part


def _do(held: list[Any], items: list[Any]) -> _Part:
    """Do a part, on a worker; what is the same for all parts is fetched once."""
    results, failure = list[Any](), None
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", DataWarning)
        try:
            results.extend(_stage(held[0])(iter(items)))  # as they come: what was paid for is kept where a later fails
        except UserError as error:
            failure = str(error)
    return _Part(results, [str(one.message) for one in found if issubclass(one.category, DataWarning)], failure)


_last: list[tuple[Any, Any]] = []


def _stage(ref: Any) -> Any:
    if not _last or _last[0][0] != ref:
        _last.clear()
        version, stage = _ray().get(ref)
        if version != __version__:
            raise UserError(f"a machine of the cluster has ranktilt {__version__}, not {version}")
        _last.append((ref, stage))
    return _last[0][1]


def _first(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "no reason given")


@contextmanager
def cluster(address: str | None) -> Iterator[RayExecutor]:
    """Join the cluster at an address, or start one on this machine, with a folder of its own, and end it."""
    ray = _ray()
    if ray.is_initialized():
        raise UserError("this process is part of a Ray cluster already; leave that one first (ray.shutdown())")
    folder = Path(tempfile.mkdtemp(prefix="ray-")) if address is None else None
    own = {"num_cpus": processors(), "include_dashboard": False, "_temp_dir": str(folder)}
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    # A worker is one processor's: neither torch (to which Ray says so itself) nor polars may take the others.
    environment = {"env_vars": {"POLARS_MAX_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **passed}}
    where = "Ray" if address is None else f"the Ray cluster at {address}"
    try:
        try:
            ray.init(
                address=address, runtime_env=environment, log_to_driver=False, logging_level=logging.ERROR,
                **({} if folder is None else own),
            )  # fmt: skip
        except (ConnectionError, RuntimeError, ValueError, OSError, ray.exceptions.RayError) as error:
            start = "can it start processes here?" if address is None else "is it up, and this machine one of it?"
            raise UserError(f"{where} does not answer: {_first(error)}; {start}") from error
        resources = ray.cluster_resources()
        yield RayExecutor(where, max(int(resources.get("CPU", 1)), 1), int(resources.get("GPU", 0)))
    finally:
        ray.shutdown()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _ray() -> Any:
    os.environ.update({name: os.environ.get(name, value) for name, value in _ENVIRONMENT.items()})
    ray = need("ray", extra="ray", for_="--on ray")
    logging.getLogger("ray").setLevel(logging.ERROR)
    with suppress(AttributeError):  # Ray prints what its machines say to stdout, where results go
        ray._private.worker.print_to_stdstream = lambda *_, **__: None
    return ray
