"""The repeats of a run in words: what makes its answer uncertain, and how many would decide it.

Repeats are rankings of the same queries by an engine that ranks differently each time. The variance
of a run's mean answer is split among queries, documents, error rates of labels, and repeats: more
repeats make only the last part smaller.
"""

from __future__ import annotations

from collections.abc import Iterator

from ranktilt.auditing.repeats.components import RepeatComponents
from ranktilt.auditing.result import Audit
from ranktilt.errors import counted, join_words
from ranktilt.reporting.numbers import decimal


def repeat_sentences(audit: Audit) -> Iterator[str]:
    """Yield a sentence for each run with repeats and pair of groups, on the primary question.

    Without groups it is about effectiveness on the primary measure.
    """
    if not audit.repeats:
        return
    primary = audit.primary_measure if audit.primary is None else audit.primary
    measure_name = repr(primary)
    for run in audit.runs:
        rows = [row for row in audit.repeats if row.run == run and row.measure == measure_name]
        # The answers about two groups, if there are any, come before effectiveness.
        of_pairs = [row for row in rows if not row.is_effectiveness]
        for row in of_pairs or rows[:1]:
            yield repeat_sentence(row, several=len(audit.pairs) > 1)


def repeat_sentence(row: RepeatComponents, *, several: bool = False) -> str:
    """Say what makes one answer uncertain, and how many repeats would decide it.

    The groups are named where there are `several` pairs of them.
    """
    parts = [f"{_percent(row.query_share)} comes from queries"]
    if row.document_share > 0:
        parts.append(f"{_percent(row.document_share)} from documents")
    if row.label_share > 0:
        parts.append(f"{_percent(row.label_share)} from the error rates of labels")
    parts.append(f"{_percent(row.repeat_share)} from the repeats")
    pair = f" ({row.a} | {row.b})" if several and not row.is_effectiveness else ""
    return (
        f"{row.run} is the mean of {counted(row.repeats, 'repeat', 'repeats')}: of the variance "
        f"of {row.question}{pair}, {join_words(parts)}{_decision(row)}"
    )


def _percent(share: float) -> str:
    """Print a share, from 0 to 1, in percent."""
    return f"{decimal(100 * share)} %"


def _decision(row: RepeatComponents) -> str:
    """Say how many repeats would decide the answer; empty where there is no verdict."""
    if not row.has_verdict:
        return ""
    # The fewest repeats with which the present value would be decided.
    least = row.least_repeats
    if least is None:
        return "; more repeats would not decide it, more queries could"
    repeats_needed = counted(least, "repeat", "repeats")
    if not row.is_decided:
        return f"; {repeats_needed} would decide it, if the value stays"
    if least < row.repeats:
        return f"; {repeats_needed} would be enough for this value"
    return "; fewer would not be enough for this value"
