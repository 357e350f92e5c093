"""Ranks of runs in words: which may be first, and how many can be distinguished.

Runs are ordered by their answer to a question: how effective they are, or how far they lean toward
the first of two groups (their tilt). A run may be first if no other is shown to be ahead of it.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from ranktilt.auditing.comparison.ranks.result import RankedRun, RunOrder, RunRanks
from ranktilt.errors import counted, join_words
from ranktilt.reporting.document import NextCommand
from ranktilt.reporting.sentences.findings import Finding, command_rows

_MOST_NAMED = 4
"""Runs that a sentence names; it counts the others."""


def leading_finding(ranks: RunRanks) -> Finding:
    """Return the finding that leads: the order on the primary question."""
    return ranks_findings(ranks)[0]


def ranks_findings(ranks: RunRanks) -> tuple[Finding, ...]:
    """Return the order on each question as a finding, the primary question first."""
    return tuple(
        Finding(
            kind="favours" if order.shown_pairs else "inconclusive",
            sentence=f"{order_sentence(order)}.",
            run=order.first.run if len(order.may_be_first) == 1 else "",
        )
        for order in ranks.orders()
    )


def order_sentence(order: RunOrder) -> str:
    """Say which runs may be first and last, and how many pairs of runs can be distinguished."""
    first, run_count, pairs = order.first, len(order.ranks), len(order.differences)
    question = question_words(first)  # every run of an order answers the same question
    if all(math.isnan(difference.p_corrected) for difference in order.differences):
        queries = counted(first.queries, "query is", "queries are")
        return f"{queries} too few to rank {run_count} runs on {question}"
    if not order.shown_pairs:
        return f"None of the {run_count} runs can be distinguished from another on {question}"
    pair_words = f"{order.shown_pairs:,} of {pairs:,} pairs of runs can be distinguished"
    if order.shown_pairs == pairs:
        pair_words = "every two runs can be distinguished"
    clauses = [f"On {question}, {_first_words(order)}", *_last_words(order), pair_words]
    return "; ".join(clauses)


def question_words(rank: RankedRun) -> str:
    """Name the question that a rank is about, with its two groups.

    Effectiveness has no groups, and a question about all groups at once has one name for both.
    """
    if rank.is_effectiveness or rank.a == rank.b:
        return rank.estimand.title
    return f"{rank.estimand.title} ({rank.a} | {rank.b})"


def _first_words(order: RunOrder) -> str:
    """Say which runs may be first."""
    first, names = order.first, order.may_be_first
    of_runs = f"of {len(order.ranks)} runs"
    if first.is_effectiveness:
        verb, value = "be", f"the most effective {of_runs}"
    elif first.estimand.sided and first.a != first.b:
        verb, value = "lean", f"furthest toward {first.a} {of_runs}"
    else:
        verb, value = "have", f"the highest value {of_runs}"
    if len(names) == 1:
        singular = {"be": "is", "lean": "leans", "have": "has"}[verb]
        return f"{names[0]} {singular} {value}"
    return f"{_any_of(names)} may {verb} {value}"


def _last_words(order: RunOrder) -> Iterator[str]:
    """Say which runs may lean furthest toward the second group; nothing if there are no sides."""
    first, names = order.first, order.may_be_last
    if first.is_effectiveness or not first.estimand.sided or first.a == first.b:
        return
    if len(names) == 1:
        yield f"{names[0]} leans furthest toward {first.b}"
    else:
        yield f"{_any_of(names)} may lean furthest toward {first.b}"


def _any_of(names: Sequence[str]) -> str:
    """Name a few runs of which it may be any, and count the others."""
    if len(names) == 2:
        return f"either {names[0]} or {names[1]}"
    more = len(names) - _MOST_NAMED
    if more <= 1:  # a fifth name is as short as "1 other"
        return f"any of {join_words(list(names), 'or')}"
    return f"any of {', '.join(names[:_MOST_NAMED])} or {more} others"


def ranks_meaning(ranks: RunRanks) -> str:
    """Say what the ranks mean for somebody who has to choose a run."""
    effectiveness = [order for order in ranks.orders() if order.first.is_effectiveness]
    if not effectiveness:
        return (
            "Runs that share a letter cannot be distinguished: another set of queries could turn "
            "them round."
        )
    order = effectiveness[0]
    best = order.may_be_first
    tilt_orders = [order for order in ranks.orders() if order not in effectiveness]
    tilts_differ = any(tilt_order.shown_pairs for tilt_order in tilt_orders)
    by = "by cost or by tilt" if tilts_differ else "by cost"
    if len(best) == 1:
        return f"If effectiveness decides, choose {best[0]}: it stays ahead on other queries too."
    if not order.shown_pairs:
        return (
            f"These queries cannot say which run is the most effective: choose {by}, or audit more "
            "queries."
        )
    return (
        f"Choose {by} among the {len(best)} runs that may be the most effective: another set of "
        "queries could turn them round."
    )


def ranks_next_commands(ranks: RunRanks) -> tuple[NextCommand, ...]:
    """Return the command that compares all runs with the best one.

    There is one only if all runs are in one audit file, which ``--baseline-run`` asks for.
    """
    audits = ranks.spec["audits"]
    if len(audits) > 1 or not audits[0].get("file"):
        return ()
    # Effectiveness comes last, after the tilts; without it, the last tilt counts.
    best = ranks.orders()[-1].first.run
    words = ["ranktilt", "compare", str(audits[0]["file"]), "--baseline-run", best]
    return (NextCommand(text=f"See how the others differ from {best}", command=shlex.join(words)),)


def derived_words(ranks: RunRanks) -> dict[str, Any]:
    """Return the sentences that a saved result has beside its data: verdicts and next steps."""
    return {
        "verdicts": [finding.sentence for finding in ranks_findings(ranks)],
        "next_steps": command_rows(ranks_next_commands(ranks)),
    }
