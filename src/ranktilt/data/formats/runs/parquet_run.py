"""Runs as Parquet, whose columns have names and types, as ranx writes them.

A column may number *repeats*, that is, several rankings of each query by one engine.
"""

from __future__ import annotations

import polars as pl

from ranktilt.data.formats.base import RunFile, RunRequest
from ranktilt.data.formats.data_file import DataFile
from ranktilt.data.formats.ids import id_texts
from ranktilt.data.formats.runs.repeats import repeat_column
from ranktilt.data.formats.runs.run_columns import RunColumns, run_of_columns
from ranktilt.data.formats.runs.table_run import columns_read
from ranktilt.data.formats.tables.cells import NumberColumn
from ranktilt.data.formats.tables.column_names import (
    RUN_COLUMNS,
    find_columns,
    require_columns,
    require_distinct,
)
from ranktilt.data.formats.tables.parquet import as_parquet
from ranktilt.errors import UserError, error_in_file


def sniff(file: DataFile) -> bool:
    """Return whether a file is Parquet."""
    return file.binary == "Parquet"


def read(file: DataFile, request: RunRequest) -> RunFile:
    """Read a table of results."""
    with as_parquet(file.path):  # polars' exceptions become a `DataError` that names the file
        # Without `glob=False`, polars reads brackets or a star in the file's name as a pattern.
        frame = pl.read_parquet(file.path, glob=False)
    try:
        columns = find_columns(frame.columns, RUN_COLUMNS, file.columns)
        require_distinct(frame.columns, columns)
        require_columns(columns, ("query", "document"), form="Parquet", names=frame.columns)
        repeat = repeat_column(frame.columns, file.columns)
        query, document = (
            nullable_ids(frame[columns[noun]], f"column {columns[noun]!r}")
            for noun in ("query", "document")
        )
    except UserError as error:
        raise error_in_file(file.path, error) from error
    numbers = {
        noun: NumberColumn.from_series(frame[columns[noun]])
        if noun in columns
        else NumberColumn.none(frame.height)
        for noun in ("score", "rank")
    }
    run_columns = RunColumns(
        path=file.path,
        query=query,
        document=document,
        score=numbers["score"],
        rank=numbers["rank"],
        names=columns,
    )
    if repeat is not None:
        run_columns = run_columns.with_repeats(frame[repeat.name].cast(pl.String), repeat)
    read_as = f"Parquet: {', '.join(columns_read(run_columns, request.score_order))}"
    return run_of_columns(run_columns, request.score_order, read_as)


def nullable_ids(values: pl.Series, noun: str) -> pl.Series:
    """Return ids of a typed column as strings; null for missing and empty ones.

    `noun` names the column in an error.
    """
    ids = id_texts(values, noun)
    return ids.set(ids == "", None)
