"""Runs as tables whose first line names the columns: CSV, TSV, and what Excel writes with ``;``.

A column may number *repeats*, that is, several rankings of each query by one engine. Tables of
*judgments* have a grade in place of a score, and are refused.
"""

from __future__ import annotations

from ranktilt.data.formats.base import RunFile, RunRequest
from ranktilt.data.formats.data_file import DataFile
from ranktilt.data.formats.runs.repeats import RepeatColumn, repeat_column
from ranktilt.data.formats.runs.run_columns import RunColumns, run_of_columns
from ranktilt.data.formats.tables.cells import NumberColumn, text_ids
from ranktilt.data.formats.tables.column_names import (
    DOCUMENT,
    GRADE,
    QUERY,
    RUN_COLUMNS,
    find_columns,
    require_columns,
    require_distinct,
    snake_case,
)
from ranktilt.data.formats.tables.delimited import LINE_COLUMN, NamedTable, read_named_table
from ranktilt.errors import DataError, UserError, error_in_file

_BEIR_QRELS = ["query-id", "corpus-id", "score"]
"""Columns of BEIR's judgments, which are no run."""
_ROW_NUMBER_NAMES = ("", "index", "unnamed:_0")
"""Names of a column of row numbers, such as pandas writes one."""
_TABLE_NAMES = {"\t": "TSV", ",": "CSV", " ": "columns separated by blanks"}
"""Name of a table by its separator."""


def sniff(file: DataFile) -> bool:
    """Return whether the first line names a query and something else."""
    if file.has_json or not file.header:
        return False
    columns = find_columns(file.header, RUN_COLUMNS)
    return bool(file.columns) or ("query" in columns and len(columns) > 1)


def table_name(separator: str) -> str:
    """Return the name of a format by its separator, such as ``CSV`` for a comma."""
    return _TABLE_NAMES.get(separator, f"CSV with {separator}")


def read(file: DataFile, request: RunRequest) -> RunFile:
    """Read a table of results."""
    table = read_named_table(file)
    form = table_name(file.separator)
    try:
        columns = find_columns(table.names, RUN_COLUMNS, file.columns)
        require_distinct(table.names, columns)
        require_columns(columns, ("query", "document"), form=form, names=table.names)
        repeat = repeat_column(table.names, file.columns)
    except UserError as error:
        raise error_in_file(file.path, error) from error
    _refuse_judgments(file, table, columns)
    if request.score_order != "rank" and not {"score", "rank"} & columns.keys():
        _refuse_unread_numbers(file, table, repeat)
    cells = {noun: table.column(name) for noun, name in columns.items()}
    # Excel separates columns by ";" in the languages that write numbers with decimal commas.
    has_decimal_commas = file.separator == ";"
    numbers = {
        noun: NumberColumn.from_texts(cells[noun], has_decimal_commas=has_decimal_commas)
        if noun in cells
        else NumberColumn.none(table.frame.height)
        for noun in ("score", "rank")
    }
    run_columns = RunColumns(
        path=file.path,
        query=text_ids(cells["query"]),
        document=text_ids(cells["document"]),
        score=numbers["score"],
        rank=numbers["rank"],
        names=columns,
        lines=table.frame[LINE_COLUMN].to_list(),
    )
    if repeat is not None:
        run_columns = run_columns.with_repeats(text_ids(table.column(repeat.name)), repeat)
    read_as = f"{form}: {', '.join(columns_read(run_columns, request.score_order))}"
    return run_of_columns(run_columns, request.score_order, read_as)


def columns_read(columns: RunColumns, order: str | None) -> list[str]:
    """Return the names of the columns that are read, for a description of the file.

    ``in their order`` is added if documents are ordered by their place, without a score or rank.
    """
    uses_scores = order != "rank" and columns.score.is_given
    nouns = ["query", "document", "score" if uses_scores else "rank"]
    names = [columns.names[noun] for noun in nouns if noun in columns.names]
    has_order = uses_scores or columns.rank.is_given
    return names if has_order else [*names, "in their order"]


def _refuse_unread_numbers(file: DataFile, table: NamedTable, repeat: RepeatColumn | None) -> None:
    """Refuse a table whose only unread column of numbers may be scores under an unknown name."""
    known = {*QUERY, *DOCUMENT, *_ROW_NUMBER_NAMES}
    unread = list[str]()
    for number, name in enumerate(table.names):
        is_repeat = repeat is not None and name == repeat.name
        if is_repeat or snake_case(name) in known or name in file.columns.values():
            continue
        cells = NumberColumn.from_texts(table.frame[str(number)])
        if cells.is_given and cells.values.null_count() == 0:
            unread.append(name)
    if len(unread) == 1:
        name = unread[0]
        message = f"no column is named score or rank, but {name!r} holds numbers"
        hint = f"to read them, use FILE:score={name} or FILE:rank={name}"
        order_hint = "for the order of the file, use --score-order rank"
        raise DataError(file.path, f"{message}; {hint}; {order_hint}")


def _refuse_judgments(file: DataFile, table: NamedTable, columns: dict[str, str]) -> None:
    """Refuse a table of judgments.

    It has a grade and neither score nor rank, or BEIR's header for judgments and whole numbers.
    """
    hint = "name them with --qrels"
    grade_names = set(GRADE) - {"score"}
    grades = [name for name in table.names if snake_case(name) in grade_names]
    if grades and "score" not in columns and "rank" not in columns:
        raise DataError(file.path, f"expected a run, got judgments (column {grades[0]!r}); {hint}")
    if table.names != _BEIR_QRELS or file.columns:
        return
    if NumberColumn.from_texts(table.column("score")).whole_numbers.null_count() == 0:
        raise DataError(file.path, f"expected a run, got judgments (whole numbers); {hint}")
