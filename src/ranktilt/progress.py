"""Progress: work reports its steps, and a listener draws them as progress bars.

The command line sets a listener that draws in the terminal. Without a listener, the bars are drawn
in the output of a notebook's cell, if the process runs a notebook, and else not at all.
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

from ranktilt.errors import escape_invisible

Listener = Callable[[str, int, int], None]
"""Function of a label, the number of steps that are done, and the number of all steps."""
_DELAY = 0.5
"""Seconds of work after which a notebook shows its progress; shorter work would only flicker."""
_PAUSE = 0.1
"""Fewest seconds between two drawings, so that drawing takes little of the time."""

_listener: ContextVar[Listener | None] = ContextVar("ranktilt_progress", default=None)
"""The listener that draws progress; None if there is no listener."""


def report(label: str, done: int, total: int) -> None:
    """Report how far some work has come, to the listener or else to a notebook.

    Parameters
    ----------
    label : str
        What is done, such as ``reading documents``. Each label has a bar of its own.
    done, total : int
        Number of steps that are done, and of all steps. The work ends once both are equal.
    """
    listener = _listener.get() or _notebook()
    if listener is not None:
        listener(escape_invisible(label), done, total)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Send all progress reported inside the ``with`` block to a listener."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


class NotebookBars:
    """The output of a notebook's cell with the bars of running work.

    It is redrawn in place, and empty after the work. `shell` is IPython's shell.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._lock = threading.Lock()
        # Number of the cell that runs, and IPython's handle, by which its output is redrawn.
        self._cell: Any = None
        self._handle: Any = None
        # By label: the time at which its work began, and its numbers of done and of all steps.
        self._start_times = dict[str, float]()
        self._steps = dict[str, tuple[int, int]]()
        self._last_drawing = 0.0

    def __call__(self, label: str, done: int, total: int) -> None:
        """Note a step, and redraw the bars if it is time to.

        It is not before the work has taken `_DELAY` seconds, or within `_PAUSE` seconds of the last
        drawing. The end of work that has a bar is always drawn, so that the bar goes away.
        """
        with self._lock:
            # A new cell has an output of its own. The cell before it may have been interrupted, so
            # that its work did not end.
            if self._cell != self._shell.execution_count:
                self._cell, self._handle = self._shell.execution_count, None
                self._start_times.clear()
                self._steps.clear()
            now = time.monotonic()
            start_time = self._start_times.setdefault(label, now)
            self._steps[label] = done, total
            if done >= total:
                del self._start_times[label], self._steps[label]
                if self._handle is not None:
                    self._draw(now)
            elif now - start_time > _DELAY and now - self._last_drawing > _PAUSE:
                self._draw(now)

    def _draw(self, now: float) -> None:
        """Draw the bars of all work that has not ended; `now` is the present time."""
        bars, lines = [], []
        for label, (done, total) in self._steps.items():
            share = done / total
            bar = f'<progress value="{share:.3f}" max="1"></progress>'
            bars.append(f"<div>{bar} {share:.0%} {html.escape(label)}</div>")
            lines.append(f"{share:.0%} {label}")
        drawing = {"text/html": "".join(bars), "text/plain": "\n".join(lines)}
        self._last_drawing = now
        if self._handle is None:
            display = sys.modules["IPython"].display.display
            self._handle = display(drawing, raw=True, display_id=True)
        else:
            self._handle.update(drawing, raw=True)


_bars: NotebookBars | None = None
"""The bars of the notebook; None before the first progress."""


def _notebook() -> Listener | None:
    """Return the bars of the notebook that this process runs; None if it runs no notebook."""
    global _bars
    if "IPython" not in sys.modules:
        return None
    shell = sys.modules["IPython"].get_ipython()
    if not hasattr(shell, "kernel"):  # there is no shell, or it runs in a terminal
        return None
    if _bars is None:
        _bars = NotebookBars(shell)
    return _bars
