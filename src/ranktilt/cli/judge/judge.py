"""``ranktilt judge``: whom judgments made by language models favour.

A *judge* is a language model, or whoever made the grades that are compared with human ones; a
*system* is what a run comes from. With ``--scores`` there are no grades and no runs: systems are
compared by the values of a measure that are stored for each query, under humans and under judges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import UNDERSTAND, verb
from ranktilt.cli.judge.grading import GradedByModel, GradingOptions
from ranktilt.cli.judge.inputs import JudgeInputs
from ranktilt.cli.judge.question import JudgeQuestion
from ranktilt.cli.notes import note
from ranktilt.cli.output import PageOutput, with_sidecars
from ranktilt.cli.statistics_options import statistics_settings
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.judging.result import JudgeAudit


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
    question: JudgeQuestion = JudgeQuestion(),
    output: PageOutput = PageOutput(),
) -> int:
    """Show whom a judge's grades favour.

    A judge may favour a source, on twins, or a family of systems. You also see whether systems
    change places under the judge. With --llm, a language model first grades the top of each run, or
    the documents that the collection judges.

    Exit 1 if some pairs got no answer; run the command again to ask only for these.
    """
    from ranktilt.judging.judge_grades import named_judges

    inputs = replace(inputs, folder=folder)
    model.check()
    if inputs.scores:
        _check_scores(inputs, question, llm=model.llm, text=text)
        output.check(*inputs.files)
        output.deliver(_compare_scores(inputs, question.measure))
        return 0
    inputs.check(asks=model.llm is not None, text=text)
    _refuse_questions_of_systems(inputs, model.pool, question)
    prices = options.read_price(model.price, dry_run=model.dry_run)
    sources = question.read_sources()
    output.check(*inputs.files, also=with_sidecars({"--save-grades": model.save_grades}))
    systems = inputs.read_systems(text)
    judges = named_judges(inputs.judge or [])
    graded = GradedByModel()
    if model.llm is not None and systems.collection is not None:
        grader = model.grader(systems.collection, systems.runs, text)
        if model.dry_run:
            grader.show_estimate(prices, model.probe_pairs)
            return 0
        graded = grader.ask(model.save_grades, model.probe_pairs)
        if inputs.human is None and not systems.collection.qrels.height:
            note("no human grades to compare with: name them with --human FILE")
            return graded.exit_code
    all_judges = {**judges, **graded.judges}
    audit = question.audit(all_judges, inputs.human, systems, sources=sources, probes=graded.probes)
    output.deliver(audit)
    return graded.exit_code


def _refuse_questions_of_systems(
    inputs: JudgeInputs, pool: int | None, question: JudgeQuestion
) -> None:
    """Refuse options that only runs, or the sources of a collection, could give a meaning."""
    if not inputs.has_systems:
        unread = {"--measure": question.measure, "--pool": pool}
        options.refuse_unread(unread, "it needs runs (--runs DIR, or DIR -r SPEC)")
    if inputs.folder is None:
        options.refuse_unread({"--pair": question.pair}, "it needs sources: name a collection DIR")


def _check_scores(
    inputs: JudgeInputs, question: JudgeQuestion, *, llm: str | None, text: options.Fields | None
) -> None:
    """Refuse options that ``--scores`` leaves unread, and fewer than two files of values."""
    unread: dict[str, object] = {
        "DIR": inputs.folder,
        "--human": inputs.human,
        "--judge": inputs.judge,
        "--runs": inputs.runs,
        "--ranker": inputs.ranker,
        "--split": inputs.split,
        "--score-order": inputs.score_order,
        "--text": text,
        "--llm": llm,
        "--human-sample": question.human_sample,
        "--pair": question.pair,
        "--top-grade": question.top_grade,
        "--relevant-from": question.relevant_from,
    }
    for option, value in unread.items():
        if options.is_typed(value):
            raise UserError(
                f"{option} does not go with --scores, which needs no grades and no runs; omit it"
            )
    if len(inputs.scores or ()) < 2:
        raise UserError(
            "--scores: name two files or more, first the values under human grades, then each "
            "judge's"
        )


def _compare_scores(inputs: JudgeInputs, measures: Sequence[str] | None) -> JudgeAudit:
    """Compare systems under humans, the first file of ``--scores``, and under each judge."""
    from ranktilt.judging.systems.judge_scores import judge_scores

    human, *judges = inputs.scores or []
    groups = inputs.read_groups()
    statistics = statistics_settings()
    return judge_scores(
        human,
        judges,
        measures=measures,
        families=groups.families,
        clusters=groups.clusters,
        resamples=statistics.resamples,
        seed=statistics.seed,
        correction=statistics.correction,
    )
