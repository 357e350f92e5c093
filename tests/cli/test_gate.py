"""ranktilt gate: the exit codes, and the files that a build server reads."""

import json
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.auditing.arrays import audit_of, noisy, one
from tests.auditing.test_gate import HUMAN, LEVEL, NOTHING, UNSURE
from tests.cli.conftest import Cli, Result, refused
from tests.toy import write

QUICK = ("--resamples", "200")


@pytest.fixture
def saved(tmp_path: Path) -> dict[str, Path]:
    """Audits of each outcome by name."""
    audits = {"level": LEVEL, "human": HUMAN, "unsure": UNSURE, "nothing": NOTHING}
    return {name: found.save(tmp_path / f"{name}.json") for name, found in audits.items()}


@pytest.mark.parametrize(
    ("name", "options", "code", "last"),
    [
        ("level", [], 0, "✓ level (asked: tilt within ±15 points of level)"),
        ("human", [], 1, "✗ tilted (asked: tilt within ±15 points of level)"),
        ("human", ["--max-tilt", "60"], 0, "✓ within the limit (asked: tilt within ±60 points of level)"),
        ("unsure", [], 3, "? inconclusive (asked: tilt within ±15 points of level)"),
        (
            "unsure",
            ["--inconclusive", "pass"],
            0,
            "? inconclusive (asked: tilt within ±15 points of level; passes by --inconclusive pass)",
        ),
        ("human", ["--baseline", "human"], 0, "✓ level (asked: no growth since the baseline)"),
        ("human", ["--baseline", "level"], 1, "✗ tilted (asked: no growth since the baseline)"),
        (
            "human",
            ["--baseline", "level", "--min-effect", "60"],
            0,
            "✓ level (asked: growth of at most 60 points since the baseline)",
        ),
    ],
)
def test_exit_codes(cli: Cli, saved: dict[str, Path], name: str, options: list[str], code: int, last: str) -> None:
    result = cli("gate", saved[name], *(saved.get(o, o) for o in options), *QUICK)
    assert (result.code, result.err) == (code, "")
    assert result.out.splitlines()[-1] == last


def test_a_doctored_regression_is_caught_by_a_process_of_its_own(process: Cli, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    new, old = noisy(rng, lift=0.15).save(tmp_path / "new.json"), noisy(rng).save(tmp_path / "old.json")
    assert process("gate", new, "--baseline", old, "--min-effect", "2").code == 1
    assert process("gate", old, "--baseline", new, "--min-effect", "2").code == 0


@pytest.fixture
def broad(tmp_path: Path) -> Path:
    """Two runs, two measures, three groups."""
    values = np.random.default_rng(1).random((2, 2, 4, 40))
    names: dict[str, Any] = {"runs": ("bm25", "dense"), "measures": ("nDCG@5", "RR"), "groups": ("a", "b", "c")}
    return audit_of(values, **names).save(tmp_path / "broad.json")


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ([], 6),
        (["-m", "RR"], 6),
        (["--measure", "RR", "-m", "nDCG@5"], 12),
        (["--run-name", "dense"], 3),
        (["--run-name", "dense", "--pair", "c,a", "-m", "RR"], 1),
    ],
)
def test_rows_can_be_chosen(cli: Cli, broad: Path, options: list[str], rows: int) -> None:
    found = json.loads(cli("gate", broad, *options, "--json", "-").out)["rows"]
    assert len(found) == rows
    wanted = {o for flag, o in pairwise(options) if flag in ("-m", "--measure")} or {"nDCG@5"}
    assert {row["measure"] for row in found} == wanted
    assert "c,a" not in options or (found[0]["a"], found[0]["b"]) == ("c", "a")


class TestFiles:
    @staticmethod
    def everything(folder: Path) -> list[str]:
        files = {"--junit": "r.xml", "--markdown": "s.md", "--json": "g.json"}
        return [part for option, name in files.items() for part in (option, str(folder / name))]

    def run(self, cli: Cli, audit: Path, folder: Path, *more: str) -> Result:
        return cli("gate", audit, *more, *self.everything(folder))

    @pytest.mark.parametrize(("name", "code"), [("level", 0), ("human", 1), ("unsure", 3)])
    def test_all_are_written_whatever_the_outcome(
        self, cli: Cli, saved: dict[str, Path], tmp_path: Path, name: str, code: int
    ) -> None:
        out = tmp_path / "made" / "here"
        assert self.run(cli, saved[name], out).code == code
        root = ElementTree.parse(out / "r.xml").getroot()
        content = json.loads((out / "g.json").read_text())
        assert (content["exit_code"], content["rows"][0]["outcome"]) == (code, content["outcome"])
        assert [root.get("failures"), root.get("errors")] == [str(int(code == 1)), str(int(code == 3))]
        assert f"RankTilt: {content['outcome']} (asked: " in (out / "s.md").read_text("utf-8").splitlines()[0]

    def test_the_command_is_kept(self, cli: Cli, saved: dict[str, Path], tmp_path: Path) -> None:
        self.run(cli, saved["human"], tmp_path, "--max-tilt", "20")
        line = shlex.join(["ranktilt", "gate", str(saved["human"]), "--max-tilt", "20", *self.everything(tmp_path)])
        assert json.loads((tmp_path / "g.json").read_text())["spec"]["command"] == line
        assert (tmp_path / "s.md").read_text("utf-8").splitlines()[-1] == f"Make it again: `{line}`"
        properties = ElementTree.parse(tmp_path / "r.xml").getroot().iter("property")
        assert {p.get("name"): p.get("value") for p in properties}["command"] == line

    @pytest.mark.parametrize(("option", "start"), [("--markdown", "## ❌ RankTilt: tilted"), ("--json", '{"format":')])
    def test_to_stdout_in_place_of_the_table(self, cli: Cli, saved: dict[str, Path], option: str, start: str) -> None:
        result = cli("gate", saved["human"], option, "-")
        assert (result.code, result.err) == (1, "")
        assert result.out.startswith(start)
        assert "✗ tilted (asked" not in result.out

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--junit", "-"], "--junit writes a file; standard output (-) is for --markdown and --json"),
            (
                ["--markdown", "-", "--json", "-"],
                "--markdown and --json cannot both go to stdout; name a file for one of them",
            ),
            (["--junit", "{audit}"], "--junit {audit}: this file is read too; choose another place"),
            (["--json", "{old}", "--baseline", "{old}"], "--json {old}: this file is read too; choose another place"),
            (
                ["--markdown", "{folder}/x", "--json", "{folder}/x"],
                "--json {folder}/x: this file is written by --markdown too; choose another place",
            ),
            (["--junit", "{folder}"], "--junit {folder}: expected a file, this is a folder"),
        ],
    )
    def test_places_that_cannot_be(
        self, cli: Cli, saved: dict[str, Path], tmp_path: Path, options: list[str], message: str
    ) -> None:
        names = {"audit": str(saved["human"]), "old": str(saved["level"]), "folder": str(tmp_path)}
        filled = [o.format(**names) for o in options]
        assert refused(cli, "gate", saved["human"], *filled) == message.format(**names)


class TestRefusals:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["-m", "RR"], "unknown measure 'RR' (valid: nDCG@5)"),
            (["--run-name", "bm25"], "unknown run 'bm25' (valid: run)"),
            (
                ["--pair", "human,gpt"],
                "unknown pair of groups 'human,gpt'; did you mean 'human,llm'? (valid: human,llm, llm,human)",
            ),
            (["--pair", "human"], "--pair expects two groups, such as human,llm; got 'human'"),
            (
                ["--min-effect", "5"],
                "--min-effect is the growth since a baseline that is allowed; name it: --baseline OLD.json",
            ),
            (
                ["--max-tilt", "inf"],
                "--max-tilt: expected a margin of at least 0, such as 5 (points) or '0.5 ranks'; got inf",
            ),
            (["--max-tilt", "300"], "--max-tilt: expected less than 200, the most Relative Δ can be; got 300"),
        ],
    )
    def test_of_options(self, cli: Cli, saved: dict[str, Path], options: list[str], message: str) -> None:
        assert refused(cli, "gate", saved["level"], *options) == message

    def test_a_baseline_over_other_queries(self, cli: Cli, saved: dict[str, Path], tmp_path: Path) -> None:
        queries = [*(f"q{i}" for i in range(58)), "new1", "new2"]
        old = one(np.ones(60), np.ones(60), queries=queries).save(tmp_path / "old.json")
        assert refused(cli, "gate", saved["level"], "--baseline", old) == (
            "the audits are over other queries: 2 queries only in the new one ('q58', 'q59'), 2 queries only in the "
            "old one ('new1', 'new2'); make both with the same judgments"
        )

    def test_an_audit_without_groups(self, cli: Cli, tmp_path: Path) -> None:
        path = audit_of(np.ones((1, 1, 1, 5)), groups=(), by=None).save(tmp_path / "flat.json")
        assert refused(cli, "gate", path) == "nothing to gate: this audit compares no groups; audit with --by COLUMN"


def test_what_has_no_effects_is_no_audit(cli: Cli, tmp_path: Path) -> None:
    other = write(tmp_path / "other.json", '{"format": "ranktilt-llm-log", "version": 1}')
    assert "expected an audit" in refused(cli, "gate", other)
