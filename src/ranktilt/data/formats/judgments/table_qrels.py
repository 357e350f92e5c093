"""Judgments as tables with a header: CSV as Quepid exports it, TSV, and Excel's CSV."""

from __future__ import annotations

from ranktilt.data.formats.base import JudgmentFile
from ranktilt.data.formats.data_file import DataFile
from ranktilt.data.formats.judgments.judgment_columns import judgments_of_columns
from ranktilt.data.formats.runs.table_run import table_name
from ranktilt.data.formats.tables.cells import NumberColumn, text_ids
from ranktilt.data.formats.tables.column_names import (
    CONFIDENCE,
    QRELS_COLUMNS,
    RUN_COLUMNS,
    find_columns,
    require_columns,
    require_distinct,
    snake_case,
)
from ranktilt.data.formats.tables.delimited import LINE_COLUMN, read_named_table
from ranktilt.errors import UserError, error_in_file

_NEEDED = ("query", "document", "grade")
"""Columns that judgments need."""
_BEIR_POSITIONS, _TREC_POSITIONS = [0, 1, 2], [0, 2, 3]
"""Positions of these columns, from 0, in lines of BEIR and of TREC, which `text_qrels` reads."""


def sniff(file: DataFile) -> bool:
    """Return whether the first line names query, document and grade, or the user names them."""
    if file.has_json or not file.header:
        return False
    if file.columns:
        return True
    columns = find_columns(file.header, QRELS_COLUMNS)
    if set(columns) != set(_NEEDED):
        return False
    # A table with a score and a rank is a run.
    if snake_case(columns["grade"]) == "score" and "rank" in find_columns(file.header, RUN_COLUMNS):
        return False
    if find_columns(file.header, CONFIDENCE):
        return True
    # `text_qrels` reads lines with tabs and these positions, whatever names their header has.
    positions = [file.header.index(columns[noun]) for noun in _NEEDED]
    return file.separator != "\t" or positions not in (_BEIR_POSITIONS, _TREC_POSITIONS)


def read(file: DataFile) -> JudgmentFile:
    """Read a table of judgments."""
    table = read_named_table(file)
    form = table_name(file.separator)
    try:
        columns = find_columns(table.names, {**QRELS_COLUMNS, **CONFIDENCE}, file.columns)
        require_distinct(table.names, columns)
        require_columns(columns, _NEEDED, form=form, names=table.names)
    except UserError as error:
        raise error_in_file(file.path, error) from error
    # Excel separates columns by ";" in the languages that write numbers with decimal commas.
    has_decimal_commas = file.separator == ";"
    confidence = None
    if "confidence" in columns:
        texts = table.column(columns["confidence"])
        confidence = NumberColumn.from_texts(texts, has_decimal_commas=has_decimal_commas)
    query, document, grade = (table.column(columns[noun]) for noun in _NEEDED)
    return judgments_of_columns(
        file.path,
        query=text_ids(query),
        document=text_ids(document),
        grade=NumberColumn.from_texts(grade, has_decimal_commas=has_decimal_commas),
        noun=columns["grade"],  # what messages call the grade: the file's name of its column
        lines=table.frame[LINE_COLUMN].to_list(),
        read_as=f"{form}: {', '.join(columns[noun] for noun in _NEEDED)}",
        confidence=confidence,
    )
