"""Where parts of work are done: in this process or on the machines of a cluster, by the same code."""

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
Result = TypeVar("Result")
Stage = Callable[[Iterator[Item]], Iterator[Result]]
"""Turns a stream of items into a stream of results, in the items' order; what it holds travels with it."""


class Executor:
    """Does parts of work: this one in the process itself."""

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
        """Give the results of a stage over items, which are pulled as they are needed.

        Elsewhere a stage gets `at_once` items at a time, perhaps some again where a machine died;
        items travel, so they hold what a part needs and nothing else. Results come in the items'
        order or, where that is not asked, as soon as their part is done. A `neural` part wants a
        GPU where there are some.
        """
        yield from stage(iter(items))


_executor: ContextVar[Executor] = ContextVar("ranktilt_executor", default=Executor())  # noqa: B039 - holds nothing


def executor() -> Executor:
    """Return where work is done now."""
    return _executor.get()


@contextmanager
def working_on(place: Executor) -> Iterator[None]:
    """Let work inside the ``with`` block be done there."""
    token = _executor.set(place)
    try:
        yield
    finally:
        _executor.reset(token)


class Portable:
    """What travels to another process as what it was made of, and is made there once, with all that it loads.

    A subclass is a dataclass of hashable fields, or says in `made_of` how it was made. Where it has
    a `fingerprint`, such as the hash of a model's files, it is refused where it turns out to be
    another one there.
    """

    fingerprint: Any = None

    def made_of(self) -> dict[str, Any]:
        """Return the keywords that make an equal one."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), tuple(self.made_of().items()), self.fingerprint)


@lru_cache(maxsize=1)
def _rebuilt(
    kind: type[Any], keywords: tuple[tuple[str, Any], ...], fingerprint: str | None
) -> Any:
    found = kind(**dict(keywords))
    if found.fingerprint != fingerprint:
        raise UserError(
            f"{found.folder}: the model on {platform.node()} differs from the one on your machine; copy it there"
        )
    return found
