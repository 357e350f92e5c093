"""``ranktilt train study``: train rankers on human and on LLM documents, and compare them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, MODEL, OUTPUT, QUESTION, STATISTICS, TRAINING, verb
from ranktilt.cli.notes import note
from ranktilt.cli.output import PageOutput, collection_files
from ranktilt.cli.settings import settings
from ranktilt.cli.statistics_options import resampling
from ranktilt.cli.train.arguments import OPTIONS, read_amounts, training_arguments, typed_options
from ranktilt.cli.train.options import Minutes, RerankerNegatives, Text, train
from ranktilt.errors import UserError
from ranktilt.training.options import RerankerTraining

if TYPE_CHECKING:
    from ranktilt.training.study_options import ZeroShot

_FROM_STUDY = ("alpha", "limits", "sources", "twins", "triples")
"""Arguments of a training that the study decides."""
_OPTIONS = {name: flag for name, flag in OPTIONS.items() if name not in _FROM_STUDY}


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
    base_model: Annotated[
        list[str] | None,
        Parameter(
            help="Encoder to start from; several may be given.", metavar="MODEL", group=MODEL
        ),
    ] = None,
    text: Text = None,
    zero_shot: Annotated[
        list[str] | None,
        Parameter(
            help="Another test collection; its qrels=, candidates= (a run) and name= may follow.",
            metavar="NAME[,qrels=FILE,…]",
            group=INPUT,
        ),
    ] = None,
    test_split: Annotated[
        str,
        Parameter(
            help="Judgments to test on, qrels/<split>.tsv (default: test).",
            metavar="SPLIT",
            group=INPUT,
        ),
    ] = "test",
    test_queries: Annotated[
        int | None,
        Parameter(
            help="Test queries per domain, drawn at random (default: all).",
            metavar="N",
            group=INPUT,
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None,
    disjoint: Annotated[
        bool,
        Parameter(help="Leave training documents out of the test collection.", group=INPUT),
    ] = False,
    reference: Annotated[
        str,
        Parameter(
            help="The human source, whose documents count in the test (default: human).",
            metavar="SOURCE",
            group=QUESTION,
        ),
    ] = "human",
    rerank_depth: Annotated[
        int,
        Parameter(
            help="Documents of BM25 to re-rank (default: 1000).",
            metavar="K",
            group=QUESTION,
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = 1000,
    seeds: Annotated[
        int,
        Parameter(
            help="Trainings per ranker, each with its own seed (default: 1).",
            metavar="N",
            group=TRAINING,
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = 1,
    curve: Annotated[
        list[str] | None,
        Parameter(
            help="Also train on N documents of each named source.",
            metavar="SOURCE=N,…",
            group=TRAINING,
        ),
    ] = None,
    negatives: RerankerNegatives = None,
    minutes: Minutes = None,
    preset: options.Preset = None,
    ties: Annotated[
        Literal["expected", "trec_eval"] | None,
        Parameter(
            help="Ties: expected value over all orders (default), or trec_eval's order by id.",
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

    Each encoder is trained on the human and on the LLM's documents. The rankers re-rank BM25's
    documents on the test split and on other collections; effectiveness and tilt are compared. An
    interrupted study is resumed.

    Other arguments of the trainings are given by --set KEY=VALUE, such as --set epochs=3: steps,
    epochs, batch, rate, warmup_steps, weight_decay, seed, precision, negatives_per_positive,
    positives_per_query, max_query_tokens, max_document_tokens, positives, loss, dropout.
    """
    from ranktilt.training.study import training_study
    from ranktilt.training.study_options import StudyOptions

    training = RerankerTraining.from_preset(
        preset,
        **training_arguments(RerankerTraining, _OPTIONS, _FROM_STUDY),
        **typed_options(text=text, negatives=negatives, minutes=minutes),
    )
    study_options = StudyOptions(
        training=training,
        seeds=seeds,
        depth=rerank_depth,
        queries=test_queries,
        disjoint=disjoint,
        curve=tuple(tuple(read_amounts([text], "--curve").items()) for text in curve or ()),
        zero_shot=tuple(read_zero_shot(text) for text in zero_shot or ()),
        test=test_split,
        reference=reference,
        seed=training.seed,
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
        ties=ties or settings().configuration.statistics.ties or "expected",
        **resampling(),
    )
    output.deliver(study)
    note(f"{work}: the trained models and their runs")


def read_zero_shot(text: str) -> ZeroShot:
    """Read ``PATH,qrels=FILE,candidates=FILE,name=NAME``: a collection and its options."""
    from ranktilt.training.study_options import ZeroShot

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
