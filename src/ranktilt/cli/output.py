"""Results to stdout, notes and progress to stderr."""

from __future__ import annotations

import io
import os
import re
import shlex
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar, cast

from ranktilt.cli.places import check_places
from ranktilt.errors import DataWarning, UserError, visible
from ranktilt.io.files import cannot_write, write_bytes
from ranktilt.progress import listening

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from ranktilt.cli.options import Formats

ENDINGS = {"html": (".html", ".htm"), "latex": (".tex",), "markdown": (".md",), "csv": (".csv",)}
"""How a file of each format ends."""
_Made = TypeVar("_Made")
_PATIENCE = 1.0
_BETWEEN_LINES = 10.0
_COLOURS = re.compile(r"(\x1b\[[0-9;]*m)")


class ReaderGone(Exception):
    """Whoever read stdout went away, as ``| head`` does."""


def say(text: str, *, quiet: bool = False) -> None:
    """Write a note to stderr; a note that cannot be written ends no work."""
    if not quiet:
        _note(visible(text), sys.stderr)


def _note(text: str, stream: TextIO) -> None:
    try:
        stream.write(text + "\n")
        stream.flush()
    except OSError:
        _silence(stream)


def _silence(stream: TextIO) -> None:
    """What is still buffered has nowhere to go; Python would try once more as it ends, and end in another code."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class _Terminal:
    """Standard output where it is a terminal: of what it would act on only colours are let through."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        parts = _COLOURS.split(text)
        return self._stream.write("".join(part if _COLOURS.fullmatch(part) else visible(part) for part in parts))


@contextmanager
def results() -> Iterator[TextIO]:
    """Give stdout for a result, and see to it that all of it arrives."""
    try:
        yield cast(TextIO, _Terminal(sys.stdout)) if sys.stdout.isatty() else sys.stdout
        sys.stdout.flush()
    except OSError as error:
        _silence(sys.stdout)
        if isinstance(error, BrokenPipeError):
            raise ReaderGone from error
        raise cannot_write(Path("standard output"), error) from error


def deliver(shown: str, files: Mapping[Path | str | None, Callable[[], bytes]], *more: Callable[[], object]) -> None:
    """Write a result to stdout, and then its files: what fails does not take the others with it."""

    def show() -> None:
        with results() as stream:
            stream.write(shown)

    places = [(Path(place), made) for place, made in files.items() if place is not None and str(place) != "-"]
    writers: list[Callable[[], object]] = [show, *(partial(_keep, *one) for one in places), *more]
    failed: list[Exception] = []
    for write in writers:
        try:
            write()
        except (UserError, ReaderGone) as error:
            failed.append(error)
    told = [error for error in failed if isinstance(error, UserError)] or failed
    if len(told) > 1:
        raise UserError("; ".join(map(str, told)))
    if told:
        raise told[0]


def _keep(place: Path, made: Callable[[], bytes]) -> None:
    write_bytes(place, made())


@dataclass(frozen=True)
class Output:
    """How a result is shown and kept, the same for every verb.

    Parameters
    ----------
    format : Formats
        Of what goes to stdout.
    json : str or None
        File for the whole result; ``-`` for stdout, in place of what is shown.
    quiet : bool
        Leave out legend and notes.
    page : Path or None
        File for the result as HTML.
    """

    format: Formats
    json: str | None = None
    quiet: bool = False
    page: Path | None = None

    def check(self, *, inputs: Iterable[Path] = (), more: Mapping[str, Path | str | None] | None = None) -> None:
        """Refuse files that cannot be written, or that are read too, before any work is done."""
        check_places({"--json": self.json, "-o": self.page, **(more or {})}, stdout=("--json",), inputs=inputs)
        if self.page is not None:
            check_ending(self.page, "html")

    def deliver(
        self, result: Any, files: Mapping[Path | str | None, Callable[[], bytes]] | None = None,
        *more: Callable[[], object], page: Callable[[], str] | None = None,
    ) -> None:  # fmt: skip
        """Show a result, then write its files; `page` makes the page where the result's own view is not all of it."""
        made = page or (lambda: text_of(result, "html"))
        places = {self.json: result.to_json, self.page: lambda: made().encode()}
        shown = made() if self.format == "html" and self.json != "-" else self.text(result)
        deliver(shown, {**places, **(files or {})}, *more)

    def text(self, result: Any) -> str:
        """What goes to stdout."""
        if self.json == "-" or self.format == "json":
            return cast(str, result.to_json().decode())
        return text_of(result, self.format, notes=not self.quiet)


def text_of(result: Any, format: str, *, notes: bool = True) -> str:
    """A result in one format; the table is as wide and as coloured as the terminal around it."""
    from ranktilt.reporting.output import show, table

    if format != "table":
        return table(result, format, notes=notes)
    buffer = io.StringIO()
    show(result, buffer, notes=notes, terminal=sys.stdout if sys.stdout.isatty() else None)
    return buffer.getvalue()


def with_command(result: _Made) -> _Made:
    """Note the command in a result's spec."""
    spec = {**result.spec, "command": shlex.join(["ranktilt", *sys.argv[1:]])}  # type: ignore[attr-defined]
    return replace(result, spec=spec)  # type: ignore[type-var]


def check_ending(path: Path, form: str, *, hint: str = "") -> None:
    """Refuse a name for ``-o`` that does not end as the files of a format do; `UserError` says how they do."""
    if path.suffix.lower() not in ENDINGS[form]:
        raise UserError(f"-o {path}: expected a name that ends in {' or '.join(ENDINGS[form])}, for {form}{hint}")


@contextmanager
def reporting(*, quiet: bool) -> Iterator[None]:
    """Show progress of work that takes over a second, and data warnings as one line each."""
    with warnings.catch_warnings():
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
        if quiet:
            yield
            return
        bars = _Bars() if sys.stderr.isatty() else _Lines(sys.stderr)
        try:
            with listening(bars):
                yield
        finally:
            bars.close()


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
            timer = threading.Timer(_PATIENCE, self._reveal, (label,))
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
        """Take the bars away."""
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
        if not done or now - self._last.get(label, began + _PATIENCE - _BETWEEN_LINES) < _BETWEEN_LINES:
            return
        self._last[label] = now
        left = (now - began) / done * (total - done)
        share = 100 * done / total
        _note(f"{label}: {share:.0f} %, about {int(left // 60)}:{int(left % 60):02d} left", self._stream)

    def close(self) -> None:
        """Nothing is left open."""
