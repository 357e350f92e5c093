"""What stands on stderr: notes, warnings about data, and the progress of work that takes long."""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TextIO

from ranktilt.errors import DataWarning, visible
from ranktilt.progress import listening

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_DELAY = 1.0
_BETWEEN_LINES = 10.0
_quiet: ContextVar[bool] = ContextVar("quiet", default=False)
_shown: ContextVar[_Bars | _Lines | None] = ContextVar("shown", default=None)


def is_quiet() -> bool:
    """Whether notes are left out (``--quiet``)."""
    return _quiet.get()


def note(text: str) -> None:
    """Write a note to stderr, unless ``--quiet`` leaves notes out."""
    if not is_quiet():
        say(text)


def say(text: str) -> None:
    """Write a line to stderr; one that cannot be written ends no work."""
    _write(visible(text), sys.stderr)


def _write(text: str, stream: TextIO) -> None:
    try:
        stream.write(text + "\n")
        stream.flush()
    except OSError:
        silence(stream)


def silence(stream: TextIO) -> None:
    """What is still buffered has nowhere to go; Python would try once more as it ends, and end in another code."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def reporting(*, quiet: bool) -> Iterator[None]:
    """Show progress of work that takes over a second, and data warnings as one line each; nothing where quiet."""
    token = _quiet.set(quiet)
    try:
        with warnings.catch_warnings():
            _one_line_each(quiet)
            if quiet:
                yield
                return
            bars = _Bars() if sys.stderr.isatty() else _Lines(sys.stderr)
            shown = _shown.set(bars)
            try:
                with listening(bars):
                    yield
            finally:
                bars.close()
                _shown.reset(shown)
    finally:
        _quiet.reset(token)


def end_progress() -> None:
    """Take bars away for good: while they stand, they catch what is written to stdout."""
    bars = _shown.get()
    if bars is not None:
        bars.close()


def _one_line_each(quiet: bool) -> None:
    """Show warnings about data as notes; all others as usual."""
    warnings.simplefilter("ignore" if quiet else "always", DataWarning)
    usual = warnings.showwarning

    def show(
        message: Warning | str, category: type[Warning], filename: str, lineno: int, *rest: Any, **more: Any
    ) -> None:
        if issubclass(category, DataWarning):
            say(f"warning: {message}")
        else:
            usual(message, category, filename, lineno, *rest, **more)

    warnings.showwarning = show


class _Bars:
    """A bar with an ETA for each piece of work that is not over within a second."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state: dict[str, tuple[int, int]] = {}
        self._tasks: dict[str, TaskID] = {}
        self._progress: Progress | None = None
        self._closed = False

    def __call__(self, label: str, done: int, total: int) -> None:
        with self._lock:
            before, of = self._state.get(label, (0, 0))
            new = before >= of  # never seen, or over and begun again, such as for another collection
            self._state[label] = (done, total)
            if label in self._tasks and self._progress is not None:
                self._progress.update(self._tasks[label], completed=done, total=total)
        if new and done < total:
            # The first step may take long (a model is loaded): the bar does not wait for the second.
            timer = threading.Timer(_DELAY, self._reveal, (label,))
            timer.daemon = True
            timer.start()

    def _reveal(self, label: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        with self._lock:
            done, total = self._state[label]
            if self._closed or done >= total:
                return
            if self._progress is None:
                columns = (
                    TextColumn("{task.description}", markup=False),
                    BarColumn(),
                    TaskProgressColumn(),
                    TimeRemainingColumn(),
                )
                console = Console(stderr=True)
                self._progress = Progress(*columns, console=console, transient=True, speed_estimate_period=300)
                self._progress.start()
            self._tasks[label] = self._progress.add_task(label, total=total, completed=done)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._progress is not None:
                self._progress.stop()


class _Lines:
    """The same for a file or pipe: a line now and then."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._started: dict[str, float] = {}
        self._last: dict[str, float] = {}

    def __call__(self, label: str, done: int, total: int) -> None:
        now = time.monotonic()
        began = self._started.setdefault(label, now)
        if done >= total:
            self._started.pop(label)  # the same label may begin again, such as for another collection
            self._last.pop(label, None)
            return
        if not done or now - self._last.get(label, began + _DELAY - _BETWEEN_LINES) < _BETWEEN_LINES:
            return
        self._last[label] = now
        left = (now - began) / done * (total - done)
        share = 100 * done / total
        _write(f"{label}: {share:.0f} %, about {int(left // 60)}:{int(left % 60):02d} left", self._stream)

    def close(self) -> None:
        """Nothing is left open."""
