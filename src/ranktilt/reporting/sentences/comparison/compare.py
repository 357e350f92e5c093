"""Comparisons in words: how a new ranker differs from an old one.

A change is the difference of two runs, new minus old, in one answer: in effectiveness, or in a
tilt, that is, in how much a run favours one of two groups. The growth of a tilt is how much farther
it is from neutral, whichever group the runs favour. The verdict on a change says whether it is
shown, and a finding is a sentence with its kind and size, by which findings are sorted.
"""

from __future__ import annotations

import math

from ranktilt.auditing.answer.verdict import FindingKind, margins
from ranktilt.auditing.comparison.result import ChangeKind, ChangeVerdict, Comparison
from ranktilt.auditing.effects import ALPHA, Change
from ranktilt.errors import counted
from ranktilt.measures.base import Measure
from ranktilt.reporting.sentences.effects import (
    common_words,
    corrected_p_words,
    low_p_words,
    too_few_words,
)
from ranktilt.reporting.sentences.findings import (
    Finding,
    first_finding,
    sort_findings,
    variation_words,
)

_FINDING_KINDS: dict[ChangeKind, FindingKind] = {
    "differs": "favours",
    "inconclusive": "inconclusive",
    "identical": "level",
}
"""Kind of a finding, by which findings are sorted and coloured, by the verdict on a change."""


def leading_finding(comparison: Comparison) -> Finding:
    """Return the finding that leads."""
    return first_finding(comparison_findings(comparison))


def comparison_findings(comparison: Comparison) -> tuple[Finding, ...]:
    """Return the verdicts: on the primary question, then tilts that moved, then all others.

    Among each of these the largest difference comes first.
    """
    verdicts = comparison.verdicts()
    primary = [verdict for verdict in verdicts if verdict.is_primary]
    others = [verdict for verdict in verdicts if not verdict.is_primary]
    tilts = [verdict for verdict in others if verdict.side is not None]
    rest = [verdict for verdict in others if verdict.side is None]
    return (
        *sort_findings(map(_finding, primary)),
        *sort_findings(map(_finding, tilts)),
        *sort_findings(map(_finding, rest)),
    )


def _finding(verdict: ChangeVerdict) -> Finding:
    """Return the verdict on one ranker as a finding."""
    return Finding(
        kind=_FINDING_KINDS[verdict.kind],
        sentence=change_verdict_sentence(verdict),
        size=margins(verdict.changes[0], 0.0) if verdict.is_shown else 0.0,
        run=verdict.run,
    )


def change_order(change: Change) -> tuple[bool, float]:
    """Return the sort key of a difference: shown ones come first, and the largest of these."""
    return (not change.is_shown, -margins(change, 0.0) if change.is_shown else 0.0)


def change_verdict_sentence(verdict: ChangeVerdict) -> str:
    """Say whether the new run differs from the old one, and how."""
    change = verdict.changes[0]
    common = f", {common_words(change)}" if verdict.leaves_out_queries else ""
    if verdict.kind == "identical":
        compared = (
            f"this run and {verdict.old_run}" if verdict.is_of_one_audit else "the two audits"
        )
        return f"{verdict.run}: {compared} are identical on {verdict.primary}{common}"
    pair = f"{change.a} | {change.b}: " if verdict.is_of_several_pairs else ""
    return pair + change_sentence(change, common=common)


def change_sentence(change: Change, *, common: str = "") -> str:
    """Say whether a change is shown, and in which direction, with its interval and p.

    `common` says on how many queries, if not on all: ``, on 40 common queries``. The answers of
    both runs are not repeated: a table has them.
    """
    is_mean = isinstance(change.estimand, Measure)
    old = "its old run" if change.run == change.old_run else change.old_run
    quantity, on_measure = _quantity(change)
    numbers = f"{_difference(change)}{common}"
    if math.isnan(change.value):
        return (
            f"{change.run} cannot be compared with {old}: {quantity}{on_measure} is undefined for "
            "one of them"
        )
    if few := too_few_words(change):
        return (
            f"{change.run}: no difference from {old} in {quantity}{on_measure} can be shown: "
            f"{few}; {numbers}"
        )
    if not change.is_shown:
        return (
            f"{change.run}: no difference from {old} in {quantity}{on_measure} is shown; "
            f"{_power_words(change)}; {numbers}"
        )
    if is_mean:
        more = "more" if change.value > 0 else "less"
        return f"{change.run} is {more} effective than {old}{on_measure}: {numbers}"
    if not change.estimand.sided:
        higher = "higher" if change.value > 0 else "lower"
        return f"{change.run} has a {higher} {quantity} than {old}: {numbers}"
    side = change.a if change.value > 0 else change.b
    where = on_measure or f" in {quantity}"
    finding = f"{change.run} leans further toward {side} than {old}{where}"
    return f"{finding}: {numbers}{_growth_words(change)}"


def _quantity(change: Change) -> tuple[str, str]:
    """Return the compared quantity, and ``on`` its measure where the quantity does not name it."""
    if change.of_tilt:
        return "tilt", f" on {change.measure}"
    if isinstance(change.estimand, Measure):
        return "effectiveness", f" on {change.measure}"
    return change.name, ""


def _growth_words(change: Change) -> str:
    """Say whether the tilt itself grew or shrank; empty where neither is shown.

    If most lists of one run could not have come out otherwise, that is said instead.
    """
    if change.variation is not None and not change.can_be_level:
        return f"; but {variation_words(change.variation)} for one of them"
    if change.growth_low > 0:
        return "; the tilt itself grew"
    return "; the tilt itself shrank" if change.growth_high < 0 else ""


def _difference(change: Change) -> str:
    """Print a difference with its interval and p, and the neutral value where it is not 0."""
    interval = f" [{', '.join(change.ends)}]" if change.has_interval else ""
    neutral_value = change.amount(change.neutral, sign=True)
    # Without twins, each run is neutral at its median of random labels; these medians differ.
    is_zero = neutral_value == change.amount(0.0, sign=True)
    neutral = "" if is_zero else f", neutral value {neutral_value}{change.unit}"
    value = change.amount(change.value, sign=True)
    difference = f"difference {value}{change.unit}{interval}{neutral}"
    return ", ".join(filter(None, (difference, corrected_p_words(change))))


def _power_words(change: Change) -> str:
    """Say which difference these queries would find, or why they show none."""
    queries = counted(change.queries, "query", "queries")
    if change.error == 0:
        return f"every resample of {queries} gives the same answer"
    if change.p_corrected < ALPHA:
        return low_p_words(change.p_corrected, "0")
    low, high = change.estimand.bounds
    scale = 100 if isinstance(change.estimand, Measure) else 1  # changes of measures are in points
    largest_difference = scale * (high - low)
    if change.detectable > largest_difference:
        return f"{queries} could not detect any difference"
    these = "this query" if change.queries == 1 else f"these {queries}"
    size = change.amount(change.detectable, sign=False)
    return f"{these} would find one of {size}{change.unit} four times in five"
