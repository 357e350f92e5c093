"""``ranktilt train study``: train rankers on human and on LLM documents, and compare them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import OUTPUT, STATISTICS, verb
from ranktilt.cli.notes import note
from ranktilt.cli.output import PageOutput, collection_files
from ranktilt.cli.statistics_options import statistics_settings
from ranktilt.cli.train.options import train
from ranktilt.cli.train.study_options import StudyTests, StudyTraining

if TYPE_CHECKING:
    from ranktilt.training.study_options import StudyOptions


@verb(
    "study",
    "train study DIR --base-model minilm --zero-shot DIR -o out.html",
    "train study DIR --base-model minilm --preset askari --seeds 3",
    arguments="DIR",
    parent=train,
)
def train_study(
    folder: options.Folder,
    /,
    *,
    learning: StudyTraining = StudyTraining(),
    tests: StudyTests = StudyTests(),
    preset: options.Preset = None,
    ties: Annotated[
        Literal["expected", "trec_eval"] | None,
        Parameter(
            help="How to count ties: their expected value over all orders (default), or in "
            "trec_eval's order by id.",
            group=STATISTICS,
        ),
    ] = None,
    work_dir: Annotated[
        Path | None,
        Parameter(
            help="Folder for models and runs (default: DIR's name with -training).",
            metavar="FOLDER",
            group=OUTPUT,
        ),
    ] = None,
    output: PageOutput = PageOutput(),
) -> None:
    """Compare rankers that learned from human and from LLM documents.

    Each encoder is trained once on the human and once on the LLM's documents. The rankers re-rank
    BM25's documents on the test split and on other collections, and their effectiveness and tilt
    are compared. An interrupted study resumes.

    Set other arguments of the trainings with --set KEY=VALUE, such as --set epochs=3: steps,
    epochs, batch, rate, warmup_steps, weight_decay, seed, precision, negatives_per_positive,
    positives_per_query, max_query_tokens, max_document_tokens, positives, loss, dropout.
    """
    from ranktilt.training.study import training_study

    study_options = _study_options(learning, tests, preset)
    learning.check()
    output.check(*collection_files(folder))
    work = work_dir or Path(f"{folder.resolve().name}-training")
    statistics = statistics_settings()
    study = training_study(
        folder,
        learning.base_model or (),
        work,
        options=study_options,
        ties=ties or statistics.ties or "expected",
        resamples=statistics.resamples,
        seed=statistics.seed,
    )
    output.deliver(study)
    note(f"{work}: the trained models and their runs")


def _study_options(learning: StudyTraining, tests: StudyTests, preset: str | None) -> StudyOptions:
    """Return the settings of a study: how rankers learn, and what they are tested on."""
    from ranktilt.training.study_options import StudyOptions

    training = learning.training(preset)
    return StudyOptions(
        training=training,
        seeds=learning.seeds,
        depth=tests.rerank_depth,
        queries=tests.test_queries,
        disjoint=tests.disjoint,
        curve=learning.amounts(),
        zero_shot=tests.collections(),
        test=tests.test_split,
        reference=tests.reference,
        seed=training.seed,
    )
