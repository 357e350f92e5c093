"""Rankers that ask a language model, from the command line: what may fail, and what it costs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.llm.server import Server
from tests.rankers.llm.judge import Judge
from tests.toy import write_cocktail

RANKER = "bm25@5>>listwise:openai:tiny(window=3,step=2)"


@pytest.fixture
def judge() -> Judge:
    """Half of its answers are prose."""
    return Judge(value=len, prose=0.5)


@pytest.fixture
def server(judge: Judge, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with Server(answer=judge) as found:
        monkeypatch.setenv("OPENAI_BASE_URL", found.url)
        yield found


@pytest.mark.usefixtures("server")
def test_more_failures_than_allowed_end_each_verb_that_meets_them(cli: Cli, tmp_path: Path) -> None:
    folder, run, audit = write_cocktail(tmp_path / "toy"), tmp_path / "run.trec", tmp_path / "audit.json"
    few, many = ("--max-failures", "0.1"), ("--max-failures", "1")
    for verb in (("rank", folder, "-o", run), ("audit", folder)):
        done = cli(*verb, "-r", RANKER, *few)
        assert done.code == 2
        assert "could not be read, max_failures=0.1 allows 10% (first: '" in done.err
        assert not (tmp_path / "run.trec").exists() or verb[0] == "audit"
        assert cli(*verb, "-r", RANKER, *many).code == 0
    assert cli("audit", folder, "--run", run, "--json", audit).code == 0
    gates = ("gate", audit), ("gate", audit, "--baseline", audit), ("compare", audit, audit)
    for command in (("audit", folder, "--run", run), *gates):
        done = cli(*command, *few)
        assert (done.code, done.err.count("\n")) == (2, 1)
        assert "could not be read, --max-failures allows 10% (first: '" in done.err
        assert cli(*command, *many).code in (0, 3)


def test_the_limit_reaches_every_ranker_that_has_one_and_sets_none() -> None:
    from ranktilt.cli.options import EngineOptions

    specs = ["bm25@5>>setwise:openai:m", "engine:my_engine:search(max_failures=0.5)", "tfidf"]
    found = EngineOptions(max_failures=0.025).rankers(specs)
    assert list(map(repr, found)) == [
        "bm25@5>>setwise:openai:m(max_failures=0.025)", "engine:my_engine:search(max_failures=0.5)", "tfidf",
    ]  # fmt: skip


def estimated(out: str) -> dict[str, str]:
    return dict(line.strip().split("  ", 1) for line in out.splitlines() if line.startswith("  "))


def test_a_dry_run_counts_what_would_be_asked_and_asks_nothing(
    cli: Cli, judge: Judge, server: Server, tmp_path: Path
) -> None:
    judge.prose = 0.0
    folder = write_cocktail(tmp_path / "toy")
    done = cli("rank", folder, "-r", RANKER, "--dry-run", "--price", "1000,2000")
    assert done.code == 0
    assert not server.requests
    first = {name: text.strip() for name, text in estimated(done.out).items()}
    assert done.out.startswith(f"{RANKER}\n  requests    ")
    assert cli("rank", folder, "-r", RANKER, "-o", tmp_path / "run.trec").code == 0
    count = len(server.requests)
    assert first["requests"] == f"{count} (0 of {count} are answered already)"
    bodies = [body["messages"][0]["content"] for body in server.bodies]
    read = int(first["tokens in"].partition(",")[0])
    assert abs(read - sum(len(text.encode()) / 4 + 12 for text in bodies)) <= len(bodies)
    written = int(first["tokens out"].partition(",")[0])
    assert 3 * count <= written <= 12 * count
    assert first["price"] == f"{(read * 1000 + written * 2000) / 1e6:,.2f}"

    again = estimated(cli("rank", folder, "-r", RANKER, "--dry-run").out)
    assert again["requests"].strip() == f"0 ({count} of {count} are answered already)"
    assert again["tokens in"].strip().startswith("0, ")
    assert len(server.requests) == count


@pytest.mark.usefixtures("server")
def test_a_dry_run_of_several_stages_says_what_each_would_ask(cli: Cli, server: Server, tmp_path: Path) -> None:
    spec = "bm25@8>>setwise:openai:tiny(size=3,top=3)@4>>pointwise:openai:tiny"
    done = cli("rank", write_cocktail(tmp_path / "toy"), "-r", spec, "-r", "bm25", "--dry-run")
    blocks = done.out.split("\n\n")
    assert [block.splitlines()[0] for block in blocks] == [spec.rpartition(">>")[0], spec]
    assert estimated(blocks[0])["price"].strip() == "give one with --price IN,OUT per million tokens"
    assert not server.requests


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-r", "bm25", "--dry-run"], "--dry-run is about rankers that ask a language model; here is none"),
        (["-r", "bm25", "--price", "1,2", "-o", "x"], "--price is about the estimate; ask for it: --dry-run"),
        (["-r", "bm25"], "where to? Name a file: -o FILE; or ask for the cost of language models: --dry-run"),
        (
            ["-r", RANKER, "--dry-run", "--price", "1"],
            "--price expects two numbers, of a million tokens in and out, such as 0.15,0.60; got '1'",
        ),
        (["-r", RANKER, "--dry-run", "--price=-1,1"], "a price must be 0 or more, got -1,1"),
    ],
)
def test_dry_runs_that_say_nothing_are_refused(
    cli: Cli, own_cache: Path, tmp_path: Path, options: list[str], message: str
) -> None:
    done = cli("rank", write_cocktail(tmp_path / "toy"), *options)
    assert (done.code, done.err) == (2, f"ranktilt: {message}\n")
