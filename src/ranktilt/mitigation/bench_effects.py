"""Effects of a bench: tilts, effectiveness, and their differences from the baseline.

An *effect* is one number about a run with its interval and its p. A *tilt* is an effect about two
groups. A *change* is an effect of a candidate minus the same effect of the baseline. The *baseline*
is a ranker without any correction, and a *candidate* is a correction of it. A *question* is a
measure or another estimand, such as ``Share@10``.
"""

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
    correct_p_values,
    effects,
    mean_changes,
    mean_sample,
)
from ranktilt.errors import UserError
from ranktilt.measures.base import Estimand
from ranktilt.mitigation.audited_candidates import AuditedRuns, BenchOptions
from ranktilt.statistics.bootstrap import shared_numbering


def tilts_of(audited: Audit, questions: Sequence[Estimand], correction: str) -> tuple[Effect, ...]:
    """Return every tilt of an audit: sorted by run, then by pair of groups, then by question.

    The p of the primary question are corrected over the pairs of one run, as an audit of that run
    alone would correct them. The p of other questions are as the audit gives them.

    Parameters
    ----------
    audited : Audit
        Audit of all candidates.
    questions : sequence of Estimand
        The questions; the first is the primary one.
    correction : str
        How p are corrected for several tests, such as ``holm``.

    Raises
    ------
    UserError
        If the primary question has no answer for these groups, or is not in percent.
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
        for tilt in correct_p_values(tilts_of_run, correction):
            primary_tilts[tilt.run, tilt.a, tilt.b] = tilt
    return tuple(
        primary_tilts[tilt.run, tilt.a, tilt.b] if tilt.measure == primary else tilt
        for tilt in tilts
    )


def changes_of(audited: Mapping[str, AuditedRuns], options: BenchOptions) -> tuple[Change, ...]:
    """Return how every tilt and effectiveness differs from the baseline's, over the same queries.

    `audited` has the audit over all documents by the key ``all``, and the audit over the
    reference's documents by the reference's name. The p of all changes are corrected together.
    """
    resamples, seed = options.resamples, options.seed
    changes = list[Change]()
    for documents, runs in audited.items():
        changes += contrast_changes(_tilt_tasks(runs), resamples=resamples, seed=seed)
        mean_tasks = _mean_tasks(runs.audit, documents)
        changes += mean_changes(mean_tasks, resamples=resamples, seed=seed)
    return correct_p_values(changes, options.correction)


def _tilt_tasks(runs: AuditedRuns) -> list[ChangeTask]:
    """Pair each candidate's values of a question about two groups with the baseline's values.

    A sample is one run's values of one question about one pair of groups, query by query.
    """
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
    """Pair each candidate's effectiveness, query by query, with the baseline's."""
    baseline, *candidates = audited.runs
    tasks = []
    for number, candidate in enumerate(candidates, start=1):
        # Queries that repeat each other in both runs are no fresh evidence, and count once.
        distinct = shared_numbering([audited.distinct(candidate), audited.distinct(baseline)])
        for index, measured in enumerate(audited.measures):
            # Runs × measures × groups × queries; group 0 is all documents, run 0 the baseline.
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
    """Return the mean effectiveness of every run and measure, with its interval.

    There is no p, because a test against 0 says nothing: every useful ranker has a mean above 0.
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
