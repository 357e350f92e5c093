"""Cells from results: which rows of a result's frames a paper's table shows, and by which keys.

The *frames* of a result are its parts as data frames, such as ``means``. A *cell* is one number of
a table. A *key* is a property of a cell that gives its position in the table, such as ``system``
(the ranker) or ``measure``. The *source* of documents is who wrote them, and a *split* is a named
set of judgments, such as ``test``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ranktilt.errors import UserError
from ranktilt.reporting.frames import frames
from ranktilt.reporting.layouts.names import (
    first_stage,
    generator,
    is_reranked,
    system_names,
    temperature,
)
from ranktilt.reporting.provenance import folder

KEYS = (
    "dataset",
    "generator",
    "temperature",
    "collection",
    "system",
    "condition",
    "target",
    "measure",
)
"""The keys of a cell, which together give its position in the table."""
Column = str | pl.Expr
"""The name of a column, or an expression of several."""
_RESULT_FIELDS = ("reference", "model", "protected", "unprotected")
"""Fields of a result that become columns, with the same value in all of its rows."""


@dataclass(frozen=True, kw_only=True)
class PaperCell:
    """One number of one table; a key that the table does not use is empty."""

    table: str
    """Name of a layout, such as ``dai-3``."""
    dataset: str = ""
    """The collection, as the papers call it."""
    generator: str = ""
    """The model that wrote the LLM text."""
    temperature: str = ""
    """The temperature at which that model wrote."""
    collection: str = ""
    """``mixed`` or ``single-source``."""
    system: str = ""
    """The ranker, as the papers call it."""
    condition: str = ""
    """Which queries or pairs count, such as ``neutral`` or ``relevant``."""
    target: str = ""
    """The group whose documents the mean is over, or ``relative_delta``."""
    measure: str = ""
    """The measure."""
    value: float
    """The number as it is printed, in percent or from 0 to 1, unrounded; NaN where undefined."""
    text: str = ""
    """The printed number."""
    mark: str = ""
    """Mark after the number, such as ``†``."""
    note: str = ""
    """Note on the number, such as where it differs from the paper's; empty for none."""

    @property
    def cell_key(self) -> tuple[str, ...]:
        """The table and the values of all keys, which no two cells share."""
        return (self.table, *self.at(KEYS))

    def at(self, keys: Sequence[str]) -> tuple[str, ...]:
        """Return the cell's values of some keys."""
        return tuple(str(getattr(self, key)) for key in keys)


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which rows of one part of a result's frames are cells of a table.

    Frames are *enriched* by columns that are computed from others: ``dataset``, ``by`` and
    ``split`` of the result; ``system`` (the papers' name of the ``run``), ``is_reranked`` and
    ``first_stage``; ``generator`` and ``temperature`` of the model that wrote the ``source`` or,
    without one, the group ``b``.
    """

    result: type[Any] | tuple[type[Any], ...]
    """The kind of result, such as `ranktilt.Audit`."""
    part: str | Callable[[Any], pl.DataFrame]
    """The part of `result.frame`, such as ``means``, or a function from the result to a frame."""
    keys: Mapping[str, Column]
    """The column that gives each key, such as ``{"system": "system", "measure": "measure"}``."""
    value: Column = "value"
    """Column of the number."""
    where: pl.Expr | None = None
    """The rows that are cells; all by default. A row with null for one of the keys is no cell."""
    home: pl.Expr | None = None
    """The rows that are printed in this table when all tables of a paper are made at once.

    Some tables repeat numbers of others; each number then is in its own table only. All rows by
    default.
    """
    first: bool = False
    """Whether only the first of several rows with the same keys is a cell; else it is an error."""
    mark: Column | None = None
    """Column of marks, such as ``†``; None for a table without marks."""

    def frame(self, result: Any) -> pl.DataFrame:
        """Return the enriched rows; none if the result is of another kind or lacks the part."""
        if not isinstance(result, self.result):
            return pl.DataFrame()
        if isinstance(self.part, str):
            return part_of(result, self.part)
        return enriched(self.part(result), result)

    def _rows_of_table(self, result: Any, table: str, *, at_home: bool) -> pl.DataFrame:
        """Return `rows`; `UserError` if the layout names a column that does not exist."""
        with _blaming_layout(table, self.frame(result)):
            return self.rows(result, at_home=at_home)

    def rows(self, result: Any, *, at_home: bool) -> pl.DataFrame:
        """Return the enriched rows that are cells; with `at_home`, only those in `home`."""
        frame = self.frame(result)
        if frame.height and self.where is not None:
            frame = frame.filter(self.where)
        if frame.height and at_home and self.home is not None:
            frame = frame.filter(self.home)
        return frame

    def cells(
        self, result: Any, table: str, *, scale: float = 1.0, at_home: bool = False
    ) -> Iterator[PaperCell]:
        """Yield a table's cells from a result, in the order of its rows.

        Values are multiplied by `scale`; with `at_home`, only the rows in `home` are cells.
        """
        rows = self._rows_of_table(result, table, at_home=at_home)
        if not rows.height:
            return
        columns = {key: _column(column).cast(pl.String) for key, column in self.keys.items()}
        value = _column(self.value).cast(pl.Float64).alias("value")
        mark = pl.lit("") if self.mark is None else _column(self.mark)
        with _blaming_layout(table, rows):
            cells = rows.select(value, mark.fill_null("").alias("mark"), **columns)
        cells = cells.drop_nulls(list(columns))
        if self.first:
            cells = cells.unique(list(columns), keep="first", maintain_order=True)
        for row in cells.iter_rows(named=True):
            number = row.pop("value")
            yield PaperCell(
                table=table, value=scale * (np.nan if number is None else number), **row
            )


@contextmanager
def _blaming_layout(table: str, frame: pl.DataFrame) -> Iterator[None]:
    """Raise a `UserError` that names the layout where it names a column that does not exist."""
    try:
        yield
    except pl.exceptions.ColumnNotFoundError as error:
        columns = ", ".join(sorted(frame.columns))
        column = str(error).partition(";")[0].removeprefix("unable to find column ")
        raise UserError(f"layout {table}: no column {column}; there are {columns}") from error


_recent: list[tuple[Any, dict[str, pl.DataFrame]]] = []
"""The last results that were laid out, each with its frames, the latest at the end.

Several tables are made of one result, whose frames take long to make.
"""
_MOST_RECENT = 8
"""Most results whose frames are kept in memory."""


def _frames(result: Any) -> dict[str, pl.DataFrame]:
    """Return the frames of a result, from memory where it is one of the last that were laid out."""
    for recent_result, parts in _recent:
        if recent_result is result:
            return parts
    parts = frames(result)
    _recent.append((result, parts))
    del _recent[:-_MOST_RECENT]
    return parts


def part_of(result: Any, part: str) -> pl.DataFrame:
    """Return an enriched part of a result; an empty frame where it has none."""
    frame = _frames(result).get(part)
    return pl.DataFrame() if frame is None else enriched(frame, result)


def enriched(frame: pl.DataFrame, result: Any) -> pl.DataFrame:
    """Add the columns that are computed from others, unless a frame has them already."""
    if not frame.height:
        return frame
    columns = _result_columns(result) | _run_columns(frame) | _source_columns(frame, result)
    return frame.with_columns(
        *(values.alias(name) for name, values in columns.items() if name not in frame.columns)
    )


def _result_columns(result: Any) -> dict[str, pl.Expr]:
    """Return the columns that have the same value in all rows of a result."""
    # A `LoadedAudit` holds the audit and its collection.
    spec = getattr(result, "audit", result).spec
    collection = spec.get("collection")
    split = spec.get("split")
    if isinstance(collection, Mapping):
        split = collection.get("split", split)
    values = {"dataset": folder(spec), "by": spec.get("by"), "split": split}
    values |= {name: getattr(result, name, None) for name in _RESULT_FIELDS}
    return {
        name: pl.lit(None if value is None else str(value), pl.String)
        for name, value in values.items()
    }


def _run_columns(frame: pl.DataFrame) -> dict[str, pl.Series]:
    """Return the columns that are computed from the column ``run``."""
    if "run" not in frame.columns:
        return {}
    runs = frame["run"].cast(pl.String)
    names = system_names(run for run in dict.fromkeys(runs) if run is not None)
    return {
        "system": pl.Series([names.get(run, run) for run in runs], dtype=pl.String),
        "is_reranked": pl.Series([is_reranked(run or "") for run in runs]),
        "first_stage": pl.Series([first_stage(run or "") for run in runs]),
    }


def _source_columns(frame: pl.DataFrame, result: Any) -> dict[str, pl.Series]:
    """Return the model and temperature of each row's ``source``, or else of its group ``b``."""
    column = next((name for name in ("source", "b") if name in frame.columns), None)
    if column is None:
        return {}
    # `SourceAudits` hold the model and temperature of each source. Other results have only the
    # source's name, which often says both.
    recorded_generators = {
        source.source: (source.series, temperature(source.temperature))
        for source in getattr(result, "sources", ())
        if hasattr(source, "series")
    }
    sources = [source or "" for source in frame[column].cast(pl.String)]
    generators = [recorded_generators.get(source) or generator(source) for source in sources]
    return {
        "generator": pl.Series([model for model, _ in generators], dtype=pl.String),
        "temperature": pl.Series([degrees for _, degrees in generators], dtype=pl.String),
    }


def _column(column: Column) -> pl.Expr:
    """Return a column as an expression."""
    return pl.col(column) if isinstance(column, str) else column
