"""Sentences about a bench: what it chose, at what cost, and what the nearest one lacks."""

from __future__ import annotations

import math
from typing import Any

from ranktilt.auditing.answer.gate import LimitCheck
from ranktilt.auditing.answer.verdict import margins
from ranktilt.auditing.effects import Change
from ranktilt.auditing.groups import ALL
from ranktilt.errors import join_words
from ranktilt.measures.margin import margin_words
from ranktilt.mitigation.bench_result import Bench, Choice, Intervention
from ranktilt.rankers.candidates import FITTED
from ranktilt.reporting.numbers import signed
from ranktilt.reporting.sentences.effects import bounds, too_few
from ranktilt.reporting.sentences.findings import Finding, ranked
from ranktilt.reporting.sentences.gate import OUTCOME_KINDS, limit_reason
from ranktilt.reporting.sentences.verdicts import verdict_row, verdict_sentence


def leading(bench: Bench) -> Finding:
    """Return what a bench says first."""
    choice = bench.choose()
    return Finding(kind=OUTCOME_KINDS[choice.outcome], sentence=f"{bench_headline(choice)}.")


def bench_headline(choice: Choice) -> str:
    """Say which intervention was chosen and what it costs, or why none was."""
    bench = choice.bench
    if not choice.tilted:
        sentences = [finding.sentence for finding in _baseline_findings(choice)]
        return f"Nothing to level: {'; '.join(sentences)}"
    if choice.chosen is not None:
        return _chosen_sentence(choice, choice.chosen)
    eligible = f", of those {chosen_by(bench)}," if bench.selected else ""
    if choice.outcome == "tilted":
        return f"No intervention{eligible} is level {limits(choice)}: each is excluded"
    return f"No intervention{eligible} is shown to be level {limits(choice)}"


def _baseline_findings(choice: Choice) -> tuple[Finding, ...]:
    """Return what an audit says of the baseline, the largest finding first."""
    findings = []
    for verdict, effect in zip(choice.verdicts, choice.bench.before, strict=True):
        front = f"{verdict.a} | {verdict.b}: " if len(choice.verdicts) > 1 else ""
        finding = Finding(
            kind=verdict.kind,
            sentence=front + verdict_sentence(verdict),
            size=margins(effect, choice.level),
        )
        findings.append(finding)
    return ranked(findings)


def _chosen_sentence(choice: Choice, intervention: Intervention) -> str:
    bench = choice.bench
    costs = [cost_words(change, choice.budget) for change in bench.costs(intervention.name)]
    cost = f": {join_words(costs)}" if costs else ""
    tilts = [bench.tilt(intervention.name, pair) for pair in bench.pairs]
    sides = list(dict.fromkeys(tilt.side(tilt.favours) for tilt in tilts if tilt.favours))
    state = "is level"
    if sides:
        state = f"favours {join_words(sides)} no more than slightly,"
    if bench.selected:
        return f"{intervention.name}, {chosen_by(bench)}, {state} {limits(choice)}{cost}"
    several = f" of {intervention.method}" if len(bench.methods) > 1 else ""
    return (
        f"{intervention.name} is the smallest intervention{several} that {state} "
        f"{limits(choice)}{cost}"
    )


def nearest_sentences(choice: Choice) -> tuple[str, ...]:
    """Say what the nearest intervention lacks, where none is chosen."""
    if choice.nearest is None:
        return ()
    name = choice.nearest.name
    outcome = choice.outcome_of(name)
    reasons = list[str]()
    for row in choice.rows[name]:
        if row.outcome == outcome:
            reasons += map(check_reason, row.deciding_checks)
    return (f"Nearest is {name}: {'; '.join(reasons)}",)


def limits(choice: Choice) -> str:
    """Say what is asked of an intervention: ``within ±5 points at a loss of at most 1 point of AP@5``."""
    margin = f"within {margin_words(choice.level)}"
    if not choice.bench.over:
        return margin
    return f"{margin} at a loss of at most {points(choice.budget)} of {choice.bench.valued}"


def chosen_by(bench: Bench) -> str:
    """Say on which queries interventions were chosen; empty where all are judged."""
    if not bench.selected:
        return ""
    fitted = f"fitted on {bench.spec[FITTED]} and " if FITTED in bench.spec else ""
    return f"{fitted}chosen on other queries"


def check_reason(check: LimitCheck) -> str:
    """Say why a check of an intervention has its outcome."""
    if check.checked_change is None:
        return limit_reason(check)
    return cost_reason(check.checked_change, float(check.asked_limit) / 100)


def cost_reason(change: Change, budget: float) -> str:
    """Say whether a loss of effectiveness beyond the budget is excluded or shown."""
    words = cost_words(change, budget)
    loss = f"a loss of more than {points(budget)}"
    if math.isnan(change.value) or (change.testable and not change.has_interval):
        return f"no query has a value of {change.measure} under both rankers"
    if not change.testable:
        return f"{too_few(change)}; {words}"
    if change.low >= -100 * budget:
        return f"{change.measure} {words}: {loss} is excluded"
    if change.high < -100 * budget:
        return f"{change.measure} {words}: {loss} is shown"
    return f"{change.measure} {words}: {loss} is neither shown nor excluded"


def cost_words(change: Change, budget: float) -> str:
    """Print a change of effectiveness with its interval, and over which documents."""
    documents = "over all documents" if change.a == ALL else f"on {change.a} documents alone"
    interval = f" {bounds(change.low, change.high, -100 * budget)}" if change.has_interval else ""
    return f"{signed(change.value)} points{interval} {documents}"


def points(share: float) -> str:
    """Print a share in points: ``1 point``."""
    number = f"{100 * share:g}"
    return f"{number} {'point' if number == '1' else 'points'}"


def derived(bench: Bench) -> dict[str, Any]:
    """Return what a bench's file says in words."""
    choice = bench.choose()
    return {
        "headline": bench_headline(choice),
        "sentences": nearest_sentences(choice),
        "verdicts": [verdict_row(verdict) for verdict in choice.verdicts],
    }
