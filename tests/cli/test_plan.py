"""ranktilt tools plan: what a larger collection would cost."""

import json
from pathlib import Path

import pytest

import ranktilt as rt
from ranktilt.cli.tools.plan import read_count
from tests.cli.conftest import Cli, refused
from tests.refusals import refused as refused_call

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rt.save(rt.bundled(), tmp_path_factory.mktemp("planned") / "bundled")


def test_the_options_reach_the_plan(cli: Cli, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ranktilt.planning.step_costs.audit", lambda *_, **__: None)  # it takes longest
    given = ("--target-documents", "8.8M", "--target-queries", "7k", "--seconds", "1", "--seed", "2")
    page = tmp_path / "p.html"
    code, out, _ = cli("tools", "plan", folder, *given, "-r", "bm25@20", "--json", "-", "-o", page)
    content = json.loads(out)
    assert code == 0
    assert [content[name] for name in ("documents", "queries")] == [8_800_000, 7000]
    assert content["spec"]["rankers"] == ["bm25@20"]
    assert content["spec"]["seed"] == 2
    assert "Step by step" in page.read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "number"),
    [("100000", 100_000), ("8.8M", 8_800_000), ("7k", 7000), ("1.5G", 1_500_000_000), ("2m", 2_000_000)],
)
def test_counts_are_read_as_people_write_them(text: str, number: int) -> None:
    assert read_count(text, "--target-documents") == number


@pytest.mark.parametrize("text", ["", "0", "8.8X", "-3", "1e6", "0.0001k", "9" * 20, "8,8M"])
def test_what_is_no_count_is_refused(text: str) -> None:
    with refused_call(f"--target-queries: expected a number of at least 1, such as 100000, 7k or 8.8M; got {text!r}"):
        read_count(text, "--target-queries")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--target-documents", "many"),
            "--target-documents: expected a number of at least 1, such as 100000, 7k or 8.8M; got 'many'",
        ),
        (("-r", "bm52"), "unknown ranker 'bm52'"),
        (("-r", "bm25", "-r", "bm25"), "bm25"),
    ],
)
def test_mistakes_end_in_one_line(cli: Cli, folder: Path, arguments: tuple[str, ...], message: str) -> None:
    assert message in refused(cli, "tools", "plan", folder, *arguments)
