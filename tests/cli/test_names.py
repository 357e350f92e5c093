"""Runs are called what their user calls them: -r NAME=SPEC and --run NAME=FILE."""

import json
from pathlib import Path

import pytest

from ranktilt.cli.main import run
from ranktilt.cli.rankers import NamedText
from ranktilt.data.save import save
from tests.toy import toy

RUN = "q1 Q0 d1-human 1 2.0 tag\nq1 Q0 d1-llm 2 1.0 tag\n"


@pytest.mark.parametrize(
    ("text", "name", "rest"),
    [
        ("bm25", None, "bm25"),
        ("ours=bm25", "ours", "bm25"),
        ("our run=bm25(k1=0.9)@10", "our run", "bm25(k1=0.9)@10"),
        ("bm25(k1=0.9)", None, "bm25(k1=0.9)"),
        ("dense:folder=1", None, "dense:folder=1"),
        ("new=runs/a=b.trec", "new", "runs/a=b.trec"),
        ("runs/a=b.trec", None, "runs/a=b.trec"),
        ("run.csv:query=qid", None, "run.csv:query=qid"),
    ],
)
def test_name_stands_before_text(text: str, name: str | None, rest: str) -> None:
    assert NamedText.from_text(text) == NamedText(text=rest, name=name)


def test_file_of_whole_name_is_that_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a=b.trec").write_text(RUN)
    assert NamedText.from_text("a=b.trec") == NamedText(text="a=b.trec")


def test_named_runs_are_printed_and_named_in_next_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    save(toy(), tmp_path / "toy")
    words = ["audit", "toy", "-r", "plain=bm25", "-r", "long=bm25(b=0)", "--json", "a.json"]
    assert run(words) == 0
    assert "plain" in capsys.readouterr().out
    content = json.loads((tmp_path / "a.json").read_text())
    assert content["runs"] == ["plain", "long"]
    commands = " ".join(step["command"] for step in content["next_steps"])
    assert "plain=bm25" in commands or not commands


def test_mitigate_takes_no_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(toy(), tmp_path / "toy")
    assert run(["mitigate", str(tmp_path / "toy"), "-r", "ours=bm25"]) == 2
    assert "omit NAME=" in capsys.readouterr().err
