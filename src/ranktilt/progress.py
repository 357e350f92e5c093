"""Progress without a progress bar: work reports steps, whoever listens draws them, and a notebook where nobody does."""

from __future__ import annotations

import html
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ranktilt.errors import visible

Listener = Callable[[str, int, int], None]
"""Called with (label, steps done, steps in all)."""
_DELAY, _PAUSE = 0.5, 0.1
"""Seconds of work before a notebook shows it, and between two pictures of it."""

_listener: ContextVar[Listener | None] = ContextVar("ranktilt_progress", default=None)


def report(label: str, done: int, total: int) -> None:
    """Tell the listener, or else a notebook, how far some work has come; one label is one bar, over at `total`."""
    listener = _listener.get() or _notebook()
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


class NotebookBars:
    """One output of a notebook's cell that shows what is under way, redrawn in place, and is empty after it."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._lock = threading.Lock()
        self._cell: Any = None
        self._handle: Any = None
        self._begun = dict[str, float]()
        self._steps = dict[str, tuple[int, int]]()
        self._drawn = 0.0

    def __call__(self, label: str, done: int, total: int) -> None:
        """Draw a step, unless the work is young or the last picture is."""
        with self._lock:
            if (
                self._cell != self._shell.execution_count
            ):  # another cell, and maybe one that was interrupted before
                self._cell, self._handle = self._shell.execution_count, None
                self._begun.clear()
                self._steps.clear()
            now = time.monotonic()
            begun = self._begun.setdefault(label, now)
            self._steps[label] = done, total
            if done >= total:
                del self._begun[label], self._steps[label]
                if self._handle is not None:
                    self._draw(now)
            elif now - begun > _DELAY and now - self._drawn > _PAUSE:
                self._draw(now)

    def _draw(self, now: float) -> None:
        steps = [(label, done / total) for label, (done, total) in self._steps.items()]
        bars = (
            f'<div><progress value="{share:.3f}" max="1"></progress> {share:.0%} {html.escape(label)}</div>'
            for label, share in steps
        )
        words = "\n".join(f"{share:.0%} {label}" for label, share in steps)
        picture = {"text/html": "".join(bars), "text/plain": words}
        self._drawn = now
        if self._handle is None:
            self._handle = sys.modules["IPython"].display.display(
                picture, raw=True, display_id=True
            )
        else:
            self._handle.update(picture, raw=True)


_bars: NotebookBars | None = None


def _notebook() -> Listener | None:
    """What draws progress in the notebook that this process runs, None elsewhere."""
    global _bars
    if "IPython" not in sys.modules:
        return None
    shell = sys.modules["IPython"].get_ipython()
    if not hasattr(shell, "kernel"):  # none, or a terminal
        return None
    if _bars is None:
        _bars = NotebookBars(shell)
    return _bars
