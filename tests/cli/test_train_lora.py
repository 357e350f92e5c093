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
    (lists / "qrels" / "test.tsv").rename(lists / "qrels" / "train.tsv")
    (lists / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq0\tmale-0-0\t1\n")
    folder = tmp_path / "my adapter(1)"
    quick = ("--pairs-per-epoch", 8, "--steps", 1, "--text", "text", "--prompt", "choice", "--passage-tokens", 9)
    call = (
        "train",
        "lora",
        lists,
        "--base-model",
        model,
        "--by",
        "gender",
        "-o",
        folder,
        *quick,
        "--split",
        "train",
        "--protected",
    )
    strange = refused(cli, *call, "female|other")
    assert strange == "unknown gender 'other' (valid: female, male)"
    code, _, err = cli(*call, "female")
    assert code == 0
    last = shlex.split(err.splitlines()[-1].removeprefix("Next: ranktilt "))
    llm = f'transformers:{model}(adapter="{folder}",text=text,passage_tokens=9)'
    assert last == [
        "pairwise", str(lists), "--llm", llm, "--by", "gender", "--protected", "female", "--split", "train", "--prompt",
        "choice", "--queries", str(folder / "held-out.txt"),
    ]  # fmt: skip
    code, out, err = cli(*last, "--pairs", 1, "--resamples", 100)
    assert (code, out.splitlines()[0]) == (0, "Choices, in %")
    assert "2 pairs of 1 query: 4 prompts" in err
    code, out, _ = cli(*last[: last.index("--queries")], "--pairs", 1, "--resamples", 100)
    assert code == 0
    assert out.splitlines()[0] == (
        f"transformers:{model}(adapter={folder}) was trained on 4 of 5 queries asked about, so that its choices say "
        "little of others: --queries takes the adapter's held-out.txt."
    )
