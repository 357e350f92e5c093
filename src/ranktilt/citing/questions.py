"""The questions about citations that an audit answers, and which of them comes first.

Answers of an engine cite pages of two groups. A question is a way to compare the groups, such as by
their citation rates. Which questions can be answered depends on what is known: the pages that the
engine *consulted* (read before it answered), those that were *retrieved* for the query, or which
words of an answer a page supports.
"""

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
    """A question about citations, and what must be known to answer it."""

    key: QuestionKey
    """Short name of the question."""
    estimate: Callable[[CitationRows], CitationEstimate]
    """Function that answers the question from the pages of two groups."""
    needs: Literal["", "consulted", "retrieved", "words"] = ""
    """What must be known: consulted pages, retrieved pages, or the words that a page supports.

    Empty if the citations are enough.
    """


def _retrieved_rate(rows: CitationRows) -> CitationEstimate:
    """Return the ratio of citation rates of retrieved pages."""
    return rate.rate_ratio(rows, rows.is_retrieved)


_ORDERED_QUESTIONS = (
    Question(key="rate", estimate=rate.estimate, needs="consulted"),
    Question(key="equal rank", estimate=equal_rank.estimate, needs="retrieved"),
    Question(key="retrieved rate", estimate=_retrieved_rate, needs="retrieved"),
    Question(key="share", estimate=share.estimate),
    Question(key="first", estimate=first_citation.estimate),
    Question(key="words", estimate=cited_words.estimate, needs="words"),
)
"""All questions. The first that can be answered is the primary one, which decides the verdict."""
QUESTIONS: dict[QuestionKey, Question] = {question.key: question for question in _ORDERED_QUESTIONS}
"""All questions by their key, in the same order.

So the primary question is the citation rate of consulted pages. If these are unknown, it is the
rate of retrieved pages at equal rank, and if neither are known, the share of citations.
"""


def answerable_questions(rows: CitationRows, *, has_words: bool) -> list[Question]:
    """Return the questions that these rows can answer; the first is the primary question.

    `has_words` says whether it is known which words of an answer a page supports.
    """
    is_known = {
        "": True,
        "consulted": bool(rows.is_consulted.any()),
        "retrieved": bool(rows.is_retrieved.any()),
        "words": has_words,
    }
    return [question for question in QUESTIONS.values() if is_known[question.needs]]
