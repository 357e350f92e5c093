"""ranktilt compare: two audits, and whether the new ranker tilts more."""

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from ranktilt import Audit
from ranktilt.auditing.compare import compare
from ranktilt.reporting.output import table
from tests.auditing.arrays import one
from tests.cli.conftest import Cli, refused
from tests.toy import full_device, no_permission

TILE = np.tile([0.9, 0.7, 0.8], 12)
QUICK = ("--resamples", "200")


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return one(0.5 * TILE, TILE, runs=["dense"]).save(tmp_path / "new.json")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return one(0.9 * TILE, TILE, runs=["bm25"]).save(tmp_path / "old.json")


@pytest.mark.parametrize("form", ["table", "markdown", "csv"])
def test_every_format_is_the_librarys(cli: Cli, new: Path, old: Path, form: str) -> None:
    result = cli("compare", new, old, *QUICK, "--format", form)
    found = compare(Audit.load(new), Audit.load(old), resamples=200)
    assert (result.code, result.err) == (0, "")
    assert result.out == table(found, form)


def test_the_first_file_is_the_new_one(cli: Cli, new: Path, old: Path) -> None:
    there, back = (cli("compare", *files, *QUICK, "--quiet").out for files in ((new, old), (old, new)))
    assert "dense lies 56.1 points further toward llm than bm25: Relative Δ −66.7 % against −10.5 %" in there
    assert "bm25 lies 56.1 points further toward human than dense: Relative Δ −10.5 % against −66.7 %" in back
    assert "the tilt itself grew by 56.1 points" in there
    assert "the tilt itself shrank by 56.1 points" in back


def test_json_is_the_whole_comparison_and_the_table_stays(cli: Cli, new: Path, old: Path, tmp_path: Path) -> None:
    file = tmp_path / "made" / "c.json"
    arguments = ["compare", str(new), str(old), *QUICK, "--correction", "bonferroni", "--json", str(file)]
    result = cli(*arguments)
    content = json.loads(file.read_text())
    assert "Bonferroni over 2 tests" in result.out
    assert (content["format"], content["version"]) == ("ranktilt-comparison", 1)
    assert content["spec"]["command"] == shlex.join(["ranktilt", *arguments])
    assert content["tilts"][0]["value"] == pytest.approx(-200 / 3 + 200 / 19)


def test_json_to_stdout_is_all_there_is(cli: Cli, new: Path, old: Path, tmp_path: Path) -> None:
    result = cli("compare", new, old, *QUICK, "--json", "-")
    assert json.loads(result.out)["runs"] == [{"new": "dense", "old": "bm25"}]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["new.json", "old.json"]


def test_the_seed_decides(cli: Cli, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    files = [one(*rng.random((2, 40))).save(tmp_path / f"{n}.json") for n in "ab"]
    outs = [cli("compare", *files, *QUICK, "--seed", seed).out for seed in ("0", "0", "1")]
    assert outs[0] == outs[1] != outs[2]


def test_quiet_leaves_table_and_verdicts(cli: Cli, new: Path, old: Path) -> None:
    loud, quiet = (cli("compare", new, old, *QUICK, *more).out for more in ((), ("--quiet",)))
    assert loud.startswith(quiet)
    assert "Intervals:" in loud.removeprefix(quiet)


def test_real_audits_of_one_collection(cli: Cli, toy_folder: Path, tmp_path: Path) -> None:
    for ranker in ("bm25", "tfidf"):
        cli("audit", toy_folder, "-r", ranker, "-r", "bm25@2", *QUICK, "--json", tmp_path / f"{ranker}.json")
    result = cli("compare", tmp_path / "bm25.json", tmp_path / "tfidf.json", *QUICK)
    assert result.code == 0
    assert "bm25@2: the two audits are identical on nDCG@1\n" in result.out
    assert "left out: 1 run only in the new audit ('bm25')" in result.out
    assert "left out: 1 run only in the old audit ('tfidf')" in result.out
    assert "warning: only 3 queries are compared" in result.out


class TestRefusals:
    def test_other_queries(self, cli: Cli, new: Path, tmp_path: Path) -> None:
        other = one(TILE[:2], TILE[:2], queries=["q1", "x9"]).save(tmp_path / "other.json")
        assert refused(cli, "compare", new, other) == (
            "the audits are over other queries: 35 queries only in the new one ('q0', 'q2', 'q3', …), 1 query only in "
            "the old one ('x9'); make both with the same judgments"
        )

    def test_a_newer_format(self, cli: Cli, new: Path, tmp_path: Path) -> None:
        later = tmp_path / "later.json"
        later.write_text(json.dumps({**json.loads(new.read_text()), "version": 99}))
        message = refused(cli, "compare", new, later, "--json", tmp_path / "c.json")
        assert message.startswith(f"{later}: is an audit of format 99, this RankTilt reads up to ")
        assert not (tmp_path / "c.json").exists()

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("{", "expected an audit as JSON: "),
            ("[1]", "expected an audit (format 'ranktilt-audit')"),
            ('{"format": "ranktilt-gate", "version": 1}', "expected an audit (format 'ranktilt-audit')"),
        ],
    )
    def test_no_audit(self, cli: Cli, new: Path, tmp_path: Path, content: str, message: str) -> None:
        file = tmp_path / "odd.json"
        file.write_text(content)
        assert refused(cli, "compare", new, file).startswith(f"{file}: {message}")

    def test_no_file(self, cli: Cli, new: Path, tmp_path: Path) -> None:
        assert refused(cli, "compare", tmp_path / "gone.json", new).endswith(
            "gone.json: cannot be read: No such file or directory"
        )

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (
                ["--format", "latx"],
                "unknown format 'latx'; did you mean 'latex'? (valid: table, markdown, csv, latex, html, json)",
            ),
            (["--correction", "no"], "unknown correction 'no' (valid: holm, bonferroni)"),
            (["--json", "{folder}"], "--json {folder}: expected a file, this is a folder"),
            (["--json", "{new}"], "--json {new}: this file is read too; choose another place"),
        ],
    )
    def test_wrong_options(self, cli: Cli, new: Path, old: Path, options: list[str], message: str) -> None:
        names = {"folder": str(new.parent), "new": str(new)}
        before = new.read_bytes()
        filled = [o.format(**names) for o in options]
        assert refused(cli, "compare", new, old, *filled) == message.format(**names)
        assert new.read_bytes() == before

    def test_a_place_that_cannot_be_written(self, cli: Cli, new: Path, old: Path, tmp_path: Path) -> None:
        (folder := tmp_path / "locked").mkdir()
        with no_permission(folder):
            message = refused(cli, "compare", new, old, "--json", folder / "c.json")
        assert message == f"{folder / 'c.json'}: cannot be written: Permission denied; choose a place you may write to"

    @full_device
    def test_a_full_disk(self, cli: Cli, new: Path, old: Path) -> None:
        code, _, err = cli("compare", new, old, *QUICK, "--json", "/dev/full")
        assert code == 2
        assert err.startswith("ranktilt: /dev/full: cannot be written: No space left on device")

    def test_one_audit_alone(self, cli: Cli, new: Path) -> None:
        result = cli("compare", new)
        assert (result.code, result.out) == (2, "")
        assert result.err.startswith("ranktilt compare: Missing argument 'OLD.json'")
