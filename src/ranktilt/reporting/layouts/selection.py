"""Cells from results: which rows of a result's frames a table shows, and where each stands."""

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
"""The keys that say where in its table a cell stands."""
Column = str | pl.Expr
"""The name of a column, or an expression of several."""
_RESULT_FIELDS = ("reference", "model", "protected", "unprotected")
"""Fields of a result that become columns, with the same value in all of its rows."""


@dataclass(frozen=True, kw_only=True)
class PaperCell:
    """One number of one table; a key that a table does not have is empty."""

    table: str
    """Name of a layout, such as ``dai-3``."""
    dataset: str = ""
    """The collection, as the papers call it."""
    generator: str = ""
    """The model that wrote the LLM's side."""
    temperature: str = ""
    """The temperature at which that model wrote."""
    collection: str = ""
    """``mixed`` or ``single-source``."""
    system: str = ""
    """The ranker, as the papers call it."""
    condition: str = ""
    """Which queries or pairs count, such as ``neutral`` or ``relevant``."""
    target: str = ""
    """The group whose documents count, or ``relative_delta``."""
    measure: str = ""
    """The measure."""
    value: float
    """The number on the scale of the print, percent or 0 to 1; NaN where undefined."""
    text: str = ""
    """The number as it is printed."""
    mark: str = ""
    """What is printed behind it, such as ``†``."""
    note: str = ""
    """What to know of this number."""

    @property
    def cell_key(self) -> tuple[str, ...]:
        """Table and keys, which no two cells share."""
        return (self.table, *self.at(KEYS))

    def at(self, keys: Sequence[str]) -> tuple[str, ...]:
        """Return the values of some keys."""
        return tuple(str(getattr(self, key)) for key in keys)


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which rows of one part of a result's frames are cells of a table.

    A row is enriched by columns that follow from others: ``dataset``, ``by`` and ``split`` of the
    result; ``system`` (the papers' name of its ``run``), ``is_reranked`` and ``first_stage``;
    ``generator`` and ``temperature`` of the model that wrote its ``source``, or else its group
    ``b``.
    """

    result: type[Any] | tuple[type[Any], ...]
    """The kind of result, such as `ranktilt.Audit`."""
    part: str | Callable[[Any], pl.DataFrame]
    """The part of `result.frame`, such as ``means``, or a function from the result to a frame."""
    keys: Mapping[str, Column]
    """A column for each key, such as ``{"system": "system", "measure": "measure"}``."""
    value: Column = "value"
    """Column of the number."""
    where: pl.Expr | None = None
    """The rows that are cells; all by default. A row that lacks one of the keys is no cell."""
    home: pl.Expr | None = None
    """The rows that stand in this table when all tables of a paper are made at once.

    Some tables repeat numbers of others; each number then stands only in its own table. All rows by
    default.
    """
    first: bool = False
    """Whether the first of several rows with the same keys counts; they are refused otherwise."""
    mark: Column | None = None
    """A column of marks, such as ``†``."""

    def frame(self, result: Any) -> pl.DataFrame:
        """Return the enriched rows; none if the result is of another kind or lacks the part."""
        if not isinstance(result, self.result):
            return pl.DataFrame()
        if isinstance(self.part, str):
            return part_of(result, self.part)
        return enriched(self.part(result), result)

    def _rows_of_table(self, result: Any, table: str, *, at_home: bool) -> pl.DataFrame:
        """Return the rows that are cells; `UserError` if the layout names an unknown column."""
        with _named_columns(table, self.frame(result)):
            return self.rows(result, at_home=at_home)

    def rows(self, result: Any, *, at_home: bool) -> pl.DataFrame:
        """Return the rows that are cells; with `at_home` only those in `home`."""
        frame = self.frame(result)
        if frame.height and self.where is not None:
            frame = frame.filter(self.where)
        if frame.height and at_home and self.home is not None:
            frame = frame.filter(self.home)
        return frame

    def cells(
        self, result: Any, table: str, *, scale: float = 1.0, at_home: bool = False
    ) -> Iterator[PaperCell]:
        """Yield the cells of a result in a table, in the order of its rows, times `scale`."""
        rows = self._rows_of_table(result, table, at_home=at_home)
        if not rows.height:
            return
        columns = {key: _column(column).cast(pl.String) for key, column in self.keys.items()}
        value = _column(self.value).cast(pl.Float64).alias("value")
        mark = pl.lit("") if self.mark is None else _column(self.mark)
        with _named_columns(table, rows):
            chosen = rows.select(value, mark.fill_null("").alias("mark"), **columns)
        chosen = chosen.drop_nulls(list(columns))
        if self.first:
            chosen = chosen.unique(list(columns), keep="first", maintain_order=True)
        for row in chosen.iter_rows(named=True):
            number = row.pop("value")
            yield PaperCell(
                table=table, value=scale * (np.nan if number is None else number), **row
            )


@contextmanager
def _named_columns(table: str, frame: pl.DataFrame) -> Iterator[None]:
    """Blame the layout, and not the result, for naming a column that does not exist."""
    try:
        yield
    except pl.exceptions.ColumnNotFoundError as error:
        columns = ", ".join(sorted(frame.columns))
        column = str(error).partition(";")[0].removeprefix("unable to find column ")
        raise UserError(f"layout {table}: no column {column}; there are {columns}") from error


_recent: list[tuple[Any, dict[str, pl.DataFrame]]] = []
"""The last results that were laid out, each with its frames, the latest at the end.

Every table of a result reads its frames, which take long to make.
"""
_MOST_RECENT = 8
"""Most results whose frames are kept."""


def _frames(result: Any) -> dict[str, pl.DataFrame]:
    """Return the enriched frames of a result; those of recent results are kept."""
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
    """Add the columns that follow from others and that a frame lacks."""
    if not frame.height:
        return frame
    added = _of_result(result) | _of_runs(frame) | _of_sources(frame, result)
    return frame.with_columns(
        *(values.alias(name) for name, values in added.items() if name not in frame.columns)
    )


def _of_result(result: Any) -> dict[str, pl.Expr]:
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


def _of_runs(frame: pl.DataFrame) -> dict[str, pl.Series]:
    """Return the columns that follow from the run of a row."""
    if "run" not in frame.columns:
        return {}
    runs = frame["run"].cast(pl.String)
    names = system_names(run for run in dict.fromkeys(runs) if run is not None)
    return {
        "system": pl.Series([names.get(run, run) for run in runs], dtype=pl.String),
        "is_reranked": pl.Series([is_reranked(run or "") for run in runs]),
        "first_stage": pl.Series([first_stage(run or "") for run in runs]),
    }


def _of_sources(frame: pl.DataFrame, result: Any) -> dict[str, pl.Series]:
    """Return the columns that follow from the source of a row."""
    column = next((name for name in ("source", "b") if name in frame.columns), None)
    if column is None:
        return {}
    # `SourceAudits` hold the model and temperature of each source. Other results have only the
    # source's name, which often says both.
    recorded = {
        source.source: (source.series, temperature(source.temperature))
        for source in getattr(result, "sources", ())
        if hasattr(source, "series")
    }
    sources = [name or "" for name in frame[column].cast(pl.String)]
    origins = [recorded.get(source) or generator(source) for source in sources]
    return {
        "generator": pl.Series([model for model, _ in origins], dtype=pl.String),
        "temperature": pl.Series([degrees for _, degrees in origins], dtype=pl.String),
    }


def _column(column: Column) -> pl.Expr:
    """Return a column as an expression."""
    return pl.col(column) if isinstance(column, str) else column
