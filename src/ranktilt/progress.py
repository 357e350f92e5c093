"""Progress: work reports its steps, and a listener draws them.

Without a listener a notebook draws them itself.
"""

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
"""Called with (label, number of steps done, number of all steps)."""
_DELAY = 0.5
"""Seconds of work after which a notebook shows its progress."""
_PAUSE = 0.1
"""Least seconds between two drawings."""

_listener: ContextVar[Listener | None] = ContextVar("ranktilt_progress", default=None)
"""What is told of progress; None for nobody."""


def report(label: str, done: int, total: int) -> None:
    """Report how far some work has come, to the listener or else to a notebook.

    A label has a bar, which ends at `total`.
    """
    listener = _listener.get() or _notebook()
    if listener is not None:
        listener(visible(label), done, total)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Send all progress reported inside the ``with`` block to a listener."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


class NotebookBars:
    """An output of a notebook's cell with the bars of running work.

    It is redrawn in place, and empty after the work.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._lock = threading.Lock()
        self._cell: Any = None
        self._handle: Any = None
        self._begun = dict[str, float]()
        self._steps = dict[str, tuple[int, int]]()
        self._drawn = 0.0

    def __call__(self, label: str, done: int, total: int) -> None:
        """Draw a step, unless the work or the last drawing is too young."""
        with self._lock:
            # In another cell: the cell before may have been interrupted.
            if self._cell != self._shell.execution_count:
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
        """Draw the bars of all work that is under way."""
        bars, lines = [], []
        for label, (done, total) in self._steps.items():
            share = done / total
            bar = f'<progress value="{share:.3f}" max="1"></progress>'
            bars.append(f"<div>{bar} {share:.0%} {html.escape(label)}</div>")
            lines.append(f"{share:.0%} {label}")
        drawing = {"text/html": "".join(bars), "text/plain": "\n".join(lines)}
        self._drawn = now
        if self._handle is None:
            display = sys.modules["IPython"].display.display
            self._handle = display(drawing, raw=True, display_id=True)
        else:
            self._handle.update(drawing, raw=True)


_bars: NotebookBars | None = None
"""The bars of the running cell."""


def _notebook() -> Listener | None:
    """Return the bars of the notebook that this process runs; None elsewhere."""
    global _bars
    if "IPython" not in sys.modules:
        return None
    shell = sys.modules["IPython"].get_ipython()
    if not hasattr(shell, "kernel"):  # no shell, or a terminal
        return None
    if _bars is None:
        _bars = NotebookBars(shell)
    return _bars
