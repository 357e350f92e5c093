"""The language model that grades for ``ranktilt judge``: its price, its grades and its probes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ranktilt.cli.generate.requests import show_estimate
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
    """A model, with the pairs of queries and documents that it grades."""

    collection: Collection
    """The collection."""
    client: LLM
    """The model."""
    grading: Grading
    """How it grades."""
    runs: Sequence[Run]
    """Runs whose documents it grades."""

    def show_estimate(self, price: tuple[float, float] | None, probe_pairs: int | None) -> None:
        """Show what the rest of the requests would cost, then those of probes."""
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

    def grade(self, target: Path | None) -> Grades:
        """Let the model grade, keep the grades, and say what became of the requests."""
        from ranktilt.data.runs.run import named_apart
        from ranktilt.judging.grading.grading import grade, save_grades

        runs = named_apart(self.runs)
        grades = grade(self.collection, self.client, self.grading, runs=runs)
        note_grades(grades)
        if target is not None:
            save_grades(grades, target)
        return grades

    def probe(self, pairs: int) -> JudgeProbes:
        """Let the model grade passages of grade 0 with something in them that may sway it."""
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
