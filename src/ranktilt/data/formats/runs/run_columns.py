"""Make the entries of a run from columns of tables and JSON: ids, scores and ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from ranktilt.data.formats.base import RunFile
from ranktilt.data.formats.runs.repeats import REPEAT, RepeatColumn, repeat_labels
from ranktilt.data.formats.runs.score_order import IN_GIVEN_ORDER
from ranktilt.data.formats.tables.cells import NumberColumn
from ranktilt.data.formats.tables.column_names import DISTANCES, snake_case
from ranktilt.errors import DataError, counted, shorten

_CLEAR_SHARE = 0.9
"""Share of the steps within lists that must rise, or fall, to tell the order of distances."""


@dataclass(frozen=True, kw_only=True)
class RunColumns:
    """The columns of a run's file, a row for each entry."""

    path: Path
    """Path of the file."""
    query: pl.Series
    """Ids; null for a missing one."""
    document: pl.Series
    """Ids of documents."""
    score: NumberColumn
    """Scores; without values where the file has none."""
    rank: NumberColumn
    """Ranks; without values where the file has none."""
    names: Mapping[str, str]
    """Name of each column in the file."""
    lines: Sequence[int] = ()
    """Line of each entry; empty if unknown."""
    repeat: pl.Series | None = None
    """What may be the repeat of each entry, as texts; None where no column numbers repeats."""
    repeat_column: RepeatColumn | None = None
    """The column of `repeat`."""
    queries: Sequence[str] | None = None
    """All queries of a file of lists, which may name queries without entries; None for others.

    Without ranks, the entries of such a file are ranked by their place in the list.
    """

    @property
    def repeat_name(self) -> str:
        """Name of the column that numbers repeats; empty without one."""
        return "" if self.repeat_column is None else self.repeat_column.name

    def with_repeats(self, labels: pl.Series, column: RepeatColumn) -> RunColumns:
        """Return the columns with what may be the repeat of each entry."""
        return replace(self, repeat=labels, repeat_column=column)

    def fault(self, row: int, expected: str, numbers: NumberColumn, hint: str = "") -> DataError:
        """Make the error for a number that is none."""
        message = f"expected {expected}, got {shorten(numbers.raw[row])}{hint}"
        if self.lines:
            return DataError(self.path, message, line=self.lines[row])
        return DataError(self.path, f"document {row + 1}: {message}")


def run_of_columns(columns: RunColumns, order: str | None, read_as: str) -> RunFile:
    """Make a run's entries; without scores they are ordered by rank, without ranks by place.

    Parameters
    ----------
    read_as : str
        What was understood of the file, without the scores, which are added.
    """
    by_score = order != "rank" and columns.score.is_given
    by_rank = columns.rank.is_given
    if by_score:
        _require_scores(columns)
    ranks = columns.rank.whole_numbers
    if not by_score and by_rank and ranks.null_count():
        row = ranks.is_null().arg_max() or 0
        raise columns.fault(row, "a whole number as rank (of all, or of none)", columns.rank)
    has_places = columns.queries is not None or not by_score
    repeats = _repeats(columns)
    if not by_rank and has_places:
        ranks = _place_ranks(columns.query, repeats)
    frame = pl.DataFrame(
        {
            "query_id": columns.query,
            "doc_id": columns.document,
            "score": columns.score.values if by_score else _no_numbers(len(columns.query)),
            "rank": ranks,
        }
    )
    if repeats is not None:
        frame = frame.with_columns(repeats.alias(REPEAT))
        read_as += f", {columns.repeat_name} (repeats)"
    frame, lines, skipped = without_empty_ids(columns.path, frame, columns.lines)
    if (
        by_score
        and order is None
        and snake_case(columns.names["score"].rpartition(".")[2]) in DISTANCES
    ):
        order = _order_of_distances(columns, frame)
        read_as += ", smaller is better" if order == "ascending" else ""
    every = columns.queries
    return RunFile(
        frame=frame,
        queries=frame["query_id"].unique(maintain_order=True)
        if every is None
        else pl.Series(every, dtype=pl.String),
        lines=lines,
        score_order=order if by_score else "rank",
        read_as=read_as,
        skipped=skipped,
    )


def without_empty_ids(
    path: Path, frame: pl.DataFrame, lines: Sequence[int]
) -> tuple[pl.DataFrame, Sequence[int], int]:
    """Leave out rows without a query or a document; `DataError` where these are more than half.

    Returns the frame, the lines that are left, and how many were left out.
    """
    has_ids = frame["query_id"].is_not_null() & frame["doc_id"].is_not_null()
    skipped = int((~has_ids).sum())
    if not skipped:
        return frame, lines, 0
    if 2 * skipped > frame.height:
        row = int((~has_ids).arg_max() or 0)
        where = {"line": lines[row]} if len(lines) else {}
        noun = "query" if frame["query_id"][row] is None else "document"
        key = {"query": "query", "document": "id"}[noun]  # as a user names the column
        entries = counted(skipped, "entry", "entries")
        message = (
            f"no {noun} id in {entries} of {frame.height:,}; name its column: FILE:{key}=COLUMN"
        )
        raise DataError(path, message, **where)
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
            int(is_wrong.arg_max() or 0), expected, columns.score, f"; {IN_GIVEN_ORDER}"
        )


def _repeats(columns: RunColumns) -> pl.Series | None:
    """Return the repeat of each entry; None where the file holds no repeats."""
    if columns.repeat is None or columns.repeat_column is None:
        return None
    entries = pl.DataFrame(
        {"query_id": columns.query, "doc_id": columns.document, REPEAT: columns.repeat}
    )
    return repeat_labels(columns.path, entries, columns.repeat_column)


def _place_ranks(query: pl.Series, repeats: pl.Series | None = None) -> pl.Series:
    """Return the place of each entry among those of its query, and of its repeat, from 1."""
    keys = [query.alias("query")] + ([] if repeats is None else [repeats.alias(REPEAT)])
    frame = pl.DataFrame(keys)
    ranks = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over(frame.columns)
    return frame.select(ranks.alias("rank"))["rank"]


def _no_numbers(count: int) -> pl.Series:
    """Return a column without values."""
    return pl.repeat(None, count, dtype=pl.Float64, eager=True)


def _order_of_distances(columns: RunColumns, frame: pl.DataFrame) -> str | None:
    """Return the score order of distances, by the order of their lists; `DataError` if unclear."""
    score = pl.col("score")
    steps = frame.select(step=score.diff().over("query_id"))["step"]
    up, down = int((steps > 0).sum()), int((steps < 0).sum())
    if not up + down:
        return None
    if up >= _CLEAR_SHARE * (up + down):
        return "ascending"
    if down >= _CLEAR_SHARE * (up + down):
        return None
    name = columns.names["score"]
    hint = "say which with --score-order ascending (smaller is better) or score (larger is better)"
    raise DataError(columns.path, f"{name!r} neither rises nor falls down the file; {hint}")
