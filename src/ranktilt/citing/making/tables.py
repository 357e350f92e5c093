"""Answers as tables: the documents of each, what it cites, and the form that `cite` audits.

A *context* is the documents that a request shows to the model that answers. In a *swapped* one, the
two versions of each document have exchanged their positions. An audit calls the documents of a
context *consulted*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ranktilt.citing.making.contexts import Context
from ranktilt.citing.making.reading import CitationsRead
from ranktilt.citing.making.requests import AnswerRequests
from ranktilt.citing.making.session import DOCUMENT_SCHEMA
from ranktilt.data.answers import ANSWER_SCHEMA, PAGE_SCHEMA, Answers
from ranktilt.data.collection import Collection

_ANSWER_COLUMNS = ("answer", "query", "repeat", "is_swapped", "shown_label")
"""Columns of `DOCUMENT_SCHEMA` with one value for all documents of an answer."""
_LISTS = ("position", "row", "citation_rank", "cited_words", "retrieval_rank")
"""Columns with a value for each document of an answer."""
_AUDIT_COLUMNS = ("cited_words", "retrieval_rank")
"""Columns besides `DOCUMENT_SCHEMA`, which only the audit needs."""


@dataclass(frozen=True, kw_only=True)
class CitedAnswer:
    """An answer, with its context and its citations."""

    context: Context
    """The documents that the request showed."""
    text: str
    """The answer, without reasoning."""
    citations: CitationsRead
    """The citations of the answer."""


def document_table(
    requests: AnswerRequests, collection: Collection, answers: Sequence[CitedAnswer]
) -> pl.DataFrame:
    """Return a row for each document of each answer's context.

    Columns are those of `DOCUMENT_SCHEMA`, and ``cited_words`` (words of the answer that the
    document supports) and ``retrieval_rank``.
    """
    rows = [_document_row(requests, number, answer) for number, answer in enumerate(answers)]
    lists = {name: pl.List(pl.Int64()) for name in _LISTS}
    lists["cited_words"] = pl.List(pl.Float64())
    of_answer = {name: DOCUMENT_SCHEMA[name] for name in _ANSWER_COLUMNS}
    # A row for each answer becomes a row for each of its documents.
    table = pl.DataFrame(rows, schema={**of_answer, **lists}, orient="row").explode(*_LISTS)
    ids = pl.DataFrame(
        {
            "row": range(collection.docs.height),
            "id": collection.ids,
            "origin": collection.docs["origin"],
            "group": requests.groups,
        },
        schema_overrides={"row": pl.Int64()},
    )
    table = table.join(ids, on="row", how="left", maintain_order="left")
    return table.select(*DOCUMENT_SCHEMA, *_AUDIT_COLUMNS)


def _document_row(requests: AnswerRequests, number: int, answer: CitedAnswer) -> tuple[Any, ...]:
    """Return one answer as a row: `_ANSWER_COLUMNS`, and then a list for each of `_LISTS`."""
    context, citations = answer.context, answer.citations
    positions = list(range(1, len(context.rows) + 1))
    citation_ranks = {position: rank for rank, position in enumerate(citations.positions, start=1)}
    ranked = requests.contexts.ranked[context.query]
    retrieval_ranks = {row: rank for rank, row in enumerate(ranked, start=1)}
    return (
        number,
        context.query,
        context.repeat,
        context.is_swapped,
        context.shown_label,
        positions,
        list(context.rows),
        [citation_ranks.get(position) for position in positions],
        [citations.cited_words.get(position) for position in positions],
        [retrieval_ranks[row] for row in context.rows],
    )


def answers_of(
    requests: AnswerRequests, documents: pl.DataFrame, answers: Sequence[CitedAnswer]
) -> Answers:
    """Return the answers in the form that `cite` audits.

    `documents` comes from `document_table`. With twins or drawn versions, no page has a rank,
    because a version may be shown although only another version of its document was retrieved.
    """
    is_ranked = not (requests.settings.has_twins or requests.settings.draws_versions)
    contexts = [answer.context for answer in answers]
    records = {
        "query": [context.query for context in contexts],
        "repeat": list(map(repeat_name, contexts)),
        "has_consulted": [True] * len(contexts),
        "has_retrieved": [is_ranked] * len(contexts),
    }
    rank = pl.col("retrieval_rank") if is_ranked else pl.lit(None, dtype=pl.Int64)
    pages = documents.select(
        "answer",
        "citation_rank",
        "cited_words",
        page="id",
        is_consulted=pl.lit(True),
        retrieval_rank=rank,
    )
    return Answers(
        answers=pl.DataFrame(records, schema=ANSWER_SCHEMA),
        pages=pages.select(*PAGE_SCHEMA),
        spec={"exact_urls": True},
    )


def repeat_name(context: Context) -> str:
    """Return an answer's name among those to its query: ``1``, ``1, true label, exchanged``."""
    parts = [str(context.repeat)]
    if context.shown_label != "none":
        parts.append(f"{context.shown_label} label")
    if context.is_swapped:
        parts.append("exchanged")
    return ", ".join(parts)


def text_table(answers: Sequence[CitedAnswer]) -> pl.DataFrame:
    """Return a row for each answer: its text, and counts of numbers that are no citations."""
    rows = []
    for number, answer in enumerate(answers):
        rows.append((number, answer.text, answer.citations.outside, answer.citations.quoted))
    schema = {"answer": pl.Int64(), "text": pl.String()}
    schema |= {"outside": pl.Int64(), "quoted": pl.Int64()}
    return pl.DataFrame(rows, schema=schema, orient="row")
