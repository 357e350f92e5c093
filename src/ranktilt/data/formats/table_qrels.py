"""Judgments as tables with a header: CSV as Quepid exports it, TSV, and Excel's CSV."""

from __future__ import annotations

from ranktilt.data.formats.base import JudgmentFile
from ranktilt.data.formats.cells import NumberColumn, text_ids
from ranktilt.data.formats.column_names import (
    CONFIDENCE,
    QRELS_COLUMNS,
    RUN_COLUMNS,
    find_columns,
    folded,
    require_columns,
    require_distinct,
)
from ranktilt.data.formats.data_file import DataFile
from ranktilt.data.formats.delimited import LINE, read_named_table
from ranktilt.data.formats.judgment_columns import judgments_of_columns
from ranktilt.data.formats.table_run import table_name
from ranktilt.errors import UserError, located

_NEEDED = ("query", "document", "grade")
"""Columns that judgments need."""


def sniff(file: DataFile) -> bool:
    """Return whether the first line names query, document and grade, or the user names them."""
    if file.has_json or not file.header:
        return False
    if file.columns:
        return True
    columns = find_columns(file.header, QRELS_COLUMNS)
    if set(columns) != set(_NEEDED):
        return False
    if folded(columns["grade"]) == "score" and "rank" in find_columns(file.header, RUN_COLUMNS):
        return False
    # With tabs and in this order they are judgments as BEIR writes them. `text_qrels` reads these,
    # whatever names their header has.
    numbers = [file.header.index(columns[noun]) for noun in _NEEDED]
    if find_columns(file.header, CONFIDENCE):
        return True
    return file.separator != "\t" or numbers not in ([0, 1, 2], [0, 2, 3])


def read(file: DataFile) -> JudgmentFile:
    """Read a table of judgments."""
    table = read_named_table(file)
    form = table_name(file.separator)
    try:
        columns = find_columns(table.names, {**QRELS_COLUMNS, **CONFIDENCE}, file.columns)
        require_distinct(table.names, columns)
        require_columns(columns, _NEEDED, form=form, names=table.names)
    except UserError as error:
        raise located(file.path, error) from error
    has_decimal_commas = file.separator == ";"
    confidence = None
    if "confidence" in columns:
        texts = table.frame[str(table.names.index(columns["confidence"]))]
        confidence = NumberColumn.from_texts(texts, has_decimal_commas=has_decimal_commas)
    query, document, grade = (
        table.frame[str(table.names.index(columns[noun]))] for noun in _NEEDED
    )
    return judgments_of_columns(
        file.path,
        query=text_ids(query),
        document=text_ids(document),
        grade=NumberColumn.from_texts(grade, has_decimal_commas=has_decimal_commas),
        noun=columns["grade"],
        lines=table.frame[LINE].to_list(),
        read_as=f"{form}: {', '.join(columns[noun] for noun in _NEEDED)}",
        confidence=confidence,
    )
