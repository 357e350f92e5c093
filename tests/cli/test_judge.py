"""``ranktilt judge``: from files, from a collection, and with a model that grades; and its gate."""

import json
import re
import shlex
from pathlib import Path

import pytest

from ranktilt.data.formats.judgments.qrels import read_qrels, to_tsv
from ranktilt.data.save import save
from ranktilt.judging.result import JudgeAudit
from tests.cli.conftest import Cli, refused
from tests.judging.judged import FAMILIES, bed, grades, runs
from tests.llm.server import Server


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A collection of twins, a judge that likes text of models, six runs and their families."""
    collection = bed()
    fond = grades(collection, for_llm=0.6)
    save(collection, tmp_path / "bed")
    (tmp_path / "human.qrels").write_bytes(to_tsv(collection.qrels))
    (tmp_path / "fond.qrels").write_bytes(to_tsv(fond))
    (tmp_path / "runs").mkdir()
    for run in runs(collection, fond, 1.0):
        run.save(tmp_path / "runs" / f"{run.name}.trec")
    lines = [f"{run}\t{family}" for run, family in FAMILIES.items()]
    (tmp_path / "systems.tsv").write_text("\n".join(["run\tfamily", *lines]))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_judge_is_audited_from_files_and_gated(files: Path, cli: Cli) -> None:
    options = "--human human.qrels --judge fond.qrels --runs runs --systems systems.tsv -m nDCG@3"
    options += " --set statistics.resamples=200"
    done = cli("judge", *shlex.split(options), "--json", "judge.json", "-o", "judge.html")
    assert done.code == 0
    assert re.search(r"fond favours llm systems: \+\d+\.\d points", " ".join(done.out.split()))
    assert (
        JudgeAudit.load(files / "judge.json").spec["command"].startswith("ranktilt judge --human")
    )
    page = (files / "judge.html").read_text()
    assert "Do systems change places?" in page
    assert "Does a judge favour a family of systems?" in page
    assert cli("gate", "judge.json", "--min-tau", "0.99").code == 1
    unread = refused(cli, "gate", "judge.json", "--max-failures", "5")
    assert unread.startswith("--max-failures: an audit of judges takes --max-gap")
    passed = cli("gate", "judge.json", "--min-tau", "-1")
    assert (passed.code, "≥ -1" in passed.out) == (0, True)


def test_judges_are_compared_and_gated(files: Path, cli: Cli) -> None:
    (files / "fair.qrels").write_bytes(to_tsv(grades(bed(), noise=0.2, seed=4)))
    for name in ("fond", "fair"):
        options = ["--judge", f"{name}.qrels", "--runs", "runs", "-m", "nDCG@3"]
        assert cli("judge", "bed", *options, "--json", f"{name}.json").code == 0
    done = cli("compare", "fond.json", "fair.json", "-o", "drift.html", "--json", "drift.json")
    assert (done.code, "fond agrees less with humans than fair" in done.out) == (0, True)
    assert "ranktilt gate fond.json --baseline fair.json --max-loss 5" in done.out
    assert "What both judges graded" in (files / "drift.html").read_text()
    gate = ("gate", "fond.json", "--baseline", "fair.json")
    failed = cli(*gate, "--max-loss", "5")
    assert failed.code == 1
    assert "fond is beyond the limit (allowed:" in failed.out + failed.err
    passed = cli(*gate, "--max-shift", "1")
    assert passed.code == 0
    assert "fond is within the limit" in passed.out + passed.err
    assert cli(*gate).code == 1
    for typed, words in (
        (["gate", "fond.json", "--max-shift", "1"], "needs a baseline"),
        (["gate", "fond.json", "--max-tilt", "5"], "with --baseline --max-loss"),
        (["gate", "fond.json", "--baseline", "drift.json"], "expected an audit of judges"),
        (["compare", "fond.json"], "is compared with another one"),
        (["compare", "fond.json", "fair.json", "--baseline-run", "bm25"], "two at a time"),
    ):
        assert words in refused(cli, *typed)


def test_a_judge_of_a_collection_is_asked_about_its_sources(files: Path, cli: Cli) -> None:
    done = cli(
        "judge",
        "bed",
        "--judge",
        "fond.qrels",
        "-r",
        "bm25",
        "--set",
        "statistics.resamples=200",
        "--json",
        "j.json",
    )
    assert done.out.count("fond favours llm text on twins") == 1
    assert [tilt["judge"] for tilt in json.loads((files / "j.json").read_text())["tilts"]] == [
        "fond"
    ]
    assert cli("gate", "j.json", "--max-gap", "0.1").code == 1


def test_a_model_grades_and_is_audited(
    files: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server grades 3, above all human grades, where rivers come three times; it has no idea of
    clouds.
    """
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")

    def answered(messages: list[dict[str, str]], body: dict[str, object]) -> str:
        text = messages[-1]["content"]
        return (
            "no idea"
            if text.count("cloud") > 2
            else f"##final score: {3 * (text.count('river') > 2)}"
        )

    with Server(answer=answered) as server:
        words = [
            "judge",
            "bed",
            "--llm",
            f"openai:tiny(base_url={server.url})",
            "--prompt",
            "umbrela",
        ]
        dry = cli(*words, "--dry-run", "--price", "1,2")
        assert (dry.code, server.requests) == (0, [])
        assert re.search(r"pairs +480 pairs", dry.out)
        probed = cli(*words, "--dry-run", "--probe-pairs", "20")
        assert re.search(r"and probes .*\npairs +60 pairs", probed.out)
        done = cli(
            *words,
            "--save-grades",
            "m.qrels",
            "--set",
            "statistics.resamples=200",
            "--probe-pairs",
            "20",
        )
        request_count = len(server.requests)
        again = cli(*words, "--set", "statistics.resamples=200", "--probe-pairs", "20")
        assert len(server.requests) == request_count
    assert (done.code, again.code) == (0, 0)
    judgments = read_qrels(files / "m.qrels")
    assert 0 < judgments.height < 480
    assert "requests without a grade (unreadable), left out, not counted as 0" in done.out
    assert "agrees with humans at κ" in done.out
    assert "is fooled by query words: it grades passages of grade 0" in done.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            "--judge fond.qrels",
            "no human grades: name a file (--human FILE), or a collection DIR with judgments",
        ),
        (
            "--human human.qrels",
            "no judge: name its grades (--judge FILE), a model that makes them",
        ),
        ("--human human.qrels --judge gone", "gone: cannot be read: No such file or directory"),
        (
            "--human human.qrels --judge fond.qrels -r bm25",
            "ranker 'bm25' needs texts: name a collection DIR",
        ),
        (
            "--human human.qrels --judge fond.qrels --systems systems.tsv",
            "--systems needs runs (--runs DIR)",
        ),
        (
            "--human human.qrels --judge fond.qrels --runs empty",
            "--runs empty: no run in this folder",
        ),
        ("--human human.qrels --llm openai:m", "--llm grades texts: name a collection DIR"),
        ("bed --judge fond.qrels --pool 5", "--pool needs a model: --llm openai:MODEL"),
        ("bed --judge fond.qrels --dry-run", "--dry-run needs a model: --llm openai:MODEL"),
        ("bed --judge fond.qrels --pair human,gpt", "unknown source 'gpt' (valid: human, llm)"),
        (
            "bed --judge fond.qrels --relevant-from 3",
            "expected the smallest relevant grade between 1 and 2, got 3",
        ),
        ("bed --judge fond.qrels --json fond.qrels", "--json fond.qrels: this file is read too"),
        (
            "--scores fond.qrels",
            "--scores: name two files or more, first the values under human grades",
        ),
        (
            "--scores a --scores b --human human.qrels",
            "--human does not go with --scores, which needs no grades and no runs",
        ),
        (
            "bed --scores a --scores b",
            "DIR does not go with --scores, which needs no grades and no runs",
        ),
        (
            "--scores a --scores b --human-sample 9",
            "--human-sample does not go with --scores, which needs no grades and no runs",
        ),
        (
            "--scores a --scores b --text title",
            "--text does not go with --scores, which needs no grades and no runs",
        ),
        (
            "--scores a --scores b --score-order rank",
            "--score-order does not go with --scores, which needs no grades and no runs",
        ),
        (
            "bed --judge fond.qrels --runs runs --text title",
            "--text needs a ranker or a model: name one with -r or --llm",
        ),
        (
            "--human human.qrels --judge fond.qrels --split dev",
            "--split needs a collection: name its folder DIR",
        ),
        (
            "bed --judge fond.qrels -r bm25 --score-order rank",
            "--score-order needs runs (--runs DIR)",
        ),
        ("bed --judge fond.qrels -m P@5", "--measure: it needs runs (--runs DIR, or DIR -r SPEC)"),
        ("bed --llm openai:m --pool 5", "--pool: it needs runs (--runs DIR, or DIR -r SPEC)"),
        (
            "--human human.qrels --judge fond.qrels --pair human,llm",
            "--pair: it needs sources: name a collection DIR",
        ),
        (
            "--scores fond.qrels --scores fond.qrels",
            "fond.qrels:1: expected values per query, got documents",
        ),
    ],
)
def test_judge_refusals(files: Path, cli: Cli, options: str, message: str) -> None:
    (files / "empty").mkdir()
    assert message in refused(cli, "judge", *shlex.split(options))


def test_a_limit_that_an_audit_of_judges_cannot_hold_is_refused(files: Path, cli: Cli) -> None:
    cli(
        "judge",
        "--human",
        "human.qrels",
        "--judge",
        "fond.qrels",
        "--set",
        "statistics.resamples=100",
        "--json",
        "j.json",
    )
    message = "--max-tilt: an audit of judges takes --max-gap, --min-tau, and with --baseline"
    assert message in refused(cli, "gate", "j.json", "--max-tilt", "5")


HUMAN_VALUES = """runid,topic,ndcg@20,err@20
a,1,0.90,0.5
a,2,0.70,0.5
b,1,0.40,0.2
b,2,0.60,0.2
c,1,0.10,0.1
c,2,0.30,0.1
a,amean,0.80,0.5
"""


def test_published_values_of_systems_are_compared_without_grades(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """Under the judge b is above a: of three pairs of systems two agree, τ = (2 − 1)/3."""
    monkeypatch.chdir(tmp_path)
    Path("human.ndcgeval").write_text(HUMAN_VALUES)
    judged = HUMAN_VALUES.replace("b,1,0.40", "b,1,0.99").replace("b,2,0.60", "b,2,0.99")
    Path("judge.ndcgeval").write_text(judged)
    words = ["judge", "--scores", "human.ndcgeval", "--scores", "judge.ndcgeval"]
    done = cli(
        *words,
        "-m",
        "ndcg@20",
        "--json",
        "j.json",
        "-o",
        "j.html",
        "--set",
        "statistics.resamples=100",
    )
    assert done.code == 0
    assert "judge orders 3 systems by nDCG@20 with Kendall's τ-b .33" in done.out
    assert "judge, nDCG@20: 2 queries, but intervals need 6" in done.out
    assert "κ" not in done.out.split("Grades are not known")[0]
    saved = json.loads(Path("j.json").read_text())
    assert [(row["human"], row["judged"]) for row in saved["systems"]] == [
        (0.8, 0.8),
        (0.5, 0.99),
        (0.2, 0.2),
    ]
    assert saved["agreements"] == []
    assert "How far does a judge agree" not in Path("j.html").read_text()
    assert cli("gate", "j.json", "--min-tau", "0.5").code == 3
