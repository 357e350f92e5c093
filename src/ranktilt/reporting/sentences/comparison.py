"""Comparisons in words: what a new ranker does otherwise than an old one."""

from __future__ import annotations

import math
from typing import Any

from ranktilt.auditing.answer.verdict import FindingKind, margins
from ranktilt.auditing.comparison.result import ChangeKind, ChangeVerdict, Comparison
from ranktilt.auditing.effects import ALPHA, Change
from ranktilt.errors import counted
from ranktilt.measures.base import Measure
from ranktilt.reporting.sentences.effects import across, common_words, corrected_p, too_few
from ranktilt.reporting.sentences.findings import Finding, first_of, ranked
from ranktilt.reporting.sentences.variation import variation_words

_FINDING_KINDS: dict[ChangeKind, FindingKind] = {
    "differs": "favours",
    "inconclusive": "inconclusive",
    "identical": "level",
}


def leading(comparison: Comparison) -> Finding:
    """Return the finding that leads."""
    return first_of(comparison_findings(comparison))


def comparison_findings(comparison: Comparison) -> tuple[Finding, ...]:
    """Return the verdicts, those with the largest difference in standard errors first."""
    return ranked(
        Finding(
            kind=_FINDING_KINDS[verdict.kind],
            sentence=change_verdict_sentence(verdict),
            size=margins(verdict.changes[0], 0.0) if verdict.is_shown else 0.0,
            run=verdict.run,
        )
        for verdict in comparison.verdicts()
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
            f"{change.run}: no comparison with {old}: {quantity}{measure} is undefined under one "
            "of both"
        )
    if few := too_few(change):
        return (
            f"{change.run}: no difference in {quantity}{measure} from {old} can be shown: {few}; "
            f"{numbers}"
        )
    if not change.is_shown:
        return (
            f"{change.run}: no difference in {quantity}{measure} from {old} shown; "
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
    lies = f"{change.run} lies further toward {side} than {old}{where}"
    return f"{lies}: {numbers}{_growth(change)}"


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
        return f"; but {variation_words(change.variation)} of one of both"
    if change.growth_low > 0:
        return "; the tilt itself grew"
    return "; the tilt itself shrank" if change.growth_high < 0 else ""


def _difference(change: Change) -> str:
    """Print a difference with its interval and p, and the level where that is not 0."""
    interval = f" [{', '.join(change.ends)}]" if change.has_interval else ""
    level = change.amount(change.neutral, sign=True)
    # Groups that are no twins are neutral where random labels stand, which differs between the
    # runs.
    is_zero = level == change.amount(0.0, sign=True)
    neutral = "" if is_zero else f", where {level}{change.unit} is level"
    value = change.amount(change.value, sign=True)
    difference = f"difference {value}{change.unit}{interval}{neutral}"
    return ", ".join(filter(None, (difference, corrected_p(change))))


def _power(change: Change) -> str:
    """Say which difference these queries could have shown."""
    queries = counted(change.queries, "query", "queries")
    if change.error == 0:
        return f"every resample of {queries} says the same"
    if change.p_corrected < ALPHA:
        return across(change.p_corrected, "0")
    low, high = change.estimand.bounds
    largest = (high - low) * (100 if isinstance(change.estimand, Measure) else 1)
    if change.detectable > largest:
        return f"{queries} could not detect any difference"
    these = "this query" if change.queries == 1 else f"these {queries}"
    size = change.amount(change.detectable, sign=False)
    return f"{these} could detect one of {size}{change.unit} or more"


def comparison_meaning(comparison: Comparison) -> str:
    """Say what a comparison means: whether the new run may replace the old one."""
    verdicts = comparison.verdicts()
    tilts = [verdict.changes[0] for verdict in verdicts if verdict.side is not None]
    if not verdicts or all(verdict.kind == "identical" for verdict in verdicts):
        return "Nothing changed: what you know of the old run holds for the new one."
    if tilts:
        leading_tilt = min(tilts, key=change_order)
        return f"{_tilt_meaning(leading_tilt)}{_effectiveness_meaning(comparison)}"
    if any(verdict.is_shown for verdict in verdicts):
        return (
            "What is favoured is not shown to have changed; what else changed is said below."
            f"{_effectiveness_meaning(comparison)}"
        )
    return (
        "No change is shown. That is not the same as none: these queries could have missed one as "
        "large as is said below."
    )


def _tilt_meaning(change: Change) -> str:
    side = change.a if change.value > 0 else change.b
    old = "its old run" if change.run == change.old_run else change.old_run
    answer = change.estimand.answer
    front = (
        f"{change.run} gives {side} more than {old} does ({answer(change.new)} after "
        f"{answer(change.old)}), by more than chance explains"
    )
    if (change.new - change.neutral_new) * (change.old - change.neutral_old) < 0:
        front += ", and lies on the other side of level"
    if change.growth_low > 0:
        return f"{front}, and lies further from level: look at it before you switch."
    if change.growth_high < 0:
        return f"{front}, and lies nearer to level: switching lessens the tilt."
    return f"{front}; that it lies further from level is not shown."


def _effectiveness_meaning(comparison: Comparison) -> str:
    for change in comparison.effectiveness:
        if change.measure == comparison.spec["primary"] and change.is_shown:
            return f" It is {'more' if change.value > 0 else 'less'} effective."
    return ""


def derived(comparison: Comparison) -> dict[str, Any]:
    """Return what a comparison's file says in words."""
    verdicts = [
        {
            "run": verdict.run,
            "old_run": verdict.old_run,
            "kind": verdict.kind,
            "side": verdict.side,
            "sentence": change_verdict_sentence(verdict),
            "primary": verdict.primary,
            "margin": None,
        }
        for verdict in comparison.verdicts()
    ]
    return {"verdicts": verdicts}
