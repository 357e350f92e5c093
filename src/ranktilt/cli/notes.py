"""What is printed on stderr: notes, warnings about data, and the progress of long work.

Results go to stdout (`output`), so that a pipe gets them alone. Long work anywhere in the package
reports how far it is through `ranktilt.progress`; `reporting` shows it as bars or lines.
"""

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

from ranktilt.errors import DataWarning, escape_invisible
from ranktilt.progress import listening

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from rich.table import Table

    from ranktilt.data.collection import Collection

_BAR_DELAY = 1.0
"""Seconds after which a piece of work gets a bar."""
_LINE_PAUSE = 30.0
"""Seconds between two lines of progress, where stderr is a file or a pipe."""
_printed_notes: ContextVar[list[str]] = ContextVar("printed_notes")
"""Notes of `note_once` that the running command has printed."""
_quiet: ContextVar[bool] = ContextVar("quiet", default=False)
"""Whether notes and progress are left out."""
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
    """Write a note, unless the running command has written it before."""
    if text not in _printed_notes.get():
        _printed_notes.get().append(text)
        note(text)


def say(text: str) -> None:
    """Write a line to stderr; go on where it cannot be written."""
    try:
        sys.stderr.write(escape_invisible(text) + "\n")
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr)


def silence(stream: TextIO) -> None:
    """Send what is still buffered for a stream to nowhere, where nobody reads the stream.

    Otherwise Python would try to write it again at its end, fail, and return another exit code.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def reporting(*, quiet: bool) -> Iterator[None]:
    """Print each warning about data in one line, and progress, while this is open.

    A terminal shows bars; a log or a pipe gets a line every half minute. With `quiet`, nothing is
    printed.
    """
    token = _quiet.set(quiet)
    _printed_notes.set([])
    try:
        with warnings.catch_warnings():
            _show_data_warnings(quiet)
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


def _show_data_warnings(quiet: bool) -> None:
    """Show warnings about data as notes, unless `quiet`; all other warnings as Python does."""
    warnings.simplefilter("ignore" if quiet else "always", DataWarning)
    show_as_python = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *source: Any, **options: Any) -> None:
        if issubclass(category, DataWarning):
            say(f"warning: {message}")
        else:
            show_as_python(message, category, *source, **options)

    warnings.showwarning = show


class ProgressLines:
    """A plain line every half minute about the work that goes on.

    Work of less than half a minute writes none, so that logs of short commands stay as they are.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._start = self._last_line = time.monotonic()

    def __call__(self, label: str, done: int, total: int) -> None:
        """Write how much of the work is done, unless the last line is less than a pause ago."""
        with self._lock:
            now = time.monotonic()
            if now - self._last_line < _LINE_PAUSE or total <= 0:
                return
            self._last_line = now
        say(f"{label}: {done / total:.0%} done, {_minutes(now - self._start)} since the start")


def _minutes(seconds: float) -> str:
    """Return a time as ``40 s`` or ``2 min 10 s``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


class _Bars:
    """A bar with the remaining time for each piece of work that takes more than a second."""

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

        class DelayedProgress(Progress):
            def get_renderables(self) -> Iterator[Table]:
                yield self.make_tasks_table(
                    [task for task in self.tasks if (task.elapsed or 0.0) > _BAR_DELAY]
                )

        text = TextColumn("{task.description}", markup=False)
        columns = (text, BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        # rich forgets steps that are older than this. With its usual 30 seconds, work whose steps
        # take longer would get no remaining time.
        return DelayedProgress(
            *columns, console=Console(stderr=True), transient=True, speed_estimate_period=300
        )

    def close(self) -> None:
        """Remove the bars."""
        with self._lock:
            self._closed = True
            # The bars exist once the cached property was read.
            if "_progress" in vars(self):
                self._progress.stop()


def groups_to_audit(collection: Collection) -> list[str] | None:
    """Return the options with which ``ranktilt audit`` groups a collection; None if it cannot.

    Documents of several sources are grouped by source, which needs no option. With one source or
    none there are no groups (``--by none``), and only judgments leave something to measure.
    """
    if len(collection.sources) > 1:
        return []
    return ["--by", "none"] if collection.qrels.height else None
