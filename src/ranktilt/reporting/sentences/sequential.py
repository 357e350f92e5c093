"""Sequential audits in words: what was decided, and after how many queries.

A sequential audit sends queries to a ranker in batches, in random order. After each batch it looks
at the answer so far, and stops as soon as that is decided: the ranker favours a group of documents
(it is tilted), or it favours none by more than a limit (it is level). The intervals hold at every
look. The estimand is the question, such as a group's share of the first ten ranks.
"""

from __future__ import annotations

from ranktilt.auditing.answer.verdict import FindingKind
from ranktilt.auditing.sequential import Decision, Look, SequentialAudit
from ranktilt.errors import counted
from ranktilt.measures.printing import digits_apart
from ranktilt.reporting.sentences.findings import Finding, variation_words
from ranktilt.reporting.sentences.grammar import share_of_all, singular_or_plural
from ranktilt.reporting.sentences.meaning import NOT_RELEVANCE, UNDECIDED

_KINDS: dict[Decision, FindingKind] = {
    "tilted": "favours",
    "inconclusive": "inconclusive",
    "level": "level",
}
"""Kind of a finding, which gives its place among others, by the decision."""


def leading_finding(audit: SequentialAudit) -> Finding:
    """Return the decision as the finding that leads."""
    return Finding(kind=_KINDS[audit.decision], sentence=f"{decision_sentence(audit)}.")


def decision_sentence(audit: SequentialAudit) -> str:
    """Say what was decided, in one sentence."""
    last = audit.looks[-1]
    # Twins are versions of one original, which counts once.
    nouns = ("origin", "origins") if audit.twins else ("document", "documents")
    documents = counted(last.documents, *nouns)
    after = f"after {counted(last.queries, 'query', 'queries')} and {documents}"
    numbers = look_words(audit, last)
    if audit.decision == "tilted":
        favoured = audit.a if last.value > 0 else audit.b
        return f"{audit.run} favours {favoured}, shown {after}: {numbers}"
    if audit.decision == "level":
        within = f"within ±{audit.stop_at_tilt:g}"
        return f"{audit.run} is level {within}, shown {after}: {numbers}"
    obstacle = ""
    if not audit.variation.enough:
        obstacle = f"{variation_words(audit.variation)}, so it cannot be shown to be level; "
    return f"{audit.run} is undecided {after}: {obstacle}{numbers}"


def query_count_sentence(audit: SequentialAudit) -> str:
    """Say how many queries were asked, and how many of them say nothing."""
    failed_count = audit.sent - audit.answered
    # The last look counts only the lists with documents of these groups.
    silent_count = audit.answered - audit.looks[-1].queries
    queries = share_of_all(audit.sent, audit.of, "query", "queries")
    were = singular_or_plural(audit.sent, "was", "were")
    sentence = f"{queries} {were} asked, in random order"
    if failed_count:
        sentence += f"; {counted(failed_count, 'query', 'queries')} failed"
    if silent_count:
        lists = counted(silent_count, "list says", "lists say")
        sentence += f"; {lists} nothing about these groups"
    return sentence


def look_words(audit: SequentialAudit, look: Look) -> str:
    """Print a look: ``Share@10 +3.1 points [+0.4, +5.9]``."""
    estimand, limit = audit.estimand, audit.stop_at_tilt
    # Enough digits to tell the ends from 0 and from the tilt to be decided.
    ends = [estimand.scale * end for end in (look.low, look.high)]
    digits = digits_apart(ends, [-limit, 0.0, limit], estimand.digits)
    low, high = (estimand.amount(end, digits=digits) for end in (look.low, look.high))
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
