"""Answers of an engine: the pages that each one cites, and those that the engine consulted.

An answer engine, such as a chat model with a search, *retrieves* pages, *consults* (reads) some of
them, and *cites* some of these. Several answers to one query are *repeats*.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from ranktilt.errors import UserError

ANSWER_SCHEMA = {
    "query": pl.String,
    "repeat": pl.String,
    "has_consulted": pl.Boolean,
    "has_retrieved": pl.Boolean,
}
"""Columns of `Answers.answers`."""
PAGE_SCHEMA = {
    "answer": pl.Int64,
    "page": pl.String,
    "citation_rank": pl.Int64,
    "is_consulted": pl.Boolean,
    "retrieval_rank": pl.Int64,
    "cited_words": pl.Float64,
}
"""Columns of `Answers.pages`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Answers:
    """Answers of one engine to queries. Several answers to one query are called repeats.

    An engine may tell three things about a page: it *retrieved* the page by a search, it
    *consulted* the page (read it to write the answer), and it *cited* the page in the answer. A
    page counts once in an answer, however often it is cited there.

    Raises
    ------
    UserError
        If a table lacks a column, two answers have the same query and repeat, or an answer has a
        page twice.
    """

    answers: pl.DataFrame
    """A row for each answer.

    ``query``; ``repeat``, a name that is unique within the query; ``has_consulted`` and
    ``has_retrieved``, whether the answer tells which pages were consulted, and which retrieved.
    """
    pages: pl.DataFrame
    """A row for each page of each answer.

    ``answer``, the row in `answers`; ``page``; ``citation_rank``, from 1 in the order of first
    citations, null for a page that is not cited; ``is_consulted``; ``retrieval_rank``, null for a
    page that was not retrieved; ``cited_words``, how many words of the answer the page supports,
    null if the answer does not mark them.
    """
    spec: dict[str, Any] = field(default_factory=dict)
    """Where the answers come from: ``files``, ``read_as``, and what was left out."""

    def __post_init__(self) -> None:
        for name, frame, schema in (
            ("answers", self.answers, ANSWER_SCHEMA),
            ("pages", self.pages, PAGE_SCHEMA),
        ):
            missing = [column for column in schema if column not in frame.columns]
            if missing:
                raise UserError(f"{name}: expected columns {', '.join(schema)}; missing: {missing}")
            columns = [pl.col(column).cast(kind) for column, kind in schema.items()]
            object.__setattr__(self, name, frame.select(columns))
        repeated = self.answers.select("query", "repeat").is_duplicated()
        if repeated.any():
            query, repeat = self.answers.select("query", "repeat").row(repeated.arg_max() or 0)
            raise UserError(f"query {query!r} has two answers of run {repeat!r}")
        if self.pages.select("answer", "page").is_duplicated().any():
            raise UserError("expected each page once in an answer")

    @property
    def queries(self) -> list[str]:
        """Queries in the order of their first answers."""
        return self.answers["query"].unique(maintain_order=True).to_list()

    @property
    def cited(self) -> pl.DataFrame:
        """The rows of `pages` whose page is cited."""
        return self.pages.filter(pl.col("citation_rank").is_not_null())

    @property
    def has_consulted(self) -> bool:
        """Whether every answer tells what was consulted."""
        return bool(self.answers["has_consulted"].all())

    @property
    def has_retrieved(self) -> bool:
        """Whether any answer holds the results of a search."""
        return bool(self.answers["has_retrieved"].any())

    @property
    def has_words(self) -> bool:
        """Whether any answer tells which of its words a page supports."""
        return bool(self.pages["cited_words"].is_not_null().any())

    def __repr__(self) -> str:
        counts = f"{len(self.queries):,} queries, {self.answers.height:,} answers"
        return f"Answers({counts}, {self.cited.height:,} citations)"


@dataclass(frozen=True, kw_only=True)
class Retrieved:
    """The pages that a search returned for each query."""

    pages: pl.DataFrame
    """``query``, ``page`` and ``rank`` (from 1, without gaps); no page twice in a query."""

    @classmethod
    def from_lists(cls, lists: Iterable[tuple[str, Sequence[str]]]) -> Retrieved:
        """Return the pages of ranked lists: pairs of a query and its pages, best first.

        A page that occurs twice in a list counts at its first rank.
        """
        queries, pages, ranks = list[str](), list[str](), list[int]()
        for query, ranked_pages in lists:
            distinct_pages = list(dict.fromkeys(ranked_pages))
            queries += [query] * len(distinct_pages)
            pages += distinct_pages
            ranks += range(1, len(distinct_pages) + 1)
        schema = {"query": pl.String, "page": pl.String, "rank": pl.Int64}
        frame = pl.DataFrame({"query": queries, "page": pages, "rank": ranks}, schema=schema)
        return cls(pages=frame)
