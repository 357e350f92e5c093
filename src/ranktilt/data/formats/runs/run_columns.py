"""Make the entries of a run from columns of tables and JSON: ids, scores and ranks.

An *entry* is one document in the list of one query. The *repeats* of a query are several rankings
of it by one engine, which a column may number. The readers of tables, of Parquet and of answers in
JSON end in `run_of_columns`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from ranktilt.data.formats.base import RunFile
from ranktilt.data.formats.runs.repeats import REPEAT, RepeatColumn, repeat_labels
from ranktilt.data.formats.runs.score_order import GIVEN_ORDER_HINT
from ranktilt.data.formats.tables.cells import NumberColumn
from ranktilt.data.formats.tables.column_names import DISTANCES, NOUNS, snake_case
from ranktilt.errors import DataError, counted, shorten

_CLEAR_SHARE = 0.9
"""Share of the steps within lists that must rise, or fall, to tell the order of distances.

A step goes from one entry of a list to the next.
"""


@dataclass(frozen=True, kw_only=True)
class RunColumns:
    """The columns of a run's file, a row for each entry."""

    path: Path
    """Path of the file."""
    query: pl.Series
    """Query's id of each entry; null if it is missing."""
    document: pl.Series
    """Document's id of each entry; null if it is missing."""
    score: NumberColumn
    """Score of each entry; without values if the file has no scores."""
    rank: NumberColumn
    """Rank of each entry; without values if the file has no ranks."""
    names: Mapping[str, str]
    """Name in the file of each column: ``query``, ``document``, ``score``, ``rank``."""
    lines: Sequence[int] = ()
    """Line of each entry; empty if unknown."""
    repeat: pl.Series | None = None
    """Values of `repeat_column`, as texts; None without such a column."""
    repeat_column: RepeatColumn | None = None
    """The column that may number repeats; None if there is no such column."""
    queries: Sequence[str] | None = None
    """All queries of a file of lists, which may name queries without entries; None for others.

    Without ranks, the entries of such a file are ranked by their place in the list.
    """

    @property
    def repeat_name(self) -> str:
        """Name of the column that may number repeats; empty if there is no such column."""
        return "" if self.repeat_column is None else self.repeat_column.name

    def with_repeats(self, labels: pl.Series, column: RepeatColumn) -> RunColumns:
        """Return the columns with one more, which may number repeats; `labels` are its values."""
        return replace(self, repeat=labels, repeat_column=column)

    def fault(self, row: int, expected: str, numbers: NumberColumn, hint: str = "") -> DataError:
        """Return the error for a value of `numbers` that is not as expected."""
        message = f"expected {expected}, got {shorten(numbers.raw[row])}{hint}"
        if self.lines:
            return DataError(self.path, message, line=self.lines[row])
        return DataError(self.path, f"document {row + 1}: {message}")


def run_of_columns(columns: RunColumns, order: str | None, read_as: str) -> RunFile:
    """Make a run's entries; without scores they are ordered by rank, without ranks by place.

    Parameters
    ----------
    columns : RunColumns
        The columns of the file.
    order : str or None
        How the user orders scores: ``score``, ``ascending`` or ``rank``; None if the user does not
        say so.
    read_as : str
        Description of how the file is read. This function adds whether there are repeats, and
        whether smaller scores are better.
    """
    uses_scores = order != "rank" and columns.score.is_given
    has_ranks = columns.rank.is_given
    if uses_scores:
        _require_scores(columns)
    ranks = columns.rank.whole_numbers
    if not uses_scores and has_ranks and ranks.null_count():
        row = ranks.is_null().arg_max() or 0
        raise columns.fault(row, "a whole number as rank (of all, or of none)", columns.rank)
    repeats = _repeats(columns)
    # The entries of lists are ranked by place even if they have scores, which are compared later.
    are_places_ranks = columns.queries is not None or not uses_scores
    if not has_ranks and are_places_ranks:
        ranks = _place_ranks(columns.query, repeats)
    frame = pl.DataFrame(
        {
            "query_id": columns.query,
            "doc_id": columns.document,
            "score": columns.score.values if uses_scores else _no_numbers(len(columns.query)),
            "rank": ranks,
        }
    )
    if repeats is not None:
        frame = frame.with_columns(repeats.alias(REPEAT))
        read_as += f", {columns.repeat_name} (repeats)"
    frame, lines, skipped = without_empty_ids(columns.path, frame, columns.lines)
    if uses_scores and order is None and _are_distances(columns):
        order = _order_of_distances(columns, frame)
        read_as += ", smaller is better" if order == "ascending" else ""
    queries = frame["query_id"].unique(maintain_order=True)
    if columns.queries is not None:
        queries = pl.Series(columns.queries, dtype=pl.String)
    return RunFile(
        frame=frame,
        queries=queries,
        lines=lines,
        score_order=order if uses_scores else "rank",
        read_as=read_as,
        skipped=skipped,
    )


def _are_distances(columns: RunColumns) -> bool:
    """Return whether scores are distances, by the name of their column or the end of its path."""
    return snake_case(columns.names["score"].rpartition(".")[2]) in DISTANCES


def without_empty_ids(
    path: Path, frame: pl.DataFrame, lines: Sequence[int]
) -> tuple[pl.DataFrame, Sequence[int], int]:
    """Leave out rows without a query or a document; `DataError` if these are more than half.

    `lines` has the line of each row, or is empty. Returns the remaining rows, their lines, and the
    number of rows that were left out.
    """
    has_ids = frame["query_id"].is_not_null() & frame["doc_id"].is_not_null()
    skipped = int((~has_ids).sum())
    if not skipped:
        return frame, lines, 0
    if 2 * skipped > frame.height:
        row = int((~has_ids).arg_max() or 0)
        noun = "query" if frame["query_id"][row] is None else "document"
        entries = counted(skipped, "entry", "entries")
        message = (
            f"no {noun} id in {entries} of {frame.height:,}; name its column: "
            f"FILE:{NOUNS[noun]}=COLUMN"
        )
        raise DataError(path, message, line=lines[row] if len(lines) else None)
    if len(lines):
        lines = np.asarray(lines)[has_ids.to_numpy()].tolist()
    return frame.filter(has_ids), lines, skipped


def _require_scores(columns: RunColumns) -> None:
    """Refuse a score that is missing or not finite."""
    values = columns.score.values
    is_wrong = values.is_null() | values.is_nan() | (values == np.inf)
    if is_wrong.any():
        expected = "a finite number as score (of all documents, or of none)"
        raise columns.fault(
            int(is_wrong.arg_max() or 0), expected, columns.score, f"; {GIVEN_ORDER_HINT}"
        )


def _repeats(columns: RunColumns) -> pl.Series | None:
    """Return the repeat of each entry; None if the file holds no repeats."""
    if columns.repeat is None or columns.repeat_column is None:
        return None
    entries = pl.DataFrame(
        {"query_id": columns.query, "doc_id": columns.document, REPEAT: columns.repeat}
    )
    return repeat_labels(columns.path, entries, columns.repeat_column)


def _place_ranks(query: pl.Series, repeats: pl.Series | None = None) -> pl.Series:
    """Return the place of each entry, from 1, among those of its query and its repeat."""
    columns = [query.alias("query")]
    if repeats is not None:
        columns.append(repeats.alias(REPEAT))
    frame = pl.DataFrame(columns)
    ranks = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over(frame.columns)
    return frame.select(ranks.alias("rank"))["rank"]


def _no_numbers(count: int) -> pl.Series:
    """Return a column without values."""
    return pl.repeat(None, count, dtype=pl.Float64, eager=True)


def _order_of_distances(columns: RunColumns, frame: pl.DataFrame) -> str | None:
    """Return the score order of distances by the order of the entries in their lists.

    It is ``ascending`` if distances rise, so that smaller ones are better, and None (larger is
    better) if they fall. `DataError` if they do neither.
    """
    list_names = [name for name in ("query_id", REPEAT) if name in frame.columns]
    steps = frame.select(step=pl.col("score").diff().over(list_names))["step"]
    rising, falling = int((steps > 0).sum()), int((steps < 0).sum())
    if rising + falling == 0:
        return None
    if rising >= _CLEAR_SHARE * (rising + falling):
        return "ascending"
    if falling >= _CLEAR_SHARE * (rising + falling):
        return None
    name = columns.names["score"]
    hint = "say which with --score-order ascending (smaller is better) or score (larger is better)"
    raise DataError(columns.path, f"{name!r} neither rises nor falls down the file; {hint}")
