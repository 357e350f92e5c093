"""ranktilt tools plan: what a larger collection would cost."""

import json
from pathlib import Path

import pytest

import ranktilt as rt
from tests.cli.conftest import Cli, refused

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rt.save(rt.bundled(), tmp_path_factory.mktemp("planned") / "bundled")


def test_the_options_reach_the_plan(cli: Cli, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ranktilt.planning.step_costs.audit", lambda *_, **__: None)  # it takes longest
    given = ("--target-documents", "8800000", "--target-queries", "7000", "--seconds", "1", "--seed", "2")
    page = tmp_path / "p.html"
    code, out, _ = cli("tools", "plan", folder, *given, "-r", "bm25@20", "--json", "-", "-o", page)
    content = json.loads(out)
    assert code == 0
    assert [content[name] for name in ("documents", "queries")] == [8_800_000, 7000]
    assert content["spec"]["rankers"] == ["bm25@20"]
    assert content["spec"]["seed"] == 2
    assert "Step by step" in page.read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--target-documents", "8.8M"), "Invalid value for '--target-documents': "),
        (("-r", "bm52"), "unknown ranker 'bm52'"),
        (("-r", "bm25", "-r", "bm25"), "bm25"),
    ],
)
def test_mistakes_end_in_one_line(cli: Cli, folder: Path, arguments: tuple[str, ...], message: str) -> None:
    assert message in refused(cli, "tools", "plan", folder, *arguments)
