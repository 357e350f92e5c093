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
    few, many = ("--max-failures", "10"), ("--max-failures", "100")
    for verb in (("rank", folder, "-o", run), ("audit", folder)):
        done = cli(*verb, "-r", RANKER, *few)
        assert done.code == 2
        assert "could not be read, max_failed=0.1 allows 10% (first: '" in done.err
        assert not (tmp_path / "run.trec").exists() or verb[0] == "audit"
        assert cli(*verb, "-r", RANKER, *many).code == 0
    assert cli("audit", folder, "--run", run, "--json", audit).code == 0
    gates = ("gate", audit), ("gate", audit, "--baseline", audit), ("compare", audit, audit)
    for command in (("audit", folder, "--run", run), *gates):
        done = cli(*command, *few)
        assert (done.code, done.err.count("\n")) == (2, 1)
        assert "could not be read, --max-failures allows 10% (first: '" in done.err
        assert cli(*command, *many).code in (0, 3)


def test_a_limit_that_nothing_could_break_is_refused(cli: Cli, tmp_path: Path) -> None:
    done = cli("audit", write_cocktail(tmp_path / "toy"), "-r", "bm25", "--max-failures", "5")
    assert done.code == 2
    assert done.err == (
        "ranktilt: --max-failures is about rankers that ask an engine or a language model, or about their runs; "
        "here is none\n"
    )
    assert "expected 0 to 100, got 101" in cli("audit", "x", "--max-failures", "101").err


def test_the_limit_reaches_every_ranker_that_has_one_and_sets_none() -> None:
    from ranktilt.cli.options import RankerOptions

    specs = ["bm25@5>>setwise:openai:m", "engine:my_engine:search(max_failed=0.5)", "tfidf"]
    found = RankerOptions(max_failures=2.5).rankers(specs)
    assert list(map(repr, found)) == [
        "bm25@5>>setwise:openai:m(max_failed=0.025)", "engine:my_engine:search(max_failed=0.5)", "tfidf",
    ]  # fmt: skip
