"""``ranktilt study``: sources such as temperatures of one model, or training on human against LLM documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ranktilt.cli import options
from ranktilt.cli.notes import note
from ranktilt.cli.output import PageOutput, collection_files
from ranktilt.cli.train import Preset, read_amounts
from ranktilt.errors import UserError
from ranktilt.option import Option
from ranktilt.training.options import RerankerTraining

if TYPE_CHECKING:
    from ranktilt.experiments.training_plan import StudyOptions, ZeroShot


_LEARNING = options.FieldsOf(RerankerTraining, without=("seed", "alpha", "twins", "triples"))


@dataclass(frozen=True)
class _Trainings(options.OptionGroup):
    """What a study of training trains, and on what it is tested."""

    panel = "Training"

    base_model: Annotated[
        list[str] | None, Option("Encoder to start from; several may be given.", "MODEL")
    ] = None
    work_dir: Annotated[
        Path | None,
        Option("Folder for models and runs (default: DIR's name with -training).", "FOLDER"),
    ] = None
    zero_shot: Annotated[
        list[str] | None,
        Option(
            "Another test collection; its qrels=, candidates= (a run) and name= may follow.",
            "NAME[,qrels=FILE,…]",
        ),
    ] = None
    queries: Annotated[
        int | None,
        Option(
            "Test queries per domain, drawn by --seed (default: all).", "N", flag="--test-queries"
        ),
    ] = None
    depth: Annotated[int, Option("Documents of BM25 to re-rank.", "K", flag="--rerank-depth")] = (
        1000
    )
    seeds: Annotated[int, Option("Trainings per ranker, each with its own seed.", "N")] = 1
    disjoint: Annotated[bool, Option("Leave training documents out of the test collection.")] = (
        False
    )
    curve: Annotated[
        list[str] | None, Option("Also train on N documents of each named source.", "SOURCE=N,…")
    ] = None
    preset: Preset = None

    def study_options(self, learning: dict[str, Any], **more: Any) -> StudyOptions:
        """As the study takes them; `more` are those of other groups."""
        from ranktilt.experiments.training_plan import StudyOptions

        training = RerankerTraining.of_preset(self.preset, **learning)
        return StudyOptions(
            training=training,
            seeds=self.seeds,
            depth=self.depth,
            queries=self.queries,
            disjoint=self.disjoint,
            curve=tuple(tuple(read_amounts([one], "--curve").items()) for one in self.curve or ()),
            zero_shot=tuple(read_zero_shot(text) for text in self.zero_shot or ()),
            **more,
        )


@options.verb(
    "study DIR -r bm25 -r dense:minilm",
    "study DIR --vary training --base-model minilm --zero-shot OTHER",
)
def study(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="A collection with rewrites, or with answers of both sides."
        ),
    ],
    *,
    vary: Annotated[
        Literal["temperature", "training"],
        Option("What varies: the temperature of the rewrites, or the training data."),
    ] = ("temperature"),
    ranker: options.Rankers = None,
    measure: options.Measures = None,
    reference: Annotated[
        str, Option("The human source, compared with each of the others.", "SOURCE")
    ] = "human",
    source: Annotated[
        list[str] | None, Option("Sources to study (default: all others).", "SOURCE")
    ] = None,
    split: options.Split = None,
    ignore_unknown: options.IgnoreUnknown = False,
    trainings: _Trainings,
    learning: Annotated[dict[str, Any], _LEARNING],
    statistics: options.StatisticsOptions,
    search: options.EngineOptions,
    output: PageOutput,
) -> None:
    """Audit each source against the human side, and ask whether temperature moves the tilt.

    With --vary training: train each encoder on the human and on the LLM's documents, re-rank BM25's
    with it, and compare effectiveness and tilt, on the test split and on other collections. It
    resumes what was interrupted.
    """
    if vary == "training":
        others = {"-r": ranker, "-m": measure, "--source": source}
        named = [
            option
            for option, value in {**others, "--ignore-unknown": ignore_unknown}.items()
            if value
        ]
        unused = {"--test", "--correction", "--level-margin", "--primary"}.intersection(
            statistics.changed()
        )
        _refuse("temperature", [*named, *sorted(unused)])
        how = {"text": search.text or "title+text", "device": search.device, **learning}
        asked = trainings.study_options(
            how, reference=reference, test=split or "test", seed=statistics.seed
        )
        tests = {
            "ties": statistics.ties,
            "resamples": statistics.resamples,
            "seed": statistics.seed,
        }
        _study_training(folder, trainings, asked, output, **tests)
        return
    _refuse("training", [*trainings.changed(), *_LEARNING.flags(learning)])
    if not ranker:
        raise UserError("nothing to study: name a ranker, such as -r bm25")
    from ranktilt.auditing.study import study as run_study
    from ranktilt.datasets.load import load

    output.check(*collection_files(folder))
    rankers = search.rankers(ranker)
    collection = load(folder, split=split, ignore_unknown=ignore_unknown)
    found = run_study(
        collection,
        rankers,
        measure or None,
        reference=reference,
        sources=source,
        **statistics.keywords,
    )
    output.deliver(found)


def _refuse(subject: str, given: Sequence[str]) -> None:
    """Refuse options that are about the other subject."""
    if given:
        raise UserError(f"{given[0]} needs --vary {subject}")


def _study_training(
    folder: Path, trainings: _Trainings, plan: StudyOptions, output: PageOutput, **tests: Any
) -> None:
    if not trainings.base_model:
        raise UserError(
            "nothing to train: name an encoder to start from, such as --base-model minilm"
        )
    output.check(*collection_files(folder))
    from ranktilt.experiments.training_plan import training_study

    work = trainings.work_dir or Path(f"{folder.resolve().name}-training")
    found = training_study(folder, trainings.base_model, work, options=plan, **tests)
    output.deliver(found)
    note(f"{work}: the trained models and their runs")


def read_zero_shot(text: str) -> ZeroShot:
    """Read a collection and what is named behind it: ``PATH,qrels=FILE,candidates=FILE,name=NAME``."""
    from ranktilt.experiments.training_plan import ZeroShot

    path, *parts = text.split(",")
    found = {}
    for part in parts:
        name, equals, value = part.partition("=")
        if name not in ("qrels", "candidates", "name") or not (equals and value):
            raise UserError(
                f"--zero-shot expects a collection, then qrels=FILE, candidates=FILE or name=NAME; got {part!r}"
            )
        found[name] = value
    if not path:
        raise UserError(f"--zero-shot expects a collection, such as a folder; got {text!r}")
    return ZeroShot(path, **found)
