"""``ranktilt judge --scores``: systems are compared from their values per query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ranktilt.cli.judge.inputs import JudgeInputs
from ranktilt.cli.statistics_options import statistics_settings

if TYPE_CHECKING:
    from ranktilt.judging.result import JudgeAudit


def compare_scores(inputs: JudgeInputs, measures: Sequence[str] | None) -> JudgeAudit:
    """Compare systems from their values per query, the first file under human grades."""
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
