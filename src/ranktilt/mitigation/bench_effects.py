"""Effects of a bench: tilts, effectiveness, and their differences from the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ranktilt.auditing.effects import Change, Effect
from ranktilt.auditing.gate.limit_checks import percent_factor
from ranktilt.auditing.result import Audit
from ranktilt.auditing.significance import (
    ChangeTask,
    Columns,
    contrast_changes,
    contrast_task,
    corrected,
    effects,
    mean_changes,
    mean_sample,
)
from ranktilt.errors import UserError
from ranktilt.measures.base import Estimand
from ranktilt.mitigation.audited_candidates import AuditedRuns, BenchOptions
from ranktilt.statistics.bootstrap import shared_numbering


def tilts_of(audited: Audit, questions: Sequence[Estimand], correction: str) -> tuple[Effect, ...]:
    """Return the answers about two groups, by run and pair in the order of the questions.

    On the primary question, which must be in percent, p is corrected for each run separately, as in
    an audit of this run alone.
    """
    primary = repr(questions[0])
    question_order = {repr(question): number for number, question in enumerate(questions)}
    run_order = {name: number for number, name in enumerate(audited.runs)}
    tilts = sorted(
        (*audited.tilts, *audited.card),
        key=lambda tilt: (run_order[tilt.run], tilt.a, tilt.b, question_order[tilt.measure]),
    )
    if not tilts or tilts[0].measure != primary:
        raise UserError(
            f"{primary} is undefined for these groups: they have no twins, or no relevant documents"
        )
    if np.isnan(percent_factor(tilts[0])):
        raise UserError(
            f"level is judged in percent, and {primary} has another unit; put Share@10 first"
        )
    primary_tilts = dict[tuple[str, str, str], Effect]()
    for name in audited.runs:
        tilts_of_run = [tilt for tilt in tilts if tilt.run == name and tilt.measure == primary]
        for tilt in corrected(tilts_of_run, correction):
            primary_tilts[tilt.run, tilt.a, tilt.b] = tilt
    return tuple(
        primary_tilts[tilt.run, tilt.a, tilt.b] if tilt.measure == primary else tilt
        for tilt in tilts
    )


def changes_of(audited: Mapping[str, AuditedRuns], options: BenchOptions) -> tuple[Change, ...]:
    """Return how every tilt and effectiveness differs from the baseline's, over the same queries.

    p is corrected over all of them.
    """
    resamples, seed = options.resamples, options.seed
    changes = list[Change]()
    for documents, runs in audited.items():
        changes += contrast_changes(_tilt_tasks(runs), resamples=resamples, seed=seed)
        mean_tasks = _mean_tasks(runs.audit, documents)
        changes += mean_changes(mean_tasks, resamples=resamples, seed=seed)
    return corrected(changes, options.correction)


def _tilt_tasks(runs: AuditedRuns) -> list[ChangeTask]:
    """Pair each sample of a candidate with the baseline's sample of the same question."""
    baseline = runs.audit.runs[0]
    baseline_samples = {
        (sample.estimand, sample.a, sample.b): sample
        for sample in runs.samples
        if sample.run == baseline
    }
    tasks = []
    for sample in runs.samples:
        if sample.run != baseline:
            before = baseline_samples[sample.estimand, sample.a, sample.b]
            tasks.append(contrast_task(sample, before, (sample.neutral, before.neutral)))
    return tasks


def _mean_tasks(audited: Audit, documents: str) -> list[ChangeTask]:
    """Pair each candidate's values of a measure with the baseline's."""
    baseline, *candidates = audited.runs
    tasks = []
    for number, candidate in enumerate(candidates, start=1):
        distinct = shared_numbering([audited.distinct(candidate), audited.distinct(baseline)])
        for index, measured in enumerate(audited.measures):
            values = audited.values[[number, 0], index, 0]
            tasks.append(
                ChangeTask(
                    run=candidate,
                    old_run=baseline,
                    estimand=measured,
                    a=documents,
                    b=documents,
                    columns=Columns(values=values, distinct=distinct),
                )
            )
    return tasks


def means_of(audited: Mapping[str, AuditedRuns], options: BenchOptions) -> tuple[Effect, ...]:
    """Return the effectiveness of every run and measure with its interval.

    That a mean is above 0 is not tested.
    """
    means = list[Effect]()
    for documents, runs in audited.items():
        samples = []
        for run, run_values in zip(runs.audit.runs, runs.audit.values[:, :, 0], strict=True):
            distinct = runs.audit.distinct(run)
            for measured, values in zip(runs.audit.measures, run_values, strict=True):
                samples.append(mean_sample(run, measured, documents, values, distinct=distinct))
        means += effects(samples, options.inference)
    return tuple(means)
