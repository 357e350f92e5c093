"""The meaning of verdicts, for somebody who reads nothing else.

A page shows it below its headline. It says who is favoured, how sure that is, and what to do about
it, in words that need no glossary. Other kinds of results have theirs beside their sentences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain

from ranktilt.auditing.answer.verdict import Verdict
from ranktilt.auditing.effects import FEW_QUERIES
from ranktilt.auditing.replay_log.result import ReplayedLog
from ranktilt.auditing.result import Audit
from ranktilt.errors import counted, join_words
from ranktilt.explaining.explanation import Explanation
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.measures.margin import margin_words
from ranktilt.reporting.sentences.attribution import attributed_gaps, attribution_meaning
from ranktilt.reporting.sentences.findings import Finding

UNDECIDED = (
    "These queries cannot tell whether a side is favoured. That is neither a tilt nor its absence: "
    "ask more queries before you decide."
)
NOT_RELEVANCE = "do not take the order for relevance alone"
_MOST_NAMED = 3


def audit_meaning(audit: Audit, findings: Sequence[Finding]) -> str:
    """Say what an audit means; `findings` are its verdicts and conflicts."""
    if not audit.judged_pairs:
        return "No groups were compared, so that nothing here says who is favoured."
    verdicts = [finding.verdict for finding in findings if finding.verdict is not None]
    meaning = verdicts_meaning(verdicts, several_pairs=len(audit.judged_pairs) > 1)
    if any(finding.kind == "conflict" for finding in findings):
        meaning += " Other questions point the other way: decide which question is yours."
    return meaning + _few_queries(verdicts)


def _few_queries(verdicts: Sequence[Verdict]) -> str:
    """Warn where a finding comes from so few queries that its interval is too narrow."""
    query_counts = [verdict.effect.queries for verdict in verdicts if verdict.side is not None]
    if not query_counts or min(query_counts) >= FEW_QUERIES:
        return ""
    queries = counted(min(query_counts), "query", "queries")
    return f" Only {queries} compare the groups, too few to rely on: ask at least {FEW_QUERIES}."


def verdicts_meaning(verdicts: Sequence[Verdict], *, several_pairs: bool = False) -> str:
    """Say what verdicts on rankers mean together."""
    outside = [verdict for verdict in verdicts if verdict.kind == "outside"]
    favoured = [verdict for verdict in verdicts if verdict.side is not None]
    if outside:
        return _outside_meaning(outside)
    if not favoured:
        return unfavoured_meaning(verdicts)
    if several_pairs:
        share = f"{len(favoured)} of {counted(len(verdicts), 'comparison', 'comparisons')}"
        return (
            f"Some groups are put ahead of others by more than chance explains ({share}): "
            f"{NOT_RELEVANCE}."
        )
    return _favoured_meaning(favoured, len(verdicts) - len(favoured))


def _outside_meaning(outside: Sequence[Verdict]) -> str:
    runs = join_words(list(dict.fromkeys(verdict.run for verdict in outside))[:_MOST_NAMED])
    return (
        f"{runs} spreads attention over the groups otherwise than random rankings do, by more than "
        "chance explains; this question names no favoured side."
    )


def unfavoured_meaning(verdicts: Sequence[Verdict]) -> str:
    """Say what verdicts mean where none favours a side."""
    levels = [verdict for verdict in verdicts if verdict.kind == "level"]
    if verdicts and len(levels) == len(verdicts):
        return (
            f"Neither side gains more than {margin_words(levels[0].margin)}: there is nothing to "
            "correct."
        )
    if levels:
        names = join_words(list(dict.fromkeys(verdict.run for verdict in levels))[:_MOST_NAMED])
        return (
            f"{names}: neither side gains more than {margin_words(levels[0].margin)}. Of the rest "
            "these queries cannot tell: ask more before you decide."
        )
    return UNDECIDED


def _favoured_meaning(favoured: Sequence[Verdict], rest: int) -> str:
    """Say what it means that some rankers favour a side of the same pair of groups."""
    first = favoured[0]
    sides = list(dict.fromkeys(str(verdict.side) for verdict in favoured))
    if len(sides) > 1:
        names = [
            f"{verdict.run} puts {verdict.side} {first.noun} ahead"
            for verdict in favoured[:_MOST_NAMED]
        ]
        return (
            f"Which ranker you choose decides who is seen first: {join_words(names)}, each by more "
            f"than chance explains; {NOT_RELEVANCE}."
        )
    side, unfavoured = sides[0], first.b if sides[0] == first.a else first.a
    runs = list(dict.fromkeys(verdict.run for verdict in favoured))
    subject = join_words(runs) if len(runs) <= _MOST_NAMED else f"{len(runs)} rankers"
    verb = "puts" if len(runs) == 1 else "put"
    relevant = " that is as relevant" if isinstance(first.effect.estimand, RelativeDelta) else ""
    if first.noun != "text":
        relevant = relevant.replace("that is", "that are")
    size = _so_what(favoured)
    others = ""
    if rest:
        others = f" That is not shown of {counted(rest, 'other ranker', 'other rankers')}."
    return (
        f"{subject} {verb} {side} {first.noun} ahead of {unfavoured} {first.noun}{relevant}, by "
        f"more than chance explains{size}.{others}"
    )


def _so_what(favoured: Sequence[Verdict]) -> str:
    if all(verdict.slight for verdict in favoured):
        return f", but by no more than {margin_words(favoured[0].margin)}, which you call level"
    return f": {NOT_RELEVANCE}"


def explanation_meaning(explanation: Explanation) -> str:
    """Say what differences between texts mean, or what goes with rankers' gaps."""
    gaps = attributed_gaps(explanation)
    if gaps:
        return attribution_meaning(gaps)
    effects = list(chain.from_iterable(result.effects for result in explanation.results))
    properties = list(dict.fromkeys(effect.quantity for effect in effects if effect.is_shown))
    if properties:
        count = counted(len(properties), "property", "properties")
        pronoun = "it" if len(properties) == 1 else "these"
        return (
            f"The sides' texts differ in {count} by more than chance explains. A ranker may go "
            f"by {pronoun}; that one does, only an audit shows."
        )
    if effects:
        return "The sides' texts are alike in what was measured: a tilt would need another reason."
    return "This describes the texts; whom a ranker favours, only an audit shows."


def replayed_meaning(replayed: ReplayedLog) -> str:
    """Say whether a published run shows what its model can do."""
    total = len(replayed.answers)
    share = replayed.unreadable / total if total else math.nan
    if replayed.passed is False:
        return "Do not use this run: too many answers hold no ranking of the model's own."
    if share > 0:
        return (
            f"{100 * share:.0f} % of the answers hold no ranking of the model's own; what the run "
            "shows for them is the input order, or its parser's work."
        )
    return "Every answer holds a ranking: the run is the model's own work."
