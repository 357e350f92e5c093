"""Progress and warnings on stderr, for a terminal and for a file."""

import io
import re
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from ranktilt.cli import notes
from ranktilt.cli.notes import note, reporting
from ranktilt.cli.output import results
from ranktilt.errors import DataWarning
from ranktilt.progress import report
from tests.cli.conftest import Cli


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(notes, "time", made)
    return made


def lines(clock: Clock, steps: list[tuple[float, int]], total: int = 100, label: str = "encoding") -> list[str]:
    """Report steps at given seconds to a file; return what it holds."""
    stream = io.StringIO()
    listener = notes._Lines(stream)
    start = clock.now
    for second, done in steps:
        clock.now = start + second
        listener(label, done, total)
    listener.close()
    return stream.getvalue().splitlines()


def test_work_that_is_over_within_a_second_is_silent(clock: Clock) -> None:
    assert lines(clock, [(0, 0), (0.5, 50), (0.9, 100)]) == []


def test_longer_work_says_how_far_it_is_and_how_long_it_takes(clock: Clock) -> None:
    assert lines(clock, [(0, 0), (2, 25), (4, 50), (8, 100)]) == ["encoding: 25 %, about 0:06 left"]


def test_a_line_comes_every_ten_seconds(clock: Clock) -> None:
    assert lines(clock, [(0, 0), (2, 1), (5, 2), (11.9, 3), (12, 4), (21, 5), (30, 6), (1000, 100)]) == [
        "encoding: 1 %, about 3:18 left",
        "encoding: 4 %, about 4:48 left",
        "encoding: 6 %, about 7:50 left",
    ]


def test_pieces_of_work_are_told_apart(clock: Clock) -> None:
    stream = io.StringIO()
    listener = notes._Lines(stream)
    for label, second, done in (("a", 0, 0), ("b", 1, 0), ("a", 1.5, 3), ("b", 1.9, 4), ("b", 2.1, 5)):
        clock.now = 100.0 + second
        listener(label, done, 10)
    assert stream.getvalue().splitlines() == ["a: 30 %, about 0:03 left", "b: 50 %, about 0:01 left"]


def test_the_command_reports_progress_to_a_file(cli: Cli, toy_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes, "_DELAY", 0.0)
    monkeypatch.setattr(notes, "_BETWEEN_LINES", 0.0)
    loud = cli("audit", toy_folder, "-r", "bm25", "--resamples", "100")
    found = [line for line in loud.err.splitlines() if line.startswith("bm25: ranking: ")]
    assert [re.sub(r"\d+:\d\d", "m:ss", line) for line in found] == [
        "bm25: ranking: 33 %, about m:ss left",
        "bm25: ranking: 67 %, about m:ss left",
    ]
    assert cli("audit", toy_folder, "-r", "bm25", "--resamples", "100", "--quiet").err == ""


def wait_for(seen: Callable[[], bool]) -> None:
    for _ in range(200):
        if seen():
            return
        threading.Event().wait(0.05)
    raise AssertionError("nothing was shown")


def test_a_terminal_gets_a_bar_with_the_time_left_and_stdout_the_result(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("LINES", "20")
    with reporting(quiet=False):
        report("quick", 0, 10)
        report("quick", 10, 10)
        report("dense:[model]: encoding", 0, 10)
        wait_for(lambda: "encoding" in stream.getvalue())  # a long first step shows its bar all the same
        report("dense:[model]: encoding", 5, 10)
        with results() as out:
            out.write("the result\n")
    shown = stream.getvalue()
    assert capfd.readouterr().out == "the result\n", "a bar that stands would catch it"
    assert "the result" not in shown
    assert "quick" not in shown
    assert "dense:[model]: encoding" in shown
    assert "50%" in shown


def test_quiet_shows_neither_progress_nor_warnings(clock: Clock, capfd: pytest.CaptureFixture[str]) -> None:
    with reporting(quiet=True):
        report("work", 0, 10)
        clock.now += 60
        report("work", 5, 10)
        warnings.warn("something", DataWarning, stacklevel=1)
        note("a note")
    assert capfd.readouterr() == ("", "")


def test_a_warning_about_data_is_a_line(capfd: pytest.CaptureFixture[str]) -> None:
    with reporting(quiet=False):
        for _ in range(2):
            warnings.warn("3 documents have no twin", DataWarning, stacklevel=1)
    assert capfd.readouterr().err == "warning: 3 documents have no twin\n" * 2


def test_other_warnings_are_shown_as_ever() -> None:
    before = warnings.showwarning
    with pytest.warns(UserWarning, match="of others"), reporting(quiet=False):
        warnings.warn("of others", UserWarning, stacklevel=1)
    assert warnings.showwarning is before


def test_a_label_that_begins_again_is_timed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, stream = [0.0], io.StringIO()
    monkeypatch.setattr(notes.time, "monotonic", lambda: clock[0])
    lines = notes._Lines(stream)
    for now, done in ((0.0, 0), (50.0, 50), (100.0, 100), (1000.0, 0), (1020.0, 50)):
        clock[0] = now
        lines("work", done, 100)
    assert stream.getvalue() == "work: 50 %, about 0:50 left\nwork: 50 %, about 0:20 left\n"
