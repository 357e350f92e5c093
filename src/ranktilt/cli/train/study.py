"""``ranktilt train study``: train rankers on human and on LLM documents, and compare them.

The rankers are cross-encoders, which re-rank BM25's documents. They are tested on the collection
that they learned from, and on *zero-shot* collections, from which nothing is learned. The *curve*
of a ranker shows its effectiveness after learning from different numbers of documents.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, MODEL, OUTPUT, QUESTION, STATISTICS, TRAINING, verb
from ranktilt.cli.notes import note
from ranktilt.cli.output import PageOutput, collection_files
from ranktilt.cli.statistics_options import statistics_settings
from ranktilt.cli.train.arguments import OPTIONS, read_amounts, training_arguments, typed_options
from ranktilt.cli.train.options import Minutes, RerankerNegatives, Text, train
from ranktilt.errors import UserError
from ranktilt.training.options import RerankerTraining

if TYPE_CHECKING:
    from ranktilt.training.study_options import Amounts, StudyOptions, ZeroShot

_SET_BY_STUDY = ("alpha", "limits", "sources", "twins", "triples")
"""Arguments of a training that the study sets."""
_STUDY_OPTIONS = {name: flag for name, flag in OPTIONS.items() if name not in _SET_BY_STUDY}
"""Options of this command, by the argument that they set."""


@Parameter(name="*", group=TRAINING)
@dataclass(frozen=True, kw_only=True)
class StudyTraining:
    """The rankers to train, and how they learn."""

    base_model: Annotated[
        list[str] | None,
        Parameter(
            help="Encoder to start from; several may be given.", metavar="MODEL", group=MODEL
        ),
    ] = None
    text: Text = None
    seeds: Annotated[
        int,
        Parameter(
            help="Trainings per ranker, each with its own seed (default: 1).",
            metavar="N",
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = 1
    curve: Annotated[
        list[str] | None,
        Parameter(
            help="Also train on N documents of each named source.",
            metavar="SOURCE=N,…",
        ),
    ] = None
    negatives: RerankerNegatives = None
    minutes: Minutes = None

    def check(self) -> None:
        """Refuse a study without an encoder to start from."""
        if not self.base_model:
            raise UserError(
                "nothing to train: name an encoder to start from, such as --base-model minilm"
            )

    def training(self, preset: str | None) -> RerankerTraining:
        """Return how each ranker learns: as the preset says, then --set, then the options."""
        arguments: dict[str, Any] = training_arguments(
            RerankerTraining, _STUDY_OPTIONS, without=_SET_BY_STUDY
        )
        typed = typed_options(text=self.text, negatives=self.negatives, minutes=self.minutes)
        return RerankerTraining.from_preset(preset, **arguments, **typed)

    def amounts(self) -> tuple[Amounts, ...]:
        """Read --curve: for each further training, the number of documents of each source."""
        trainings = [read_amounts([text], "--curve") for text in self.curve or ()]
        return tuple(tuple(amounts.items()) for amounts in trainings)


@Parameter(name="*", group=INPUT)
@dataclass(frozen=True, kw_only=True)
class StudyTests:
    """The collections and queries that the rankers are tested on."""

    zero_shot: Annotated[
        list[str] | None,
        Parameter(
            help="Another test collection; its qrels=, candidates= (a run) and name= may follow.",
            metavar="NAME[,qrels=FILE,…]",
        ),
    ] = None
    test_split: Annotated[
        str,
        Parameter(
            help="Judgments to test on, qrels/<split>.tsv (default: test).",
            metavar="SPLIT",
        ),
    ] = "test"
    test_queries: Annotated[
        int | None,
        Parameter(
            help="Test queries per domain, drawn at random (default: all).",
            metavar="N",
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None
    disjoint: Annotated[
        bool,
        Parameter(help="Leave training documents out of the test collection."),
    ] = False
    reference: Annotated[
        str,
        Parameter(
            help="The human source, whose documents count in the test (default: human).",
            metavar="SOURCE",
            group=QUESTION,
        ),
    ] = "human"
    rerank_depth: Annotated[
        int,
        Parameter(
            help="Number of BM25's documents to re-rank (default: 1000).",
            metavar="K",
            group=QUESTION,
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = 1000

    def collections(self) -> tuple[ZeroShot, ...]:
        """Read --zero-shot: collections that nothing is learned from."""
        return tuple(read_zero_shot(text) for text in self.zero_shot or ())


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
