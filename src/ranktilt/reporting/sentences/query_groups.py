"""Sentences about groups of queries: whether they differ, and where the tilt is largest."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ranktilt.auditing.effects import FEWEST
from ranktilt.auditing.query_groups.result import (
    GroupAnswer,
    GroupDifference,
    QueryBreakdown,
    QueryGroup,
    TiltVariance,
    small_groups,
)
from ranktilt.errors import counted, join_words
from ranktilt.reporting.numbers import decimal, probability
from ranktilt.reporting.sentences.effects import corrected_p_words, interval_words, neutral_words

_MOST_SENTENCES = 4
"""Rankers and pairs of groups that have a sentence each; of more, those whose groups differ."""
_MOST_NAMED = 4
"""Groups that a sentence names."""


def breakdown_sentences(breakdown: QueryBreakdown, primary: str) -> Iterator[str]:
    """Say of each ranker and pair whether groups of queries differ, and where the tilt is largest.

    Only the primary question is answered in words.
    """
    differences = [row for row in breakdown.differences if row.question == primary]
    several = len({(row.a, row.b) for row in differences}) > 1
    rows = differences
    if len(differences) > _MOST_SENTENCES:
        rows = [row for row in differences if row.is_shown]
    for difference in rows:
        yield _breakdown_sentence(breakdown, difference, several=several)
    if len(rows) < len(differences):
        yield (
            f"in {len(differences) - len(rows)} of {len(differences)} answers, groups of queries "
            f"by {breakdown.column} are not shown to differ"
        )


def _breakdown_sentence(
    breakdown: QueryBreakdown, difference: GroupDifference, *, several: bool
) -> str:
    """Say of one ranker and pair whether groups of queries differ, and where its tilt is largest.

    A group that is the only one with queries enough is the largest of none.
    """
    worst = None if math.isnan(difference.p) else breakdown.worst(difference)
    is_sided = worst is None or worst.effect.estimand.sided
    noun = "the tilt" if is_sided else difference.question
    words = difference_words(breakdown.column, difference, noun)
    sentence = f"{subject(difference, several=several)}: {words}"
    if worst is None:
        return sentence
    return f"{sentence}; {_worst_words(worst, len(difference.groups))}"


def subject(row: GroupDifference | TiltVariance, *, several: bool) -> str:
    """Name the ranker, and the pair of groups where there are several."""
    pair = f"{row.a} | {row.b}"
    if not row.run:
        return pair
    return f"{row.run}, {pair}" if several else row.run


def difference_words(column: str, difference: GroupDifference, noun: str = "the tilt") -> str:
    """Say whether the groups of queries differ in what `noun` names."""
    groups = f"groups of queries by {column}"
    if math.isnan(difference.p):
        return f"{groups} cannot be compared: fewer than two have {FEWEST} queries that count"
    p = f"corrected p {probability(difference.p_corrected)}"
    if difference.is_shown:
        return f"{noun} differs between {groups} ({p})"
    return f"{noun} is not shown to differ between {groups} ({p})"


def _worst_words(worst: GroupAnswer, count: int) -> str:
    """Say where the tilt is largest, and that the largest of several is no fair estimate."""
    effect = worst.effect
    side = effect.side(effect.favours)
    toward = f", toward {side}" if side else ", where no tilt is shown"
    value = " ".join(filter(None, (effect.estimand.answer(effect.value), interval_words(effect))))
    queries = counted(effect.queries, "query", "queries")
    parts = (value, neutral_words(effect), queries, corrected_p_words(effect))
    numbers = ", ".join(filter(None, parts))
    if not effect.estimand.sided:
        return f"it is farthest from random lists in {worst.group} ({numbers})"
    return f"it is largest in {worst.group}{toward} ({numbers}; {largest_of(count)})"


def largest_of(count: int) -> str:
    """Say that the largest of several answers is no fair estimate."""
    return f"the largest of {count}, so more queries of this group would likely show less"


def variance_sentence(row: TiltVariance, *, several: bool, noise: str = "documents") -> str:
    """Say how much of the variance over queries is more than the noise of documents or repeats.

    `noise` names what is split in halves.
    """
    name = subject(row, several=several)
    is_by_repeats = row.by == "repeats"
    queries = counted(row.queries, "query", "queries")
    if math.isnan(row.share) and row.queries >= FEWEST:
        return f"{name}: the {queries} do not differ at all, so there is no variance to explain"
    if math.isnan(row.share):
        have = "query has" if row.queries == 1 else "queries have"
        basis = "every repeat" if is_by_repeats else f"several {noise} to split"
        return (
            f"{name}: {row.queries:,} {have} {basis}, too few to tell how much queries differ "
            f"beyond noise ({FEWEST} needed)"
        )
    low, high = decimal(100 * row.low, 0), decimal(100 * row.high, 0)
    method = f"split halves of the {noise} of {queries}, stepped up by Spearman and Brown"
    if is_by_repeats:
        method = f"by repeats of {queries}: as many new ones would show it again"
    return (
        f"{name}: {decimal(100 * row.share, 0)} % [{low}, {high}] of the variance of the tilt over "
        f"queries is more than the noise of their {'repeats' if is_by_repeats else noise} "
        f"({method})"
    )


def group_count_sentences(
    column: str, groups: Sequence[QueryGroup], without_group: int
) -> Iterator[str]:
    """Say which groups are too small for a verdict, and how many queries have no group."""
    small = small_groups(groups)
    if small:
        names = [f"{group.name} ({group.queries})" for group in small[:_MOST_NAMED]]
        if len(small) > _MOST_NAMED:
            names.append(f"{len(small) - _MOST_NAMED} more")
        yield (
            f"Nothing is decided for groups of fewer than {FEWEST} queries by {column}: "
            f"{join_words(names)}"
        )
    if without_group:
        have = "query has" if without_group == 1 else "queries have"
        yield f"{without_group:,} {have} no {column}, and count in no group"
