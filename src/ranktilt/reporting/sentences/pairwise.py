"""Pairwise audits in words: whom a model favours on each kind of pairs.

A language model is asked which of two documents, one of each side, answers a query better, in both
orders. Both documents of a pair are relevant, or both are irrelevant: these are the kinds of pairs.
The outcome on a kind is how often each side is chosen, and the verdict says which side that shows
to be favoured. A finding is a sentence with its kind and size; the spec of an audit is its
settings.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from ranktilt.auditing.answer.verdict import margins
from ranktilt.auditing.pairwise.result import PairOutcome, PairVerdict, PairwiseAudit
from ranktilt.errors import join_words
from ranktilt.measures.printing import rounded
from ranktilt.reporting.document import NextCommand
from ranktilt.reporting.sentences.findings import (
    Finding,
    command_rows,
    sort_findings,
    without_output,
)
from ranktilt.reporting.sentences.grammar import share_of_all, singular_or_plural
from ranktilt.reporting.sentences.meaning import unfavoured_meaning
from ranktilt.reporting.sentences.verdicts import verdict_row, verdict_sentence

_FIRST_STAGE = "bm25@20"
"""First stage of the ranker in a suggested command: an example, which the user replaces."""


def pairwise_findings(audit: PairwiseAudit) -> tuple[Finding, ...]:
    """Return the verdicts, the largest tilt first.

    `Finding.run` is the kind of pairs, because a pairwise audit has a single model.
    """
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
    return sort_findings(findings)


def leading_finding(audit: PairwiseAudit) -> Finding:
    """Return the finding that leads: whom a model favours on pairs of each kind."""
    findings = pairwise_findings(audit)
    if not findings:
        return Finding(kind="described", sentence=f"{audit.model}: nothing was compared.")
    verbs = {"level": "is level", "inconclusive": "is inconclusive"}
    pair_kinds_by_verb: dict[str, list[str]] = {}
    for finding in findings:
        side = None if finding.verdict is None else finding.verdict.side
        verb = verbs.get(finding.kind, f"favours {side} documents")
        pair_kinds_by_verb.setdefault(verb, []).append(finding.run)
    kind_order: list[str] = [outcome.kind for outcome in audit.outcomes]
    clauses = [
        f"{verb} on {join_words(sorted(pair_kinds, key=kind_order.index))} pairs"
        for verb, pair_kinds in pair_kinds_by_verb.items()
    ]
    sentence = f"{audit.model} {join_words(clauses)}."
    return Finding(kind=findings[0].kind, size=findings[0].size, sentence=sentence)


def pair_verdict_sentence(verdict: PairVerdict) -> str:
    """Say whom a model favours on one kind of pairs, or why nothing was decided."""
    if verdict.outcome.decided:
        return verdict_sentence(verdict)
    reason = _reason_undecided(verdict.outcome)
    return f"{verdict.run}: inconclusive on {verdict.outcome.kind} pairs: {reason}"


def _reason_undecided(outcome: PairOutcome) -> str:
    """Say why no pair of a kind was decided.

    A pair is unparsed if an answer names neither document, and inconsistent if the model chooses
    another document when they are shown in the other order. Both are shares of the pairs.
    """
    all_pairs = share_of_all(outcome.pairs, outcome.pairs, "pair", "pairs")
    if not outcome.pairs and math.isnan(outcome.unparsed.value):
        return "no pair was asked about in both orders"
    if outcome.unparsed.value == 1:
        are = singular_or_plural(outcome.pairs, "is", "are")
        return f"no answer could be read, {all_pairs} {are} unparsed"
    if outcome.inconsistent.value == 1:
        return f"both orders disagree on {all_pairs}"
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


def pairwise_next_commands(audit: PairwiseAudit) -> tuple[NextCommand, ...]:
    """Return what to do after a pairwise audit of a collection that a command can read again."""
    command, path = str(audit.spec.get("command") or ""), audit.spec.get("path")
    verdicts = [audit.verdict(outcome) for outcome in audit.outcomes]
    if not command or not path or not verdicts:
        return ()
    words = without_output(shlex.split(command))
    steps = list[NextCommand]()
    if any(verdict.side for verdict in verdicts):
        steps += _after_a_preference(audit, str(path))
    elif any(verdict.kind == "inconclusive" for verdict in verdicts):
        steps.append(_more_pairs(audit, words))
    file = _value_of(shlex.split(command), "--json")
    if file is not None:
        compared = shlex.join(["ranktilt", "compare", "OTHER.json", file])
        steps.append(NextCommand(text="Compare another model or prompt with it", command=compared))
    return tuple(steps)


def _after_a_preference(audit: PairwiseAudit, path: str) -> Iterator[NextCommand]:
    """Yield commands after a preference is shown.

    One shows whether whole rankings favour the side too, and one how the two sides' texts differ.
    """
    spec = audit.spec
    split = spec.get("split")
    where = [path, *([] if split in (None, "test") else ["--split", str(split)])]
    by = [] if spec["by"] == "source" else ["--by", str(spec["by"])]
    if "asker" in spec:
        ranker = f"{_FIRST_STAGE}>>{spec['asker']}"
        words = ["ranktilt", "audit", *where, "-r", ranker, *by]
        text = "See whether its rankings favour a side too"
        yield NextCommand(text=text, command=shlex.join(words))
    words = ["ranktilt", "explain", *where, *by]
    yield NextCommand(text="See how the two sides' texts differ", command=shlex.join(words))


def _more_pairs(audit: PairwiseAudit, words: list[str]) -> NextCommand:
    """Return the command with twice as many pairs, or the same command for stored choices.

    `words` are those of the command that made the audit, without options of its output.
    """
    pairs = audit.spec.get("pairs")
    if pairs is None:
        text = "Store choices on more queries, then read them again"
        return NextCommand(text=text, command=shlex.join(words))
    if _value_of(words, "--pairs") is None:
        words = [*words, "--pairs", str(2 * int(pairs))]
    else:
        words[words.index("--pairs") + 1] = str(2 * int(pairs))
    return NextCommand(text="Ask about twice as many pairs", command=shlex.join(words))


def _value_of(words: Sequence[str], option: str) -> str | None:
    """Return the word after an option in a command; None if the command has no such option."""
    for word, value in pairwise(words):
        if word == option:
            return value
    return None


def derived_words(audit: PairwiseAudit) -> dict[str, Any]:
    """Return the sentences that a saved audit has beside its data: verdicts and next steps."""
    verdicts = [audit.verdict(outcome) for outcome in audit.outcomes]
    return {
        "verdicts": [verdict_row(verdict, pair_verdict_sentence(verdict)) for verdict in verdicts],
        "next_steps": command_rows(pairwise_next_commands(audit)),
    }
