"""ranktilt train: folders that rank, one line for each mistake, and what to type next."""

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

import ranktilt as rt
from ranktilt.datasets.load import load
from ranktilt.training.cross_encoder import train_cross_encoder
from tests.auditing.test_pairwise import people
from tests.cli.conftest import Cli, refused
from tests.llm.stories import make_stories
from tests.rankers.tiny import tiny_model
from tests.toy import write
from tests.training.material import QUICK, marked_folder

pytestmark = pytest.mark.neural
FEW = (
    "--steps", "6", "--batch", "8", "--negatives-per-positive", "3", "--max-query-tokens", "6",
    "--max-document-tokens", "16", "--learning-rate", "3e-3", "--precision", "float32",
)  # fmt: skip

FLATTERED = (
    "warning: it learned from the judgments that this audit would use, so that its figures will flatter it; "
    "name others: --split"
)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return marked_folder(tmp_path / "data")


def test_a_model_is_trained_as_by_the_library(cli: Cli, folder: Path, tiny: Path, tmp_path: Path) -> None:
    code, out, err = cli("train", "cross-encoder", folder, "-o", tmp_path / "model", "--base-model", tiny, *FEW)
    assert (code, out) == (0, "")
    first, following, warned = err.splitlines()
    assert first.startswith(
        f"{tmp_path / 'model'}: learned from 48 of the pairs that 20 queries allow in 6 steps; its loss went from "
    )
    assert following == f"Next: ranktilt audit {folder} -r 'bm25@100>>cross-encoder:{tmp_path / 'model'}'"
    assert warned == FLATTERED
    trained = train_cross_encoder(load(folder, split="train"), tiny, tmp_path / "own", options=QUICK)
    one, two = (path / "model.safetensors" for path in (tmp_path / "model", trained.folder))
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize(("split", "warned"), [("train", False), ("test", True)])
def test_a_model_that_learned_from_the_audits_judgments_is_warned_of(
    cli: Cli, folder: Path, tiny: Path, tmp_path: Path, split: str, warned: bool
) -> None:
    shutil.copy(folder / "qrels" / "train.tsv", folder / "qrels" / "test.tsv")
    command = ("train", "cross-encoder", folder, "-o", tmp_path / "model", "--base-model", tiny, *FEW, "--split", split)
    _, _, err = cli(*command)
    assert (FLATTERED in err.splitlines()) == warned


def test_options_are_written_down(cli: Cli, folder: Path, tiny: Path, tmp_path: Path) -> None:
    options = ("--sources", "human", "--seed", "3", "--negatives", "bm25:50", "--text", "text", "--quiet")
    command = ("train", "cross-encoder", folder, "-o", tmp_path / "m", "--base-model", tiny, *FEW, *options)
    assert cli(*command) == (0, "", "")
    spec = json.loads((tmp_path / "m" / "training.json").read_text())["spec"]
    assert (spec["sources"], spec["seed"], spec["negatives"], spec["text"]) == (["human"], 3, "bm25:50", "text")
    assert (spec["steps"], spec["batch"], spec["negatives_per_positive"], spec["rate"]) == (6, 8, 3, 3e-3)
    assert (spec["max_query_tokens"], spec["max_document_tokens"], spec["precision"]) == (6, 16, "float32")


def test_the_same_command_again_has_nothing_to_do(cli: Cli, folder: Path, tiny: Path, tmp_path: Path) -> None:
    command = ("train", "cross-encoder", folder, "-o", tmp_path / "model", "--base-model", tiny, *FEW)
    cli(*command)
    code, _, err = cli(*command)
    assert code == 0
    assert err.startswith(f"{tmp_path / 'model'} is there already, trained as asked: 6 steps; its loss went from ")


def test_the_next_command_can_be_typed_for_any_folder(cli: Cli, folder: Path, tiny: Path, tmp_path: Path) -> None:
    _, _, err = cli("train", "cross-encoder", folder, "-o", tmp_path / "my (first)", "--base-model", tiny, *FEW)
    assert err.splitlines()[1].endswith(f"""-r 'bm25@100>>cross-encoder:"{tmp_path / "my (first)"}"'""")


def mistake(cli: Cli, *arguments: str | Path) -> str:
    return refused(cli, "train", "cross-encoder", *arguments).removeprefix("train cross-encoder: ")


def spec_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "training.json").read_text())["spec"]
    return found


def test_presets_and_what_is_named_beside_them(cli: Cli, folder: Path, tiny: Path, tmp_path: Path) -> None:
    command = ("train", "cross-encoder", folder, "--base-model", tiny, "--steps", "1", "--precision", "float32")
    few = (*command, "--max-document-tokens", "16", "--negatives", "random:50")
    assert cli(*few, "-o", tmp_path / "p", "--preset", "paper").code == 0
    spec = spec_of(tmp_path / "p")
    names = ("rate", "batch", "max_query_tokens", "max_document_tokens", "loss", "negatives", "positives")
    assert [spec[name] for name in names] == [7e-6, 32, 30, 16, "binary", "random:50", "all"]
    assert cli(*few, "-o", tmp_path / "n", "--preset", "notebook", "--max-query-tokens", "8").code == 0
    assert [spec_of(tmp_path / "n")[name] for name in ("rate", "epochs", "loss", "dropout")] == [
        2e-5, 1000, "binary", True,
    ]  # fmt: skip
    said = mistake(cli, folder, "-o", tmp_path / "m", "--base-model", tiny, "--preset", "paper")
    assert said == (
        "training: negatives=random:1000 asks for more documents than there are: 236 of 240 are not relevant to query "
        "'q-wab'"
    )
    said = mistake(cli, folder, "-o", tmp_path / "m", "--base-model", tiny, "--preset", "thesis")
    assert said == "unknown preset 'thesis' (valid: paper, notebook)"


def test_triples_are_learned_from(cli: Cli, folder: Path, tiny: Path, tmp_path: Path) -> None:
    triples = tmp_path / "triples.tsv"
    write(triples, "".join(f"q-wab\twab0-human\twcd{number}-human\n" for number in range(5)))
    command = ("train", "cross-encoder", folder, "--base-model", tiny, *FEW)
    code, _, err = cli(*command, "-o", tmp_path / "t", "--triples", triples)
    assert code == 0
    assert "learned from 24 of the pairs that 1 queries allow in 6 steps" in err
    assert " Left out: 39 relevant documents." in err
    write(triples, "q-wab\twab0-human\n")
    said = mistake(cli, folder, "-o", tmp_path / "u", "--base-model", tiny, "--triples", triples)
    assert said.startswith(f"{triples}:1: expected query, positive and negative (3 tab-separated fields), got ")


def test_documents_of_sources_in_numbers(cli: Cli, folder: Path, tiny: Path, tmp_path: Path) -> None:
    qrels = folder / "qrels" / "train.tsv"
    rows = [row for row in qrels.read_text().splitlines() if "-human" in row]
    write(qrels, "\n".join([qrels.read_text().strip(), *(row.replace("-human", "-llm") for row in rows)]) + "\n")
    command = ("train", "cross-encoder", folder, "--base-model", tiny, *FEW)
    assert cli(*command, "-o", tmp_path / "mix", "--sources", "human=7,llm=3").code == 0
    record = json.loads((tmp_path / "mix" / "training.json").read_text())
    assert record["spec"]["sources"] == ["human", "llm"]
    assert record["spec"]["limits"] == [["human", 7], ["llm", 3]]
    assert record["figures"]["positives"] == 10
    for given, words in (
        *(
            (text, f"--sources: expected SOURCE or SOURCE=N, each source once, such as human=500,llm=500; got {last}")
            for text, last in (("human=x", "'human=x'"), ("human=²", "'human=²'"), ("human,human=2", "'human=2'"))
        ),
        ("human=0", "training: expected at least 1 document of a source that is learned from, got human=0"),
        (
            "llm=41",
            f"{folder}, split train: asked to learn from 41 relevant documents of source 'llm', and there are 40",
        ),
    ):
        assert mistake(cli, folder, "-o", tmp_path / "no", "--base-model", tiny, *FEW, "--sources", given) == words


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
    quick = ("--pairs", 8, "--steps", 1, "--text", "text", "--prompt", "choice", "--passage-tokens", 9)
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
