"""Judgments as tables with a header: CSV, TSV, and Excel's CSV.

Quepid, a tool in which people grade search results, exports such CSV. A judge's *confidence*, how
sure it is of a grade, is read too if a column has it.
"""

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

_NEEDED_COLUMNS = ("query", "document", "grade")
"""Columns that judgments need."""
_BEIR_POSITIONS = [0, 1, 2]
"""Positions of `_NEEDED_COLUMNS`, from 0, in a line of BEIR's judgments."""
_TREC_POSITIONS = [0, 2, 3]
"""Positions of `_NEEDED_COLUMNS`, from 0, in a line of TREC's judgments."""


def sniff(file: DataFile) -> bool:
    """Return whether the first line names query, document and grade, or the user names them."""
    if file.has_json or not file.header:
        return False
    if file.columns:
        return True
    names_by_column = find_columns(file.header, QRELS_COLUMNS)  # the file's name of each column
    if set(names_by_column) != set(_NEEDED_COLUMNS):
        return False
    # A table with a score and a rank is a run.
    has_rank = "rank" in find_columns(file.header, RUN_COLUMNS)
    if snake_case(names_by_column["grade"]) == "score" and has_rank:
        return False
    # `text_qrels` would not read the confidence.
    if find_columns(file.header, CONFIDENCE):
        return True
    # `text_qrels` reads lines with tabs and these positions, whatever names their header has.
    positions = [file.header.index(names_by_column[column]) for column in _NEEDED_COLUMNS]
    return file.separator != "\t" or positions not in (_BEIR_POSITIONS, _TREC_POSITIONS)


def read(file: DataFile) -> JudgmentFile:
    """Read a table of judgments."""
    table = read_named_table(file)
    format_name = table_name(file.separator)  # such as ``CSV``
    valid_names = {**QRELS_COLUMNS, **CONFIDENCE}
    try:
        names_by_column = find_columns(table.names, valid_names, file.columns)
        require_distinct(table.names, names_by_column)
        require_columns(names_by_column, _NEEDED_COLUMNS, form=format_name, names=table.names)
    except UserError as error:
        raise error_in_file(file.path, error) from error
    # Excel separates columns by ";" in the languages that write numbers with decimal commas.
    has_decimal_commas = file.separator == ";"
    confidence = None
    if "confidence" in names_by_column:
        texts = table.column(names_by_column["confidence"])
        confidence = NumberColumn.from_texts(texts, has_decimal_commas=has_decimal_commas)
    names = [names_by_column[column] for column in _NEEDED_COLUMNS]
    query, document, grade = map(table.column, names)
    return judgments_of_columns(
        file.path,
        query=text_ids(query),
        document=text_ids(document),
        grade=NumberColumn.from_texts(grade, has_decimal_commas=has_decimal_commas),
        grade_name=names_by_column["grade"],
        lines=table.frame[LINE_COLUMN].to_list(),
        read_as=f"{format_name}: {', '.join(names)}",
        confidence=confidence,
    )
