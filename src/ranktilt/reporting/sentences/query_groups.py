"""Sentences about groups of queries: whether they differ, and where the tilt is largest.

A tilt is how much a ranker favours one of a pair of groups of documents. A breakdown computes it
for each group of queries, that is, each value of a column, and tests whether these groups differ.
An effect is such an answer, with its interval.
"""

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
from ranktilt.reporting.sentences.grammar import singular_or_plural

_MOST_SENTENCES = 4
"""Most sentences about a ranker and a pair of groups each; of more, those that differ have one."""
_MOST_NAMED = 4
"""Most groups of queries that a sentence names."""


def breakdown_sentences(breakdown: QueryBreakdown, primary: str) -> Iterator[str]:
    """Say of each ranker and pair whether groups of queries differ, and where the tilt is largest.

    Only the primary question is answered in words.
    """
    differences = [row for row in breakdown.differences if row.question == primary]
    several_pairs = len({(row.a, row.b) for row in differences}) > 1
    sentence_rows = differences
    if len(differences) > _MOST_SENTENCES:
        sentence_rows = [row for row in differences if row.is_shown]
    for difference in sentence_rows:
        yield _breakdown_sentence(breakdown, difference, several_pairs=several_pairs)
    others = len(differences) - len(sentence_rows)
    if others:
        yield (
            f"in {others} of {len(differences)} answers, groups of queries by {breakdown.column} "
            "are not shown to differ"
        )


def _breakdown_sentence(
    breakdown: QueryBreakdown, difference: GroupDifference, *, several_pairs: bool
) -> str:
    """Say of one ranker and pair whether groups of queries differ, and where its tilt is largest.

    No largest tilt is named if fewer than two groups of queries can be compared.
    """
    largest = None if math.isnan(difference.p) else breakdown.worst(difference)
    is_sided = largest is None or largest.effect.estimand.sided
    noun = "the tilt" if is_sided else difference.question
    words = difference_words(breakdown.column, difference, noun)
    sentence = f"{row_subject(difference, several_pairs=several_pairs)}: {words}"
    if largest is None:
        return sentence
    return f"{sentence}; {_largest_words(largest, len(difference.groups))}"


def row_subject(row: GroupDifference | TiltVariance, *, several_pairs: bool) -> str:
    """Name the ranker, and the pair of groups where there are several.

    Answers of an engine have no ranker, and the pair is named alone.
    """
    pair = f"{row.a} | {row.b}"
    if not row.run:
        return pair
    return f"{row.run}, {pair}" if several_pairs else row.run


def difference_words(column: str, difference: GroupDifference, noun: str = "the tilt") -> str:
    """Say whether groups of queries by a column differ; `noun` names what they may differ in."""
    groups = f"groups of queries by {column}"
    if math.isnan(difference.p):
        return f"{groups} cannot be compared: fewer than two have {FEWEST} queries that count"
    p = f"corrected p {probability(difference.p_corrected)}"
    if difference.is_shown:
        return f"{noun} differs between {groups} ({p})"
    return f"{noun} is not shown to differ between {groups} ({p})"


def _largest_words(answer: GroupAnswer, group_count: int) -> str:
    """Say where the tilt is largest, and that the largest of several is no fair estimate."""
    effect = answer.effect
    side = effect.side(effect.favours)
    toward = f", toward {side}" if side else ", where no tilt is shown"
    value = " ".join(filter(None, (effect.estimand.answer(effect.value), interval_words(effect))))
    queries = counted(effect.queries, "query", "queries")
    parts = (value, neutral_words(effect), queries, corrected_p_words(effect))
    numbers = ", ".join(filter(None, parts))
    if not effect.estimand.sided:
        return f"it is farthest from random lists in {answer.group} ({numbers})"
    return f"it is largest in {answer.group}{toward} ({numbers}; {selection_caution(group_count)})"


def selection_caution(count: int) -> str:
    """Say that the largest of several answers is no fair estimate: it was selected for its size."""
    return f"the largest of {count}, so more queries of this group would likely show less"


def variance_sentence(row: TiltVariance, *, several_pairs: bool, noise: str = "documents") -> str:
    """Say how much of the variance of the tilt over queries is more than noise.

    Parameters
    ----------
    row : TiltVariance
        The share of the variance, for one ranker and pair of groups.
    several_pairs : bool
        Whether to name the pair of groups.
    noise : str
        What each query has several of, and is split into two halves of to estimate the noise. Not
        used where the noise is estimated from repeats of the run.
    """
    name = row_subject(row, several_pairs=several_pairs)
    is_by_repeats = row.by == "repeats"
    queries = counted(row.queries, "query", "queries")
    if math.isnan(row.share) and row.queries >= FEWEST:
        return f"{name}: the {queries} do not differ at all, so there is no variance to explain"
    if math.isnan(row.share):
        have = counted(row.queries, "query has", "queries have")
        basis = "every repeat" if is_by_repeats else f"several {noise} to split"
        return (
            f"{name}: {have} {basis}, too few to tell how much queries differ "
            f"beyond noise ({FEWEST} needed)"
        )
    low, high = decimal(100 * row.low, 0), decimal(100 * row.high, 0)
    # Halves of a query's documents are noisier than all of them; the formula of Spearman and Brown
    # makes up for that.
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
        queries = counted(without_group, "query has", "queries have")
        count = singular_or_plural(without_group, "counts", "count")
        yield f"{queries} no {column}, and {count} in no group"
