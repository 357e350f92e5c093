"""ranktilt compare: two audits, and whether the new ranker tilts more."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.auditing.arrays import one
from tests.cli.conftest import Cli, refused

TILE = np.tile([0.9, 0.7, 0.8], 12)
QUICK = ("--resamples", "200")


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return one(0.5 * TILE, TILE, runs=["dense"]).save(tmp_path / "new.json")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return one(0.9 * TILE, TILE, runs=["bm25"]).save(tmp_path / "old.json")


def test_the_first_file_is_the_new_one(cli: Cli, new: Path, old: Path) -> None:
    there, back = (cli("compare", *files, *QUICK, "--quiet").out for files in ((new, old), (old, new)))
    assert "dense lies further toward llm than bm25 on nDCG@5: difference −56.1 points" in there
    assert "bm25 lies further toward human than dense on nDCG@5: difference +56.1 points" in back
    assert "; the tilt itself grew" in there
    assert "; the tilt itself shrank" in back


def test_the_seed_decides(cli: Cli, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    files = [one(*rng.random((2, 40))).save(tmp_path / f"{n}.json") for n in "ab"]
    outs = [cli("compare", *files, *QUICK, "--seed", seed).out for seed in ("0", "0", "1")]
    assert outs[0] == outs[1] != outs[2]


def test_real_audits_of_one_collection(cli: Cli, toy_folder: Path, tmp_path: Path) -> None:
    for ranker in ("bm25", "tfidf"):
        cli("audit", toy_folder, "-r", ranker, "-r", "bm25@2", *QUICK, "--json", tmp_path / f"{ranker}.json")
    result = cli("compare", tmp_path / "bm25.json", tmp_path / "tfidf.json", *QUICK)
    assert result.code == 0
    assert "bm25@2: the two audits are identical on nDCG@10\n" in result.out
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

    def test_one_audit_alone(self, cli: Cli, new: Path) -> None:
        either = (
            "name an old audit (OLD.json), or the run of one audit to compare with (--baseline-run RUN): one of both"
        )
        assert refused(cli, "compare", new) == refused(cli, "compare", new, new, "--baseline-run", "dense") == either
        assert refused(cli, "compare", new, "--baseline-run", "dense") == (
            "nothing to compare: the audit has no other run than 'dense'"
        )
        assert refused(cli, "compare", new, "--baseline-run", "bm25") == "unknown run 'bm25' (valid: dense)"


def test_runs_of_one_audit(cli: Cli, toy_folder: Path, tmp_path: Path) -> None:
    audit, found = tmp_path / "audit.json", tmp_path / "found.json"
    asked = ("-m", "nDCG@1", "-m", "ExposureRatio@2", "-m", "NDKL", *QUICK)
    cli("audit", toy_folder, "-r", "bm25", "-r", "tfidf", "-r", "bm25@2", *asked, "--json", audit)
    result = cli("compare", audit, "--baseline-run", "tfidf", *QUICK, "--json", found)
    assert result.code == 0
    assert "bm25@2: no difference in NDKL from tfidf shown; " in result.out
    assert "Reference: tfidf.\n" in result.out
    content = json.loads(found.read_text())
    assert [(c["run"], c["old_run"], c["estimand"]) for c in content["estimates"]] == [
        (run, "tfidf", one) for run in ("bm25", "bm25@2") for one in ("ExposureRatio@2", "NDKL")
    ]
    assert content["spec"]["baseline_run"] == "tfidf"
    page = cli("compare", audit, "--baseline-run", "tfidf", *QUICK, "--format", "html").out
    assert "Comparison of one audit&#39;s runs" in page
    assert " beside reference" in page
    assert "Other estimands of " in page
