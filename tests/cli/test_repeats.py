"""Repeats on the command line: one name for several runs, files of repeats, engines."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Cli

QUICK = ("--set", "statistics.resamples=300", "-m", "nDCG@10")
QUERIES, DOCUMENTS, DEPTH = 30, 80, 15


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three repeats of one engine, labels and judgments."""
    path = tmp_path_factory.mktemp("repeats")
    rng = np.random.default_rng(4)
    kinds = ["ai" if is_ai else "human" for is_ai in rng.random(DOCUMENTS) < 0.5]
    rows = [f"d{number},{kind}" for number, kind in enumerate(kinds)]
    (path / "labels.csv").write_text("\n".join(["doc_id,source", *rows]) + "\n")
    judged, lines = [], [list[str]() for _ in range(3)]
    for query in range(QUERIES):
        drawn = rng.choice(DOCUMENTS, DEPTH, replace=False)
        judged += [f"q{query} 0 d{document} 1" for document in drawn[:6]]
        fixed = rng.standard_normal(DEPTH)
        for repeat in lines:
            scores = fixed + rng.standard_normal(DEPTH)
            for rank, position in enumerate(np.argsort(-scores), start=1):
                score = f"{scores[position]:.6f}"
                repeat.append(f"q{query} Q0 d{drawn[position]} {rank} {score} engine")
    (path / "qrels.txt").write_text("\n".join(judged) + "\n")
    for number, repeat in enumerate(lines, start=1):
        (path / f"{number}.trec").write_text("\n".join(repeat) + "\n")
    together = [
        line.replace(" engine", f" engine-{number}")
        for number, repeat in enumerate(lines, start=1)
        for line in repeat
    ]
    (path / "all.trec").write_text("\n".join(together) + "\n")
    return path


def words(folder: Path, *runs: str) -> list[str]:
    inputs = ["--groups", str(folder / "labels.csv"), "--qrels", str(folder / "qrels.txt")]
    for run in runs:
        inputs += ["--run", run]
    return ["audit", *inputs, *QUICK]


def repeat_options(folder: Path) -> list[str]:
    return [f"e={folder / f'{number}.trec'}" for number in (1, 2, 3)]


def test_audit_of_repeats_is_printed_and_made_again(cli: Cli, folder: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    printed = cli(*words(folder, *repeat_options(folder)), "--json", str(first))
    assert printed.code == 0, printed.err
    assert "e is the mean of 3 repeats: of the variance of Relative Δ nDCG@10," in printed.out
    assert cli("audit", first, "--quiet", "--json", second).code == 0
    audits = [json.loads(path.read_text()) for path in (first, second)]
    assert audits[0]["runs"] == ["e"]
    assert audits[0]["tilts"] == audits[1]["tilts"]
    assert audits[0]["repeats"] == audits[1]["repeats"]


def test_file_of_repeats_is_three_files(cli: Cli, folder: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    assert cli(*words(folder, *repeat_options(folder)), "--json", str(first)).code == 0
    assert cli(*words(folder, f"e={folder / 'all.trec'}"), "--json", str(second)).code == 0
    audits = [json.loads(path.read_text()) for path in (first, second)]
    assert audits[0]["tilts"] == audits[1]["tilts"]
    assert audits[0]["repeats"] == audits[1]["repeats"]


def test_page_has_tables_of_repeats(cli: Cli, folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert cli(*words(folder, *repeat_options(folder)), "-o", str(page)).code == 0
    text = page.read_text()
    assert "Repeats of one engine" in text
    assert "Standard error with other numbers of repeats" in text


def test_other_queries_are_refused(cli: Cli, folder: Path, tmp_path: Path) -> None:
    lines = (folder / "1.trec").read_text().splitlines()
    for name, query in (("a", "q0 "), ("b", "q1 ")):
        part = [line for line in lines if line.startswith(query)]
        (tmp_path / f"{name}.trec").write_text("\n".join(part) + "\n")
    printed = cli(*words(folder, f"e={tmp_path / 'a.trec'}", f"e={tmp_path / 'b.trec'}"))
    assert printed.code == 2
    assert "repeats must answer the same queries" in printed.err


def test_other_verbs_refuse_a_file_of_repeats(cli: Cli, folder: Path) -> None:
    printed = cli(
        "explain", "--run", folder / "all.trec", "--groups", folder / "labels.csv", "--quiet"
    )
    assert printed.code == 2
    assert "3 repeats of each query, which only an audit averages" in printed.err


def test_explain_and_mitigate_ask_for_one_repeat(cli: Cli, folder: Path, tmp_path: Path) -> None:
    audit = tmp_path / "audit.json"
    single = str(folder / "1.trec")
    assert cli(*words(folder, *repeat_options(folder)), "--json", str(audit)).code == 0
    for verb in ("explain", "mitigate"):
        printed = cli(verb, audit)
        assert printed.code == 2
        assert (
            f"'e' is the mean of several rankings of each query, and {verb} reads one; name a "
            f"file of one repeat: ranktilt {verb} {audit} --run FILE"
        ) in printed.err
    assert cli("mitigate", audit, "--run", single, "--quiet").code == 0
    described = cli("check", audit).out
    assert "ranktilt gate" in described
    assert "ranktilt explain" not in described


def test_explain_and_mitigate_leave_out_runs_with_repeats(
    cli: Cli, folder: Path, tmp_path: Path
) -> None:
    audit = tmp_path / "audit.json"
    single = f"single={folder / '1.trec'}"
    assert cli(*words(folder, *repeat_options(folder), single), "--json", str(audit)).code == 0
    printed = cli("mitigate", audit)
    assert printed.code == 0
    assert "'e': left out, because mitigate reads one ranking of each query" in printed.err


def test_mitigate_refuses_a_file_of_repeats(cli: Cli, folder: Path) -> None:
    labels, run = str(folder / "labels.csv"), str(folder / "all.trec")
    printed = cli("mitigate", "--run", run, "--groups", labels)
    assert printed.code == 2
    assert "3 repeats of each query, which only an audit averages" in printed.err


def test_pairs_of_three_groups_are_named(cli: Cli, folder: Path, tmp_path: Path) -> None:
    rows = [f"d{number},{('ai', 'human', 'mixed')[number % 3]}" for number in range(DOCUMENTS)]
    labels = tmp_path / "labels.csv"
    labels.write_text("\n".join(["doc_id,source", *rows]) + "\n")
    runs = [word for run in repeat_options(folder) for word in ("--run", run)]
    printed = cli("audit", "--groups", labels, *runs, "--set", "statistics.resamples=300")
    for pair in ("human | ai", "human | mixed", "ai | mixed"):
        assert f"e is the mean of 3 repeats: of the variance of Share@10 ({pair})," in printed.out
