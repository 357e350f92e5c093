"""The tasks of a comparison: values per query under the new and the old run, for each question.

A task (`ChangeTask`) has all that is needed to compute the change of one answer with its interval
and p. `change_tasks` makes those on measures of relevance, `estimand_tasks` those on all other
questions.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np

from ranktilt.auditing.comparison.changes import ChangeTask, Columns, contrast_task
from ranktilt.auditing.comparison.match import Match, Question, RunPair
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.result import Audit
from ranktilt.auditing.significance import Sample
from ranktilt.measures.base import measure as to_measure


def change_tasks(match: Match, pairs: Iterable[Pair]) -> list[ChangeTask]:
    """Return a task for every pair of runs, pair of groups and measure.

    It compares Relative Δ, or effectiveness for the pair (`ALL`, `ALL`).
    """
    combinations = itertools.product(match.runs, list(pairs), match.measures)
    return [_task(match, runs, measure, pair) for runs, pair, measure in combinations]


def _task(match: Match, runs: RunPair, measure: str, pair: Pair) -> ChangeTask:
    """Return the task of one pair of runs, measure and pair of groups."""
    values = []  # new a, old a, new b, old b
    for name in dict.fromkeys(pair):
        for audit, run, rows in match.audit_rows(runs):
            run_index = audit.runs.index(run)
            measure_index = [repr(member) for member in audit.measures].index(measure)
            group_index = audit.groups.index(name)
            values.append(audit.values[run_index, measure_index, group_index][rows])
    columns = Columns(values=np.array(values), distinct=match.distinct(runs))
    if pair == (ALL, ALL):
        return ChangeTask(
            run=runs.new,
            old_run=runs.old,
            estimand=to_measure(measure),
            a=ALL,
            b=ALL,
            columns=columns,
        )
    new = tilt_of(match.new, runs.new, measure, pair)
    old = tilt_of(match.old, runs.old, measure, pair)
    return ChangeTask(
        run=runs.new,
        old_run=runs.old,
        estimand=new.estimand,
        a=pair[0],
        b=pair[1],
        columns=columns,
        clusters=match.clusters(runs, repr(new.estimand), pair),
        neutral_values=neutral_values(new, old),
        twins=new.twins and old.twins,
    )


def tilt_of(audit: Audit, run: str, measure: str, pair: Pair) -> Effect:
    """Return a run's Relative Δ on one measure, with the groups in the order of `pair`."""
    for tilt in audit.tilts:
        if (tilt.run, tilt.measure) == (run, measure) and {tilt.a, tilt.b} == set(pair):
            return tilt if (tilt.a, tilt.b) == pair else tilt.swapped()
    raise ValueError(f"no tilt of {run} on {measure} for {','.join(pair)}")


def neutral_values(new: Effect, old: Effect) -> tuple[float, float]:
    """Return the values that favour nobody under the new and under the old run.

    If the groups are twins (two versions of each document), it is the estimand's neutral value,
    else the median under random labels. These two cannot be compared with each other: if the groups
    are twins under one run only, the estimand's neutral value counts for both.
    """
    if new.twins != old.twins:
        return new.estimand.neutral, new.estimand.neutral
    return new.neutral, old.neutral


def estimand_tasks(match: Match) -> list[ChangeTask]:
    """Return a task for every pair of runs and question that both audits answer query by query."""
    return [
        _question_task(match, runs, question)
        for runs, question in itertools.product(match.runs, match.questions)
    ]


def _question_task(match: Match, runs: RunPair, question: Question) -> ChangeTask:
    """Return the task of one pair of runs and question about groups."""
    distinct = match.distinct(runs)
    samples: list[Sample] = []
    effects: list[Effect] = []
    notation, pair = question
    clusters = match.clusters(runs, notation, pair)
    # The new audit comes first, then the old one.
    sides = zip(match.answers, match.audit_rows(runs), clusters, strict=True)
    for answers, (_audit, run, rows), clusters_of_run in sides:
        answer = answers[run, question]
        effect = answer.effect
        sample = Sample(
            run=effect.run,
            estimand=effect.estimand,
            a=effect.a,
            b=effect.b,
            numerator=answer.numerator[rows],
            denominator=answer.denominator[rows],
            details=effect.details,
            twins=effect.twins,
            clusters=clusters_of_run,
            distinct=distinct,
            is_bounded=effect.observed is None,
        )
        samples.append(sample)
        effects.append(effect)
    new, old = samples
    return contrast_task(new, old, neutral_values(*effects))
