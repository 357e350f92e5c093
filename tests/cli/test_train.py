"""ranktilt train: folders that rank, one line for each mistake, and what to type next."""

import json
import shlex
import shutil
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import ranktilt as rt
from ranktilt.cli.train.arguments import OPTIONS
from ranktilt.cli.train.cross_encoder import cross_encoder
from ranktilt.cli.train.lora import lora
from ranktilt.cli.train.retriever import retriever
from ranktilt.cli.train.study import train_study
from ranktilt.data.loading.load import load
from ranktilt.mitigation.bench_result import Bench
from ranktilt.mitigation.retriever_sweep import SweepOptions
from ranktilt.reporting.sentences.mitigation.mitigate import bench_headline
from ranktilt.training.cross_encoder import train_cross_encoder
from ranktilt.training.options import LoraTraining, RerankerTraining, RetrieverTraining, Schedule
from tests.auditing.test_pairwise import people
from tests.cli.conftest import Cli, refused
from tests.llm.stories import make_stories
from tests.toy import tsv, write
from tests.training.material import QUICK, marked, marked_folder, marked_mix

pytestmark = pytest.mark.neural
FEW = (
    "--set",
    "steps=6",
    "--set",
    "batch=8",
    "--set",
    "max_query_tokens=6",
    "--set",
    "max_document_tokens=16",
    "--set",
    "rate=3e-3",
    "--set",
    "precision=float32",
)
FLATTERED = (
    "warning: the model learned from the judgments that this audit would use, so the audit "
    "would flatter it; name others with --split"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return marked_folder(tmp_path / "data")


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Both sides judged to test and dev on, the human one to learn from."""
    folder = rt.save(marked_mix(), tmp_path / "mixed")
    write(folder / "qrels" / "train.tsv", tsv(marked().qrels.rows()))
    write(folder / "qrels" / "dev.tsv", (folder / "qrels" / "test.tsv").read_text())
    return folder


def spec_of(folder: Path) -> dict[str, Any]:
    spec: dict[str, Any] = json.loads((folder / "training.json").read_text())["spec"]
    return spec


def test_a_cross_encoder_is_trained_as_by_the_library(
    cli: Cli, folder: Path, tiny: Path, tmp_path: Path
) -> None:
    model = tmp_path / "my (first)"
    command = ("train", "cross-encoder", folder, "-o", model, "--base-model", tiny, *FEW)
    code, out, err = cli(*command, "--set", "negatives_per_positive=3")
    assert (code, out) == (0, "")
    first, following, warned = err.splitlines()
    assert first.startswith(
        f"{model}: learned from 48 of the pairs that 20 queries allow in 6 steps; its loss went "
    )
    assert following == f"""Next: ranktilt audit {folder} -r 'bm25@100>>cross-encoder:"{model}"'"""
    assert warned == FLATTERED
    trained = train_cross_encoder(
        load(folder, split="train"), tiny, tmp_path / "own", options=QUICK
    )
    weights = [path / "model.safetensors" for path in (model, trained.folder)]
    assert weights[0].read_bytes() == weights[1].read_bytes()
    code, _, err = cli(*command, "--set", "negatives_per_positive=3")
    assert code == 0
    assert err.startswith(f"{model} already holds this training: 6 steps; its loss went from ")


@pytest.mark.parametrize(("split", "warned"), [("train", False), ("test", True)])
def test_flattery_is_warned_of(
    cli: Cli, folder: Path, tiny: Path, tmp_path: Path, split: str, warned: bool
) -> None:
    shutil.copy(folder / "qrels" / "train.tsv", folder / "qrels" / "test.tsv")
    options = (
        "--sources",
        "human",
        "--set",
        "seed=3",
        "--negatives",
        "bm25:50",
        "--text",
        "text",
        "--split",
        split,
    )
    command = (
        "train",
        "cross-encoder",
        folder,
        "-o",
        tmp_path / "m",
        "--base-model",
        tiny,
        *FEW,
        *options,
    )
    assert (FLATTERED in cli(*command).err.splitlines()) == warned
    spec = spec_of(tmp_path / "m")
    assert (spec["sources"], spec["seed"], spec["negatives"], spec["text"]) == (
        ["human"],
        3,
        "bm25:50",
        "text",
    )
    assert (spec["steps"], spec["batch"], spec["rate"]) == (6, 8, 3e-3)
    assert (spec["max_query_tokens"], spec["max_document_tokens"], spec["precision"]) == (
        6,
        16,
        "float32",
    )


def test_a_preset_and_what_is_named_beside_it(
    cli: Cli, folder: Path, tiny: Path, tmp_path: Path
) -> None:
    command = (
        "train",
        "cross-encoder",
        folder,
        "--base-model",
        tiny,
        "--set",
        "steps=1",
        "--set",
        "precision=float32",
    )
    beside = ("--set", "max_document_tokens=16", "--negatives", "random:50")
    assert cli(*command, *beside, "-o", tmp_path / "p", "--preset", "askari").code == 0
    spec = spec_of(tmp_path / "p")
    names = (
        "rate",
        "batch",
        "max_query_tokens",
        "max_document_tokens",
        "loss",
        "negatives",
        "positives",
    )
    assert [spec[name] for name in names] == [7e-6, 32, 30, 16, "binary", "random:50", "all"]


def test_triples_and_documents_of_sources_in_numbers(
    cli: Cli, folder: Path, tiny: Path, tmp_path: Path
) -> None:
    triples = write(
        tmp_path / "t.tsv",
        "".join(f"q-wab\twab0-human\twcd{number}-human\n" for number in range(5)),
    )
    command = (
        "train",
        "cross-encoder",
        folder,
        "--base-model",
        tiny,
        *FEW,
        "--set",
        f"triples={triples}",
    )
    code, _, err = cli(*command, "-o", tmp_path / "t")
    assert code == 0
    assert "that 1 queries allow in 6 steps" in err
    assert " Left out: 39 relevant documents." in err
    qrels = folder / "qrels" / "train.tsv"
    rows = [row for row in qrels.read_text().splitlines() if "-human" in row]
    write(
        qrels,
        "\n".join([qrels.read_text().strip(), *(row.replace("-human", "-llm") for row in rows)])
        + "\n",
    )
    command = ("train", "cross-encoder", folder, "--base-model", tiny, *FEW)
    assert cli(*command, "-o", tmp_path / "mix", "--sources", "human=7,llm=3").code == 0
    record = json.loads((tmp_path / "mix" / "training.json").read_text())
    assert record["spec"]["sources"] == ["human", "llm"]
    assert record["spec"]["limits"] == [["human", 7], ["llm", 3]]
    assert record["figures"]["positives"] == 10


@pytest.mark.long
def test_a_retriever_is_trained_and_audited(
    cli: Cli, mixed: Path, tiny: Path, tmp_path: Path
) -> None:
    model = tmp_path / "model"
    options = (
        "--negatives",
        "bm25",
        "--set",
        "negatives_per_positive=1",
        "--set",
        "loss=TripletLoss(triplet_margin=1)",
        "--dev",
        "dev",
        "--set",
        "patience=3",
        "--set",
        "twins=llm",
        "--sources",
        "human",
        "--set",
        "seed=4",
        "--text",
        "text",
        "--debias",
        "0.5",
    )
    code, out, err = cli(
        "train", "retriever", mixed, "-o", model, "--base-model", tiny, *FEW, *options
    )
    assert (code, out) == (0, "")
    first, following = err.splitlines()
    assert first.startswith(
        f"{model}: learned from 96 of the pairs that 20 queries allow in 6 steps"
    )
    assert following == f"Next: ranktilt audit {mixed} -r dense:{model}"
    expected = {
        "negatives": "bm25",
        "negatives_per_positive": 1,
        "loss": "TripletLoss(triplet_margin=1)",
        "patience": 3,
        "twins": "llm",
        "seed": 4,
        "text": "text",
        "sources": ["human"],
        "alpha": 0.5,
    }
    assert {name: spec_of(model)[name] for name in expected} == expected
    code, out, _ = cli(
        "audit", mixed, "-r", f"dense:{model}", "-m", "nDCG@3", "--set", "statistics.resamples=200"
    )
    assert code == 0
    assert "Relative Δ" in out


@pytest.mark.long
def test_a_sweep(cli: Cli, mixed: Path, tiny: Path, tmp_path: Path) -> None:
    models = tmp_path / "models"
    command = (
        "train",
        "retriever",
        mixed,
        "-o",
        models,
        "--base-model",
        tiny,
        *FEW[2:],
        "--set",
        "steps=1",
    )
    code, out, err = cli(*command, "--debias", "0", "--debias", "paper", "--budget", "2")
    assert code == 0
    assert (
        "The paper's α, for ANCE's scores of about 700: 0.0001, 0.0005, 0.001, 0.005, 0.01. " in err
    )
    assert (
        f"Next: ranktilt report {models / 'bench.json'} -o {models / 'bench.html'}"
        in err.splitlines()
    )
    bench = Bench.load(models / "bench.json")
    assert (len(bench.candidates), bench.budget) == (6, 2)
    assert all(
        (models / f"alpha-{row.strength:g}" / "training.json").is_file() for row in bench.candidates
    )
    assert bench_headline(bench.choose()) in out
    page = models / "bench.html"
    assert cli("report", models / "bench.json", "-o", page).code == 0
    assert "α = 0" in page.read_text()


def test_sweep_reads_statistics(
    cli: Cli, mixed: Path, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweeps = list[SweepOptions]()

    def stop(*_arguments: object, options: SweepOptions, **_keywords: object) -> None:
        sweeps.append(options)
        raise rt.UserError("no training in this test")

    monkeypatch.setattr("ranktilt.mitigation.retriever_sweep.retriever_sweep", stop)
    words = ("-o", tmp_path / "models", "--base-model", tiny, "--debias", "0", "--debias", "1")
    statistics = list[str]()
    for key in ("resamples=200", "margin=2", "seed=3", "correction=bonferroni", "test=t"):
        statistics += ["--set", f"statistics.{key}"]
    ties = ("--set", "statistics.ties=trec_eval")
    refused(cli, "train", "retriever", mixed, *words, *statistics, *ties)
    (sweep,) = sweeps
    assert (sweep.resamples, sweep.margin, sweep.seed) == (200, 2.0, 3)
    assert (sweep.correction, sweep.test, sweep.ties) == ("bonferroni", "t", "trec_eval")


@pytest.mark.parametrize(
    "typed",
    ["--budget 2", "--test-split dev", "--json bench.json", "--format csv"],
)
def test_one_retriever_has_no_comparison(
    cli: Cli, mixed: Path, tiny: Path, tmp_path: Path, typed: str
) -> None:
    words = ("-o", tmp_path / "model", "--base-model", tiny, "--debias", "0.1", *typed.split())
    option = typed.split()[0]
    assert refused(cli, "train", "retriever", mixed, *words).startswith(
        f"{option}: only a sweep compares retrievers; give several --debias or --negatives"
    )
    assert not (tmp_path / "model").exists()


def test_one_retriever_reads_no_statistics(
    cli: Cli, mixed: Path, tiny: Path, tmp_path: Path
) -> None:
    words = ("-o", tmp_path / "model", "--base-model", tiny, "--set", "statistics.resamples=200")
    assert refused(cli, "train", "retriever", mixed, *words).startswith(
        "--set statistics.resamples: only a sweep compares retrievers"
    )


@pytest.mark.parametrize(
    ("verb", "assignment", "message"),
    [
        (
            "cross-encoder",
            "epoch=3",
            "unknown argument of this training 'epoch'; did you mean 'epochs'? ",
        ),
        ("cross-encoder", "epochs=many", "--set epochs: expected a whole number, got 'many'"),
        ("cross-encoder", "epochs=0", "training: expected epochs of at least 1, got 0"),
        ("cross-encoder", "rate=0", "training: expected rate of more than 0, got 0"),
        (
            "cross-encoder",
            "loss=hinge",
            "unknown loss of training 'hinge' (valid: softmax, binary)",
        ),
        ("cross-encoder", "dropout=maybe", "--set dropout: expected true or false, got 'maybe'"),
        (
            "cross-encoder",
            "minutes=5",
            "--set minutes: --minutes is an option; type --minutes 5",
        ),
        ("retriever", "alpha=1", "--set alpha: --debias is an option; type --debias 1"),
        ("retriever", "debias=1", "--set debias: --debias is an option; type --debias 1"),
        ("retriever", "positives=all", "unknown argument of this training 'positives'"),
        ("study", "twins=llm", "unknown argument of this training 'twins'"),
    ],
)
def test_arguments_of_a_training_are_checked(
    cli: Cli, folder: Path, tmp_path: Path, verb: str, assignment: str, message: str
) -> None:
    output = () if verb == "study" else ("-o", tmp_path / "m")
    refusal = refused(cli, "train", verb, folder, *output, "--set", assignment)
    assert refusal.startswith(message)
    assert not (tmp_path / "m").exists()


def test_none_lifts_a_limit_of_a_training(
    cli: Cli, folder: Path, tiny: Path, tmp_path: Path
) -> None:
    command = ("train", "cross-encoder", folder, "-o", tmp_path / "m", "--base-model", tiny, *FEW)
    assert cli(*command, "--set", "positives-per-query=none").code == 0
    assert spec_of(tmp_path / "m")["positives_per_query"] is None


@pytest.mark.parametrize(
    ("verb", "kind", "options"),
    [
        (cross_encoder, RerankerTraining, {*OPTIONS}),
        (retriever, RetrieverTraining, {*OPTIONS}),
        (lora, LoraTraining, {"attribute", "device", "minutes", "prompt", "text"}),
        (
            train_study,
            RerankerTraining,
            {*OPTIONS, "alpha", "limits", "sources", "triples", "twins"},
        ),
    ],
)
def test_help_lists_every_argument_of_the_training(
    verb: Callable[..., None], kind: type[Schedule], options: set[str]
) -> None:
    listed = str(verb.__doc__).rpartition("epochs=3: ")[2].split(".\n")[0].rstrip(". \n")
    names = [name.strip() for name in listed.split(",")]
    assert sorted(names) == sorted({field.name for field in fields(kind)} - options)


def test_no_twins_names_the_command_that_writes_them(
    cli: Cli, mixed: Path, tiny: Path, tmp_path: Path
) -> None:
    rows = (mixed / "corpus.jsonl").read_text().splitlines()
    write(
        mixed / "corpus.jsonl",
        "".join(f"{row}\n" for row in rows if json.loads(row)["source"] == "human"),
    )
    refusal = refused(
        cli,
        "train",
        "retriever",
        mixed,
        "-o",
        tmp_path / "m",
        "--base-model",
        tiny,
        *FEW,
        "--debias",
        "1",
    )
    assert (
        f"write twins: ranktilt generate rewrite {mixed} --split train --llm MODEL -o NEW"
        in refusal
    )


@pytest.mark.long
def test_held_out_ones_are_next(
    cli: Cli, tmp_path: Path, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANKTILT_CACHE", str(tmp_path / "cache"))
    model, lists = make_stories(shared_data, tmp_path / "model"), tmp_path / "lists"
    rt.save(people(queries=5, per_gender=2), lists)
    (lists / "qrels" / "test.tsv").rename(lists / "qrels" / "train.tsv")
    (lists / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq0\tmale-0-0\t1\n")
    folder = tmp_path / "my adapter(1)"
    quick = (
        "--set",
        "pairs_per_epoch=8",
        "--set",
        "steps=1",
        "--text",
        "text",
        "--prompt",
        "choice",
        "--set",
        "passage_tokens=9",
    )
    start = ("train", "lora", lists, "--base-model", model, "--by", "gender", "-o", folder)
    call = (*start, *quick, "--split", "train", "--protected")
    strange = refused(cli, *call, "female|other")
    assert strange == "unknown gender 'other' (valid: female, male)"
    code, _, err = cli(*call, "female")
    assert code == 0
    last = shlex.split(err.splitlines()[-1].removeprefix("Next: ranktilt "))
    llm = f'transformers:{model}(adapter="{folder}",text=text,passage_tokens=9)'
    assert last == [
        "pairwise",
        str(lists),
        "--llm",
        llm,
        "--by",
        "gender",
        "--protected",
        "female",
        "--split",
        "train",
        "--prompt",
        "choice",
        "--queries",
        str(folder / "held-out.txt"),
    ]
    code, out, err = cli(*last, "--pairs", 1, "--set", "statistics.resamples=100")
    assert (code, out.splitlines()[0]) == (0, "Choices, in %")
    assert "2 pairs of 1 query: 4 prompts" in err
    code, out, _ = cli(
        *last[: last.index("--queries")], "--pairs", 1, "--set", "statistics.resamples=100"
    )
    assert code == 0
    warning = (
        f"transformers:{model}(adapter={folder}) was trained on 4 of 5 of these queries, so its "
        "choices say little about others. Pass the adapter's held-out.txt to --queries."
    )
    assert warning in out.splitlines()
