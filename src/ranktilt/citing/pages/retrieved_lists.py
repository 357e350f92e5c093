"""The pages that were retrieved for the queries of answers: lists of search results.

They come from a run of the user, or from the answers, which may hold the results of their search. A
page is named by its *key*, which is the same for all spellings of an address.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from ranktilt.data.answers import Answers, Retrieved
from ranktilt.data.formats.notation import FIRST, split_notation
from ranktilt.data.page_urls import page_key
from ranktilt.data.runs.run import Run
from ranktilt.errors import UserError

_KEEP = "keep"
"""Option of a run's file that says which rank of a repeated document counts: ``keep=first``."""


def load_list(path: str | Path) -> Run:
    """Read a run of pages, in which a page may be listed twice for a query.

    Search results often list a page twice, which is an error in other runs. So this adds
    ``keep=first`` to the file's options: the first rank counts, unless the user chose otherwise.
    """
    notation = split_notation(path)
    if notation is None:
        return Run.load(f"{path}:{_KEEP}={FIRST}")
    _file, options = notation
    if any(key == _KEEP for key, _value in options):
        return Run.load(path)
    return Run.load(f"{path},{_KEEP}={FIRST}")


def retrieved_lists(answers: Answers, run: Run | None, *, is_exact: bool) -> pl.DataFrame | None:
    """Return the retrieved lists of the answers' queries: ``query``, ``page`` and ``rank`` from 1.

    Lists come from the run or, without one, from the answers; None if these hold none. With
    `is_exact` pages of the run are named by their addresses, and not by keys.

    Raises
    ------
    UserError
        If the run ranks none of the answers' queries.
    """
    if run is not None:
        return _lists_of_run(answers, run, is_exact=is_exact)
    if not answers.has_retrieved:
        return None
    listed = answers.pages.filter(pl.col("retrieval_rank").is_not_null())
    numbered = answers.answers.with_row_index("answer").cast({"answer": pl.Int64})
    listed = listed.join(numbered, on="answer")
    # Several answers to one query may each hold its results; each page counts once.
    listed = listed.sort("answer", "retrieval_rank").unique(["query", "page"], maintain_order=True)
    return listed.select("query", "page", pl.col("retrieval_rank").alias("rank"))


def _lists_of_run(answers: Answers, run: Run, *, is_exact: bool) -> pl.DataFrame:
    """Return a run's lists for the queries of answers, with pages by key, or address if exact."""
    ranked = run.frame().filter(pl.col("query_id").is_in(answers.queries))
    if not ranked.height:
        examples = f"first: {answers.queries[0]!r} and {run.queries[0]!r}"
        raise UserError(f"run {run.name} ranks none of the answers' queries ({examples})")
    lists = ranked.group_by("query_id", maintain_order=True).agg("doc_id")
    keyed_lists = list[tuple[str, list[str]]]()
    for query, pages in lists.iter_rows():
        keys = pages if is_exact else [page_key(page) for page in pages]
        keyed_lists.append((query, keys))
    return Retrieved.from_lists(keyed_lists).pages
