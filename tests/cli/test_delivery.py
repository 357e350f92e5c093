"""A result is shown and written in one way, whichever verb found it, with progress and warnings
beside it.
"""

import json
import shlex
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from ranktilt import (
    Audit,
    CheckResult,
    Comparison,
    Explanation,
    Gate,
    SourceAudits,
)
from ranktilt.cli import notes
from ranktilt.cli.notes import note, reporting
from ranktilt.cli.output import file_names, results
from ranktilt.errors import DataWarning
from ranktilt.progress import report
from ranktilt.reporting.output import table
from tests.auditing.arrays import two_group_audit
from tests.cli.conftest import Cli, refused
from tests.reporting.readers import Terminal
from tests.toy import full_device, no_permission, raw_docs, write_cocktail

TILE = np.tile([0.9, 0.7, 0.8], 12)
QUICK = ("-r", "bm25", "--set", "statistics.resamples=100")


class Verb(NamedTuple):
    """A command that is quickly done, and what it finds."""

    words: tuple[str, ...]
    result: Any
    code: int = 0


VERBS = {
    "audit": Verb(("{toy}", *QUICK, "-m", "nDCG@3"), Audit),
    "check": Verb(("{toy}",), CheckResult, 1),
    "compare": Verb(("{new}", "{old}", "--set", "statistics.resamples=100"), Comparison),
    "explain": Verb(("{toy}", "--probe", "overlap"), Explanation),
    "gate": Verb(("{new}",), Gate, 1),
    "audit of sources": Verb(("{hot}", *QUICK, "-m", "nDCG@3"), SourceAudits),
    "check -r bm25": Verb(("{toy}",), CheckResult, 1),
}
PAGES = ("audit", "audit of sources", "check -r bm25")
each_verb = pytest.mark.parametrize("verb", VERBS)


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A collection and two audits, which nothing changes."""
    folder, hot = (
        tmp_path_factory.mktemp("inputs"),
        {f"llm-tmp{t}": raw_docs("llm") for t in ("0.2", "1.0")},
    )
    return {
        "toy": write_cocktail(folder / "toy"),
        "hot": write_cocktail(folder / "hot", corpora={"human": raw_docs(), **hot}),
        "new": two_group_audit(0.5 * TILE, TILE, runs=["dense"]).save(folder / "new.json"),
        "old": two_group_audit(0.9 * TILE, TILE, runs=["bm25"]).save(folder / "old.json"),
    }


@pytest.fixture
def command(inputs: dict[str, Path], verb: str) -> list[str]:
    return [
        *verb.removesuffix(" of sources").split(),
        *(word.format(**inputs) for word in VERBS[verb].words),
    ]


@each_verb
@pytest.mark.parametrize("form", ["table", "markdown", "csv"])
def test_printed_result_is_the_librarys(
    cli: Cli, command: list[str], verb: str, form: str, tmp_path: Path
) -> None:
    file = tmp_path / "new folder" / "found.json"
    arguments = [*command, "--format", form, "--json", str(file)]
    result = cli(*arguments)
    loaded = VERBS[verb].result.load(file)
    assert (result.code, result.err) == (VERBS[verb].code, "")
    assert result.out == table(loaded, form)
    assert loaded.spec["command"] == shlex.join(["ranktilt", *arguments])
    if form == "table":
        assert cli(*command, "--quiet").out == table(loaded, notes=False)


@each_verb
def test_json_to_stdout_is_all_there_is(cli: Cli, command: list[str], verb: str) -> None:
    first, second = cli(*command, "--json", "-"), cli(*command, "--format", "json")
    assert first[::2] == second[::2] == (VERBS[verb].code, "")
    contents = [json.loads(result.out) for result in (first, second)]
    assert contents[0].pop("spec").keys() == contents[1].pop("spec").keys()
    assert contents[0].pop("sha256") != contents[1].pop("sha256"), "each holds its own command"
    assert contents[0] == contents[1]


@pytest.mark.parametrize("verb", PAGES)
def test_a_page_is_written_beside_what_is_printed(
    cli: Cli, command: list[str], tmp_path: Path
) -> None:
    page = tmp_path / "new folder" / "page.html"
    result = cli(*command, "-o", page)
    assert (result.err, page.read_text()[:15].lower()) == ("", "<!doctype html>")
    assert "bm25" in page.read_text()
    assert "bm25" in result.out
    assert cli(*command, "--format", "html").out[:15].lower() == "<!doctype html>"


@each_verb
def test_a_place_that_cannot_be_is_refused(
    cli: Cli, command: list[str], verb: str, tmp_path: Path
) -> None:
    read = next(Path(word) for word in command if Path(word).is_absolute())
    read = read if read.is_file() else read / "queries.jsonl"
    before = read.read_bytes()
    for path, message in (
        (tmp_path, f"--json {tmp_path}: expected a file, got a folder"),
        (read, f"--json {read}: this file is read too; choose another file"),
        (read / "x", str(read)),
    ):
        assert refused(cli, *command, "--json", path).startswith(message)
    if verb in PAGES:
        assert (
            refused(cli, *command, "-o", "-")
            == "-o writes a file; standard output (-) is for --json"
        )
        assert (
            refused(cli, *command, "-o", read)
            == f"-o {read}: this file is read too; choose another file"
        )
        message = "-o page.txt: expected a name that ends in .html or .htm, for html"
        assert refused(cli, *command, "-o", "page.txt") == message
    assert read.read_bytes() == before


@pytest.mark.parametrize("verb", ["audit", "gate"])
def test_a_folder_that_cannot_be_written_is_found_first(
    cli: Cli, command: list[str], tmp_path: Path
) -> None:
    (folder := tmp_path / "locked").mkdir()
    with no_permission(folder):
        message = refused(cli, *command, "--json", folder / "f.json")
    assert message == (
        f"{folder / 'f.json'}: cannot be written: Permission denied; choose a place where "
        "you may write"
    )


@full_device
@pytest.mark.parametrize("verb", ["audit", "check", "gate"])
def test_a_full_disk_is_an_error_and_no_verdict(cli: Cli, command: list[str]) -> None:
    code, out, err = cli(*command, "--json", "/dev/full", "--quiet")
    assert code == 2
    assert out, "what was found is shown all the same"
    assert err.startswith("ranktilt: /dev/full: cannot be written: No space left on device")
    assert err.count("\n") == 1


def wait_for(seen: Callable[[], bool]) -> None:
    for _ in range(200):
        if seen():
            return
        threading.Event().wait(0.05)
    raise AssertionError("nothing was shown")


def test_a_terminal_gets_a_bar(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    stream = Terminal()
    monkeypatch.setattr(notes, "_BAR_DELAY", 0.1)
    monkeypatch.setattr(sys, "stderr", stream)
    for name, value in (("TERM", "xterm-256color"), ("COLUMNS", "100"), ("LINES", "20")):
        monkeypatch.setenv(name, value)
    with reporting(quiet=False):
        report("quick", 0, 10)
        report("quick", 10, 10)
        report("dense:[model]: encoding", 0, 10)
        wait_for(
            lambda: "encoding" in stream.getvalue()
        )  # a long first step shows its bar all the same
        report("dense:[model]: encoding", 5, 10)
        with results() as out:
            out.write("the result\n")
    stream_text = stream.getvalue()
    assert capfd.readouterr().out == "the result\n", "a bar that stands would catch it"
    assert "the result" not in stream_text
    assert "quick" not in stream_text
    assert "dense:[model]: encoding" in stream_text
    assert "50%" in stream_text


def test_a_log_gets_a_line_every_half_minute(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    times = iter([0.0, 10.0, 31.0, 60.0, 135.0])
    monkeypatch.setattr(notes.time, "monotonic", lambda: next(times))
    with reporting(quiet=False):
        for done in range(4):
            report("fitting corrections", done, 4)
    assert capfd.readouterr().err == (
        "fitting corrections: 25% done, 31 s since the start\n"
        "fitting corrections: 75% done, 2 min 15 s since the start\n"
    )


def test_a_quiet_log_gets_no_progress(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(notes, "_LINE_PAUSE", 0.0)
    for quiet, is_shown in ((True, False), (False, True)):
        with reporting(quiet=quiet):
            report("ranking", 1, 2)
        assert ("ranking: 50% done" in capfd.readouterr().err) == is_shown


def test_data_warnings_are_a_line_each_unless_quiet(
    capfd: pytest.CaptureFixture[str],
) -> None:
    for quiet, printed in ((True, ""), (False, "warning: 3 documents have no twin\n" * 2)):
        with reporting(quiet=quiet):
            report("work", 0, 10)
            for _ in range(2):
                warnings.warn("3 documents have no twin", DataWarning, stacklevel=1)
            if quiet:
                note("a note")
        assert capfd.readouterr() == ("", printed)
    before = warnings.showwarning
    with pytest.warns(UserWarning, match="of others"), reporting(quiet=False):
        warnings.warn("of others", UserWarning, stacklevel=1)
    assert warnings.showwarning is before


def test_files_have_names_that_every_file_system_takes() -> None:
    names = ["bm25(k1=0.9)@5", "gpt 4", "gpt_4", "GPT-4", "gpt-4", "../etc", "ü" * 60, "///"]
    assert file_names(names) == [
        "bm25_k1=0.9_@5",
        "gpt_4",
        "gpt_4-2",
        "GPT-4",
        "gpt-4-2",
        "etc",
        "ü" * 40,
        "unnamed",
    ]
