"""The questions that answers with citations can be asked, and which of them comes first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ranktilt.measures.citations import cited_words, equal_rank, first_citation, rate, share
from ranktilt.measures.citations.base import CitationEstimate, CitationRows

QuestionKey = Literal["rate", "retrieved rate", "equal rank", "share", "first", "words"]
"""Short name of a question, in code and in files; `ranktilt.measures.citations` defines each."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question, and what must be known to answer it."""

    key: QuestionKey
    """Short name of the question."""
    estimate: Callable[[CitationRows], CitationEstimate]
    """Answers the question from the pages of two groups."""
    needs: Literal["", "consulted", "retrieved", "words"] = ""
    """What must be known of answers: consulted pages, retrieved lists, or which words are cited.

    Empty where the citations suffice.
    """


def _retrieved_rate(rows: CitationRows) -> CitationEstimate:
    """Return the ratio of citation rates of retrieved pages."""
    return rate.rate_ratio(rows, rows.is_retrieved)


_IN_ORDER = (
    Question(key="rate", estimate=rate.estimate, needs="consulted"),
    Question(key="equal rank", estimate=equal_rank.estimate, needs="retrieved"),
    Question(key="retrieved rate", estimate=_retrieved_rate, needs="retrieved"),
    Question(key="share", estimate=share.estimate),
    Question(key="first", estimate=first_citation.estimate),
    Question(key="words", estimate=cited_words.estimate, needs="words"),
)
"""All questions. The first that can be answered is the primary one, which decides the verdict."""
QUESTIONS: dict[QuestionKey, Question] = {question.key: question for question in _IN_ORDER}
"""All questions by their key, in this order.

So the primary question is the citation rate of consulted pages; where these are unknown, that of
retrieved pages at equal rank; and where neither is known, the share of citations.
"""


def answerable(rows: CitationRows, *, has_words: bool) -> list[Question]:
    """Return the questions that these rows can answer; the first one is the primary question."""
    known = {
        "": True,
        "consulted": bool(rows.is_consulted.any()),
        "retrieved": bool(rows.is_retrieved.any()),
        "words": has_words,
    }
    return [question for question in QUESTIONS.values() if known[question.needs]]
