"""The language model that grades for ``ranktilt judge``: its price, its grades and its probes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ranktilt.cli.generate.requests import show_estimate
from ranktilt.cli.generate.summaries import INCOMPLETE
from ranktilt.cli.notes import note
from ranktilt.cli.output import print_lines
from ranktilt.cli.statistics_options import statistics_settings
from ranktilt.errors import counted

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.data.runs.run import Run
    from ranktilt.judging.grading.grading import Grades
    from ranktilt.judging.grading.probes import JudgeProbes
    from ranktilt.judging.grading.settings import Grading
    from ranktilt.llm.base import LLM


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

        `price` holds the prices of a million input tokens and of a million output tokens.
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
        """Let the model grade what it is to judge, and the probes.

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
        """Let the model grade edited passages of grade 0: `pairs` of them, each with a query.

        Each edit, such as an added instruction, may sway a judge, but makes no passage relevant.
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
