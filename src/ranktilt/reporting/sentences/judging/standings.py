"""Sentences about the judge that agrees best with humans, and those that match it.

Agreement is measured by κ of grades, or by Kendall's τ-b between the orders of systems. A standing
is the agreement of one judge, and a contest is the comparison of all judges with the best one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ranktilt.errors import counted, join_words
from ranktilt.judging.records import (
    FEWEST_QUERIES,
    AgreementStatistic,
    JudgeComparison,
    JudgeStanding,
)
from ranktilt.judging.result import JudgeAudit
from ranktilt.measures.printing import rounded
from ranktilt.reporting.sentences.grammar import singular_or_plural

_MOST_NAMED = 3
"""Most judges that a sentence names."""


@dataclass(frozen=True, kw_only=True)
class Contest:
    """The judge with the highest agreement, and how the others compare with it."""

    best: JudgeStanding
    """The judge with the highest agreement."""
    indistinct: tuple[JudgeStanding, ...]
    """Judges that cannot be distinguished from the best."""
    worse: tuple[JudgeStanding, ...]
    """Judges that are shown to agree less."""
    undefined: tuple[str, ...]
    """Judges whose agreement has no value, because all their grades are the same."""
    queries: int
    """The fewest queries that a comparison with the best rests on."""

    @property
    def is_tested(self) -> bool:
        """Whether there are enough queries to compare judges."""
        return self.queries >= FEWEST_QUERIES

    @property
    def names(self) -> tuple[str, ...]:
        """The best judge, and those that cannot be distinguished from it."""
        return self.best.judge, *(standing.judge for standing in self.indistinct)


def contest(audit: JudgeAudit, statistic: AgreementStatistic, measure: str) -> Contest | None:
    """Return how judges compare with the best one; None where fewer than two can be compared.

    `measure` is the one by which systems are ordered; empty for κ.
    """
    standings = audit.standings_by(statistic, measure)
    # The standings come with the best first.
    defined = [standing for standing in standings if not math.isnan(standing.value)]
    if len(defined) < 2:
        return None
    best = defined[0]
    comparisons_with_best = {
        comparison.judge_b: comparison
        for comparison in audit.comparisons
        if (comparison.statistic, comparison.measure) == (statistic, measure)
        and comparison.judge_a == best.judge
    }
    others = defined[1:]
    worse = [row for row in others if _is_worse(comparisons_with_best, row)]
    return Contest(
        best=best,
        indistinct=tuple(row for row in others if row not in worse),
        worse=tuple(worse),
        undefined=tuple(row.judge for row in standings if math.isnan(row.value)),
        queries=min((row.queries for row in comparisons_with_best.values()), default=0),
    )


def _is_worse(comparisons_with_best: dict[str, JudgeComparison], standing: JudgeStanding) -> bool:
    """Return whether a judge is shown to agree less than the best one."""
    comparison = comparisons_with_best.get(standing.judge)
    return comparison is not None and comparison.is_shown


def main_contest(audit: JudgeAudit) -> Contest | None:
    """Return the first contest: by κ if grades are known, else by τ-b of the first measure."""
    statistics = [(row.statistic, row.measure) for row in audit.standings]
    return contest(audit, *statistics[0]) if statistics else None


def contest_sentence(judges: Contest) -> str:
    """Say which judge agrees best with humans, and which cannot be distinguished from it."""
    best = judges.best
    value = f"{statistic_name(best)} ({standing_words(best)})"
    if not judges.is_tested:
        few = counted(judges.queries, "query is", "queries are")
        return f"{best.judge} has the highest {value}, but {few} too few to compare judges"
    other_count = len(judges.indistinct) + len(judges.worse)
    if not judges.indistinct:
        return _clear_sentence(judges)
    if not judges.worse:
        none_can = f"{judges.indistinct[0].judge} cannot"
        if other_count > 1:
            none_can = "none of the others can"
        return (
            f"No judge is shown to be the best: {best.judge} has the highest {value}, but "
            f"{none_can} be distinguished from it"
        )
    agree = singular_or_plural(len(judges.worse), "agrees", "agree")
    return (
        f"{best.judge} has the highest {value}; {_few_standings(judges.indistinct, other_count)} "
        f"cannot be distinguished from it, {_few_standings(judges.worse, other_count)} {agree} less"
    )


def _clear_sentence(judges: Contest) -> str:
    """Say that the best judge is shown to agree better than each of the others."""
    best = judges.best
    is_of_order = best.statistic == "tau"
    if len(judges.worse) > 1:
        agrees = (
            "orders systems closest to the human order"
            if is_of_order
            else "agrees best with humans"
        )
        value = f"{statistic_name(best)} {standing_words(best)}"
        return f"{best.judge} {agrees}: {value}, higher than every other judge"
    second = judges.worse[0]
    agrees = (
        "orders systems closer to the human order" if is_of_order else "agrees better with humans"
    )
    numbers = f"{standing_words(best)} against {standing_words(second)}"
    return f"{best.judge} {agrees} than {second.judge}: {statistic_name(best)} {numbers}"


def _few_standings(standings: Sequence[JudgeStanding], other_count: int) -> str:
    """Name a few judges, or count them among all but the best, of which there are `other_count`."""
    if len(standings) <= _MOST_NAMED:
        return join_words([standing.judge for standing in standings])
    return f"{len(standings)} of the {other_count} others"


def statistic_name(standing: JudgeStanding) -> str:
    """Name the coefficient: ``κ``, or ``τ-b by nDCG@10``."""
    return "κ" if standing.statistic == "kappa" else f"τ-b by {standing.measure}"


def standing_words(standing: JudgeStanding) -> str:
    """Print the agreement of a judge: ``.29 [.17, .39]``."""
    return coefficient_words(standing.value, standing.low, standing.high)


def coefficient_words(value: float, low: float, high: float) -> str:
    """Print a coefficient with its interval, where it has one: ``.29 [.17, .39]``."""
    if math.isnan(low):
        return _decimal(value)
    return f"{_decimal(value)} [{_decimal(low)}, {_decimal(high)}]"


def _decimal(value: float) -> str:
    """Print a coefficient with two decimals and no zero before them: ``.29``."""
    text = rounded(value, 2).replace("-", "−")
    return text.replace("0.", ".", 1) if text.lstrip("−").startswith("0.") else text
