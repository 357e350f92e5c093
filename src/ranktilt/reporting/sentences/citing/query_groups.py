"""Sentences about citations by groups of queries: where a side is cited least.

A breakdown compares how often two groups of pages are cited, for each group of queries. An effect
is such an answer, with its interval; a tilt is its distance from the value that favours neither
group of pages.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ranktilt.citing.effect import QuestionKey
from ranktilt.citing.result import CitationBreakdown, CitationGroupAnswer
from ranktilt.errors import counted
from ranktilt.reporting.numbers import decimal
from ranktilt.reporting.sentences.grammar import ratio_words
from ranktilt.reporting.sentences.query_groups import (
    difference_words,
    row_subject,
    selection_caution,
)


def citation_breakdown_sentences(
    breakdown: CitationBreakdown, primary: QuestionKey
) -> Iterator[str]:
    """Say of each pair whether groups of queries differ, and where the tilt is largest.

    `primary` is the key of the question that is answered in words.
    """
    for difference in breakdown.differences:
        if difference.question != primary:
            continue
        words = difference_words(breakdown.column, difference)
        answers = breakdown.answers_to(difference)
        defined_answers = [answer for answer in answers if not math.isnan(answer.effect.value)]
        sentence = f"{row_subject(difference, several_pairs=False)}: {words}"
        if len(defined_answers) > 1 and not math.isnan(difference.p):
            largest = max(defined_answers, key=_citation_distance)
            sentence = f"{sentence}; it is {_largest_words(largest, len(defined_answers))}"
        yield sentence


def _citation_distance(answer: CitationGroupAnswer) -> float:
    """Return how far an answer is from neutral.

    A ratio is neutral at 1, and as far from it as its inverse: 2 as far as 1 / 2.
    """
    effect = answer.effect
    if effect.scale == "share":
        return abs(effect.value - effect.neutral)
    return math.inf if not effect.value else abs(math.log(effect.value))


def _largest_words(answer: CitationGroupAnswer, group_count: int) -> str:
    """Name the group of queries with the largest tilt of citations, and its numbers."""
    effect = answer.effect
    value = f"{effect.a} pages are cited {ratio_words(effect.value)} times as often"
    if effect.value == 0:
        value = f"{effect.a} pages are never cited"
    if effect.scale == "share":
        value = f"{effect.a} pages get {decimal(effect.value)} %"
    citations = counted(effect.citations_a, "citation", "citations")
    return (
        f"largest in {answer.group} ({value}, {citations} on "
        f"{counted(effect.questions, 'query', 'queries')}; {selection_caution(group_count)})"
    )
