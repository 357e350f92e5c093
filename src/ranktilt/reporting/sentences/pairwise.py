"""Pairwise audits in words: whom a model favours on each kind of pairs."""

from __future__ import annotations

import math
from typing import Any

from ranktilt.auditing.answer.verdict import margins
from ranktilt.auditing.pairwise.result import PairOutcome, PairVerdict, PairwiseAudit
from ranktilt.errors import counted, join_words
from ranktilt.measures.printing import rounded
from ranktilt.reporting.sentences.findings import Finding, ranked
from ranktilt.reporting.sentences.meaning import unfavoured_meaning
from ranktilt.reporting.sentences.verdicts import verdict_row, verdict_sentence


def pairwise_findings(audit: PairwiseAudit) -> tuple[Finding, ...]:
    """Return the verdicts, the largest first; each names its kind of pairs as its run."""
    findings = []
    for outcome in audit.outcomes:
        verdict = audit.verdict(outcome)
        finding = Finding(
            kind=verdict.kind,
            sentence=pair_verdict_sentence(verdict),
            size=margins(verdict.effect, audit.margin),
            run=outcome.kind,
            verdict=verdict,
        )
        findings.append(finding)
    return ranked(findings)


def leading(audit: PairwiseAudit) -> Finding:
    """Say whom a model favours on pairs of each kind."""
    findings = pairwise_findings(audit)
    if not findings:
        return Finding(kind="described", sentence=f"{audit.model}: nothing was compared.")
    words = {"level": "is level", "inconclusive": "is inconclusive"}
    kinds: dict[str, list[str]] = {}
    for finding in findings:
        side = None if finding.verdict is None else finding.verdict.side
        verb = words.get(finding.kind, f"favours {side} documents")
        kinds.setdefault(verb, []).append(finding.run)
    usual: list[str] = [outcome.kind for outcome in audit.outcomes]
    parts = [
        f"{verb} on {join_words(sorted(names, key=usual.index))} pairs"
        for verb, names in kinds.items()
    ]
    sentence = f"{audit.model} {join_words(parts)}."
    return Finding(kind=findings[0].kind, size=findings[0].size, sentence=sentence)


def pair_verdict_sentence(verdict: PairVerdict) -> str:
    """Say whom a model favours on one kind of pairs, or why nothing was decided."""
    if verdict.outcome.decided:
        return verdict_sentence(verdict)
    reason = _undecided(verdict.outcome)
    return f"{verdict.run}: inconclusive on {verdict.outcome.kind} pairs: {reason}"


def _undecided(outcome: PairOutcome) -> str:
    """Say why nothing was decided on a kind of pairs."""
    pairs = counted(outcome.pairs, "pair", "pairs")
    if not outcome.pairs and math.isnan(outcome.unparsed.value):
        return "no pair was asked about in both orders"
    if outcome.unparsed.value == 1:
        return f"no answer could be read, {outcome.pairs:,} of {pairs} are unparsed"
    if outcome.inconsistent.value == 1:
        return f"both orders disagree on {outcome.pairs:,} of {pairs}"
    unparsed = rounded(100 * outcome.unparsed.value)
    inconsistent = rounded(100 * outcome.inconsistent.value)
    return f"{unparsed} % of the pairs are unparsed, and both orders disagree on {inconsistent} %"


def pairwise_meaning(audit: PairwiseAudit) -> str:
    """Say what a model's choices between two documents mean."""
    verdicts = [audit.verdict(outcome) for outcome in audit.outcomes]
    sides = list(dict.fromkeys(verdict.side for verdict in verdicts if verdict.side))
    if len(sides) == 1:
        return (
            f"Asked which of two documents is more relevant, {audit.model} picks {sides[0]} ones "
            "more often than chance explains. Do not let it decide between these groups."
        )
    if sides:
        return (
            f"Which side {audit.model} picks depends on whether the documents are relevant. Do not "
            "let it decide between these groups."
        )
    return unfavoured_meaning(verdicts)


def derived(audit: PairwiseAudit) -> dict[str, Any]:
    """Return what the file of a pairwise audit says in words."""
    verdicts = [audit.verdict(outcome) for outcome in audit.outcomes]
    return {
        "verdicts": [verdict_row(verdict, pair_verdict_sentence(verdict)) for verdict in verdicts]
    }
