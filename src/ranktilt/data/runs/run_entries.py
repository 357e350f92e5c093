"""Check the entries of a run, in the order of a file or an object, and read their scores.

An *entry* is one document in the list of one query. The *score order* says which scores are better:
larger ones, smaller ones, or none, so that only the order of the entries counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.data.formats.ids import ids_of, ranks_of, require_frame, scores_of
from ranktilt.data.formats.runs.score_order import (
    GIVEN_ORDER_HINT,
    SCORE_ORDERS,
    given_ranks,
    list_directions,
    order_fault,
)
from ranktilt.errors import DataError, UserError, shorten, unknown_name

Int32 = npt.NDArray[np.int32]
"""Array of whole numbers of 32 bits."""
Int64 = npt.NDArray[np.int64]
"""Array of whole numbers."""
Float = npt.NDArray[np.float64]
"""Array of floating-point numbers."""
_ENTRIES_PER_SORT = 16_384
"""Most entries that the fast check for repeated documents sorts together."""
_QUERIES_PER_SORT = 64
"""Most queries whose entries that check sorts together."""


@dataclass(frozen=True, kw_only=True)
class EntryOrigin:
    """Where entries come from: a file or an object, for error messages."""

    name: Any = "run"
    """Name of the run, if it comes from an object.

    It is of any type, because it is read from a spec that callers may have written.
    """
    path: Path | None = None
    """File that entries come from; None for an object."""
    line_of: Callable[[int], int] | None = None
    """Function from the row of an entry, from 0, to its line in the file."""

    def fault(self, message: str, row: int | None = None) -> UserError:
        """Return the error for the entry in a row, or for all entries if `row` is None."""
        if self.path is None:
            return UserError(f"run {self.name!r}: {message}")
        line = None if row is None or self.line_of is None else self.line_of(row)
        return DataError(self.path, message, line=line)


def check_score_order(score_order: str | None) -> None:
    """Refuse an unknown order of scores."""
    if score_order is not None and score_order not in SCORE_ORDERS:
        raise unknown_name("score order", score_order, SCORE_ORDERS)


def entry_columns(frame: pl.DataFrame, *, is_scored: bool) -> pl.DataFrame:
    """Check that a table has the columns of entries, and convert ids and ranks.

    Ids become strings, and ranks become numbers, if the table has any. It must have a column of
    scores if `is_scored`.
    """
    needed = ("query_id", "doc_id", "score") if is_scored else ("query_id", "doc_id")
    frame = require_frame(frame, needed, "table").with_columns(
        ids_of(frame[name], f"column {name!r}").alias(name) for name in ("query_id", "doc_id")
    )
    if "rank" not in frame.columns:
        return frame
    return frame.with_columns(rank=ranks_of(frame["rank"], "table"))


@dataclass(frozen=True, kw_only=True)
class EntryScores:
    """Scores of entries, where larger is better."""

    values: Float
    """Score of each entry."""
    order: str | None
    """Value of ``score_order`` in the run's spec; None if the scores are those of the file."""


def entry_scores(
    frame: pl.DataFrame, query: Int64, score_order: str | None, origin: EntryOrigin
) -> EntryScores:
    """Read the scores of entries; refuse scores that contradict `score_order`, or are not finite.

    The worst score may be infinite, because some rankers write it for documents that they filtered
    out. It says that these come last, but not by how much; so such a run keeps only the order of
    its scores.

    Parameters
    ----------
    frame : polars.DataFrame
        The entries, with ``rank`` and ``score`` if there are any.
    query : array of int, shape (n_entries,)
        Number of each entry's query.
    score_order : {"score", "ascending", "rank"} or None
        How the user orders scores, as for `Run.load`.
    origin : EntryOrigin
        Where the entries come from, for errors.
    """
    rank_column = frame["rank"].to_numpy() if "rank" in frame.columns else None
    ranks = given_ranks(query, rank_column)
    if score_order == "rank":
        return EntryScores(values=-ranks.astype(np.float64), order="rank")
    scores = scores_of(frame["score"])
    order = "ascending" if score_order == "ascending" else None
    sign = -1 if score_order == "ascending" else 1  # makes larger scores better
    if (sign * scores == -np.inf).any() and not np.isnan(scores).any():
        scores = sign * _scores_from_order(query, sign * scores)
        order = "rank"
    is_finite = np.isfinite(scores)
    if not is_finite.all():
        row = int(is_finite.argmin())
        doc, name = frame["doc_id"][row], frame["query_id"][row]
        message = (
            f"query {name!r}, document {doc!r}: expected a finite number as score, "
            f"got {shorten(frame['score'][row])}"
        )
        raise origin.fault(f"{message}; {GIVEN_ORDER_HINT}", row)
    if score_order in (None, "ascending"):
        # A distance that is read as a similarity would reverse every finding. So the scores must
        # not rise along the ranks in most lists, nor fall if the user says that they ascend.
        message = order_fault(list_directions(query, ranks, scores), score_order)
        if message:
            raise origin.fault(message)
    return EntryScores(values=sign * scores, order=order)


def _scores_from_order(query: Int64, scores: Float) -> Float:
    """Replace scores, some of which are minus infinity, by −1, −2, … in the order of each list.

    Equal scores stay equal. If a score is plus infinity, all are returned unchanged, and the caller
    refuses them: an infinite best score is a fault of the engine.
    """
    if (scores == np.inf).any():
        return scores
    frame = pl.DataFrame({"query": query, "score": scores})
    rank = pl.col("score").rank("dense", descending=True).over("query")
    return -frame.select(rank)["score"].to_numpy().astype(np.float64)


def first_repeated(queries: Int64, docs: Int64 | Int32) -> int | None:
    """Return the first entry whose query and document occurred before; None if there is none.

    Every run is checked when it is made, and may have millions of entries. So a fast check comes
    first, which the usual run passes. Only if that fails, a slower search finds the entry.
    `queries` and `docs` have the number of each entry's query and document.
    """
    queries = np.asarray(queries, dtype=np.int64)
    if not _may_have_repeated(queries, docs):
        return None
    # A number for each pair of query and document. Equal numbers are neighbours once sorted, and a
    # stable sort leaves them in the order of their entries.
    pair_numbers = queries * (int(docs.max(initial=0)) + 1) + docs
    order = np.argsort(pair_numbers, kind="stable")
    repeated = order[1:][np.diff(pair_numbers[order]) == 0]
    return int(repeated.min()) if len(repeated) else None


def _may_have_repeated(queries: Int64, docs: Int64 | Int32) -> bool:
    """Return whether a query has a document twice, or its entries do not follow each other.

    The entries of a few queries are sorted at a time, because short arrays of small numbers sort
    four times as fast. That works only if the entries of each query follow each other; if they do
    not, the slower search decides.
    """
    if (np.diff(queries) < 0).any():
        return True
    document_count = int(docs.max(initial=0)) + 1
    start = 0
    while start < len(docs):
        end = _end_of_block(queries, start)
        # Within a block queries are numbered from 0, so that the numbers of pairs stay small.
        block_queries = queries[start:end] - queries[start]
        pair_numbers = block_queries * document_count + docs[start:end]
        if document_count * _QUERIES_PER_SORT <= 1 << 32:
            pair_numbers = pair_numbers.astype(np.uint32)
        pair_numbers.sort()
        if (pair_numbers[1:] == pair_numbers[:-1]).any():
            return True
        start = end
    return False


def _end_of_block(queries: Int64, start: int) -> int:
    """Return where the block of entries to sort together ends that begins with entry `start`.

    A block has all entries of its queries. It is as large as `_ENTRIES_PER_SORT` and
    `_QUERIES_PER_SORT` allow, and has at least one query.
    """
    first_query = queries[start]
    end = int(np.searchsorted(queries, first_query + _QUERIES_PER_SORT))
    end = min(start + _ENTRIES_PER_SORT, end)
    if end >= len(queries):
        return end
    # `end` may be in the middle of a query, which then goes into the next block.
    start_of_last_query = int(np.searchsorted(queries, queries[end]))
    if start_of_last_query > start:
        return start_of_last_query
    return int(np.searchsorted(queries, first_query, side="right"))
