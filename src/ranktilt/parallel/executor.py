"""Where parts of work are done: in this process or on a cluster, by the same code."""

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
"""What is sent to a worker."""
Result = TypeVar("Result")
Stage = Callable[[Iterator[Item]], Iterator[Result]]
"""Turns a stream of items into a stream of results, in the items' order.

On a cluster its fields are sent along.
"""


class Executor:
    """Does parts of work; this class does them in the process itself."""

    workers: int = 1
    """Parts that can be done at the same time; with one, callers need not divide their work."""

    def map(
        self,
        stage: Stage[Item, Result],
        items: Iterable[Item],
        *,
        at_once: int = 1,
        ordered: bool = True,
        neural: bool = False,
    ) -> Generator[Result, None, None]:
        """Yield the results of a stage over items, which are pulled as they are needed.

        On a cluster a stage gets `at_once` items at a time, and some again if a machine died. Items
        are sent over the network, so they hold what a part needs and nothing else. Results come in
        the items' order if `ordered`, else as soon as their part is done. A `neural` part uses a
        GPU if there are any.
        """
        yield from stage(iter(items))


_executor: ContextVar[Executor] = ContextVar(
    "ranktilt_executor",
    default=Executor(),  # noqa: B039
)
"""The executor in use; an executor holds nothing, so that all threads may share the default."""


def executor() -> Executor:
    """Return the executor of the present ``with`` block."""
    return _executor.get()


@contextmanager
def working_on(target: Executor) -> Iterator[None]:
    """Let work inside the ``with`` block be done by an executor."""
    token = _executor.set(target)
    try:
        yield
    finally:
        _executor.reset(token)


class Portable:
    """An object that is sent to another process as its keywords, and is made and loaded there once.

    A subclass is a dataclass of hashable fields, or returns its keywords in `made_of`. If it has a
    `fingerprint`, such as the hash of a model's files, the object made there must have the same.
    """

    fingerprint: Any = None
    """Hash by which another machine tells whether it has the same model."""

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
    """Make an object of its keywords again; `UserError` where its model is another one here."""
    rebuilt = kind(**dict(keywords))
    if rebuilt.fingerprint != fingerprint:
        raise UserError(
            f"{rebuilt.folder}: the model on {platform.node()} differs from the one on your "
            "machine; copy it there"
        )
    return rebuilt
