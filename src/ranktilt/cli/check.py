"""``ranktilt check``: whether a collection makes a fair comparison.

An audit compares documents of two *sides*, such as human and llm. The comparison is fair if the
sides do not differ in something else, such as cut-off texts, that could explain the answer. Such a
difference is a *fault*; a fault beyond its *limit* makes the comparison void.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import completion, options
from ranktilt.cli.app import INPUT, MODEL, QUESTION, START, verb
from ranktilt.cli.output import PageOutput, collection_files
from ranktilt.cli.rankers import read_rankers
from ranktilt.cli.settings import settings
from ranktilt.config import read_section
from ranktilt.data.faults.check_limits import EQUIVALENCE, CheckLimits, Percent
from ranktilt.data.formats.notation import file_of
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.rankers.base import Ranker

UNFAIR, NOTHING_COMPARED = 1, 3
"""Exit codes where a fault voids the comparison, and where there are no two sides."""
_RANKER = "bm25"
"""Ranker of ``--instrument`` where none is named."""


@dataclass(frozen=True, kw_only=True)
class CheckSection(CheckLimits):
    """The section [check] of ranktilt.toml."""

    equivalence: Percent = EQUIVALENCE
    """Largest difference in effectiveness that does not matter, in points."""

    @classmethod
    def in_force(cls) -> CheckSection:
        """Return the section of ranktilt.toml, with the keys of ``--set``."""
        return read_section("[check]", settings().configuration.check, cls)

    @property
    def limits(self) -> CheckLimits:
        """The limits of faults alone."""
        values = {field.name: getattr(self, field.name) for field in fields(CheckLimits)}
        return CheckLimits(**values)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class CheckQuestions:
    """Options that ask for more than faults of the texts, and need a ranker or an encoder."""

    ranker: Annotated[
        list[str] | None,
        Parameter(
            alias="-r",
            help="Rankers to run on each side alone, to see whether one side is easier to search.",
            metavar="SPEC",
            group=INPUT,
            completer=completion.rankers,
        ),
    ] = None
    measure: Annotated[
        list[str] | None,
        Parameter(
            alias="-m",
            help="Measure of effectiveness (default: nDCG@10), also for the audits of "
            "--instrument.",
            metavar="MEASURE",
            group=QUESTION,
            completer=completion.measures,
        ),
    ] = None
    similarity: Annotated[
        str | None,
        Parameter(
            help="Encoder that compares meanings and draws a map, such as dense:minilm.",
            metavar="SPEC",
            group=MODEL,
        ),
    ] = None
    instrument: Annotated[
        bool,
        Parameter(
            help="Also toss coins for the sources, to see how often an audit of the rankers "
            "(-r; default: bm25) names a side.",
            group=QUESTION,
        ),
    ] = False
    text: options.Text = None

    def check(self) -> None:
        """Refuse options that nothing reads."""
        if self.measure and not self.instrument and not self.ranker:
            raise UserError("--measure needs a ranker: name one, such as -r bm25")
        has_model = self.instrument or self.ranker or self.similarity is not None
        if self.text is not None and not has_model:
            raise UserError("--text needs a ranker or an encoder: name one with -r or --similarity")

    def typed(self) -> dict[str, object]:
        """Return the options by their flags; those that are not typed have no value."""
        return {
            "-r": self.ranker,
            "-m": self.measure,
            "--similarity": self.similarity,
            "--instrument": self.instrument,
            "--text": self.text,
        }

    def rankers(self) -> list[Ranker]:
        """Return the rankers to examine; BM25 where ``--instrument`` names none."""
        specs = self.ranker or ([_RANKER] if self.instrument else [])
        return read_rankers(specs, text=self.text)

    def encoder(self) -> Ranker | None:
        """Return the encoder of ``--similarity``."""
        if self.similarity is None:
            return None
        return read_rankers([self.similarity], text=self.text)[0]


@verb(
    "check",
    "check DIR",
    "check DIR -r bm25 --instrument",
    "check FILE",
    arguments="DIR|FILE",
    panel=START,
    order=2,
)
def check(
    folder: options.CollectionOrFile,
    /,
    *,
    questions: CheckQuestions = CheckQuestions(),
    reference: options.Reference = None,
    split: options.Split = None,
    output: PageOutput = PageOutput(),
) -> int:
    """Check that a comparison is fair, or show what a file holds.

    Exit 0: fair; 1: a fault makes the comparison void; 3: there are no two sides.

    For a collection, you see what each source holds, how its texts differ from their twins, and
    what is at fault. -r also shows whether one side is easier to search, --similarity how close
    twins are in meaning, and --instrument whether an audit of a ranker is right here. It tosses a
    coin for each document and its twin to decide who wrote which, 200 times. At most 5 % of these
    audits should name a side.

    For a FILE, or standard input (-), you see its format, what it holds, what you can ask of it,
    what is missing for more, and the command to type next. Exit 1: it cannot be read yet.

    Limits are keys of [check] in ranktilt.toml. For one command: --set check.max_missing=5.
    """
    from ranktilt.explaining.check import check as check_collection
    from ranktilt.explaining.file_report import can_describe, describe_file

    questions.check()
    if can_describe(folder):
        unread = {**questions.typed(), "--reference": reference, "--split": split}
        options.refuse_unread(unread, f"it examines a collection, and {folder} is a file; omit it")
        output.check(file_of(folder))
        report = describe_file(folder)
        output.deliver(report)
        return 0 if report.is_readable else UNFAIR
    section = CheckSection.in_force()
    output.check(*collection_files(folder))
    # A misspelt model is refused before texts are read.
    encoder, rankers = questions.encoder(), questions.rankers()
    collection = options.load_texts(folder, split)
    result = check_collection(
        collection,
        reference=reference,
        limits=section.limits,
        equivalence=section.equivalence,
        seed=settings().configuration.statistics.seed,
        rankers=rankers,
        measures=questions.measure,
        similarity=encoder,
        instrument=questions.instrument,
    )
    output.deliver(result)
    if not result.is_compared:
        return NOTHING_COMPARED
    return 0 if result.fair else UNFAIR
