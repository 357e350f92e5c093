"""Progress without a progress bar: work reports steps, whoever listens draws them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ranktilt.errors import visible

Listener = Callable[[str, int, int], None]
"""Called with (label, steps done, steps in all)."""

_listener: ContextVar[Listener | None] = ContextVar("ranktilt_progress", default=None)


def report(label: str, done: int, total: int) -> None:
    """Tell the listener, if there is one, how far a piece of work has come; one label is one bar, over at `total`."""
    listener = _listener.get()
    if listener is not None:
        listener(visible(label), done, total)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Send all progress reported inside the ``with`` block, as (label, done, total), to `listener`."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
