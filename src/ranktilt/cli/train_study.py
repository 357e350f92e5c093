"""``ranktilt train study``: train rankers on human and on LLM documents, and compare them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from ranktilt.cli import options
from ranktilt.cli.notes import note
from ranktilt.cli.output import PageOutput, collection_files
from ranktilt.cli.train import ReadingOptions, read_amounts
from ranktilt.errors import UserError
from ranktilt.option import Option
from ranktilt.training.options import RerankerTraining

if TYPE_CHECKING:
    from ranktilt.experiments.training_study import ZeroShot

_LEARNING = options.FieldsOf(RerankerTraining, without=("seed", "alpha", "twins", "triples"))


@dataclass(frozen=True)
class _Tests(options.OptionGroup):
    """What the trained rankers are tested on, and how they are compared."""

    panel = "Statistics"

    zero_shot: Annotated[
        list[str] | None,
        Option(
            "Another test collection; its qrels=, candidates= (a run) and name= may follow.",
            "NAME[,qrels=FILE,…]",
            panel="Input",
        ),
    ] = None
    test_split: Annotated[
        str, Option("Judgments to test on, qrels/<split>.tsv.", "SPLIT", panel="Input")
    ] = "test"
    test_queries: Annotated[
        int | None,
        Option("Test queries per domain, drawn by --seed (default: all).", "N", panel="Input"),
    ] = None
    disjoint: Annotated[
        bool,
        Option("Leave training documents out of the test collection.", panel="Input"),
    ] = False
    reference: Annotated[
        str,
        Option("The human source, whose documents count in the test.", "SOURCE", panel="Question"),
    ] = "human"
    depth: Annotated[
        int,
        Option("Documents of BM25 to re-rank.", "K", flag="--rerank-depth", panel="Question"),
    ] = 1000
    ties: Annotated[
        Literal["expected", "trec_eval"],
        Option("Ties: expected value over all orders, or trec_eval's order by id."),
    ] = "expected"
    resamples: options.Resamples = 10_000
    seed: options.Seed = 0


@options.verb(
    "train study DIR --base-model minilm --zero-shot OTHER -o study.html",
    "train study DIR --base-model MODEL --preset askari --json study.json",
    panel="Training",
)
def train_study(
    folder: options.Folder,
    *,
    base_model: Annotated[
        list[str] | None,
        Option("Encoder to start from; several may be given.", "MODEL", panel="Model"),
    ] = None,
    work_dir: Annotated[
        Path | None,
        Option(
            "Folder for models and runs (default: DIR's name with -training).",
            "FOLDER",
            panel="Output",
        ),
    ] = None,
    seeds: Annotated[int, Option("Trainings per ranker, each with its own seed.", "N")] = 1,
    curve: Annotated[
        list[str] | None, Option("Also train on N documents of each named source.", "SOURCE=N,…")
    ] = None,
    preset: options.Preset = None,
    learning: Annotated[dict[str, Any], _LEARNING],
    tests: _Tests,
    neural: ReadingOptions,
    output: PageOutput,
) -> None:
    """Train each encoder on the human and on the LLM's documents, and compare the rankers.

    They re-rank BM25's documents on the test split and on other collections; effectiveness and tilt
    are compared. An interrupted study is resumed.
    """
    from ranktilt.experiments.training_study import StudyOptions, training_study

    study_options = StudyOptions(
        training=RerankerTraining.from_preset(preset, **{**neural.fields, **learning}),
        seeds=seeds,
        depth=tests.depth,
        queries=tests.test_queries,
        disjoint=tests.disjoint,
        curve=tuple(tuple(read_amounts([text], "--curve").items()) for text in curve or ()),
        zero_shot=tuple(read_zero_shot(text) for text in tests.zero_shot or ()),
        test=tests.test_split,
        reference=tests.reference,
        seed=tests.seed,
    )
    if not base_model:
        raise UserError(
            "nothing to train: name an encoder to start from, such as --base-model minilm"
        )
    output.check(*collection_files(folder))
    work = work_dir or Path(f"{folder.resolve().name}-training")
    study = training_study(
        folder,
        base_model,
        work,
        options=study_options,
        ties=tests.ties,
        resamples=tests.resamples,
        seed=tests.seed,
    )
    output.deliver(study)
    note(f"{work}: the trained models and their runs")


def read_zero_shot(text: str) -> ZeroShot:
    """Read ``PATH,qrels=FILE,candidates=FILE,name=NAME``: a collection and its options."""
    from ranktilt.experiments.training_study import ZeroShot

    path, *parts = text.split(",")
    fields = {}
    for part in parts:
        name, equals, value = part.partition("=")
        if name not in ("qrels", "candidates", "name") or not (equals and value):
            raise UserError(
                "--zero-shot expects a collection, then qrels=FILE, candidates=FILE or "
                f"name=NAME; got {part!r}"
            )
        fields[name] = value
    if not path:
        raise UserError(f"--zero-shot expects a collection, such as a folder; got {text!r}")
    return ZeroShot(path, **fields)
