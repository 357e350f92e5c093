"""The questions that answers with citations can be asked, and which of them comes first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ranktilt.measures.citations import cited_words, equal_rank, first_citation, rate, share
from ranktilt.measures.citations.base import CitationEstimate, CitationRows

QuestionKey = Literal["rate", "retrieved rate", "equal rank", "share", "first", "words"]


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question, and what it needs to know."""

    key: QuestionKey
    estimate: Callable[[CitationRows], CitationEstimate]
    needs: Literal["", "consulted", "retrieved", "words"] = ""


def _retrieved_rate(rows: CitationRows) -> CitationEstimate:
    return rate.rate_ratio(rows, rows.is_retrieved)


_IN_ORDER = (
    Question(key="rate", estimate=rate.estimate, needs="consulted"),
    Question(key="equal rank", estimate=equal_rank.estimate, needs="retrieved"),
    Question(key="retrieved rate", estimate=_retrieved_rate, needs="retrieved"),
    Question(key="share", estimate=share.estimate),
    Question(key="first", estimate=first_citation.estimate),
    Question(key="words", estimate=cited_words.estimate, needs="words"),
)
QUESTIONS: dict[QuestionKey, Question] = {question.key: question for question in _IN_ORDER}
"""Questions by their key, in the order in which the first that can be answered is the primary one:
of what was consulted, of what was retrieved at the same rank, or without either."""


def answerable(rows: CitationRows, *, has_words: bool) -> list[Question]:
    """Return the questions that these rows can answer; the first one is the primary question."""
    known = {
        "": True,
        "consulted": bool(rows.is_consulted.any()),
        "retrieved": bool(rows.is_retrieved.any()),
        "words": has_words,
    }
    return [question for question in QUESTIONS.values() if known[question.needs]]
