"""Compare the runs of a log, part by part."""

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
    """Comparisons of two runs each, for every part of a log."""

    means: tuple[ChangeTask, ...] = ()
    """Comparisons of effectiveness."""
    contrasts: tuple[ChangeTask, ...] = ()
    """Comparisons of tilts, and of answers about groups."""


def part_tasks(questions: LogQuestions, *, resamples: int, seed: int) -> PartTasks:
    """Compare the runs of each part on measures of relevance, and on group estimands."""
    measures = [measure for measure in questions.estimands if isinstance(measure, Measure)]
    of_measures = PartTasks()
    if measures:
        of_measures = _measure_tasks(questions, measures, resamples=resamples, seed=seed)
    contrasts = [*of_measures.contrasts]
    estimands = [group for group in questions.estimands if isinstance(group, GroupEstimand)]
    if estimands:
        contrasts += _group_tasks(questions, estimands)
    return PartTasks(means=of_measures.means, contrasts=tuple(contrasts))


def _measure_tasks(
    questions: LogQuestions, measures: Sequence[Measure], *, resamples: int, seed: int
) -> PartTasks:
    """Return the comparisons on measures of relevance."""
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
    parts = replace(match(audited, audited, baseline_run=INPUT), runs=PARTS)
    return PartTasks(
        means=tuple(change_tasks(parts, [(ALL, ALL)])),
        contrasts=tuple(change_tasks(parts, parts.pairs)),
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
    """Compare the runs of each part on each group estimand and pair."""
    by_run = {(sample.run, sample.estimand, sample.a, sample.b): sample for sample in samples}
    questions = dict.fromkeys((sample.estimand, sample.a, sample.b) for sample in samples)
    for question in questions:
        for part in PARTS:
            yield contrast_task(by_run[part.new, *question], by_run[part.old, *question])
