"""Compare two audits of judges, to find out whether a judge has changed.

A judge is whoever gives grades of relevance. It is compared with an earlier judge on the pairs of
query and document that both graded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace

import numpy as np

from ranktilt.auditing.comparison.notes import warnings_of_both
from ranktilt.auditing.comparison.options import ComparisonOptions
from ranktilt.errors import UserError
from ranktilt.judging.agreement import QueryDraws
from ranktilt.judging.drift.coefficient_changes import kappa_change, order_change, order_likeness
from ranktilt.judging.drift.grade_changes import grade_changes, same_grades
from ranktilt.judging.drift.match import AuditedJudges, JudgeMatch, match_judges
from ranktilt.judging.drift.result import JudgeChange, JudgeDrift, JudgePair
from ranktilt.statistics.correction import correct


def compare_judges(
    new: AuditedJudges, old: AuditedJudges, options: ComparisonOptions
) -> JudgeDrift:
    """Return how judges changed between two audits, on the pairs that both graded.

    Parameters
    ----------
    new, old : AuditedJudges
        Judges and grades of both audits.
    options : ComparisonOptions
        Resamples, seed, correction, and the percentage of queries that may be left out.

    Raises
    ------
    UserError
        If scales, sources or human grades differ, or no judge or pair is in both audits.
    """
    matches, notes = match_judges(new, old, options.max_left_out)
    changes = list[JudgeChange]()
    for match in matches:
        changes += _changes(match, max(new.top, old.top), options)
    if not changes:
        raise UserError(
            "nothing can be compared: the audits have no grade of the same pair, and no two "
            "systems by the same measure; audit both judges on the same pairs, or with the same "
            "--runs"
        )
    all_notes = dict.fromkeys([*warnings_of_both(new.notes, old.notes), *notes])
    spec = {**asdict(options), "new": new.origin, "old": old.origin}
    return JudgeDrift(
        judges=tuple(_judge_pair(match, options) for match in matches),
        changes=tuple(_with_corrected_p(changes, options.correction)),
        top_grade=max(new.top, old.top),
        correction=options.correction,
        notes=tuple(all_notes),
        spec=spec,
    )


def _changes(match: JudgeMatch, top: int, options: ComparisonOptions) -> Iterator[JudgeChange]:
    """Yield every change of one judge; p is corrected later, over the changes of all judges.

    `top` is the highest grade.
    """
    draws = QueryDraws(resamples=options.resamples, seed=options.seed)
    kappa = kappa_change(match, top, draws)
    if kappa is not None:
        yield kappa
    yield from grade_changes(match, top, options)
    for new, old in match.values:
        yield order_change(match.judge, new, old, options)


def _with_corrected_p(changes: Sequence[JudgeChange], correction: str) -> list[JudgeChange]:
    """Correct the p of all changes together."""
    ps = [change.p for change in changes]
    tested = int(np.count_nonzero(~np.isnan(ps)))  # changes with too few queries have no p
    corrected = correct(ps, correction).tolist()
    return [
        replace(change, p_corrected=p, family_size=max(tested, 1))
        for change, p in zip(changes, corrected, strict=True)
    ]


def _judge_pair(match: JudgeMatch, options: ComparisonOptions) -> JudgePair:
    """Count what both judges graded, and how often they give the same grade."""
    pairs = match.pairs
    orders = [order_likeness(new, old, options.seed) for new, old in match.values]
    return JudgePair(
        judge=match.judge,
        old_judge=match.old_judge,
        new_pairs=match.new_pairs,
        old_pairs=match.old_pairs,
        common_pairs=pairs.height,
        human_pairs=pairs["human"].count(),
        queries=pairs["query_id"].n_unique(),
        same=same_grades(pairs, options),
        orders=tuple(orders),
    )
