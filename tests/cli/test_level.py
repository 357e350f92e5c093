"""ranktilt level: corrections at inference, and what they cost."""

import json
from pathlib import Path

import polars as pl
import pytest

import ranktilt as rt
from tests.cli.conftest import Cli, refused

QUICK = ("-m", "nDCG@3", "--resamples", "200", "--strength", "0.5", "--strength", "1")


@pytest.fixture
def bundled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The bundled collection as a folder, and a run of it with labels, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    collection = rt.bundled()
    rt.ranker("bm25@20").rank(collection).save("bm25.trec")
    collection.docs.select(doc_id="id", source="source").write_csv("labels.tsv", separator="\t")
    rt.save(collection, "bundled")
    return Path("bundled")


def test_what_the_bench_prints_can_be_typed(cli: Cli, bundled: Path) -> None:
    options = ("--level-margin", "30", "--budget", "0.1", "--seed", "1", "-o", "level.html", "--json", "level.json")
    options += ("--work-dir", "fits")
    code, out, _ = cli("level", bundled, "-r", "bm25", "--method", "offset", *QUICK, *options)
    assert code == 0
    assert "is level" in out
    found = rt.Bench.load("level.json")
    assert found.spec["queries"] == {"fit": 87, "select": 43, "test": 86}
    assert (found.level, found.budget, found.spec["levelling"]["seed"]) == (30, 0.1, 1)
    typed = next(one.ranker for one in found.interventions if one.name == "offset 1")
    assert typed == "bm25@100>>offset(fit=fits/bm25-100-offset.json)"
    code, out, _ = cli("audit", bundled, "-r", typed, "-m", "nDCG@3", "--resamples", "200", "--json", "-")
    assert code == 0
    assert len(json.loads(out)["queries"]) == 216 - 87
    assert "by strength of offset" in Path("level.html").read_text("utf-8")
    assert cli("report", "level.json", "-o", "again.html").code == 0


def test_own_splits_are_fitted_on_less_what_they_share_and_selected_by(cli: Cli, bundled: Path) -> None:
    test = bundled / "qrels" / "test.tsv"
    qrels = pl.read_csv(test, separator="\t")
    queries = qrels["query-id"].unique(maintain_order=True)
    for name, some in (("train", queries[:100]), ("dev", queries[100:150]), ("test", queries[150:])):
        part = qrels.filter(pl.col("query-id").is_in(some.to_list()))
        part.write_csv(test.with_name(f"{name}.tsv"), separator="\t")
    code, _, _ = cli("level", bundled, "-r", "bm25", "--method", "interleave", *QUICK, "--json", "level.json")
    assert code == 0
    assert rt.Bench.load("level.json").spec["queries"] == {"fit": 71, "select": 50, "test": 66}


def test_a_run_and_labels_are_enough(cli: Cli, bundled: Path) -> None:
    before = sorted(path.name for path in Path().iterdir())
    arguments = ("--run", "bm25.trec", "--groups", "labels.tsv", "--method", "fair-rerank", "--target", "0")
    code, out, _ = cli("level", *arguments, "--rerank-depth", "10", "--resamples", "200", "--strength", "1")
    assert code == 0
    assert "replay:" not in out
    assert "Share@10" in out
    assert sorted(path.name for path in Path().iterdir()) == before


def test_fits_that_nobody_keeps_leave_no_trace(cli: Cli, bundled: Path) -> None:
    options = ("--method", "offset", *QUICK[:4], "--strength", "1", "--level-margin", "25", "--seed", "1")
    options += ("--json", "l.json")
    results = []
    for _ in range(2):
        code, out, err = cli("level", bundled, "-r", "bm25", *options)
        results.append((code, out, err, Path("l.json").read_bytes()))
        Path("l.json").unlink()
    assert results[0] == results[1]
    assert sorted(path.name for path in Path().iterdir()) == ["bm25.trec", "bm25.trec.json", "bundled", "labels.tsv"]
    assert "Next: the same with --work-dir DIR, which keeps what was fitted; then ranktilt rank bundled -r" in err
    assert "'bm25@100>>offset(fit=DIR/bm25-100-offset.json)'" in err
    assert b'"bm25@100>>offset(fit=bm25-100-offset.json)"' in results[0][3]
    assert b"/tmp" not in results[0][3]


def test_audit_gate_and_level_say_the_same_of_a_run_and_labels(cli: Cli, bundled: Path) -> None:
    rt.ranker("bm25").rank(rt.bundled()).save("bm25.trec")  # as deep as it goes
    inputs = ("--run", "bm25.trec", "--groups", "labels.tsv", "--resamples", "1000")
    assert cli("audit", *inputs, "--json", "audit.json").code == 0
    (verdict,) = json.loads(Path("audit.json").read_text("utf-8"))["verdicts"]
    assert (verdict["kind"], verdict["side"], verdict["slight"]) == ("favours", "human", True)
    out = cli("gate", "audit.json", "--max-tilt", "5").out
    assert "✓ within the limit (asked: tilt within ±5 points of level)" in out
    options = ("--method", "fair-rerank", "--target", "0", "--strength", "1", "--json", "level.json")
    code, out, _ = cli("level", *inputs, *options)
    assert code == 0
    assert "Nothing to level: bm25 favours human text slightly, within ±5 points: human text fills " in out
    bench = json.loads(Path("level.json").read_text("utf-8"))
    assert (bench["outcome"], bench["chosen"], bench["verdicts"][0]["kind"]) == ("within", None, "favours")


def test_queries_that_a_fit_knows_alone_are_no_test(cli: Cli, bundled: Path) -> None:
    assert cli("level", bundled, "-r", "bm25", "--method", "offset", *QUICK, "--work-dir", "fits").code == 0
    fitted = json.loads(Path("fits/bm25-100-offset.json").read_text("utf-8"))["queries"]
    qrels = pl.read_csv(bundled / "qrels" / "test.tsv", separator="\t")
    qrels.filter(pl.col("query-id").is_in(fitted)).write_csv(bundled / "qrels" / "test.tsv", separator="\t")
    message = refused(cli, "audit", bundled, "-r", "bm25>>offset(fit=fits/bm25-100-offset.json)")
    assert "nothing left to test on: fits/bm25-100-offset.json learned from all 87 queries" in message
