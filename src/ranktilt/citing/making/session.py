"""Answers that a language model wrote, and what became of the requests for them: data only.

A *context* is the documents that one request shows to the model. A *run* lists the documents that
were retrieved for each query. The *journal* is the file that keeps each answer as it comes, so that
an interrupted session asks only for the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from ranktilt.citing.making.contexts import UnshownEntries
from ranktilt.citing.making.settings import AnswerMaking
from ranktilt.citing.making.twins import Pair
from ranktilt.data.answers import Answers
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run

DOCUMENT_SCHEMA = pl.Schema(
    {
        "answer": pl.Int64(),
        "query": pl.String(),
        "repeat": pl.Int64(),
        "is_swapped": pl.Boolean(),
        "shown_label": pl.String(),
        "position": pl.Int64(),
        "id": pl.String(),
        "origin": pl.String(),
        "group": pl.String(),
        "citation_rank": pl.Int64(),
    }
)
"""Columns of a table with a row for each document of each answer's context.

``answer`` is the number of the answer, and ``repeat`` which request about the query it answers.
``is_swapped`` says whether the two versions of each document have exchanged their positions.
``shown_label`` is the author that documents are shown with: ``none``, ``true`` or ``swapped`` (of
the other group). ``position`` in the prompt is from 1. ``origin`` is shared by versions of one
document, and ``group`` is that of its source. ``citation_rank`` is from 1, and null if not cited.
"""


@dataclass(frozen=True, kw_only=True)
class SessionCounts:
    """Numbers of requests by outcome, and of numbers in answers that are no citations."""

    queries: int
    """Number of queries that were asked."""
    requests: int
    """Number of requests for an answer, with several for a query that is asked repeatedly."""
    answers: int
    """Number of requests with an answer."""
    rejected: Mapping[str, int]
    """Number of requests without an answer, by reason.

    The reasons are ``unanswered``, ``refused`` (by the server), ``too long``, ``empty`` (an answer
    without a word) and ``filtered`` (a content filter held the answer back).
    """
    fresh: int
    """Number of answers that this call asked for; the others were in the journal."""
    without_citations: int
    """Number of answers that cite no document."""
    outside: int
    """Count of numbers in brackets that no document of the context has."""
    answers_outside: int
    """Number of answers with such a number."""
    quoted: int
    """Count of numbers in passages that are copied from the prompt, which are no citations."""
    answers_quoting: int
    """Number of answers with such a passage."""
    other_form: int
    """Count of numbers in brackets in another form, such as ``[1-3]``, which are not read."""
    cut_off: int
    """Number of answers that end at the limit of tokens."""
    left_out: UnshownEntries
    """Numbers of queries and documents of the run that no request shows."""
    prompt_tokens: int
    """Tokens of all prompts, as the server counted them."""
    completion_tokens: int
    """Tokens of all answers, as the server counted them."""
    cut_prompts: int = 0
    """Number of answers to prompts whose documents were shortened to fit the model."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AnswerSession:
    """Answers with citations that a language model wrote from documents of a collection."""

    model: str
    """The language model that was asked."""
    collection: Collection
    """The documents and queries."""
    run: Run
    """The documents that were retrieved for each query."""
    making: AnswerMaking
    """The user's options."""
    pair: Pair | None
    """Groups whose versions are shown together, or whose labels are shown; None for neither."""
    answers: Answers
    """The answers in the form that `cite` audits: documents of a context count as consulted."""
    documents: pl.DataFrame
    """A row for each document of each answer's context, with the columns of `DOCUMENT_SCHEMA`."""
    texts: pl.DataFrame
    """A row for each answer: ``answer``, ``text``, and the counts ``outside`` and ``quoted``."""
    counts: SessionCounts
    """Numbers of requests by outcome."""
    messages: tuple[str, ...] = ()
    """Messages of the server in place of answers, without repetitions."""
    spec: Mapping[str, Any] = field(default_factory=dict)
    """How the answers were made; plain JSON values."""

    @property
    def unanswered(self) -> int:
        """Requests that the model did not answer; the same call again asks only for these."""
        return self.counts.rejected.get("unanswered", 0)
