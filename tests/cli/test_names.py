"""Runs are called what their user calls them: -r NAME=SPEC and --run NAME=FILE."""

import json
from pathlib import Path

import pytest

from ranktilt.cli.main import run
from ranktilt.cli.rankers import NamedText
from ranktilt.data.bundled.reader import bundled
from ranktilt.data.save import save
from ranktilt.registry import ranker
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


@pytest.mark.parametrize("verb", ["check toy", "explain toy --attribution", "rank toy -o run.trec"])
def test_verbs_without_names_of_rankers_say_what_to_type(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    save(toy(), tmp_path / "toy")
    assert run([*verb.split(), "-r", "plain=bm25"]) == 2
    assert "type 'bm25' instead of 'plain=bm25'" in capsys.readouterr().err


def test_mitigate_calls_a_ranker_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    save(bundled(), tmp_path / "bed")
    quick = ["--set", "statistics.resamples=200", "--method", "interleave", "--json", "bench.json"]
    assert run(["mitigate", "bed", "-r", "our engine=tfidf", *quick]) == 0
    assert "our engine" in capsys.readouterr().out
    content = json.loads((tmp_path / "bench.json").read_text())
    assert content["candidates"][0]["name"] == "our engine"
    assert content["spec"]["mitigation"]["name"] == "our engine"


@pytest.mark.long
def test_mitigate_keeps_name_of_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    pages = bundled()
    ranker("tfidf").rank(pages).save("Läufe März.trec")
    pages.docs.select("source", "origin", doc_id="id").write_csv("labels.csv")
    words = ["--run", "süß=Läufe März.trec", "--groups", "labels.csv"]
    assert run(["audit", *words, "--json", "audit.json"]) == 0
    assert "mitigate --run 'süß=Läufe März.trec' --groups labels.csv" in capsys.readouterr().out
    quick = ["--set", "statistics.resamples=200", "--method", "offset"]
    quick += ["--set", "mitigate.always=true"]
    assert run(["mitigate", "audit.json", *quick, "--save-run", "neu.trec"]) == 0
    printed = capsys.readouterr().out
    assert "süß" in printed
    assert json.loads((tmp_path / "neu.trec.json").read_text())["name"].startswith("süß, offset ")
