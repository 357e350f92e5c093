"""Progress and warnings on stderr, for a terminal and for a file."""

import io
import sys
import threading
import warnings
from collections.abc import Callable

import pytest

from ranktilt.cli import notes
from ranktilt.cli.notes import note, reporting
from ranktilt.cli.output import results
from ranktilt.errors import DataWarning
from ranktilt.progress import report


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def wait_for(seen: Callable[[], bool]) -> None:
    for _ in range(200):
        if seen():
            return
        threading.Event().wait(0.05)
    raise AssertionError("nothing was shown")


def test_a_terminal_gets_a_bar_with_the_time_left_and_stdout_the_result(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    stream = Terminal()
    monkeypatch.setattr(notes, "_DELAY", 0.1)
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


def test_quiet_shows_neither_progress_nor_warnings(capfd: pytest.CaptureFixture[str]) -> None:
    with reporting(quiet=True):
        report("work", 0, 10)
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
