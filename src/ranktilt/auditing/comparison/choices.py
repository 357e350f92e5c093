"""Two pairwise audits side by side: whether the new model's choices lie further toward a group than the old one's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.comparison.match import same_queries
from ranktilt.auditing.effects import Change
from ranktilt.auditing.pairwise.pairs import KINDS
from ranktilt.auditing.pairwise.result import PairwiseAudit, QueryChoices
from ranktilt.auditing.significance import ChangeTask, Sample, contrast_changes, contrast_task, resampled
from ranktilt.errors import UserError
from ranktilt.measures.preference import Preference, PreferenceOfPairs
from ranktilt.statistics.bootstrap import interval

Ints = npt.NDArray[np.int64]
_SIDES = ("protected", "unprotected")


def match_choices(new: PairwiseAudit, old: PairwiseAudit) -> list[ChangeTask]:
    """Put the choices of two models side by side, query by query, for each kind of pairs that both have.

    `UserError` where groups, queries or the rule for counting differ, or a result holds nothing query by query.
    """
    sides = [f"{one.protected} and {one.unprotected} by {one.spec['by']}" for one in (new, old)]
    if sides[0] != sides[1]:
        raise UserError(f"the pairwise audits compare other groups: {sides[0]} (new), {sides[1]} (old)")
    rules = [one.spec["count"] for one in (new, old)]
    if rules[0] != rules[1]:
        rule = f"{rules[0]!r} (new), {rules[1]!r} (old)"
        raise UserError(f"the pairwise audits count choices differently: {rule}; make both with the same --count")
    tasks = []
    for kind in KINDS:
        tables = [[row for row in one.by_query if row.kind == kind] for one in (new, old)]
        queries = [[row.query for row in rows] for rows in tables]
        at, before = same_queries(*queries, noun="pairwise audits", hint="ask both about the same (--queries)")
        if not len(at):
            continue
        of = replace(Preference, pairs=kind)
        one, two = (_sample(*each, of) for each in zip((new, old), tables, (at, before), strict=True))
        tasks.append(contrast_task(one, two))
    if not tasks:
        raise UserError("the pairwise audits hold no choices query by query; make both again (ranktilt pairwise)")
    return tasks


def _sample(audit: PairwiseAudit, rows: Sequence[QueryChoices], at: Ints, of: PreferenceOfPairs) -> Sample:
    """What one model chose of one kind of pairs, in this order of the queries."""
    chosen, other = (np.array([getattr(row, side) for row in rows], dtype=np.float64)[at] for side in _SIDES)
    return Sample(audit.model, of, audit.protected, audit.unprotected, (chosen - other) / 2, chosen + other)


def choice_changes(tasks: list[ChangeTask], *, resamples: int, seed: int) -> list[Change]:
    """Compare the preferences, both models resampled together; beside each stand both models' own intervals."""
    found = []
    for task, change in zip(tasks, contrast_changes(tasks, resamples=resamples, seed=seed), strict=True):
        (means,) = resampled([task.columns], resamples=resamples, seed=seed)
        ends = [interval(values) for values in task.estimand.combine(means[:2], means[2:])]
        names = ("new_low", "new_high", "old_low", "old_high")
        own = dict(zip(names, (end for one in ends for end in one[:2]), strict=True))
        found.append(replace(change, parts=own))
    return found


def choice_notes(new: PairwiseAudit, old: PairwiseAudit) -> list[str]:
    """Say what else differs between two pairwise audits."""
    if new.spec.get("asked") == old.spec.get("asked"):
        return []
    return ["the models chose between other pairs of the same queries; what the draw adds is part of the intervals"]
