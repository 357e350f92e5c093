"""The meaning of verdicts, for somebody who reads nothing else.

A page shows it below its headline. It says who is favoured, how sure that is, and what to do about
it, in words that need no glossary. The meanings of other results are in the modules with their
sentences, such as `gate.gate_meaning`. The answer with its interval is an effect.

A verdict is the answer of a run to its primary question about two groups: it favours a side, is
level (within a margin of neutral) or inconclusive. A question about all groups at once names no
side; its verdict says whether the answer lies outside of what random rankings give.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from ranktilt.auditing.answer.verdict import Verdict
from ranktilt.auditing.effects import FEW_QUERIES
from ranktilt.auditing.result import Audit
from ranktilt.errors import counted, join_words
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.measures.margin import margin_words
from ranktilt.reporting.sentences.explaining.probes import (
    attributed_gaps,
    attribution_meaning,
    theorem_findings,
    theorem_meaning,
)
from ranktilt.reporting.sentences.explaining.text_words import plain_words
from ranktilt.reporting.sentences.findings import Finding
from ranktilt.reporting.sentences.grammar import singular_or_plural

if TYPE_CHECKING:
    from ranktilt.auditing.replay_log.result import ReplayedLog
    from ranktilt.explaining.explanation import Explanation

UNDECIDED = (
    "These queries cannot tell whether a side is favoured. That does not mean there is no tilt. "
    "Ask more queries before you decide."
)
"""What an inconclusive answer means."""
NOT_RELEVANCE = "Do not read the order as relevance alone"
"""What to do where a side is favoured; without a full stop, as some sentences go on."""
_MOST_NAMED = 3
"""Most names that a sentence lists."""


def audit_meaning(audit: Audit, findings: Sequence[Finding]) -> str:
    """Say what an audit means.

    `findings` are its verdicts and its conflicts: measures that favour different sides.
    """
    if not audit.judged_pairs:
        return "No groups were compared, so nothing here says who is favoured."
    verdicts = [finding.verdict for finding in findings if finding.verdict is not None]
    meaning = verdicts_meaning(verdicts, several_pairs=len(audit.judged_pairs) > 1)
    if any(finding.kind == "conflict" for finding in findings):
        meaning += " Other questions point the other way. Decide which question matters to you."
    elif verdicts and all(verdict.kind == "level" for verdict in verdicts):
        meaning += _tilted_elsewhere(audit, verdicts)
    return meaning + _few_queries(verdicts)


def _tilted_elsewhere(audit: Audit, verdicts: Sequence[Verdict]) -> str:
    """Name a question with a tilt beyond the margin; the primary one is level. Empty for none."""
    runs = {verdict.run for verdict in verdicts}
    for effect in (*audit.tilts, *audit.card):
        is_other = effect.measure != repr(audit.primary) and effect.run in runs
        if is_other and effect.favours and effect.extent(audit.margin) == "beyond":
            side = effect.a if effect.favours == "a" else effect.b
            return (
                f" But {effect.run} favours {side} by {effect.name}. Decide which question matters "
                "to you."
            )
    return ""


def _few_queries(verdicts: Sequence[Verdict]) -> str:
    """Warn where a finding comes from so few queries that its interval is too narrow."""
    query_counts = [verdict.effect.queries for verdict in verdicts if verdict.side is not None]
    if not query_counts or min(query_counts) >= FEW_QUERIES:
        return ""
    queries = counted(min(query_counts), "query compares", "queries compare")
    return f" Only {queries} the groups. That is too few to rely on; ask at least {FEW_QUERIES}."


def verdicts_meaning(verdicts: Sequence[Verdict], *, several_pairs: bool = False) -> str:
    """Say what verdicts on rankers mean together.

    With `several_pairs` of groups, the groups that are favoured are counted and not named.
    """
    outside = [verdict for verdict in verdicts if verdict.kind == "outside"]
    favoured = [verdict for verdict in verdicts if verdict.side is not None]
    if outside:
        return _outside_meaning(outside)
    if not favoured:
        return unfavoured_meaning(verdicts)
    if several_pairs:
        share = f"{len(favoured)} of {counted(len(verdicts), 'comparison', 'comparisons')}"
        return (
            f"Some groups rank ahead of others by more than chance explains ({share}). "
            f"{NOT_RELEVANCE}."
        )
    return _favoured_meaning(favoured, len(verdicts) - len(favoured))


def _outside_meaning(outside: Sequence[Verdict]) -> str:
    """Say what answers outside of the random band mean: attention is not spread as by chance."""
    runs = list(dict.fromkeys(verdict.run for verdict in outside))
    spread = singular_or_plural(len(runs), "spreads", "spread")
    return (
        f"{_ranker_words(runs)} {spread} attention over the groups differently from random "
        "rankings, by more than chance explains. This question names no favoured side."
    )


def unfavoured_meaning(verdicts: Sequence[Verdict]) -> str:
    """Say what verdicts mean where none favours a side."""
    levels = [verdict for verdict in verdicts if verdict.kind == "level"]
    if verdicts and len(levels) == len(verdicts):
        return (
            f"Neither side gains more than {margin_words(levels[0].margin)}, so by this question "
            "there is nothing to correct."
        )
    if levels:
        subject = _ranker_words(list(dict.fromkeys(verdict.run for verdict in levels)))
        return (
            f"{subject}: neither side gains more than {margin_words(levels[0].margin)}. These "
            "queries cannot tell about the rest; ask more before you decide."
        )
    return UNDECIDED


def _ranker_words(runs: Sequence[str]) -> str:
    """Name the rankers, or say how many there are."""
    return join_words(runs) if len(runs) <= _MOST_NAMED else f"{len(runs)} rankers"


def _favoured_meaning(favoured: Sequence[Verdict], rest: int) -> str:
    """Say what it means that some rankers favour a side of the same pair of groups.

    `rest` is the number of verdicts that favour none.
    """
    first = favoured[0]
    sides = list(dict.fromkeys(str(verdict.side) for verdict in favoured))
    if len(sides) > 1:
        return _opposed_meaning(favoured)
    side = sides[0]
    unfavoured = first.b if side == first.a else first.a
    runs = list(dict.fromkeys(verdict.run for verdict in favoured))
    put = singular_or_plural(len(runs), "puts", "put")
    relevant = "equally relevant " if isinstance(first.effect.estimand, RelativeDelta) else ""
    others = ""
    if rest:
        others = f" This is not shown for {counted(rest, 'other ranker', 'other rankers')}."
    return (
        f"{_ranker_words(runs)} {put} {side} {first.noun} ahead of {relevant}{unfavoured} "
        f"{first.noun}, by more than chance explains{_size_or_advice(favoured)}.{others}"
    )


def _opposed_meaning(favoured: Sequence[Verdict]) -> str:
    """Say what it means that rankers favour different sides, with a ranker of each side first."""
    first_of_sides: dict[str | None, Verdict] = {}
    for verdict in favoured:
        first_of_sides.setdefault(verdict.side, verdict)
    firsts = list(first_of_sides.values())
    others = [verdict for verdict in favoured if verdict not in firsts]
    names = [
        f"{verdict.run} puts {verdict.side} {verdict.noun} ahead"
        for verdict in [*firsts, *others][:_MOST_NAMED]
    ]
    return (
        f"Which ranker you choose decides who is seen first: {join_words(names)}, each by more "
        f"than chance explains. {NOT_RELEVANCE}."
    )


def _size_or_advice(favoured: Sequence[Verdict]) -> str:
    """Say that all are slight, that is, within the margin; otherwise what to do about it."""
    if all(verdict.slight for verdict in favoured):
        return f", but by no more than {margin_words(favoured[0].margin)}, which you count as level"
    return f". {NOT_RELEVANCE}"


def explanation_meaning(explanation: Explanation) -> str:
    """Say what differences between texts mean, or what goes with rankers' gaps."""
    # The gap of a ranker is the mean difference of its scores between versions of one text.
    gaps = attributed_gaps(explanation)
    if gaps:
        return attribution_meaning(gaps)
    effects = list(chain.from_iterable(result.effects for result in explanation.results))
    shown_effects = [effect for effect in effects if effect.is_shown]
    if shown_effects:
        count = len({effect.quantity for effect in shown_effects})
        largest = max(shown_effects, key=lambda effect: abs(effect.g))
        most = "most " if count > 1 else ""
        return (
            f"The two sides' texts differ by more than chance explains, {most}in "
            f"{plain_words(largest.quantity)}. A ranker may respond to that; only an audit can "
            "show that it does."
        )
    if effects:
        return (
            "The two sides' texts are not shown to differ in anything measured. That does not mean "
            "that they are alike."
        )
    findings = chain.from_iterable(result.findings for result in explanation.results)
    theorem_checks = theorem_findings(list(findings))
    if theorem_checks:
        return theorem_meaning(theorem_checks)
    return "This describes the texts. Only an audit shows whom a ranker favours."


def replayed_meaning(replayed: ReplayedLog) -> str:
    """Say whether a published run shows what its model can do.

    The log holds the answers of a model that was asked to rank passages.
    """
    if replayed.passed is False:
        return "Do not use this run: too many answers contain no ranking by the model."
    if replayed.unreadable:
        share = 100 * replayed.unreadable / len(replayed.answers)
        printed = f"{share:.0f}" if share >= 1 else f"{share:.1g}"  # a small share is not 0 %
        return (
            f"{printed} % of the answers contain no ranking by the model. For "
            "these, the run shows the input order or its parser's work."
        )
    return "Every answer contains a ranking, so the run is the model's own work."
