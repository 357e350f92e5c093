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
from functools import cached_property
from typing import TYPE_CHECKING, Any, TextIO

from ranktilt.errors import DataWarning, visible
from ranktilt.progress import listening

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from rich.table import Table

    from ranktilt.data.collection import Collection

_DELAY = 1.0
"""Seconds until a piece of work gets a bar."""
_LINE_PAUSE = 30.0
"""Seconds between two lines of progress, where stderr is a file or a pipe."""
_noted: ContextVar[list[str]] = ContextVar("noted")
"""Notes that were printed, so that each is printed once."""
_quiet: ContextVar[bool] = ContextVar("quiet", default=False)
"""Whether nothing is printed."""
_bars: ContextVar[_Bars | None] = ContextVar("bars", default=None)
"""The bars of the running command."""


def is_quiet() -> bool:
    """Whether notes are left out (``--quiet``)."""
    return _quiet.get()


def note(text: str) -> None:
    """Write a note to stderr, unless ``--quiet`` leaves notes out."""
    if not is_quiet():
        say(text)


def note_once(text: str) -> None:
    """Write a note that several parts of a command have cause for."""
    if text not in _noted.get():
        _noted.get().append(text)
        note(text)


def say(text: str) -> None:
    """Write a line to stderr; one that cannot be written ends no work."""
    try:
        sys.stderr.write(visible(text) + "\n")
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr)


def silence(stream: TextIO) -> None:
    """Throw away what is still buffered for a stream that nobody reads.

    Python would try to write it once more as it ends, and end in another code.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def reporting(*, quiet: bool) -> Iterator[None]:
    """Print each data warning in one line, and progress; nothing if quiet is asked for.

    A terminal shows bars; a log or a pipe gets a line now and then.
    """
    token = _quiet.set(quiet)
    _noted.set([])
    try:
        with warnings.catch_warnings():
            _one_line_each(quiet)
            if quiet:
                yield
                return
            if not sys.stderr.isatty():
                with listening(ProgressLines()):
                    yield
                return
            bars = _Bars()
            bars_token = _bars.set(bars)
            try:
                with listening(bars):
                    yield
            finally:
                bars.close()
                _bars.reset(bars_token)
    finally:
        _quiet.reset(token)


def end_progress() -> None:
    """Remove the bars for good: an open bar catches what is written to stdout."""
    bars = _bars.get()
    if bars is not None:
        bars.close()


def _one_line_each(quiet: bool) -> None:
    """Show warnings about data as notes; all others as usual."""
    warnings.simplefilter("ignore" if quiet else "always", DataWarning)
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, DataWarning):
            say(f"warning: {message}")
        else:
            usual(message, category, *where, **more)

    warnings.showwarning = show


class ProgressLines:
    """A plain line every half minute about the work that goes on.

    Work of less than half a minute writes none, so that logs of short commands stay as they are.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begun = self._written = time.monotonic()

    def __call__(self, label: str, done: int, total: int) -> None:
        """Write how far the work has come, unless the last line is too young."""
        with self._lock:
            now = time.monotonic()
            if now - self._written < _LINE_PAUSE or total <= 0:
                return
            self._written = now
        say(f"{label}: {done / total:.0%} done, {_minutes(now - self._begun)} since the start")


def _minutes(seconds: float) -> str:
    """Return a time as ``40 s`` or ``2 min 10 s``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


class _Bars:
    """A bar with an ETA for each piece of work that is not over within a second."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tasks: dict[str, TaskID] = {}
        self._closed = False

    def __call__(self, label: str, done: int, total: int) -> None:
        with self._lock:
            if self._closed:
                return
            if label not in self._tasks:
                self._progress.start()
                self._tasks[label] = self._progress.add_task(label, total=total)
            self._progress.update(self._tasks[label], completed=done)
            if done >= total:
                self._progress.remove_task(self._tasks.pop(label))

    @cached_property
    def _progress(self) -> Progress:
        """The bars on a terminal, which are started on first use."""
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeRemainingColumn,
        )

        class Long(Progress):
            def get_renderables(self) -> Iterator[Table]:
                yield self.make_tasks_table(
                    [task for task in self.tasks if (task.elapsed or 0.0) > _DELAY]
                )

        text = TextColumn("{task.description}", markup=False)
        columns = (text, BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        return Long(
            *columns, console=Console(stderr=True), transient=True, speed_estimate_period=300
        )

    def close(self) -> None:
        """Remove the bars."""
        with self._lock:
            self._closed = True
            if "_progress" in vars(self):
                self._progress.stop()


def groups_to_audit(collection: Collection) -> list[str] | None:
    """Return the words that ``ranktilt audit`` needs to group a collection.

    A collection of one source, or of none, is measured as a whole, for which it needs judgments:
    None where it has none.
    """
    if len(collection.sources) > 1:
        return []
    return ["--by", "none"] if collection.qrels.height else None
