"""``ranktilt view`` as a process: a page on loopback, a browser that is sent there, and an end without noise."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from ranktilt.reporting.output import table
from tests.cli.conftest import Cli, refused
from tests.probes.validations import toy_validation
from tests.reporting.audits import small
from tests.reporting.studies import toy_study

Started = Callable[..., tuple["subprocess.Popen[str]", str]]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Results as JSON, and a finished page."""
    made = {name: tmp_path / f"{name}.json" for name in ("validation", "study")}
    made["validation"].write_bytes(toy_validation().to_json())
    made["study"].write_bytes(toy_study().to_json())
    made["page"] = tmp_path / "page.html"
    made["page"].write_text(table(toy_study(), "html"), encoding="utf-8")
    return made


@pytest.fixture
def view() -> Iterator[Started]:
    """Start the command; give its process and the address that it prints. None outlives its test."""
    running: list[subprocess.Popen[str]] = []

    def start(*arguments: str | Path, **environment: str) -> tuple["subprocess.Popen[str]", str]:
        code = "from ranktilt.cli.main import main; main()"
        process = subprocess.Popen(
            [sys.executable, "-c", code, "view", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        running.append(process)
        assert process.stdout is not None
        return process, process.stdout.readline().strip()

    yield start
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()


def fetched(address: str) -> str:
    with urllib.request.urlopen(address, timeout=60) as answer:
        return str(answer.read().decode())


def title(page: str) -> str:
    found = re.search("<title>(.*?)</title>", page)
    return found[1] if found else ""


@pytest.mark.parametrize("name", ["validation", "study"])
def test_a_result_is_served_as_its_page(view: Started, files: dict[str, Path], name: str) -> None:
    _, address = view(files[name], "--no-browser")
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{22}", address)
    assert name in title(fetched(address)).lower()


def test_several_results_are_one_page(view: Started, files: dict[str, Path]) -> None:
    _, address = view(files["validation"], files["study"], "--no-browser")
    assert "1 validation and 1 study" in title(fetched(address))


def test_a_finished_page_is_served_as_it_is(view: Started, files: dict[str, Path]) -> None:
    _, address = view(files["page"], "--no-browser")
    assert fetched(f"{address}/page") == files["page"].read_text(encoding="utf-8")
    around = fetched(address)
    assert re.findall("<iframe[^>]*>", around) == [
        f'<iframe sandbox="allow-scripts" title="The report" src="{urlsplit(address).path}/page">'
    ]
    assert "<script" not in around


def test_the_page_outlives_its_file(view: Started, files: dict[str, Path]) -> None:
    whole = files["page"].read_text(encoding="utf-8")
    _, address = view(files["page"], "--no-browser")
    files["page"].unlink()
    assert fetched(f"{address}/page") == whole == fetched(f"{address}/page")


def test_two_views_run_beside_each_other(view: Started, files: dict[str, Path]) -> None:
    _, one = view(files["page"], "--no-browser")
    _, other = view(files["study"], "--no-browser")
    assert one != other
    assert title(fetched(f"{one}/page")) == title(fetched(other))


def test_a_port_can_be_asked_for_and_is_refused_while_taken(view: Started, files: dict[str, Path], cli: Cli) -> None:
    _, address = view(files["page"], "--no-browser")
    port = address.split(":")[-1].partition("/")[0]
    assert refused(cli, "view", files["page"], "--no-browser", "--port", port) == (
        f"--port {port}: in use on 127.0.0.1; choose another, or leave it out for a free one"
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_without_noise_when_told_to(view: Started, files: dict[str, Path], number: signal.Signals) -> None:
    process, address = view(files["page"], "--no-browser")
    fetched(address)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    framed = "The page is finished, and may be anybody's: it is shown in a frame that it cannot lead out of.\n"
    assert (process.returncode, out, err) == (0, "", f"{framed}Serving until Ctrl-C.\n")
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address, timeout=60)


def test_quiet_prints_the_address_alone(view: Started, files: dict[str, Path]) -> None:
    process, address = view(files["page"], "--no-browser", "--quiet")
    fetched(address)
    fetched(f"{address}/page")
    process.terminate()
    assert process.communicate(timeout=60) == ("", "")


@pytest.fixture
def opener(tmp_path: Path) -> tuple[str, Path]:
    """A browser, as the variable BROWSER names it, that only notes where it is sent."""
    note, program = tmp_path / "sent", tmp_path / "browser"
    os.mkfifo(note)
    program.write_text(f'#!/bin/sh\nprintf %s "$1" > "{note}"\n', encoding="utf-8")
    program.chmod(0o755)
    return f"{program} %s", note


def test_the_browser_is_sent_to_the_address(view: Started, files: dict[str, Path], opener: tuple[str, Path]) -> None:
    browser, note = opener
    _, address = view(files["page"], BROWSER=browser)
    assert note.read_text(encoding="utf-8") == address


def test_a_browser_that_stays_holds_up_nothing(view: Started, files: dict[str, Path], tmp_path: Path) -> None:
    program = tmp_path / "terminal-browser"
    program.write_text("#!/bin/sh\nread nothing\n", encoding="utf-8")
    program.chmod(0o755)
    process, address = view(files["page"], BROWSER=f"{program} %s")
    assert title(fetched(address))
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 0


def test_without_a_browser_the_address_is_there_to_open(view: Started, files: dict[str, Path], tmp_path: Path) -> None:
    process, address = view(files["page"], BROWSER=f"{tmp_path / 'none'} %s", PATH=str(tmp_path), DISPLAY="")
    assert process.stderr is not None
    lines = [process.stderr.readline() for _ in range(3)][1:]
    assert lines == ["Serving until Ctrl-C.\n", "no browser could be opened; open the address in yours\n"]
    assert title(fetched(address))


def test_other_html_is_refused(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "other.html"
    path.write_text("<!DOCTYPE html><title>x</title><script>alert(1)</script>", encoding="utf-8")
    assert refused(cli, "view", path) == f"{path}: expected a page that RankTilt wrote, got other HTML or XML"


def test_a_finished_page_is_shown_alone(cli: Cli, files: dict[str, Path]) -> None:
    assert refused(cli, "view", files["study"], files["page"]) == (
        f"{files['page']} is a finished page, which is shown alone; name the JSON files of all results"
    )
    assert refused(cli, "view", files["page"], "--no-texts") == (
        f"{files['page']} is a finished page; --no-texts makes one, of the JSON file of a result"
    )


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"", "the file is empty"),
        (b"{]", "expected a result of RankTilt as JSON"),
        (json.dumps({"format": "other"}).encode(), "expected a result of RankTilt, got format 'other'"),
        (b"\x1f\x8b\x08\x00\x00", "cannot be read to its end: "),
    ],
)
def test_what_is_no_result_is_refused(cli: Cli, tmp_path: Path, content: bytes | None, line: str) -> None:
    path = tmp_path / "x.json"
    if content is not None:
        path.write_bytes(content)
    assert refused(cli, "view", path).startswith(f"{path}: {line}")


def test_a_folder_is_refused_with_the_file_to_name(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "audit.json").write_text("{}", encoding="utf-8")
    assert refused(cli, "view", tmp_path) == (
        f"{tmp_path}: expected a file, got a folder; name the audit in it: {tmp_path / 'audit.json'}"
    )


def test_what_an_audit_lacks_is_said(view: Started, tmp_path: Path) -> None:
    small().save(tmp_path / "audit.json")
    process, address = view(tmp_path / "audit.json", "--no-browser")
    assert title(fetched(address)).startswith("Audit")
    process.terminate()
    assert process.communicate(timeout=60)[1] == (
        "Queries, ranked lists and texts are left out. The collection could not be opened again: the collection was "
        "made in Python and lies in no file (ranktilt.report takes it: collection=).\nServing until Ctrl-C.\n"
    )


def test_texts_are_kept_out_where_asked(view: Started, toy_folder: Path, tmp_path: Path, cli: Cli) -> None:
    assert cli("audit", toy_folder, "-r", "bm25", "--json", tmp_path / "audit.json", "--quiet").code == 0
    carried = []
    for options in ([], ["--no-texts"]):
        _, address = view(tmp_path / "audit.json", "--no-browser", *options)
        carried.append("explorer-texts" in fetched(address))
    assert carried == [True, False]


@pytest.mark.parametrize(
    ("port", "came"),
    [
        ("-1", "0 to 65535, got -1"),
        ("65536", "0 to 65535, got 65536"),
        ("x", "a whole number, got 'x'"),
    ],
)
def test_a_port_is_a_number_in_its_range(cli: Cli, files: dict[str, Path], port: str, came: str) -> None:
    code, out, err = cli("view", files["page"], "--port", port)
    assert (code, out) == (2, "")
    assert err == f"ranktilt view: --port: expected {came}\n"
