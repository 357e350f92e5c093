"""``ranktilt judge``: whom judgments made by language models favour."""

from __future__ import annotations

from dataclasses import replace
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
from ranktilt.cli.statistics_options import sampling_of_tests

if TYPE_CHECKING:
    from ranktilt.judging.grading import Grades
    from ranktilt.judging.probes import JudgeProbes


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
            help="Show what N human labels would repair of the judge's numbers.",
            metavar="N",
            group=QUESTION,
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None,
    output: PageOutput = PageOutput(),
) -> int:
    """Show whom a judge's grades favour.

    It also shows whether systems change places under the judge. A judge may favour a source, on
    twins, or a family of systems. With --llm a language model grades first: the top of each run, or
    what the collection judges. Exit 1 if some pairs got no answer; the same command again asks only
    for these.
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
    from ranktilt.judging.judge import MEASURES
    from ranktilt.judging.judge import judge as run_judge
    from ranktilt.judging.judge_grades import named_judges

    groups = inputs.read_groups()
    collection = inputs.load()
    runs = inputs.read_runs(collection, text)
    judges: dict[str, Any] = named_judges(inputs.judge or [])
    grades: Grades | None = None
    probed: list[JudgeProbes] = []
    if model.llm is not None and collection is not None:
        grader = model.grader(collection, runs, text)
        if model.dry_run:
            grader.show_estimate(prices)
            return 0
        grades = grader.grade(model.save_grades)
        judges[grades.judge] = grades
        if model.probe_pairs is not None:
            probed = [grader.probe(model.probe_pairs)]
        if inputs.human is None and not collection.qrels.height:
            note("no human grades to hold them against: --human FILE")
            return _exit_code(grades)
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
            probed=probed,
            **sampling_of_tests(),
        )
    )
    return _exit_code(grades)


def _exit_code(grades: Grades | None) -> int:
    """Return how the command ends: incomplete where a model left pairs without a grade."""
    return INCOMPLETE if grades is not None and grades.unanswered else 0
