"""The language model that grades for ``ranktilt judge``: its options, its price and its grades.

It grades *pairs* of a query and a document, from 0 (not relevant) upwards. The *pool* of a query is
the union of the first documents of all runs. *Probes* are edits of passages of grade 0 that may
sway a judge, such as added query words; none makes a passage relevant, so a higher grade is an
error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import MODEL, OUTPUT, SELDOM
from ranktilt.cli.generate.options import Truncate
from ranktilt.cli.generate.requests import show_estimate
from ranktilt.cli.generate.summaries import INCOMPLETE
from ranktilt.cli.language_models import ConnectedModel
from ranktilt.cli.notes import note
from ranktilt.cli.output import print_lines
from ranktilt.cli.statistics_options import statistics_settings
from ranktilt.errors import UserError, counted
from ranktilt.judging.grading.settings import Grading

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.data.runs.run import Run
    from ranktilt.judging.grading.grading import Grades
    from ranktilt.judging.grading.probes import JudgeProbes
    from ranktilt.llm.base import LLM


@Parameter(name="*", group=MODEL)
@dataclass(frozen=True, kw_only=True)
class GradingOptions:
    """A language model that grades documents, and its prompt."""

    llm: options.LanguageModel = None
    prompt: Annotated[
        str | None,
        Parameter(
            help="umbrela (default), basic, rubric, or a file with {query} and {passage}.",
            metavar="NAME|FILE",
        ),
    ] = None
    pool: Annotated[
        int | None,
        Parameter(
            help="Grade the top K documents of each run (default: 20).",
            metavar="K",
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None
    limit: Annotated[
        int | None,
        Parameter(
            help="Grade only the first N pairs, for a trial.",
            metavar="N",
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None
    probe_pairs: Annotated[
        int | None,
        Parameter(
            help="Also let the model grade N passages of grade 0 as they are, with added query "
            "words, padding to 2 and 4 times their length, or an instruction.",
            metavar="N",
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None
    save_grades: Annotated[
        Path | None,
        Parameter(help="Save the model's grades as qrels.", metavar="FILE", group=OUTPUT),
    ] = None
    batch: options.Batch = False
    dry_run: options.DryRun = False
    price: options.Price = None
    repeats: Annotated[
        int | None,
        Parameter(
            help="Grade each pair N times and take the median (default: 1).",
            metavar="N",
            group=SELDOM,
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None
    truncate: Truncate = False

    def check(self) -> None:
        """Refuse options of a model where ``--llm`` names none."""
        if self.llm is not None:
            return
        flag = options.first_typed(**{**vars(self), "llm": None})
        if flag is not None:
            raise UserError(f"{flag} needs a model: --llm openai:MODEL")

    def grading(self, sampling: Mapping[str, Any], text: options.Fields | None) -> Grading:
        """Return how the model is asked; options that are not typed have the library's defaults.

        Parameters
        ----------
        sampling : mapping
            Options in the text of the model that say how an answer is drawn, such as its
            temperature.
        text : str or None
            The part of a document that the model reads.
        """
        grading = Grading(
            prompt=self.prompt or Grading.prompt,
            pool=self.pool or Grading.pool,
            repeats=self.repeats or Grading.repeats,
            text=text or Grading.text,
            truncate=self.truncate,
            first=self.limit,
        )
        return grading.with_sampling(sampling)

    def grader(
        self, collection: Collection, runs: Sequence[Run], text: options.Fields | None
    ) -> Grader:
        """Connect to the model that grades the first documents of each run.

        Without runs it grades the documents that the collection judges. `text` is the part of a
        document that it reads.
        """
        model = ConnectedModel.read(self.llm, batch=self.batch)
        grading = self.grading(model.sampling, text)
        return Grader(collection=collection, client=model.client, grading=grading, runs=runs)


@dataclass(frozen=True, kw_only=True)
class Grader:
    """A language model, with the pairs of a query and a document that it grades."""

    collection: Collection
    """Queries and documents."""
    client: LLM
    """The connection to the model."""
    grading: Grading
    """Settings of the prompt, and the pairs to grade."""
    runs: Sequence[Run]
    """Runs whose first documents are graded; without any, the documents that are judged."""

    def show_estimate(self, price: tuple[float, float] | None, probe_pairs: int | None) -> None:
        """Show what the requests that are still to be sent would cost, then those of probes.

        Answers that are stored from an earlier command cost nothing. `price` holds the prices of a
        million input tokens and of a million output tokens.
        """
        from ranktilt.judging.grading.inputs import prepare_grades

        inputs = prepare_grades(self.collection, self.client, self.grading, runs=self.runs)
        show_estimate(inputs, self.client, price)
        if probe_pairs is not None:
            from ranktilt.judging.grading.probes import prepare_probes

            seed = statistics_settings().seed
            probes = prepare_probes(
                self.collection, self.client, self.grading, pairs=probe_pairs, seed=seed
            )
            print_lines((("and probes", "each passage as it is, and once for each edit"),))
            show_estimate(probes, self.client, price)

    def ask(self, target: Path | None, probe_pairs: int | None) -> GradedByModel:
        """Let the model grade the pairs, and the probes.

        Parameters
        ----------
        target : Path or None
            The file that the grades are saved in.
        probe_pairs : int or None
            The number of passages to edit and grade again; None for no probes.
        """
        grades = self.grade(target)
        probes = [] if probe_pairs is None else [self.probe(probe_pairs)]
        return GradedByModel(grades=grades, probes=probes)

    def grade(self, target: Path | None) -> Grades:
        """Let the model grade, save the grades, and say what became of the requests."""
        from ranktilt.data.runs.run import named_apart
        from ranktilt.judging.grading.grading import grade, save_grades

        runs = named_apart(self.runs)
        grades = grade(self.collection, self.client, self.grading, runs=runs)
        note_grades(grades)
        if target is not None:
            save_grades(grades, target)
        return grades

    def probe(self, pairs: int) -> JudgeProbes:
        """Let the model grade passages of grade 0, as they are and edited.

        `pairs` is the number of passages, each with a query.
        """
        from ranktilt.judging.grading.probes import probe_judge

        statistics = statistics_settings()
        return probe_judge(
            self.collection,
            self.client,
            self.grading,
            pairs=pairs,
            resamples=statistics.resamples,
            seed=statistics.seed,
        )


@dataclass(frozen=True, kw_only=True)
class GradedByModel:
    """Grades that a language model made in this command; none where no model was asked."""

    grades: Grades | None = None
    """Grades of the pairs; None where no model was asked."""
    probes: Sequence[JudgeProbes] = ()
    """Grades of edited passages."""

    @property
    def judges(self) -> dict[str, Grades]:
        """The grades by the model's name."""
        return {} if self.grades is None else {self.grades.judge: self.grades}

    @property
    def exit_code(self) -> int:
        """Exit code of the command: incomplete where the model left pairs without a grade."""
        return INCOMPLETE if self.grades is not None and self.grades.unanswered else 0


def note_grades(grades: Grades) -> None:
    """Say what became of the requests for grades."""
    counts = grades.counts
    note(
        f"{grades.judge}: graded {counts.graded:,} of {counted(counts.pairs, 'pair', 'pairs')}; "
        f"asked for {counted(counts.fresh, 'answer', 'answers')}"
    )
    if grades.unanswered:
        message = next(iter(grades.messages), "")
        unanswered = counted(grades.unanswered, "request", "requests")
        note(f"{unanswered} got no answer ({message}); run the command again to ask only for these")
