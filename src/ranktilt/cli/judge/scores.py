"""``ranktilt judge --scores``: compare systems from stored values of a measure for each query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ranktilt.cli import options
from ranktilt.cli.judge.inputs import JudgeInputs
from ranktilt.cli.judge.question import JudgeQuestion
from ranktilt.cli.statistics_options import statistics_settings
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.judging.result import JudgeAudit


def check_scores(inputs: JudgeInputs, question: JudgeQuestion, llm: str | None) -> None:
    """Refuse options that ``--scores`` leaves unread, and fewer than two files of values."""
    unread: dict[str, object] = {
        "DIR": inputs.folder,
        "--human": inputs.human,
        "--judge": inputs.judge,
        "--runs": inputs.runs,
        "--ranker": inputs.ranker,
        "--split": inputs.split,
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


def compare_scores(inputs: JudgeInputs, measures: Sequence[str] | None) -> JudgeAudit:
    """Compare systems under human grades, the first file of ``--scores``, and under each judge."""
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
