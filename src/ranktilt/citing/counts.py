"""How much of the answers an audit of citations can use.

An answer is what an engine wrote for a query. Pages may be *retrieved* for the query, *consulted*
(read by the engine before it answered), and *cited*; labels say to which group a page belongs.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from ranktilt.data.answers import Answers


@dataclass(frozen=True, kw_only=True)
class CitationCounts:
    """How much of the answers can be used, and what is missing."""

    queries: int
    """Number of queries with an answer."""
    answers: int
    """Number of answers, with several to one query."""
    citations: int
    """Number of cited pages, each once for each answer."""
    consulted: int
    """Number of consulted pages, with the cited ones; 0 where unknown."""
    retrieved: int
    """Number of pages retrieved for the queries; 0 where unknown."""
    without_citations: int
    """Number of answers that cite no page."""
    unlabelled: int
    """Number of citations of pages without a label."""
    without_consulted: int
    """Number of answers that do not say what they consulted, if others do."""
    not_consulted: int
    """Number of citations of pages that the same answer did not consult; 0 where unknown."""
    not_retrieved: int
    """Number of citations of pages that were not retrieved for the query; 0 where unknown."""
    without_list: int
    """Number of queries without a retrieved list, if others have one."""


def count_citations(
    answers: Answers, table: pl.DataFrame, retrieved: pl.DataFrame | None
) -> CitationCounts:
    """Count answers, citations, and what is missing.

    Parameters
    ----------
    answers : Answers
        The answers as they were read.
    table : polars.DataFrame
        A row for each page of an answer, labelled or not: ``answer``, ``label``, ``is_cited``,
        ``is_consulted`` and ``retrieval_rank``.
    retrieved : polars.DataFrame, optional
        The retrieved lists, with a column ``query``; None where none is known.
    """
    cited = table.filter(pl.col("is_cited"))
    answer_count = answers.answers.height
    # Answers that say what they consulted.
    with_consulted = answers.answers.with_row_index("answer").filter("has_consulted")["answer"]
    without_consulted, consulted, not_consulted = 0, 0, 0
    if len(with_consulted):
        without_consulted = answer_count - len(with_consulted)
        consulted = int(table["is_consulted"].sum())
        is_of_these = pl.col("answer").is_in(with_consulted.cast(pl.Int64).implode())
        not_consulted = int((~cited.filter(is_of_these)["is_consulted"]).sum())
    retrieved_pages, not_retrieved, without_list = 0, 0, 0
    if retrieved is not None:
        retrieved_pages = retrieved.height
        not_retrieved = int((cited["retrieval_rank"] == 0).sum())
        without_list = len(set(answers.queries) - set(retrieved["query"]))
    return CitationCounts(
        queries=len(set(answers.queries)),
        answers=answer_count,
        citations=cited.height,
        consulted=consulted,
        retrieved=retrieved_pages,
        without_citations=answer_count - cited["answer"].n_unique(),
        unlabelled=cited["label"].null_count(),
        without_consulted=without_consulted,
        not_consulted=not_consulted,
        not_retrieved=not_retrieved,
        without_list=without_list,
    )
