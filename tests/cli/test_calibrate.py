"""ranktilt calibrate: exit 0 where all is as expected, 1 where it is not, 2 for what cannot be calibrated."""

import csv
import io
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from ranktilt import registry as specs
from ranktilt.auditing.calibration.calibrate import calibrate
from ranktilt.datasets.load import load
from ranktilt.reporting.output import table
from tests.auditing.calibration.test_calibrate import pairs
from tests.auditing.ties import Unfair
from tests.cli.conftest import Cli, refused
from tests.toy import full_device, jsonl, tsv, write

QUICK = ("-m", "nDCG@3", "--depth", "1", "--depth", "3", "--draws", "100", "--labellings", "20")
UNFAIR = ("-r", "unfair(fault=id)")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Thirty pairs as a BEIR folder with sources."""
    made, there = pairs(), tmp_path / "pairs"
    docs = made.docs.rename({"id": "_id"}).to_dicts()
    write(there / "corpus.jsonl", jsonl(docs))
    write(there / "queries.jsonl", jsonl(made.queries.rename({"id": "_id"}).to_dicts()))
    write(there / "qrels" / "test.tsv", tsv(made.qrels.iter_rows()))
    return there


@pytest.fixture
def unfair(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ranker of somebody else's."""
    monkeypatch.setitem(specs.RANKERS, Unfair.name, "tests.auditing.ties:Unfair")


def test_bundled_collection_and_lexical_rankers_are_the_default(cli: Cli) -> None:
    code, out, err = cli("calibrate", "--quiet", "--sample", "60", *QUICK)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert [line for line in lines if line and not line.startswith(" ")][:3] == ["tfidf", "bm25", "simulated rankings"]
    assert "Calibrated: 66 checks came out as expected." in out
    assert sum("0 in 12 of 12" in line for line in lines) == 2 * 6
    assert sum("2 of 2" in line for line in lines) == 2 * 6


def test_a_folder_of_ones_own(cli: Cli, folder: Path) -> None:
    code, out, _ = cli("calibrate", folder, "-r", "bm25(b=0.4)", *QUICK)
    assert code == 0
    assert out.startswith("bm25(b=0.4)\n")
    assert out.count("0 in 12 of 12") == 6


def test_a_ranker_that_breaks_ties_by_id_ends_with_1(cli: Cli, folder: Path, unfair: None) -> None:
    code, out, err = cli("calibrate", folder, *UNFAIR, "-r", "bm25", "--quiet", *QUICK)
    assert (code, err) == (1, "")
    assert "FAILED: ≠ 0 in " in out
    assert "unfair(fault=id): null)." in out
    assert "  A ranker that tells copies apart breaks ties by id or order" in out
    assert "\nbm25\n" in out
    assert cli("calibrate", folder, "-r", "unfair", *QUICK).code == 0


@pytest.mark.parametrize("form", ["table", "markdown", "csv"])
def test_what_is_printed_is_the_librarys(cli: Cli, folder: Path, form: str) -> None:
    made = calibrate(load(folder), specs.ranker("bm25"), "nDCG@3", depths=[1, 3], draws=100, labellings=20)
    for quiet in ([], ["--quiet"]):
        found = cli("calibrate", folder, "-r", "bm25", *QUICK, "--format", form, *quiet)
        assert found.out == table(made, form, notes=not quiet)


def test_csv_is_a_line_a_row(cli: Cli, folder: Path, unfair: None) -> None:
    code, out, _ = cli("calibrate", folder, *UNFAIR, *QUICK, "--format", "csv")
    found = list(csv.DictReader(io.StringIO(out)))
    assert code == 1
    assert {row["check"] for row in found} == {
        "null", "antisymmetry", "known tilt", "random labels", "random sources", "coverage"
    }  # fmt: skip
    assert {row["verdict"] for row in found if row["check"] != "null"} == {"ok"}


def test_json_to_a_file_leaves_the_table(cli: Cli, folder: Path, unfair: None, tmp_path: Path) -> None:
    file = tmp_path / "new" / "c.json"
    arguments = ["calibrate", str(folder), *UNFAIR, *QUICK, "--seed", "7", "--sample", "20", "--json", str(file)]
    code, out, _ = cli(*arguments)
    content = json.loads(file.read_text())
    assert code == 1
    assert "Not calibrated: " in out
    assert "Sampled: 20 of 30 documents of human and 10 of 20 queries" in out
    assert (content["passed"], content["spec"]["seed"], content["spec"]["documents"]) == (False, 7, 40)
    assert content["spec"]["command"] == shlex.join(["ranktilt", *arguments])
    assert content["spec"]["collection"]["path"] == str(folder)


def test_json_to_stdout_is_all_there_is(cli: Cli, folder: Path) -> None:
    code, out, _ = cli("calibrate", folder, "-r", "bm25", *QUICK, "--json", "-")
    assert code == 0
    assert json.loads(out)["sentence"] == "Calibrated: 36 checks came out as expected."


def test_text_and_split_are_passed_on(cli: Cli, folder: Path) -> None:
    (folder / "qrels" / "test.tsv").rename(folder / "qrels" / "dev.tsv")
    write(folder / "qrels" / "test.tsv", tsv([("q0", "0-human", 0)]))
    found = cli("calibrate", folder, "-r", "bm25", "--text", "text", "--split", "dev", *QUICK, "--json", "-")
    content = json.loads(found.out)
    assert content["spec"]["rankers"] == ["bm25(text=text)"]
    assert content["spec"]["collection"]["split"] == "dev"


REFUSED: list[tuple[list[str], str]] = [
    (
        ["--format", "latx"],
        "unknown format 'latx'; did you mean 'latex'? (valid: table, markdown, csv, latex, html, json)",
    ),
    (["-r", "bm26"], "unknown ranker 'bm26'; did you mean 'bm25'?"),
    (["-r", "bm25", "-r", "bm25"], "ranker 'bm25' is given twice"),
    (["-r", "replay:a.trec"], "replay:a.trec cannot be calibrated: a run that exists cannot rank copies"),
    (["-m", "nDCK@3"], "unknown measure 'nDCK'"),
    (["--json", "."], "--json .: expected a file, this is a folder"),
    (["--labellings", "19"], "expected at least 20 labellings, got 19"),
    (["--depth", "0"], "expected depths of at least 1, got 0"),
    (["--draws", "5"], "expected at least 100 draws, got 5: fewer say nothing about 95 %"),
    (["--sample", "1"], "expected a sample of at least 2 pairs, got 1"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_what_cannot_be_done_is_one_line_and_2(cli: Cli, folder: Path, arguments: list[str], message: str) -> None:
    assert message in refused(cli, "calibrate", folder, *arguments)


def test_a_folder_that_is_not_there(cli: Cli, tmp_path: Path) -> None:
    assert str(tmp_path / "gone") in refused(cli, "calibrate", tmp_path / "gone")


@full_device
def test_a_full_disk_is_no_traceback(process: Cli, folder: Path) -> None:
    with Path("/dev/full").open("w") as full:
        code, _, err = process("calibrate", folder, "-r", "bm25", *QUICK, "--quiet", stdout=full, **_no_capture())
    assert code == 2
    assert err.count("\n") == 1


def _no_capture() -> dict[str, Any]:
    import subprocess

    return {"capture_output": False, "stderr": subprocess.PIPE}


@pytest.mark.data
def test_a_large_collection_is_sampled(cli: Cli, shared_data: Path) -> None:
    code, out, _ = cli("calibrate", shared_data / "cocktail-nfcorpus", "-r", "tfidf", "--sample", "60", *QUICK)
    assert code == 0
    assert "Sampled: 60 of 3,633 documents of human and " in out


@pytest.mark.parametrize(("option", "least"), [("--draws", 100), ("--labellings", 20), ("--sample", 2)])
def test_the_help_names_the_least_that_is_taken(cli: Cli, option: str, least: int) -> None:
    text = " ".join(cli("calibrate", "--help").out.split())
    assert f"at least {least}" in text.partition(f"{option} N")[2].partition(" --")[0]
    assert f"got {least - 1}" in refused(cli, "calibrate", option, str(least - 1))
