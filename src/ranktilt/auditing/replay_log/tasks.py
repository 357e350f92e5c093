"""Compare the runs of a log, part by part.

A *part*, such as that of the model, is the difference between two of the runs; `PARTS` names them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ranktilt.auditing.audit import audit
from ranktilt.auditing.card import group_samples
from ranktilt.auditing.comparison.match import match
from ranktilt.auditing.comparison.tasks import change_tasks
from ranktilt.auditing.grouping.pairs import grouped_pairs
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.judged_run import JudgedRun
from ranktilt.auditing.judgments import Judgments
from ranktilt.auditing.replay_log.result import INPUT, PARTS
from ranktilt.auditing.significance import ChangeTask, Sample, contrast_task
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run
from ranktilt.measures.base import Estimand, GroupEstimand, Measure


@dataclass(frozen=True, kw_only=True, eq=False)
class LogQuestions:
    """The questions about the runs of a log."""

    collection: Collection
    """Documents and judgments."""
    runs: Sequence[Run]
    """Runs of the log."""
    estimands: Sequence[Estimand]
    """Measures and group estimands to split."""
    by: str | None
    """Column of the groups; None without groups."""
    pairs: Sequence[Pair] | None
    """Pairs of groups to compare; None for all."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PartTasks:
    """Values per query of two runs each, for every part of a log."""

    means: tuple[ChangeTask, ...] = ()
    """Comparisons of effectiveness."""
    contrasts: tuple[ChangeTask, ...] = ()
    """Comparisons of tilts, and of answers about groups."""


def part_tasks(questions: LogQuestions, *, resamples: int, seed: int) -> PartTasks:
    """Return the comparisons of each part's two runs, on measures and on group estimands."""
    tasks = PartTasks()
    measures = [estimand for estimand in questions.estimands if isinstance(estimand, Measure)]
    if measures:
        tasks = _measure_tasks(questions, measures, resamples=resamples, seed=seed)
    contrasts = [*tasks.contrasts]
    group_estimands = [
        estimand for estimand in questions.estimands if isinstance(estimand, GroupEstimand)
    ]
    if group_estimands:
        contrasts += _group_tasks(questions, group_estimands)
    return PartTasks(means=tasks.means, contrasts=tuple(contrasts))


def _measure_tasks(
    questions: LogQuestions, measures: Sequence[Measure], *, resamples: int, seed: int
) -> PartTasks:
    """Return the comparisons on measures of relevance, and on their Relative Δ with groups."""
    audited = audit(
        questions.collection,
        questions.runs,
        measures,
        by=questions.by,
        pairs=questions.pairs,
        missing="exclude",
        confounds=False,
        keep_top=0,
        resamples=resamples,
        seed=seed,
    )
    # The match compares all runs with the baseline; here the pairs of runs are those of the parts.
    matched = replace(match(audited, audited, baseline_run=INPUT), runs=PARTS)
    return PartTasks(
        means=tuple(change_tasks(matched, [(ALL, ALL)])),
        contrasts=tuple(change_tasks(matched, matched.pairs)),
    )


def _group_tasks(
    questions: LogQuestions, estimands: Sequence[GroupEstimand]
) -> Iterator[ChangeTask]:
    """Return the comparisons on group estimands."""
    collection = questions.collection
    groups, pairs = grouped_pairs(collection, questions.by, questions.pairs)
    judgments = Judgments.from_collection(collection, groups)
    judged_runs = [JudgedRun.from_run(run, collection, judgments) for run in questions.runs]
    return _group_contrasts(group_samples(judged_runs, groups, pairs, estimands))


def _group_contrasts(samples: Sequence[Sample]) -> Iterator[ChangeTask]:
    """Compare the runs of each part on each group estimand and pair of groups."""
    samples_by_run = {
        (sample.run, sample.estimand, sample.a, sample.b): sample for sample in samples
    }
    questions = dict.fromkeys((sample.estimand, sample.a, sample.b) for sample in samples)
    for question in questions:
        for part in PARTS:
            new, old = samples_by_run[part.new, *question], samples_by_run[part.old, *question]
            yield contrast_task(new, old)
