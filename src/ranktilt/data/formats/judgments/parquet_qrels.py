"""Judgments as Parquet, which ranx writes and the data sets of the Hugging Face hub have.

A judge's *confidence*, how sure it is of a grade, is read too if a column has it.
"""

from __future__ import annotations

import polars as pl

from ranktilt.data.formats.base import JudgmentFile
from ranktilt.data.formats.data_file import DataFile
from ranktilt.data.formats.judgments.judgment_columns import judgments_of_columns
from ranktilt.data.formats.runs.parquet_run import nullable_ids
from ranktilt.data.formats.tables.cells import NumberColumn
from ranktilt.data.formats.tables.column_names import (
    CONFIDENCE,
    QRELS_COLUMNS,
    find_columns,
    require_columns,
    require_distinct,
)
from ranktilt.data.formats.tables.parquet import as_parquet
from ranktilt.errors import UserError, error_in_file

_NEEDED_COLUMNS = ("query", "document", "grade")
"""Columns that judgments need."""


def sniff(file: DataFile) -> bool:
    """Return whether a file is Parquet."""
    return file.binary == "Parquet"


def read(file: DataFile) -> JudgmentFile:
    """Read a table of judgments."""
    with as_parquet(file.path):  # polars' exceptions become a `DataError` that names the file
        # Without `glob=False`, polars reads brackets or a star in the file's name as a pattern.
        frame = pl.read_parquet(file.path, glob=False)
    valid_names = {**QRELS_COLUMNS, **CONFIDENCE}
    try:
        names_by_column = find_columns(frame.columns, valid_names, file.columns)
        require_distinct(frame.columns, names_by_column)
        require_columns(names_by_column, _NEEDED_COLUMNS, form="Parquet", names=frame.columns)
        query, document = (
            nullable_ids(frame[name], f"column {name!r}")
            for name in (names_by_column["query"], names_by_column["document"])
        )
    except UserError as error:
        raise error_in_file(file.path, error) from error
    confidence = None
    if "confidence" in names_by_column:
        confidence = NumberColumn.from_series(frame[names_by_column["confidence"]])
    return judgments_of_columns(
        file.path,
        query=query,
        document=document,
        grade=NumberColumn.from_series(frame[names_by_column["grade"]]),
        grade_name=names_by_column["grade"],
        read_as=f"Parquet: {', '.join(names_by_column[column] for column in _NEEDED_COLUMNS)}",
        confidence=confidence,
    )
