"""ranktilt cite, and what takes its audits: compare, explain, report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.citing.engines import write_engines
from tests.cli.conftest import Cli

QUICK = ("--set", "statistics.resamples=200", "--quiet")


@pytest.fixture
def audits(cli: Cli, tmp_path: Path) -> list[Path]:
    """Audit both engines of a file."""
    answers = write_engines(tmp_path, {"beta": 3.0, "alpha": 1.0})
    files = []
    for engine in ("beta", "alpha"):
        file = tmp_path / f"{engine}.json"
        labels = f"{tmp_path}/pages.csv:id=url"
        options = ("--engine", engine, "--groups", labels, "--json", file)
        assert cli("cite", answers, *options, *QUICK).code == 0
        files.append(file)
    return files


def test_engines_are_compared_and_reported(cli: Cli, audits: list[Path], tmp_path: Path) -> None:
    saved, page = tmp_path / "compared.json", tmp_path / "both.html"
    result = cli("compare", *audits, *QUICK, "--json", saved, "-o", page)
    assert result.code == 0
    assert (
        "beta leans further toward ai pages than alpha: of consulted pages, ai ones" in result.out
    )
    content = json.loads(saved.read_text(encoding="utf-8"))
    assert content["format"] == "ranktilt-citation-comparison"
    assert content["changes"][0]["kind"] == "differs"
    assert "How beta differs from alpha" in page.read_text(encoding="utf-8")
    assert cli("report", saved, *audits, "-o", page).code == 0


def test_file_of_queries_is_not_replaced(cli: Cli, audits: list[Path], tmp_path: Path) -> None:
    queries = tmp_path / "queries.tsv"
    files = ("--groups", f"{tmp_path}/pages.csv:id=url", "--queries", queries, "--json", queries)
    result = cli("cite", tmp_path / "answers.jsonl", "--engine", "beta", *files)
    assert result.code == 2
    assert "queries.tsv: this file is read too" in result.err


def test_audit_of_citations_is_explained(cli: Cli, audits: list[Path], tmp_path: Path) -> None:
    refused = cli("explain", audits[0])
    assert refused.code == 2
    assert "has no column of numbers and no column text" in refused.err
    rows = (tmp_path / "pages.csv").read_text(encoding="utf-8").splitlines()
    lines = [f"{row},{len(row) % 7}" for row in rows[1:]]
    table = tmp_path / "words.csv"
    table.write_text("\n".join(["url,source,words", *lines]) + "\n", encoding="utf-8")
    result = cli("explain", audits[0], "--groups", f"{table}:id=url", "--quiet")
    assert result.code == 0
    assert result.out.startswith("Within a question, beta cites ai more often than human, by ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["compare", "{beta}"], "an audit of citations is compared with another one"),
        (["compare", "{beta}", "{alpha}", "--baseline-run", "bm25"], "compared two at a time"),
        (
            ["compare", "{beta}", "{alpha}", "--label-errors", "ai:fpr=.1,fnr=.1"],
            "corrected where it is made",
        ),
        (["gate", "{beta}", "--label-errors", "ai:fpr=.1,fnr=.1"], "corrected where it is made"),
        (["gate", "{beta}", "--max-failures", "5"], "--max-failures: an audit of citations takes"),
        (["explain", "{beta}", "--text", "title"], "--text: an audit of citations is explained"),
        (["explain", "{beta}", "--name", "ai=model"], "--name: it needs labels: --groups FILE"),
        (["explain", "{beta}", "--by-factor"], "--by-factor reads answers, not their audit"),
        (["compare", "{beta}", "{pages}"], "expected an audit, a pairwise audit, an audit of"),
        (["explain", "{beta}", "--attribution"], "--attribution: an audit of citations is"),
        (["explain", "{beta}", "--by", "kind"], "--by: an audit of citations is explained by"),
        (["mitigate", "{beta}"], "got an audit of citations"),
    ],
)
def test_refused(
    words: list[str], message: str, cli: Cli, audits: list[Path], tmp_path: Path
) -> None:
    files = {"beta": audits[0], "alpha": audits[1], "pages": tmp_path / "pages.csv"}
    result = cli(*(word.format(**files) for word in words))
    assert result.code == 2
    assert message in result.err
