"""The repeats of a run in words: what makes its answer uncertain, and how many would decide it."""

from __future__ import annotations

from collections.abc import Iterator

from ranktilt.auditing.repeats.components import RepeatComponents
from ranktilt.auditing.result import Audit
from ranktilt.errors import counted, join_words

_WHOLE_PERCENT = 0.995
"""Share from which a single part is said to make all of the variance."""


def repeat_sentences(audit: Audit) -> Iterator[str]:
    """Yield a sentence for each run with repeats, on the primary question."""
    for run in audit.runs:
        rows = [row for row in audit.repeats if row.run == run]
        answers = [row for row in rows if not row.is_effectiveness]
        candidates = answers or rows
        primary = [row for row in candidates if row.measure == repr(audit.primary)]
        if primary or candidates:
            yield repeat_sentence((primary or candidates)[0])


def repeat_sentence(row: RepeatComponents) -> str:
    """Say what makes one answer uncertain, and how many repeats would decide it."""
    parts = [f"{_percent(row.query_share)} from queries"]
    if row.document_share > 0:
        parts.append(f"{_percent(row.document_share)} from documents")
    parts.append(f"{_percent(row.repeat_share)} from the repeats")
    decision = _decision(row)
    return (
        f"{row.run} is the mean of {counted(row.repeats, 'repeat', 'repeats')}: the variance of "
        f"{row.question} comes {join_words(parts)}{decision}"
    )


def _percent(share: float) -> str:
    """Print a share in percent; what is not quite nothing or all is below 1 or above 99."""
    if 0 < share < 1 - _WHOLE_PERCENT:
        return "under 1 %"
    if _WHOLE_PERCENT <= share < 1:
        return "over 99 %"
    return f"{100 * share:.0f} %"


def _decision(row: RepeatComponents) -> str:
    """Say how many repeats would decide the answer; empty where there is no verdict."""
    if not row.has_verdict:
        return ""
    least = row.least_repeats
    if least is None:
        return "; more repeats would not decide it, more queries could"
    needed = counted(least, "repeat", "repeats")
    if not row.is_decided:
        return f"; {needed} would decide it, if the value stays"
    if least < row.repeats:
        return f"; {needed} would have decided it"
    return "; fewer would not have decided it"
