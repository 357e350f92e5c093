"""Answers and their labelled pages, as the file of an audit keeps them.

A later audit compares its engine with this one page by page, and an explanation of citations needs
the pages too. So the file of an audit holds every page of every answer. To keep it small, it holds
each name once, and numbers as compressed arrays in text form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ranktilt.auditing.storage.array_text import (
    array_of_text,
    names_of_text,
    text_of_array,
    text_of_names,
)
from ranktilt.citing.arrays import numbers_of
from ranktilt.data.artifact import register

MOST_ROWS = 3_000_000
"""Most rows that are kept, some 30 MB in the file; an audit with more keeps none."""
_PAGE_COLUMNS = ("page", "label", "unit", "domain")
"""Columns of names, which are the same in every row of a page."""
_NUMBERS = {
    "answer": "<i4",
    "citation_rank": "<i4",
    "is_consulted": "|b1",
    "retrieval_rank": "<i4",
    "cited_words": "<f8",
}
"""Columns of numbers, with numpy's name for the type of each in a file."""


@dataclass(frozen=True, kw_only=True, eq=False)
class KeptPages:
    """Every answer, with those of its pages that are cited or have a label."""

    answers: pl.DataFrame
    """One row for each answer: ``query`` and ``repeat`` (which answer to the query).

    Empty if there were too many pages to keep.
    """
    pages: pl.DataFrame
    """One row for each page of an answer.

    Columns: ``answer`` (row of `answers`), ``page``, ``label`` (its group) and ``unit`` (pages that
    are labelled together, such as those of a domain), which are null without a label, ``domain``,
    ``citation_rank`` (from 1; 0 where not cited), ``is_consulted`` (read by the engine before it
    answered), ``retrieval_rank`` (from 1; 0 where not retrieved for the query) and ``cited_words``
    (words of the answer that the page supports; null where unknown).
    """

    @classmethod
    def from_table(cls, answers: pl.DataFrame, table: pl.DataFrame) -> KeptPages:
        """Take the cited pages, and those with a label, from the table of an audit.

        Nothing is kept of more than `MOST_ROWS` of them. `answers` has ``query`` and ``repeat``;
        `table` has a row for each page of an answer, or retrieved for its query.
        """
        rows = table.filter(pl.col("is_cited") | pl.col("label").is_not_null())
        if rows.height > MOST_ROWS:
            return cls(answers=answers.head(0).select("query", "repeat"), pages=rows.head(0))
        pages = rows.select(
            pl.col("answer").cast(pl.Int64),
            *_PAGE_COLUMNS,
            pl.col("citation_rank").fill_null(0),
            "is_consulted",
            "retrieval_rank",
            "cited_words",
        )
        return cls(answers=answers.select("query", "repeat"), pages=pages)

    @property
    def queries(self) -> list[str]:
        """Queries in the order of their first answers."""
        return self.answers["query"].unique(maintain_order=True).to_list()

    @property
    def has_words(self) -> bool:
        """Whether answers say which words a page supports."""
        return bool(self.pages["cited_words"].is_not_null().any())

    def of_queries(self, queries: Sequence[str]) -> KeptPages:
        """Return the answers to some queries, with their pages."""
        answers = self._numbered_answers.filter(pl.col("query").is_in(list(queries)))
        # Pages name answers by their row, which changes.
        answers = answers.with_columns(new_row=pl.int_range(pl.len()))
        pages = self.pages.join(
            answers.select("answer", "new_row"), on="answer", how="inner", maintain_order="left"
        )
        pages = pages.with_columns(answer=pl.col("new_row")).drop("new_row")
        return KeptPages(answers=answers.select("query", "repeat"), pages=pages)

    def rows(self) -> pl.DataFrame:
        """Return the labelled pages with the columns of `CitationInputs.rows`.

        Each answer weighs 1 / the number of answers to its query, times a factor that makes the
        mean weight 1.
        """
        numbered = self._numbered_answers
        scale = numbered.height / max(numbered["query"].n_unique(), 1)
        weights = numbered.with_columns(weight=scale / pl.len().over("query"))
        rows = self.pages.filter(pl.col("label").is_not_null())
        rank = pl.col("citation_rank")
        return rows.join(weights, on="answer", how="left", maintain_order="left").with_columns(
            is_cited=rank > 0, is_first=rank == 1
        )

    def citation_lists(self, column: str = "page") -> pl.DataFrame:
        """Return what each answer cites, in its order: ``query``, ``repeat`` and ``cited``.

        `column` says what is listed: ``page`` or ``domain``. A domain that is cited with several
        pages is listed once, where it is cited first.
        """
        cited = self.pages.filter(pl.col("citation_rank") > 0).sort("answer", "citation_rank")
        lists = cited.unique(["answer", column], keep="first", maintain_order=True)
        lists = lists.group_by("answer", maintain_order=True).agg(pl.col(column).alias("cited"))
        joined = self._numbered_answers.join(lists, on="answer", how="left", maintain_order="left")
        return joined.with_columns(pl.col("cited").fill_null([])).drop("answer")

    @property
    def _numbered_answers(self) -> pl.DataFrame:
        """The answers with their row as a column ``answer``, to join them with pages."""
        return self.answers.with_row_index("answer").cast({"answer": pl.Int64})

    def row(self) -> dict[str, Any]:
        """Return the record in an audit's file, which `from_row` reads.

        Queries and pages are named once, in the order of their first row; rows hold their indices.
        """
        queries = self.answers["query"].unique(maintain_order=True)
        pages = self.pages.select(_PAGE_COLUMNS).unique("page", maintain_order=True)
        numbers = numbers_of(self.pages["page"], pages["page"])
        content: dict[str, Any] = {"queries": queries.to_list()}
        answer_queries = numbers_of(self.answers["query"], queries)
        content["answer_query"] = text_of_array(answer_queries.astype("<i4"))
        content["answer_repeat"] = text_of_names(self.answers["repeat"])
        content["pages"] = {name: text_of_names(pages[name]) for name in _PAGE_COLUMNS}
        content["page"] = text_of_array(numbers.astype("<i4"))
        for name, kind in _NUMBERS.items():
            content[name] = text_of_array(self.pages[name].to_numpy().astype(kind))
        return content

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> KeptPages:
        """Read the record that `row` writes."""
        queries = pl.Series(row["queries"], dtype=pl.String)
        answers = pl.DataFrame(
            {
                "query": queries.gather(array_of_text(row["answer_query"], "<i4")),
                "repeat": names_of_text(row["answer_repeat"]),
            }
        )
        pages = pl.DataFrame({name: names_of_text(row["pages"][name]) for name in _PAGE_COLUMNS})
        columns = {name: array_of_text(row[name], kind) for name, kind in _NUMBERS.items()}
        numbers = pl.DataFrame(columns).with_columns(
            pl.col("answer", "citation_rank", "retrieval_rank").cast(pl.Int64),
            pl.col("cited_words").fill_nan(None),
        )
        table = pages[array_of_text(row["page"], "<i4").tolist()]
        joined = pl.concat([table, numbers], how="horizontal")
        return cls(
            answers=answers,
            pages=joined.select(
                "answer", *_PAGE_COLUMNS, pl.all().exclude("answer", *_PAGE_COLUMNS)
            ),
        )


register(KeptPages, KeptPages.row, KeptPages.from_row)
