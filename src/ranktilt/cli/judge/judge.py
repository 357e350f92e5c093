"""``ranktilt judge``: whom judgments made by language models favour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import QUESTION, UNDERSTAND, verb
from ranktilt.cli.generate.summaries import INCOMPLETE
from ranktilt.cli.judge.grading import GradingOptions
from ranktilt.cli.judge.inputs import JudgeInputs
from ranktilt.cli.judge.scores import compare_scores
from ranktilt.cli.notes import note
from ranktilt.cli.output import PageOutput, with_sidecars
from ranktilt.cli.statistics_options import statistics_settings

if TYPE_CHECKING:
    from ranktilt.cli.judge.grader import Grader
    from ranktilt.judging.grading.grading import Grades
    from ranktilt.judging.grading.probes import JudgeProbes


@verb(
    "judge",
    "judge --human human.qrels --judge judge.qrels --runs runs/",
    "judge --scores human.ndcgeval --scores judge.ndcgeval",
    "judge DIR --llm openai:MODEL --runs runs/ --dry-run",
    arguments="[DIR]",
    panel=UNDERSTAND,
)
def judge(
    folder: Annotated[
        Path | None,
        Parameter(name="DIR", help="A collection, for its sources and judgments (optional)."),
    ] = None,
    /,
    *,
    inputs: JudgeInputs = JudgeInputs(),
    model: GradingOptions = GradingOptions(),
    text: options.Text = None,
    measure: options.Measures = None,
    pair: Annotated[
        str | None,
        Parameter(
            help="Sources of twins; positive gaps favour the first.",
            metavar="A,B",
            group=QUESTION,
        ),
    ] = None,
    relevant_from: Annotated[
        int | None,
        Parameter(
            help="Smallest grade that counts as relevant, for binary κ (default: 1).",
            metavar="N",
            group=QUESTION,
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None,
    top_grade: Annotated[
        int | None,
        Parameter(
            help="Highest grade of the scale from 0 (default: the highest human grade; 3 with "
            "--llm).",
            metavar="N",
            group=QUESTION,
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None,
    human_sample: Annotated[
        int | None,
        Parameter(
            help="Show how much of the judge's error N human labels would repair.",
            metavar="N",
            group=QUESTION,
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None,
    output: PageOutput = PageOutput(),
) -> int:
    """Show whom a judge's grades favour.

    A judge may favour a source, on twins, or a family of systems. You also see whether systems
    change places under the judge. With --llm, a language model first grades the top of each run, or
    the documents that the collection judges.

    Exit 1 if some pairs got no answer; run the command again to ask only for these.
    """
    inputs = replace(inputs, folder=folder)
    model.check()
    if inputs.scores:
        inputs.check_scores(
            llm=model.llm,
            human_sample=human_sample,
            pair=pair,
            top_grade=top_grade,
            relevant_from=relevant_from,
        )
        output.check(*inputs.files)
        output.deliver(compare_scores(inputs, measure))
        return 0
    inputs.check(asks=model.llm is not None)
    prices = options.read_price(model.price, dry_run=model.dry_run)
    pairs = options.read_pairs(None if pair is None else [pair])
    output.check(*inputs.files, also=with_sidecars({"--save-grades": model.save_grades}))
    groups = inputs.read_groups()
    collection = inputs.load()
    statistics = statistics_settings()
    runs = inputs.read_runs(collection, text)
    from ranktilt.judging.judge import MEASURES
    from ranktilt.judging.judge import judge as run_judge
    from ranktilt.judging.judge_grades import named_judges

    judges: dict[str, Any] = named_judges(inputs.judge or [])
    graded = GradedByModel()
    if model.llm is not None and collection is not None:
        grader = model.grader(collection, runs, text)
        if model.dry_run:
            grader.show_estimate(prices, model.probe_pairs)
            return 0
        graded = _ask_model(grader, model)
        judges |= graded.judges
        if inputs.human is None and not collection.qrels.height:
            note("no human grades to compare with: name them with --human FILE")
            return graded.exit_code
    output.deliver(
        run_judge(
            judges,
            inputs.human,
            collection=collection,
            runs=runs,
            families=groups.families,
            clusters=groups.clusters,
            measures=measure or MEASURES,
            pair=None if pairs is None else pairs[0],
            relevant=relevant_from or 1,
            top_grade=top_grade,
            human_sample=human_sample,
            probed=graded.probes,
            resamples=statistics.resamples,
            seed=statistics.seed,
            correction=statistics.correction,
        )
    )
    return graded.exit_code


@dataclass(frozen=True, kw_only=True)
class GradedByModel:
    """The grades of a language model and its probes; nothing where no model was asked."""

    grades: Grades | None = None
    """The grades; None where no model was asked."""
    probes: Sequence[JudgeProbes] = ()
    """Grades of edited passages."""

    @property
    def judges(self) -> dict[str, Grades]:
        """The model as a judge, by its name."""
        return {} if self.grades is None else {self.grades.judge: self.grades}

    @property
    def exit_code(self) -> int:
        """Exit code of the command: incomplete where the model left pairs without a grade."""
        return INCOMPLETE if self.grades is not None and self.grades.unanswered else 0


def _ask_model(grader: Grader, model: GradingOptions) -> GradedByModel:
    """Let the model grade, and grade the probes where they were asked for."""
    grades = grader.grade(model.save_grades)
    if model.probe_pairs is None:
        return GradedByModel(grades=grades)
    return GradedByModel(grades=grades, probes=[grader.probe(model.probe_pairs)])
