"""Executors compute work in this process or on a cluster, with the same code.

Work is a *stage*, a function from a stream of items to a stream of results. On a cluster the items
are divided into *parts*, each of which a worker computes.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields
from functools import lru_cache
from typing import Any, TypeVar

from ranktilt.errors import UserError

Item = TypeVar("Item")
"""Input of a stage, which is sent to a worker."""
Result = TypeVar("Result")
"""Output of a stage, which a worker sends back."""
Stage = Callable[[Iterator[Item]], Iterator[Result]]
"""Function from a stream of items to a stream of results, in the items' order.

If it is an object with fields, these are sent to the workers of a cluster too.
"""


class Executor:
    """Computes stages; this class computes them in the process itself."""

    workers: int = 1
    """Number of parts that can be computed at the same time."""

    def map(
        self,
        stage: Stage[Item, Result],
        items: Iterable[Item],
        *,
        at_once: int = 1,
        ordered: bool = True,
        neural: bool = False,
    ) -> Generator[Result, None, None]:
        """Yield the results of a stage over items.

        Parameters
        ----------
        stage : callable
            The stage. On a cluster it is called for each part, and again for a part whose machine
            died.
        items : iterable
            Items, which are read as they are needed. On a cluster they are sent over the network,
            so they should have no more than the stage needs.
        at_once : int, optional
            Number of items of a part on a cluster.
        ordered : bool, optional
            Whether results come in the items' order, or as soon as their part is computed.
        neural : bool, optional
            Whether the stage runs a neural model, so that it uses a GPU if the cluster has any.
        """
        yield from stage(iter(items))


_executor: ContextVar[Executor] = ContextVar(
    "ranktilt_executor",
    default=Executor(),  # noqa: B039
)
"""The executor in use; an executor has no state, so that all threads may share the default."""


def executor() -> Executor:
    """Return the executor of the present ``with`` block."""
    return _executor.get()


@contextmanager
def use_executor(target: Executor) -> Iterator[None]:
    """Let an executor compute all work within the ``with`` block."""
    token = _executor.set(target)
    try:
        yield
    finally:
        _executor.reset(token)


class Portable:
    """An object, such as a model, that another process makes anew from the same keywords.

    Only the keywords are sent. A subclass is a dataclass of hashable fields, or returns its
    keywords in `made_of`.
    """

    fingerprint: Any = None
    """Hash of the model's files, which must be the same on the other machine; None for no check."""

    def made_of(self) -> dict[str, Any]:
        """Return the keywords that make an equal object."""
        names = [field.name for field in fields(self)]  # type: ignore[arg-type]
        return {name: getattr(self, name) for name in names}

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), tuple(self.made_of().items()), self.fingerprint)


@lru_cache(maxsize=1)
def _rebuilt(
    kind: type[Any], keywords: tuple[tuple[str, Any], ...], fingerprint: str | None
) -> Any:
    """Make an object from its keywords; `UserError` if this machine has another model for them.

    The latest object is kept, because every part needs it.
    """
    rebuilt = kind(**dict(keywords))
    if rebuilt.fingerprint != fingerprint:
        raise UserError(
            f"{rebuilt.folder}: the model on {platform.node()} differs from the one on your "
            "machine; copy it there"
        )
    return rebuilt
