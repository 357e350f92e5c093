"""ranktilt data build nq320k: a folder, its counts beside the published ones, and one line for each mistake."""

from pathlib import Path

import pytest

import ranktilt.datasets.natural_questions as natural_questions
from ranktilt.datasets.load import load
from ranktilt.datasets.natural_questions import build_nq320k
from tests.cli.conftest import Cli, refused
from tests.datasets.test_natural_questions import files
from tests.generation.questions import simplified
from tests.toy import jsonl, no_permission, write


def test_a_collection_is_built_and_its_counts_are_told(cli: Cli, tmp_path: Path) -> None:
    paths = files(tmp_path)
    code, out, err = cli("data", "build", "nq320k", *paths, "-o", tmp_path / "nq")
    assert code == 0
    assert out.splitlines() == [
        "documents           3   109,739 expected   differs",
        "test queries        4   7,830 expected   differs",
        "mean words       7.67   199.79 expected   differs",
    ]
    assert err.splitlines() == [
        f"{tmp_path / 'nq'}: Collection(3 human; 4 queries, 4 judgments)",
        "Not as published: 3 training and 4 development questions were read, 307,373 and 7,830 there are.",
        "Texts begin with their title and are cut; rewrites may not be: `ranktilt check` will say.",
        f"Next: ranktilt generate rewrite {tmp_path / 'nq'} --llm openai:MODEL --dry-run",
    ]
    assert load(tmp_path / "nq") == build_nq320k(paths).collection


def test_counts_as_published_say_so(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published = {"documents": 3, "test queries": 4, "mean words": 7.67}
    monkeypatch.setattr(natural_questions, "PUBLISHED", published)
    _, out, err = cli("data", "build", "nq320k", *files(tmp_path), "-o", tmp_path / "nq")
    assert out.splitlines()[-1] == "mean words       7.67   7.67 expected"
    assert "Not as published" not in err


def test_options_reach_the_collection(cli: Cli, tmp_path: Path) -> None:
    options = ("--words", "2", "--quiet")
    code, out, err = cli("data", "build", "nq320k", *files(tmp_path), "-o", tmp_path / "nq", *options)
    assert (code, err) == (0, "")
    assert out.startswith("documents ")
    docs = load(tmp_path / "nq").docs
    assert docs["text"][0] == "Red Apple"


def test_mistakes_are_one_line_and_nothing_is_written(cli: Cli, tmp_path: Path) -> None:
    train = write(tmp_path / "nq-train.jsonl", jsonl([simplified(1, "q", "T", "x")]) + "{oops\n")
    place = tmp_path / "nq"
    assert "expected the development set too" in refused(cli, "data", "build", "nq320k", train, "-o", place)
    both = (train, files(tmp_path)[0])
    fault = refused(cli, "data", "build", "nq320k", *both, "-o", place)
    assert fault.startswith(f"{train}:2: expected one JSON object")
    code, _, err = cli("data", "build", "nq320k", *both, "-o", place, "--words", "0")
    assert (code, err.startswith("ranktilt data build nq320k: Invalid value for '--words': ")) == (2, True)
    assert not place.exists()


def test_a_place_that_cannot_be_written_is_found_first(cli: Cli, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    with no_permission(closed):
        assert "cannot be written" in refused(
            cli, "data", "build", "nq320k", tmp_path / "no-dev.jsonl", "-o", closed / "nq"
        )


def test_nothing_after_build_shows_what_there_is(cli: Cli) -> None:
    _, out, err = cli("data", "build")
    assert "nq320k" in out + err
