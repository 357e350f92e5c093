"""Changes between two answers that were corrected for label errors with the same rates.

The rates are known only from a sample of checked labels, so they are uncertain. This is an error
that both answers share: part of it cancels in a change. J is the determinant of the rates, by which
answers are divided.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ranktilt.auditing.comparison.match import Match
from ranktilt.auditing.effects import Change, ObservedAnswer
from ranktilt.auditing.result import Audit
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.label_errors import AnswerAsLabelled, LabelsCorrected
from ranktilt.measures.ranking import Floats
from ranktilt.statistics.label_errors import FIELLER_BELOW, Gap, fieller, gap_with_rate_error


def with_rate_errors(matched: Match, changes: Sequence[Change]) -> list[Change]:
    """Widen the intervals of changes by the error of the rates, if both answers were corrected.

    `matched` are the two audits whose answers are compared.
    """
    relative_error = relative_rate_error(matched.new)
    widened_changes = []
    for change in changes:
        new, old = _observed(matched, change)
        widened_changes.append(with_rate_error(change, new, old, relative_error))
    return widened_changes


def with_rate_error(
    change: Change,
    new: ObservedAnswer | None,
    old: ObservedAnswer | None,
    relative_error: float,
) -> Change:
    """Widen the interval of a change by the error of the rates.

    `new` and `old` are the answers by the labels as they are; a change without these is returned
    unchanged. `relative_error` is that of `relative_rate_error`.
    """
    if new is None or old is None or not (new.error_parts and old.error_parts):
        return change
    return _widened_change(change, new, old, relative_error)


def _observed(
    matched: Match, change: Change
) -> tuple[ObservedAnswer | None, ObservedAnswer | None]:
    """Return the new and the old answer by the labels as they are; None where these are true."""
    question = change.measure, (change.a, change.b)
    new_answers, old_answers = matched.answers
    new, old = new_answers[change.run, question], old_answers[change.old_run, question]
    return new.effect.observed, old.effect.observed


def observed_differences(matched: Match, changes: Sequence[Change]) -> Iterator[Note]:
    """Yield each difference by the labels as they are, where answers are corrected."""
    for change in changes:
        new, old = _observed(matched, change)
        if new is not None and old is not None:
            yield AnswerAsLabelled(
                run=change.run,
                old_run=change.old_run,
                measure=change.measure,
                a=change.a,
                b=change.b,
                value=new.value - old.value,
            )


def relative_rate_error(audit: Audit) -> float:
    """Return the relative standard error of J, if all answers of an audit are divided by one J.

    J is the determinant of the error rates. Returns 0 if rates differ between documents, if there
    are more than two groups, or if labels are taken as true.
    """
    has_two_groups = len(audit.groups) == 3  # the first "group" is all documents
    for note in audit.notes:
        if isinstance(note, LabelsCorrected) and len(note.rates) == 1 and has_two_groups:
            return note.rates[0].information_error / note.rates[0].information
    return 0.0


def _widened_change(
    change: Change, new: ObservedAnswer, old: ObservedAnswer, relative_error: float
) -> Change:
    """Widen the change and its growth; both answers have error parts."""
    new_parts, old_parts = np.array(new.error_parts), np.array(old.error_parts)
    difference = Gap(
        value=change.value - change.neutral,
        low=change.low - change.neutral,
        high=change.high - change.neutral,
        error=change.error,
        p=change.p,
    )
    wider = widened_gap(difference, new_parts - old_parts, relative_error)
    growth = Gap(
        value=change.growth,
        low=change.growth_low,
        high=change.growth_high,
        error=change.growth_error,
        p=np.nan,
    )
    # A growth is a difference of distances from neutral, whichever side they lie on.
    new_sign = float(np.sign(change.new - change.neutral_new))
    old_sign = float(np.sign(change.old - change.neutral_old))
    wider_growth = widened_gap(growth, new_sign * new_parts - old_sign * old_parts, relative_error)
    return replace(
        change,
        low=change.neutral + wider.low,
        high=change.neutral + wider.high,
        error=wider.error,
        p=wider.p,
        growth_low=wider_growth.low,
        growth_high=wider_growth.high,
        growth_error=wider_growth.error,
    )


def widened_gap(gap: Gap, parts: Floats, relative_error: float) -> Gap:
    """Widen the interval of a corrected gap by what each uncertain rate adds to it.

    `parts` are what the uncertainty of each rate adds. If J is uncertain, the interval is Fieller's
    instead, which needs only the `relative_error` of J.
    """
    if relative_error > 1 / FIELLER_BELOW:
        return fieller(gap, relative_error)
    return gap_with_rate_error(gap, float(np.linalg.norm(parts)))
