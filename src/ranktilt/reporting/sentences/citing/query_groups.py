"""Sentences about citations by groups of queries, apart from those of audits."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ranktilt.citing.query_breakdown import CitationBreakdown, CitationGroupAnswer
from ranktilt.citing.questions import QuestionKey
from ranktilt.errors import counted
from ranktilt.reporting.numbers import decimal
from ranktilt.reporting.sentences.query_groups import difference_words, largest_of, subject
from ranktilt.reporting.sentences.ratios import ratio_words


def citation_breakdown_sentences(
    breakdown: CitationBreakdown, primary: QuestionKey
) -> Iterator[str]:
    """Say of each pair whether groups of queries differ, and in which a side is cited least."""
    for difference in breakdown.differences:
        if difference.question != primary:
            continue
        words = difference_words(breakdown.column, difference)
        answers = breakdown.answers_to(difference)
        known = [answer for answer in answers if not math.isnan(answer.effect.value)]
        sentence = f"{subject(difference, several=False)}: {words}"
        if len(known) > 1 and not math.isnan(difference.p):
            worst = max(known, key=_citation_distance)
            sentence = f"{sentence}; it is {_worst_citation_words(worst, len(known))}"
        yield sentence


def _citation_distance(answer: CitationGroupAnswer) -> float:
    """Return how far an answer is from neutral; a ratio and its inverse are as far."""
    effect = answer.effect
    if effect.scale == "share":
        return abs(effect.value - effect.neutral)
    return math.inf if not effect.value else abs(math.log(effect.value))


def _worst_citation_words(answer: CitationGroupAnswer, count: int) -> str:
    """Name the group of queries with the largest tilt of citations."""
    effect = answer.effect
    value = f"{effect.a} pages are cited {ratio_words(effect.value)} times as often"
    if effect.value == 0:
        value = f"{effect.a} pages are never cited"
    if effect.scale == "share":
        value = f"{effect.a} pages get {decimal(effect.value)} %"
    citations = counted(effect.citations_a, "citation", "citations")
    return (
        f"largest in {answer.group} ({value}, {citations} on "
        f"{counted(effect.questions, 'query', 'queries')}; {largest_of(count)})"
    )
