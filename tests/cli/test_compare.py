"""ranktilt compare and gate: what two audits, or one and a limit, decide."""

import json
from itertools import chain, pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.auditing.arrays import audit_of, two_group_audit
from tests.auditing.test_gate import HUMAN, LEVEL, NOTHING, UNSURE
from tests.cli.conftest import Cli

TILE = np.tile([0.9, 0.7, 0.8], 12)
QUICK = ("--set", "statistics.resamples=200")


def test_the_first_file_is_the_new_one(cli: Cli, tmp_path: Path) -> None:
    new = two_group_audit(0.5 * TILE, TILE, runs=["dense"]).save(tmp_path / "new.json")
    old = two_group_audit(0.9 * TILE, TILE, runs=["bm25"]).save(tmp_path / "old.json")
    there, back = (
        cli("compare", *files, *QUICK, "--quiet").out for files in ((new, old), (old, new))
    )
    assert "dense leans further toward llm than bm25 on nDCG@5: difference −56.1 points" in there
    assert "bm25 leans further toward human than dense on nDCG@5: difference +56.1 points" in back
    assert ("; the tilt itself grew" in there, "; the tilt itself shrank" in back) == (True, True)


def test_runs_of_one_audit(cli: Cli, toy_folder: Path, tmp_path: Path) -> None:
    audit, page_data = tmp_path / "audit.json", tmp_path / "found.json"
    options = ("-m", "nDCG@1", "-m", "ExposureRatio@2", "-m", "NDKL", *QUICK)
    cli("audit", toy_folder, "-r", "bm25", "-r", "tfidf", "-r", "bm25@2", *options, "--json", audit)
    result = cli("compare", audit, "--baseline-run", "tfidf", *QUICK, "--json", page_data)
    assert result.code == 0
    few = (
        "bm25@2: no difference from tfidf in NDKL can be shown: 3 queries are too few for a "
        "verdict (10 needed)"
    )
    assert few in result.out
    assert "Reference: tfidf.\n" in result.out
    content = json.loads(page_data.read_text())
    assert [(c["run"], c["old_run"], c["estimand"]) for c in content["estimates"]] == [
        (run, "tfidf", measure)
        for run in ("bm25", "bm25@2")
        for measure in ("ExposureRatio@2", "NDKL")
    ]
    assert content["spec"]["baseline_run"] == "tfidf"
    page = cli("compare", audit, "--baseline-run", "tfidf", *QUICK, "--format", "html").out
    assert "Comparison of bm25 and bm25@2 with tfidf" in page


def test_queries_that_only_one_audit_holds_are_left_out(cli: Cli, tmp_path: Path) -> None:
    new, old = two_group_audit(0.5 * TILE, TILE), two_group_audit(0.9 * TILE[:34], TILE[:34])
    files = [audit.save(tmp_path / f"{name}.json") for name, audit in (("new", new), ("old", old))]
    printed = cli("compare", *files, *QUICK)
    assert (printed.code, "on 34 common queries" in printed.out) == (0, True)
    assert (
        "left out: 2 of 36 queries (5.6 %): 2 queries only in the new audit ('q34', 'q35')"
        in printed.out
    )
    printed = cli("gate", files[0], "--baseline", files[1], *QUICK)
    assert (printed.code, "on 34 common queries exceeds 0" in printed.out) == (1, True)
    for verb in (["compare", *files], ["gate", files[0], "--baseline", files[1]]):
        printed = cli(*verb, "--max-left-out", "5")
        assert (
            printed.code,
            "5.6 %), more than --max-left-out 5; use the same" in printed.err,
        ) == (
            2,
            True,
        )


@pytest.fixture
def saved(tmp_path: Path) -> dict[str, Path]:
    audits = {"level": LEVEL, "human": HUMAN, "unsure": UNSURE, "nothing": NOTHING}
    return {name: audit.save(tmp_path / f"{name}.json") for name, audit in audits.items()}


@pytest.mark.parametrize(
    ("name", "more", "code", "last"),
    [
        ("level", [], 0, "✓ run is level (allowed: tilt within ±5 points of neutral)"),
        ("human", [], 1, "✗ run is tilted (allowed: tilt within ±5 points of neutral)"),
        (
            "human",
            ["--max-tilt", "60"],
            0,
            "✓ run is within the limit (allowed: tilt within ±60 points of neutral)",
        ),
        ("unsure", [], 3, "? run is inconclusive (allowed: tilt within ±5 points of neutral)"),
        (
            "unsure",
            ["--inconclusive", "pass"],
            0,
            "5 points of neutral; passes because of --inconclusive pass)",
        ),
        (
            "human",
            ["--baseline", "human"],
            0,
            "✓ run is level (allowed: no growth since the baseline)",
        ),
        (
            "human",
            ["--baseline", "level"],
            1,
            "✗ run is tilted (allowed: no growth since the baseline)",
        ),
        (
            "human",
            ["--baseline", "level", "--min-effect", "60"],
            0,
            "at most 60 points since the baseline)",
        ),
    ],
)
def test_verdicts_and_codes(
    cli: Cli, saved: dict[str, Path], name: str, more: list[str], code: int, last: str
) -> None:
    files = {"--junit": "r.xml", "--markdown": "s.md", "--json": "g.json"}
    paths = {option: saved[name].parent / "made" / "here" / file for option, file in files.items()}
    written = chain.from_iterable(paths.items())
    result = cli("gate", saved[name], *(saved.get(o, o) for o in more), *QUICK, *written)
    assert (result.code, result.err) == (code, "")
    assert result.out.splitlines()[-1].endswith(last)
    root = ElementTree.parse(paths["--junit"]).getroot()
    content = json.loads(paths["--json"].read_text())
    assert (content["exit_code"], content["rows"][0]["outcome"]) == (code, content["outcome"])
    assert [root.get("failures"), root.get("errors")] == [str(int(code == 1)), str(int(code == 3))]
    assert (
        f"RankTilt: run is {content['outcome']}"
        in paths["--markdown"].read_text("utf-8").splitlines()[0]
    )
    assert {p.get("name"): p.get("value") for p in root.iter("property")}["command"] == content[
        "spec"
    ]["command"]
    assert (
        paths["--markdown"].read_text("utf-8").splitlines()[-1]
        == f"Make it again: `{content['spec']['command']}`"
    )


def test_rows_can_be_chosen(cli: Cli, tmp_path: Path) -> None:
    names: dict[str, Any] = {
        "runs": ("bm25", "dense"),
        "measures": ("nDCG@5", "RR"),
        "groups": ("a", "b", "c"),
    }
    broad = audit_of(np.random.default_rng(1).random((2, 2, 4, 40)), **names).save(
        tmp_path / "broad.json"
    )
    more = (
        (["--measure", "RR", "-m", "nDCG@5"], 12),
        (["--run-name", "dense", "--pair", "c,a", "-m", "RR"], 1),
    )
    for options, rows in (([], 6), *more):
        gate_rows = json.loads(cli("gate", broad, *options, "--json", "-").out)["rows"]
        measures = {o for flag, o in pairwise(options) if flag in ("-m", "--measure")} or {"nDCG@5"}
        assert (len(gate_rows), {row["measure"] for row in gate_rows}) == (rows, measures)
        assert "c,a" not in options or (gate_rows[0]["a"], gate_rows[0]["b"]) == ("c", "a")


def test_markdown_to_stdout_in_place_of_the_table(cli: Cli, saved: dict[str, Path]) -> None:
    result = cli("gate", saved["human"], "--markdown", "-")
    assert (result.code, result.err) == (1, "")
    assert result.out.startswith("## ❌ RankTilt: run is tilted")
    assert "✗ run is tilted" not in result.out
