"""Judgments as Parquet, as ranx and the data sets of the Hugging Face hub hold them."""

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

_NEEDED = ("query", "document", "grade")
"""Columns that judgments need."""


def sniff(file: DataFile) -> bool:
    """Return whether a file is Parquet."""
    return file.binary == "Parquet"


def read(file: DataFile) -> JudgmentFile:
    """Read a table of judgments."""
    with as_parquet(file.path):  # polars' exceptions become a `DataError` that names the file
        # Without `glob=False`, polars reads brackets or a star in the file's name as a pattern.
        frame = pl.read_parquet(file.path, glob=False)
    try:
        columns = find_columns(frame.columns, {**QRELS_COLUMNS, **CONFIDENCE}, file.columns)
        require_distinct(frame.columns, columns)
        require_columns(columns, _NEEDED, form="Parquet", names=frame.columns)
        query, document = (
            nullable_ids(frame[columns[noun]], f"column {columns[noun]!r}")
            for noun in ("query", "document")
        )
    except UserError as error:
        raise error_in_file(file.path, error) from error
    confidence = None
    if "confidence" in columns:
        confidence = NumberColumn.from_series(frame[columns["confidence"]])
    return judgments_of_columns(
        file.path,
        query=query,
        document=document,
        grade=NumberColumn.from_series(frame[columns["grade"]]),
        noun=columns["grade"],  # what messages call the grade: the file's name of its column
        read_as=f"Parquet: {', '.join(columns[noun] for noun in _NEEDED)}",
        confidence=confidence,
    )
