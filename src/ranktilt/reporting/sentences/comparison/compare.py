"""Comparisons in words: how a new ranker differs from an old one."""

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
from ranktilt.reporting.sentences.findings import Finding, first_finding, sort_findings
from ranktilt.reporting.sentences.variation import variation_words

_FINDING_KINDS: dict[ChangeKind, FindingKind] = {
    "differs": "favours",
    "inconclusive": "inconclusive",
    "identical": "level",
}
"""Kind of a finding by the verdict on a change."""


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
    """Return what a comparison says of one ranker."""
    return Finding(
        kind=_FINDING_KINDS[verdict.kind],
        sentence=change_verdict_sentence(verdict),
        size=margins(verdict.changes[0], 0.0) if verdict.is_shown else 0.0,
        run=verdict.run,
    )


def change_order(change: Change) -> tuple[bool, float]:
    """Return the place of a difference among others: those that are shown, the largest first."""
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
    front = f"{change.a} | {change.b}: " if verdict.is_of_several_pairs else ""
    return front + change_sentence(change, common=common)


def change_sentence(change: Change, *, common: str = "") -> str:
    """Say what of a change is shown, with its interval and p.

    `common` says on which queries, where not on all. What both runs say by themselves is in the
    table.
    """
    is_mean = isinstance(change.estimand, Measure)
    old = "its old run" if change.run == change.old_run else change.old_run
    quantity, measure = _quantity(change)
    numbers = f"{_difference(change)}{common}"
    if math.isnan(change.value):
        return (
            f"{change.run} cannot be compared with {old}: {quantity}{measure} is undefined for one "
            "of them"
        )
    if few := too_few_words(change):
        return (
            f"{change.run}: no difference from {old} in {quantity}{measure} can be shown: {few}; "
            f"{numbers}"
        )
    if not change.is_shown:
        return (
            f"{change.run}: no difference from {old} in {quantity}{measure} is shown; "
            f"{_power(change)}; {numbers}"
        )
    if is_mean:
        more = "more" if change.value > 0 else "less"
        return f"{change.run} is {more} effective than {old}{measure}: {numbers}"
    if not change.estimand.sided:
        higher = "higher" if change.value > 0 else "lower"
        return f"{change.run} has a {higher} {quantity} than {old}: {numbers}"
    side = change.a if change.value > 0 else change.b
    where = measure or f" in {quantity}"
    moved = f"{change.run} leans further toward {side} than {old}{where}"
    return f"{moved}: {numbers}{_growth(change)}"


def _quantity(change: Change) -> tuple[str, str]:
    """Return the compared quantity and its measure."""
    if change.of_tilt:
        return "tilt", f" on {change.measure}"
    if isinstance(change.estimand, Measure):
        return "effectiveness", f" on {change.measure}"
    return change.name, ""


def _growth(change: Change) -> str:
    """Say whether the tilt grew; nothing of the kind where a run could not tilt at all."""
    if change.variation is not None and not change.can_be_level:
        return f"; but {variation_words(change.variation)} for one of them"
    if change.growth_low > 0:
        return "; the tilt itself grew"
    return "; the tilt itself shrank" if change.growth_high < 0 else ""


def _difference(change: Change) -> str:
    """Print a difference with its interval and p, and the neutral value where it is not 0."""
    interval = f" [{', '.join(change.ends)}]" if change.has_interval else ""
    neutral_value = change.amount(change.neutral, sign=True)
    # Groups that are no twins are neutral where random labels stand, which differs between the
    # runs.
    is_zero = neutral_value == change.amount(0.0, sign=True)
    neutral = "" if is_zero else f", neutral value {neutral_value}{change.unit}"
    value = change.amount(change.value, sign=True)
    difference = f"difference {value}{change.unit}{interval}{neutral}"
    return ", ".join(filter(None, (difference, corrected_p_words(change))))


def _power(change: Change) -> str:
    """Say which difference these queries could have shown."""
    queries = counted(change.queries, "query", "queries")
    if change.error == 0:
        return f"every resample of {queries} gives the same answer"
    if change.p_corrected < ALPHA:
        return low_p_words(change.p_corrected, "0")
    low, high = change.estimand.bounds
    largest = (high - low) * (100 if isinstance(change.estimand, Measure) else 1)
    if change.detectable > largest:
        return f"{queries} could not detect any difference"
    these = "this query" if change.queries == 1 else f"these {queries}"
    size = change.amount(change.detectable, sign=False)
    return f"{these} would find one of {size}{change.unit} four times in five"
