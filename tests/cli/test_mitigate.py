"""ranktilt mitigate and train study: corrections and what they cost; trainings against the human
side.
"""

import gzip
import json
import re
import shlex
from pathlib import Path

import polars as pl
import pytest

import ranktilt as rt
from ranktilt.cli.train.arguments import read_amounts
from ranktilt.cli.train.study import read_zero_shot
from ranktilt.training.study_options import ZeroShot
from tests.cli.conftest import Cli
from tests.mitigation.planted import answered_folder
from tests.mitigation.test_fits import written

QUICK = (
    "-m",
    "nDCG@3",
    "--set",
    "statistics.resamples=200",
    "--strength",
    "0.5",
    "--strength",
    "1",
)


@pytest.fixture
def bundled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The bundled collection as a folder, and a run of it with labels, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    collection = rt.bundled()
    rt.ranker("bm25@20").rank(collection).save("bm25.trec")
    collection.docs.select(doc_id="id", source="source").write_csv("labels.tsv", separator="\t")
    rt.save(collection, "bundled")
    return Path("bundled")


def save_splits(folder: Path) -> None:
    """Part the test judgments of a collection into train, dev and test."""
    test = folder / "qrels" / "test.tsv"
    qrels = pl.read_csv(test, separator="\t")
    queries = qrels["query-id"].unique(maintain_order=True)
    parts = {"train": queries[:100], "dev": queries[100:150], "test": queries[150:]}
    for name, part in parts.items():
        judgments = qrels.filter(pl.col("query-id").is_in(part.to_list()))
        judgments.write_csv(test.with_name(f"{name}.tsv"), separator="\t")


def test_printed_formula_can_be_typed(cli: Cli, bundled: Path) -> None:
    options = (
        "--margin",
        "30",
        "--budget",
        "10%",
        "--set",
        "statistics.seed=1",
        "-o",
        "mitigated.html",
        "--json",
        "level.json",
    )
    options += ("--save-ranker", "fits")
    code, out, err = cli("mitigate", bundled, "-r", "bm25", "--method", "offset", *QUICK, *options)
    assert code == 0
    assert "Mitigated by offset " in out
    bench = rt.Bench.load("level.json")
    assert bench.spec["queries"] == {"fit": 87, "select": 43, "test": 86}
    assert (bench.margin, bench.budget, bench.spec["mitigation"]["seed"]) == (30, 10, 1)
    chosen = bench.choose().chosen
    assert chosen is not None
    typed = Path("fits/ranker.txt").read_text("utf-8").strip()
    strength = "" if chosen.strength == 1 else f",strength={chosen.strength:g}"
    assert typed == (
        f"bm25@100>>offset(fit=fits/bm25-100-offset.json{strength},chosen_by=fits/queries.json)"
    )
    assert f"fits: {chosen.name}, as -r '{typed}'" in err
    assert f"Next: Rank with it: ranktilt rank bundled -r '{typed}' -o mitigated.trec" in err
    code, out, _ = cli(
        "audit",
        bundled,
        "-r",
        typed,
        "-m",
        "nDCG@3",
        "--set",
        "statistics.resamples=200",
        "--json",
        "-",
    )
    assert code == 0
    audited = json.loads(out)
    assert len(audited["queries"]) == 86  # neither those to fit on nor those to choose by
    tilt, promised = audited["tilts"][0], bench.tilt(chosen.name, ("human", "claude"))
    assert tilt["value"] == pytest.approx(promised.value)
    assert "by strength of offset" in Path("mitigated.html").read_text("utf-8")
    assert cli("report", "level.json", "-o", "again.html").code == 0


def test_own_splits_are_fitted_without_overlap_and_selected_by(cli: Cli, bundled: Path) -> None:
    save_splits(bundled)
    code, _, _ = cli(
        "mitigate", bundled, "-r", "bm25", "--method", "interleave", *QUICK, "--json", "level.json"
    )
    assert code == 0
    assert rt.Bench.load("level.json").spec["queries"] == {"fit": 71, "select": 50, "test": 66}


def test_another_collection_is_fitted_on(cli: Cli, bundled: Path) -> None:
    rt.save(written("bell", 12, sources=("human", "claude")), "bells")
    options = (
        "--method",
        "offset",
        *QUICK,
        "--json",
        "level.json",
        "-o",
        "mitigated.html",
    )
    code, out, _ = cli("mitigate", bundled, "-r", "bm25", "--fit", "bells", *options)
    assert code == 0
    bench = rt.Bench.load("level.json")
    assert bench.spec["queries"] == {"fit": 12, "select": 72, "test": 144}
    assert bench.spec["fitted_on"] == "bells"
    assert "fitted on bells" in out
    assert "fitted on bells" in Path("mitigated.html").read_text("utf-8")
    qrels = bundled / "qrels" / "test.tsv"
    grades = pl.read_csv(qrels, separator="\t")
    dev = pl.col("query-id").is_in(grades["query-id"].unique(maintain_order=True)[:50].to_list())
    grades.filter(dev).write_csv(qrels.with_name("dev.tsv"), separator="\t")
    grades.filter(~dev).write_csv(qrels, separator="\t")
    assert cli("mitigate", bundled, "-r", "bm25", "--fit", "bells", *options[:-2]).code == 0
    assert rt.Bench.load("level.json").spec["queries"] == {"fit": 12, "select": 50, "test": 166}


@pytest.mark.long
def test_run_and_labels_suffice_and_audit_gate_level_agree(cli: Cli, bundled: Path) -> None:
    before = sorted(path.name for path in Path().iterdir())
    arguments = (
        "--run",
        "bm25.trec",
        "--groups",
        "labels.tsv",
        "--method",
        "fair-rerank(target=0)",
    )
    code, out, _ = cli(
        "mitigate",
        *arguments,
        "--rerank-depth",
        "10",
        "--set",
        "statistics.resamples=200",
        "--strength",
        "1",
    )
    assert code == 0
    assert "replay:" not in out
    assert "Share@10" in out
    assert sorted(path.name for path in Path().iterdir()) == before
    rt.ranker("bm25").rank(rt.bundled()).save("bm25.trec")  # as deep as it goes
    inputs = ("--run", "bm25.trec", "--groups", "labels.tsv", "--set", "statistics.resamples=1000")
    inputs += ("--margin", "6")
    assert cli("audit", *inputs, "--json", "audit.json").code == 0
    (verdict,) = json.loads(Path("audit.json").read_text("utf-8"))["verdicts"]
    assert (verdict["kind"], verdict["side"], verdict["slight"]) == ("favours", "human", True)
    out = cli("gate", "audit.json", "--max-tilt", "6").out
    assert "✓ bm25 is within the limit (allowed: tilt within ±6 points of neutral)" in out
    options = (
        "--method",
        "fair-rerank(target=0)",
        "--strength",
        "1",
        "--json",
        "level.json",
    )
    code, out, err = cli("mitigate", *inputs, *options)
    assert code == 0
    assert (
        "Not mitigated: bm25 favours human text slightly, within ±6 points: human text fills "
        in out
    )
    bench = json.loads(Path("level.json").read_text("utf-8"))
    assert (bench["outcome"], bench["chosen"], bench["verdicts"][0]["kind"]) == (
        "level",
        None,
        "favours",
    )
    assert len(bench["candidates"]) == 1
    step = next(line for line in out.splitlines() if line.startswith("Next: "))
    assert step.startswith("Next: Try corrections all the same: ranktilt mitigate")
    assert step.endswith("--set mitigate.always=true")
    assert "Next: " not in err
    code, out, _ = cli("mitigate", *inputs, *options, "--set", "mitigate.always=true")
    assert code == 0
    assert "fair-rerank 1" in out
    assert "Not mitigated: " in out


def test_fits_that_nobody_keeps_leave_no_trace(cli: Cli, bundled: Path) -> None:
    options = (
        "--method",
        "offset",
        *QUICK[:4],
        "--strength",
        "1",
        "--margin",
        "25",
        "--set",
        "statistics.seed=1",
    )
    options += ("--json", "l.json")
    results = []
    for _ in range(2):
        code, out, err = cli("mitigate", bundled, "-r", "bm25", *options)
        results.append((code, out, err, Path("l.json").read_bytes()))
        Path("l.json").unlink()
    assert results[0] == results[1]
    assert sorted(path.name for path in Path().iterdir()) == [
        "bm25.trec",
        "bm25.trec.json",
        "bundled",
        "labels.tsv",
    ]
    again = " ".join(["ranktilt mitigate bundled -r bm25", *options])
    assert f"Next: Write the corrected ranker: {again} --save-ranker mitigated\n" in results[0][1]
    assert b'"bm25@100>>offset(fit=bm25-100-offset.json)"' in results[0][3]
    assert b"/tmp" not in results[0][3]


RUN = ("--run", "bm25.trec", "--groups", "labels.tsv", "-m", "Share@1", "--margin", "15")
"""A run whose tilt interleaving levels, as the words below ask for."""
QUICKLY = ("--set", "statistics.resamples=500")


def lists_in(file: str) -> dict[str, list[tuple[str, float]]]:
    """Read the lists of a TREC file."""
    lists = dict[str, list[tuple[str, float]]]()
    for line in Path(file).read_text("utf-8").splitlines():
        query, _, doc, _, score, _ = line.split()
        lists.setdefault(query, []).append((doc, float(score)))
    return lists


def test_saved_run_has_the_tilt_that_was_promised(cli: Cli, bundled: Path) -> None:
    rt.ranker("bm25@50").rank(rt.bundled()).save("bm25.trec")
    words = (*RUN, *QUICKLY, "--method", "interleave")
    code, out, err = cli(
        "mitigate", *words, "--save-run", "mitigated.trec", "--json", "mitigated.json"
    )
    assert code == 0
    assert "Mitigated by interleave " in out
    bench = json.loads(Path("mitigated.json").read_text("utf-8"))
    chosen = bench["chosen"]
    assert (bench["outcome"], bench["applied"]) == ("mitigated", chosen)
    assert f"To build {chosen} into an engine: The groups of source take turns" in out
    assert f"mitigated.trec: 216 queries, by {chosen}\n" in err
    assert " queries fit corrections, " in err.splitlines()[0]
    step = err[err.index("Next: Keep it this way in CI: ranktilt ") :].splitlines()[0]
    for command in step.removeprefix("Next: Keep it this way in CI: ").split(" && "):
        assert cli(*shlex.split(command)[1:]).code in (0, 1, 3)
    assert list(lists_in("mitigated.trec")) == list(lists_in("bm25.trec"))
    code, out, _ = cli("audit", "--run", "mitigated.trec", *RUN[2:6], *QUICKLY, "--json", "-")
    audited = json.loads(out)
    assert len(audited["queries"]) == bench["spec"]["queries"]["test"]
    (share,) = [row for row in audited["card"] if row["estimand"] == "Share@1"]
    (promised,) = [
        row for row in bench["tilts"] if (row["run"], row["estimand"]) == (chosen, "Share@1")
    ]
    assert (share["value"], share["low"], share["high"]) == (
        promised["value"],
        promised["low"],
        promised["high"],
    )


def test_gate_command_keeps_names_of_labels(cli: Cli, bundled: Path) -> None:
    rt.ranker("bm25@20").rank(rt.bundled()).save("bm25.trec")
    words = ("--run", "bm25.trec", "--name", "claude=ai", "-m", "Share@1", "--method", "interleave")
    words += ("--set", "statistics.resamples=100", "--set", "mitigate.always=true")
    code, _, err = cli("mitigate", bundled, *words, "--save-run", "mitigated.trec")
    assert code == 0, err
    assert "ranktilt audit bundled --run mitigated.trec --name claude=ai --primary" in err


@pytest.mark.long
def test_saved_run_keeps_results_below_the_corrected_ones(cli: Cli, bundled: Path) -> None:
    rt.ranker("bm25@50").rank(rt.bundled()).save("bm25.trec")
    words = (*RUN, "--set", "statistics.resamples=200", "--method", "interleave")
    words += ("--rerank-depth", "20", "--set", "mitigate.always=true")
    code, _, err = cli(
        "mitigate", *words, "--save-run", "mitigated.trec", "--json", "mitigated.json"
    )
    assert code == 0
    assert "216 queries, corrected in the first 20 results of each list, by interleave " in err
    before, after = lists_in("bm25.trec"), lists_in("mitigated.trec")
    assert list(after) == list(before)
    deep_queries = [query for query, results in before.items() if len(results) > 22]
    assert deep_queries
    for query in deep_queries:
        assert sorted(doc for doc, _ in after[query]) == sorted(doc for doc, _ in before[query])
        # Twins that share the last rank are corrected together, so a few ranks more may change.
        assert [doc for doc, _ in after[query][22:]] == [doc for doc, _ in before[query][22:]]


@pytest.mark.long
def test_nothing_is_saved_unless_forced(cli: Cli, bundled: Path) -> None:
    words = ("--run", "bm25.trec", "--groups", "labels.tsv", *QUICKLY, "--margin", "0.5")
    words += ("--method", "offset", "--method", "interleave")
    code, _, err = cli("mitigate", *words, "--save-run", "mitigated.trec")
    assert code == 1
    assert not Path("mitigated.trec").exists()
    (message,) = (line for line in err.splitlines() if "nothing written, because " in line)
    assert "mitigated.trec: nothing written, because " in message
    assert message.endswith(
        "; take more queries or apply a correction all the same (--set mitigate.always=true)"
    )
    forced = shlex.split(err.splitlines()[-1].partition(": ranktilt ")[2])
    code, _, err = cli(*forced)
    assert code == 0
    assert ", which is not shown to be level\n" in err
    assert len(lists_in("mitigated.trec")) == 216


def test_saved_run_of_offset_is_its_printed_formula(cli: Cli, bundled: Path) -> None:
    words = ("--run", "bm25.trec", "--groups", "labels.tsv", *QUICKLY, "--method", "offset")
    force = ("--strength", "0.8", "--set", "mitigate.always=true")
    code, out, _ = cli("mitigate", *words, *force, "--save-run", "mitigated.trec.gz")
    assert code == 0
    offsets = {
        match[1]: float(match[2]) for match in re.finditer(r"offset\[(\w+)\] *= (\S+)\n", out)
    }
    assert set(offsets) == {"human", "claude"}
    with gzip.open("mitigated.trec.gz", "rt") as stream:
        Path("plain.trec").write_text(stream.read(), "utf-8")
    labels = dict(
        line.split("\t") for line in Path("labels.tsv").read_text("utf-8").splitlines()[1:]
    )
    for query, entries in lists_in("bm25.trec").items():
        scores = {doc: score + offsets[labels[doc]] for doc, score in entries}
        order = sorted(scores, key=lambda doc: -scores[doc])
        assert order == [doc for doc, _ in lists_in("plain.trec")[query]]


SAVING_REFUSALS = """
bundled -r bm25 --save-run m.trec | --save-run needs a saved run
--run bm25.trec --groups labels.tsv --save-ranker m | --save-ranker needs a ranker
--run bm25.trec --groups labels.tsv --save-run m.csv | runs are written in TREC format
--run bm25.trec --groups labels.tsv --save-run bm25.trec | this file is read too
--run bm25.trec --groups labels.tsv --save-run labels.tsv/m.trec | cannot be written
--run bm25.trec --run bm25.trec --groups labels.tsv --save-run m.trec \
| mitigate takes one ranker or run; got 2
bundled -r bm25 --save-ranker labels.tsv | expected a folder to write to, got a file
bundled --run - --save-run m.trec | standard input can be read only once
"""


@pytest.mark.parametrize("line", SAVING_REFUSALS.strip().splitlines())
def test_saving_is_refused_before_anything_is_ranked(cli: Cli, bundled: Path, line: str) -> None:
    words, _, key = line.partition(" | ")
    code, _, err = cli("mitigate", *words.split())
    assert code == 2
    assert key in err
    assert len(err.splitlines()) == 1


@pytest.mark.neural
@pytest.mark.long
def test_a_study_of_training_is_written(
    cli: Cli, tmp_path: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answered_folder(tmp_path / "qa")
    values = "steps=2 batch=8 max_query_tokens=6 max_document_tokens=16 seed=4 positives=all"
    values += " warmup_steps=1 statistics.resamples=100"
    few = list[str]()
    for value in values.split():
        few += ["--set", value]
    code, out, err = cli(
        "train",
        "study",
        "qa",
        "--base-model",
        tiny,
        *few,
        "--rerank-depth",
        "9",
        "--test-queries",
        "3",
        "--seeds",
        "2",
        "--set",
        "statistics.seed=4",
        "--disjoint",
        "--preset",
        "askari",
        "--negatives",
        "random:20",
        "-o",
        "s.html",
        "--json",
        "s.json",
    )
    assert code == 0
    assert "qa-test (6 queries, depth 9)" in out
    assert "Body already tuned for retrieval: " in out
    assert "each trained ranker is the mean of 2 trainings with different seeds" in out
    assert err.splitlines()[-1] == "qa-training: the trained models and their runs"
    content = json.loads((tmp_path / "s.json").read_text())
    assert [row["seed"] for row in content["rankers"]] == [4, 4, 5, 5]
    spec = content["spec"]
    assert (spec["training"]["rate"], spec["training"]["steps"], spec["training"]["loss"]) == (
        7e-6,
        2,
        "binary",
    )
    names = ("negatives", "positives", "warmup_steps", "negatives_per_positive")
    assert [spec["training"][name] for name in names] == ["random:20", "all", 1, 4]
    assert (spec["queries"], spec["disjoint"], spec["depth"]) == (3, True, 9)
    assert len(list((tmp_path / "qa-training" / "models").iterdir())) == 4
    assert (
        "What training on either side does to the source bias" in (tmp_path / "s.html").read_text()
    )
    table = cli("report", "s.json", "--layout", "askari-4").out
    assert "| qa-test (human responses) |" in table


def test_zero_shot_options() -> None:
    assert read_zero_shot("irds:x/y") == ZeroShot("irds:x/y")
    zero_shot = ZeroShot("a", qrels="q", candidates="c", name="n")
    assert read_zero_shot("a,qrels=q,candidates=c,name=n") == zero_shot
    assert read_amounts(["human=100,llm=0"], "--curve") == {"human": 100, "llm": 0}


@pytest.mark.long
def test_page_of_a_mitigated_run_leaves_out_fitted_queries(cli: Cli, bundled: Path) -> None:
    rt.ranker("bm25@50").rank(rt.bundled()).save("bm25.trec")
    words = (*RUN, "--set", "statistics.resamples=200", "--method", "interleave")
    cli("mitigate", *words, "--save-run", "m.trec", "--set", "mitigate.always=true")
    labels = RUN[RUN.index("--groups") :]
    files = ("--json", "audit.json", "-o", "audit.html")
    audited = cli("audit", "--run", "bm25.trec", "--run", "m.trec", *labels, *files)
    assert audited.code == 0
    queries = json.loads(Path("audit.json").read_text())["queries"]
    assert len(queries) < 216
    assert cli("report", "audit.json", "-o", "again.html").code == 0
    # Both pages hold the lists of the tested queries.
    assert "of 216 queries" not in Path("audit.html").read_text()
    assert Path("again.html").stat().st_size > 100_000


def test_run_of_test_queries_is_drawn_into_parts(cli: Cli, bundled: Path) -> None:
    save_splits(bundled)
    assert cli("rank", bundled, "-r", "tfidf", "-o", "test.trec").code == 0
    words = ("mitigate", bundled, "--run", "test.trec", "--method", "offset", *QUICK)
    code, _, err = cli(*words)
    assert code == 0
    assert "the run has no queries of train and dev, so its own are split at random" in err
