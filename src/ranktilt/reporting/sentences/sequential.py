"""Sequential audits in words: what was decided, and after how many queries."""

from __future__ import annotations

from ranktilt.auditing.answer.verdict import FindingKind
from ranktilt.auditing.sequential import Decision, Look, SequentialAudit
from ranktilt.errors import counted
from ranktilt.reporting.sentences.findings import Finding
from ranktilt.reporting.sentences.meaning import NOT_RELEVANCE, UNDECIDED
from ranktilt.reporting.sentences.variation import variation_words

_KINDS: dict[Decision, FindingKind] = {
    "tilted": "favours",
    "inconclusive": "inconclusive",
    "level": "level",
}
"""Kind of a finding by the decision."""


def leading(audit: SequentialAudit) -> Finding:
    """Return the decision as the finding that leads."""
    return Finding(kind=_KINDS[audit.decision], sentence=f"{decision_sentence(audit)}.")


def decision_sentence(audit: SequentialAudit) -> str:
    """Say what was decided, in one sentence."""
    last = audit.looks[-1]
    noun = ("origin", "origins") if audit.twins else ("document", "documents")
    documents = counted(last.documents, *noun)
    after = f"after {counted(last.queries, 'query', 'queries')} and {documents}"
    numbers = look_words(audit, last)
    if audit.decision == "tilted":
        favoured = audit.a if last.value > 0 else audit.b
        return f"{audit.run} favours {favoured}, shown {after}: {numbers}"
    if audit.decision == "level":
        within = f"within ±{audit.stop_at_tilt:g}"
        return f"{audit.run} is level {within}, shown {after}: {numbers}"
    still = ""
    if not audit.variation.enough:
        still = f"{variation_words(audit.variation)}, so it cannot be shown to be level; "
    return f"{audit.run} is undecided {after}: {still}{numbers}"


def query_count_sentence(audit: SequentialAudit) -> str:
    """Say how many queries were asked, and how many of them say nothing."""
    failed = audit.sent - audit.answered
    silent = audit.answered - audit.looks[-1].queries
    queries = counted(audit.of, "query was", "queries were")
    sentence = f"{audit.sent:,} of {queries} asked, in random order"
    if failed:
        sentence += f"; {counted(failed, 'query', 'queries')} failed"
    if silent:
        lists = counted(silent, "list says", "lists say")
        sentence += f"; {lists} nothing about these groups"
    return sentence


def look_words(audit: SequentialAudit, look: Look) -> str:
    """Print a look: ``Share@10 +3.1 points [+0.4, +5.9]``."""
    estimand = audit.estimand
    low, high = estimand.amount(look.low), estimand.amount(look.high)
    return f"{audit.measure} {estimand.amount(look.value)}{estimand.suffix} [{low}, {high}]"


def sequential_meaning(audit: SequentialAudit) -> str:
    """Say what was decided while queries were asked."""
    if audit.decision == "tilted":
        side = audit.a if audit.looks[-1].value > 0 else audit.b
        unfavoured = audit.b if side == audit.a else audit.a
        return (
            f"{audit.run} puts {side} ahead of {unfavoured} by more than chance explains, "
            f"whenever you look. {NOT_RELEVANCE}."
        )
    if audit.decision == "level":
        return (
            f"Neither side gains more than ±{audit.stop_at_tilt:g} points, so there is nothing to "
            "correct."
        )
    return UNDECIDED
