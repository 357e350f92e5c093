"""Options of ``ranktilt train study``: what the rankers learn, and what they are tested on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, MODEL, QUESTION, TRAINING
from ranktilt.cli.train.arguments import OPTIONS, read_amounts, training_arguments, typed_options
from ranktilt.cli.train.options import Minutes, RerankerNegatives, Text
from ranktilt.errors import UserError
from ranktilt.training.options import RerankerTraining

if TYPE_CHECKING:
    from ranktilt.training.study_options import Amounts, ZeroShot

_FROM_STUDY = ("alpha", "limits", "sources", "twins", "triples")
"""Arguments of a training that the study decides."""
_OPTIONS = {name: flag for name, flag in OPTIONS.items() if name not in _FROM_STUDY}
"""Options by the name of the field that they set."""


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
        arguments: dict[str, Any] = training_arguments(RerankerTraining, _OPTIONS, _FROM_STUDY)
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
