"""ranktilt train lora: what it says to do next asks the adapted model about what it has not seen."""

import shlex
from pathlib import Path

import pytest

import ranktilt as rt
from tests.auditing.test_pairwise import people
from tests.cli.conftest import Cli, refused
from tests.llm.stories import make_stories

pytestmark = pytest.mark.neural


def test_the_next_command_asks_about_the_held_out_queries(
    cli: Cli, tmp_path: Path, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANKTILT_CACHE", str(tmp_path / "cache"))
    model, lists = make_stories(shared_data, tmp_path / "model"), tmp_path / "lists"
    rt.save(people(queries=5, each=2), lists)
    quick = ("--pairs", 8, "--steps", 1, "--text", "text", "--prompt", "choice", "--passage-tokens", 9)
    call = ("train", "lora", lists, "--from", model, "--by", "gender", "-o", tmp_path / "a", *quick, "--protected")
    strange = refused(cli, *call, "female|other")
    assert strange == "unknown gender 'other' (valid: female, male)"
    code, _, err = cli(*call, "female")
    assert code == 0
    last = shlex.split(err.splitlines()[-1].removeprefix("Next: ranktilt "))
    assert f"transformers:{model}(adapter={tmp_path / 'a'},text=text,passage_tokens=9)" in last
    code, _, err = cli(*last, "--pairs", 1, "--resamples", 100)
    assert code == 0
    assert "2 pairs of 1 query: 4 prompts" in err
