"""``ranktilt tools cache`` as a user meets it."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from ranktilt.io.cache import VectorCache, content_keys
from ranktilt.llm.base import Answer
from ranktilt.llm.journal import Journal, JournalRecord
from tests.cli.conftest import Cli
from tests.toy import write


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with the vectors of two models, one of them not used since 1970, and a half-written file."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("RANKTILT_CACHE", str(folder))
    for name, count in (("one", 3), ("two", 1200)):
        about = {"model": name, "folder": f"/{name}", "options": {"precision": "float32", "store": "float16"}}
        cache = VectorCache(folder / "embeddings" / name, dtype="float16", about=about)
        cache.put(content_keys(map(str, range(count))), np.ones((count, 100), dtype=np.float32))
    for file in (folder / "embeddings" / "one").iterdir():
        os.utime(file, (0, 0))
    os.utime(write(folder / "tokens" / "x" / "0.tmp", b"old"), (0, 0))
    return folder


def entries(cli: Cli) -> list[str]:
    return [one["model"] for one in json.loads(cli("tools", "cache", "--format", "json").out)["entries"]]


def test_an_empty_cache(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKTILT_CACHE", str(tmp_path / "none"))
    result = cli("tools", "cache")
    assert (result.code, result.out, result.err) == (0, f"{tmp_path / 'none'}: 0 B\nnothing is kept\n", "")
    assert cli("tools", "cache", "--prune").code == 0
    assert not (tmp_path / "none").exists()


def test_what_is_kept_is_shown(cli: Cli, folder: Path) -> None:
    result = cli("tools", "cache")
    lines = result.out.splitlines()
    assert (result.code, result.err) == (0, "")
    assert lines[0] == f"{folder}: 260 kB"
    assert lines[3].split() == ["what", "model", "size", "last", "use"]
    assert lines[5].split() == ["embeddings", "two", "259", "kB", "today"]
    assert lines[6].split()[:4] == ["embeddings", "one", "761", "B"]
    assert lines[6].endswith(" days ago")


def test_json_is_for_scripts(cli: Cli, folder: Path) -> None:
    found = json.loads(cli("tools", "cache", "--format", "json").out)
    assert found["folder"] == str(folder)
    assert found["entries"][1] | {"bytes": 0} == {
        "what": "embeddings",
        "model": "one",
        "bytes": 0,
        "paid": False,
        "last_use": "1970-01-01T00:00:00Z",
        "folder": str(folder / "embeddings" / "one"),
    }


def test_a_choice_is_shown_before_it_is_removed(cli: Cli, folder: Path) -> None:
    table = cli("tools", "cache", "--model", "two").out
    assert [line.split()[1] for line in table.splitlines() if line.startswith(" embeddings")] == ["two"]
    assert sorted(entries(cli)) == ["one", "two"]
    result = cli("tools", "cache", "--model", "two", "--prune")
    assert (result.code, result.out) == (0, "")
    assert result.err.startswith("removed 1 entry: ")
    assert entries(cli) == ["one"]


def test_prune_alone_removes_what_nothing_reads(cli: Cli, folder: Path) -> None:
    result = cli("tools", "cache", "--prune")
    assert (result.code, result.out) == (0, "")
    assert result.err == "removed 0 entries: 3 B free again\nentries stay; --model or --all remove them\n"
    assert sorted(entries(cli)) == ["one", "two"]


def test_all_removes_everything(cli: Cli, folder: Path) -> None:
    result = cli("tools", "cache", "--prune", "--all")
    assert (result.code, result.err) == (0, "removed 2 entries: 260 kB free again\n")
    assert entries(cli) == []


def test_quiet_says_nothing(cli: Cli, folder: Path) -> None:
    assert cli("tools", "cache", "--prune", "--all", "--quiet")[1:] == ("", "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--all"], "--all goes with --prune: ranktilt tools cache --prune --all removes all that was not paid for"),
        (
            ["--prune", "--all", "--model", "one"],
            "--all removes everything; leave it out to remove what --model chooses",
        ),
        (["--model", "three"], "unknown model in the cache 'three' (valid: one, two)"),
    ],
)
def test_a_mistake_is_one_line_and_removes_nothing(cli: Cli, folder: Path, options: list[str], message: str) -> None:
    result = cli("tools", "cache", *options)
    assert (result.code, result.out) == (2, "")
    assert result.err == f"ranktilt: {message}\n"
    assert len(entries(cli)) == 2


@pytest.fixture
def paid(folder: Path) -> Path:
    """The same cache with two answers of a language model beside the vectors, and vectors of a server."""
    about = {"llm": "openai:gpt@default", "model": "gpt", "base_url": "http://127.0.0.1:9/v1"}
    write(folder / "llm" / "x" / "about.json", json.dumps(about).encode())
    with Journal(folder / "llm" / "x") as journal:
        answer = Answer("text", "stop", 1, 1, "gpt")
        journal.append([JournalRecord(key, "", "", answer) for key in "ab"])
    cache = VectorCache(folder / "embeddings" / "y", about={"model": "openai:ada"})
    cache.put(content_keys("z"), np.ones((1, 4), dtype=np.float32))
    return folder


def test_answers_of_language_models_are_listed(cli: Cli, paid: Path) -> None:
    found = {one["model"]: one for one in json.loads(cli("tools", "cache", "--format", "json").out)["entries"]}
    assert (found["gpt"]["what"], found["gpt"]["paid"]) == ("llm", True)
    assert (found["openai:ada"]["paid"], found["one"]["paid"]) == (True, False)


def test_what_was_paid_for_is_not_pruned_in_passing(cli: Cli, paid: Path) -> None:
    result = cli("tools", "cache", "--prune", "--all")
    assert result.code == 0
    assert result.err.startswith("removed 2 entries")
    assert "what servers were asked for stays; --model removes it: gpt, openai:ada\n" in result.err
    assert sorted(entries(cli)) == ["gpt", "openai:ada"]


def test_what_was_paid_for_is_pruned_by_name(cli: Cli, paid: Path) -> None:
    assert cli("tools", "cache", "--prune", "--model", "gpt").code == 0
    assert "gpt" not in entries(cli)
    assert not (paid / "llm").exists()
    assert cli("tools", "cache", "--prune", "--model", "openai:ada").code == 0
    assert "openai:ada" not in entries(cli)


def test_unpacked_collections_are_listed_and_pruned_by_name(cli: Cli, folder: Path) -> None:
    inner = folder / "collections" / "IR-Cocktail--scifact-0123456789abcdef" / "scifact"
    write(inner / "queries.jsonl", b"12345")
    write(inner / "qrels" / "test.tsv", b"123")
    found = {one["model"]: one for one in json.loads(cli("tools", "cache", "--format", "json").out)["entries"]}
    shown = found["hub:IR-Cocktail/scifact"]
    assert (shown["what"], shown["bytes"], shown["paid"]) == ("collections", 8, False)
    assert cli("tools", "cache", "--prune", "--model", "hub:IR-Cocktail/scifact").code == 0
    assert not inner.parent.exists()
    assert sorted(entries(cli)) == ["one", "two"]
