"""Answers that a language model wrote, and what became of the requests for them: data only."""

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
"""Columns of the documents that answers were written from, a row for each."""


@dataclass(frozen=True, kw_only=True)
class SessionCounts:
    """What became of the requests, and what answers cite beside their documents."""

    queries: int
    """Queries that were asked."""
    requests: int
    """Requests for an answer; the repeats of a query are one each."""
    answers: int
    """Requests with an answer."""
    rejected: Mapping[str, int]
    """Requests without an answer, by reason: ``unanswered``, ``refused``, ``too long``,
    ``empty``, ``filtered``."""
    fresh: int
    """Answers that were asked for by this call; the others were in the journal."""
    without_citations: int
    """Answers that cite no document."""
    outside: int
    """Cited numbers that no document of the context has."""
    answers_outside: int
    """Answers with such a number."""
    quoted: int
    """Numbers in passages that repeat the prompt, which cite nothing."""
    answers_quoting: int
    """Answers with such a passage."""
    other_form: int
    """Numbers in brackets in another form, such as ``[1-3]``, which are not read."""
    cut_off: int
    """Answers that end at the limit of tokens."""
    left_out: UnshownEntries
    """What the run holds and no request showed."""
    prompt_tokens: int
    """Tokens of all prompts, as the server counted them."""
    completion_tokens: int
    """Tokens of all answers, as the server counted them."""
    cut_prompts: int = 0
    """Answers to prompts that did not fit the model until their documents were cut."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AnswerSession:
    """Answers with citations that a language model wrote from documents of a collection."""

    model: str
    """The language model that was asked."""
    collection: Collection
    """The documents and queries."""
    run: Run
    """Which documents each query retrieved."""
    making: AnswerMaking
    """What the user chose."""
    pair: Pair | None
    """Groups whose versions stand in one context, or whose labels are shown."""
    answers: Answers
    """What `cite` audits: consulted is what the context showed, retrieved the same as ranked."""
    documents: pl.DataFrame
    """A row for each document that an answer was written from; see `DOCUMENT_SCHEMA`."""
    texts: pl.DataFrame
    """A row for each answer: ``answer``, ``text``, ``outside`` and ``quoted``."""
    counts: SessionCounts
    """What became of the requests."""
    messages: tuple[str, ...] = ()
    """What the server said where it did not answer, each once."""
    spec: Mapping[str, Any] = field(default_factory=dict)
    """How they were made; plain JSON values."""

    @property
    def unanswered(self) -> int:
        """Requests that the model did not answer; the same call again asks only for these."""
        return self.counts.rejected.get("unanswered", 0)
