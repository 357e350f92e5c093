"""Runs of three columns: MS MARCO's ``query, document, rank``, and ``query, document, score``.

The third column distinguishes the two, and both from judgments: ranks count 1, 2, 3, … in each
query, scores are not all whole. A file that may be judgments as well is refused.
"""

from __future__ import annotations

import polars as pl

from ranktilt.data.files import decode_lines, line_chunks
from ranktilt.data.formats.base import RunFile, RunRequest
from ranktilt.data.formats.data_file import DataFile, blank_fields
from ranktilt.data.formats.runs.run_columns import RunColumns, run_of_columns
from ranktilt.data.formats.tables.cells import NumberColumn, text_ids
from ranktilt.errors import DataError, shorten

_FIELD = r"[^ \t\x0b\x0c\r]+"
"""A field between blanks."""
_WIDTH = 3
"""Number of fields in a line, by which these files are recognised."""
_NAMES = {"query": "1", "document": "2", "score": "3", "rank": "3"}
"""What messages call each column, which has no name in the file: its number."""
_JUDGMENTS = (
    "three columns of whole numbers that do not count ranks are judgments (--qrels); if they "
    "are a run, add a header such as qid,docno,score"
)
"""End of the message about a file that looks like judgments."""


def sniff(file: DataFile) -> bool:
    """Return whether the first lines have three fields, the last a number."""
    if file.columns or file.separator or file.has_json or not file.rows:
        return False
    fields = _split(file.rows[0], _is_tabbed(file))
    if len(fields) != _WIDTH:
        return False
    return NumberColumn.from_texts(pl.Series([fields[-1]])).values.null_count() == 0


def _is_tabbed(file: DataFile) -> bool:
    """Tell whether tabs separate the columns."""
    return file.rows[0].count("\t") == 2


def _split(line: str, is_tabbed: bool) -> list[str]:
    """Split a line into its fields, at tabs or else at blanks."""
    return line.split("\t") if is_tabbed else blank_fields(line)


def has_ranks(queries: pl.Series, third: pl.Series) -> bool:
    """Return whether the third column of a file counts 1, 2, 3, … in each query.

    Some query must have two documents or more, because a column of ones may hold grades.
    """
    frame = pl.DataFrame({"query": queries, "number": third})
    position = pl.int_range(1, pl.len() + 1).over("query")
    counts = frame.select(is_place=pl.col("number") == position, number="number")
    return bool(counts["is_place"].fill_null(value=False).all()) and counts["number"].n_unique() > 1


def read(file: DataFile, request: RunRequest) -> RunFile:
    """Read a run of three columns."""
    table = _table(file)
    lines = table["line"].to_list()
    numbers = NumberColumn.from_texts(table["third"])
    is_ranked = has_ranks(table["query"], numbers.values)
    is_whole = numbers.values.null_count() == 0 and numbers.whole_numbers.null_count() == 0
    if is_whole and not is_ranked:
        first = shorten(" ".join(table.row(0)[1:]))
        raise DataError(file.path, f"expected a run, got {first}: {_JUDGMENTS}", line=lines[0])
    nothing = NumberColumn.none(table.height)
    columns = RunColumns(
        path=file.path,
        query=text_ids(table["query"]),
        document=text_ids(table["document"]),
        score=nothing if is_ranked else numbers,
        rank=numbers if is_ranked else nothing,
        names=_NAMES,
        lines=lines,
    )
    read_as = f"three columns: query, document, {'rank' if is_ranked else 'score'}"
    return run_of_columns(columns, request.score_order, read_as)


def _table(file: DataFile) -> pl.DataFrame:
    """Return line, query, document and the third column of each line that is not blank."""
    text, fields = pl.col("text"), pl.col("fields")
    split = text.str.split("\t") if _is_tabbed(file) else text.str.extract_all(_FIELD)
    parts = list[pl.DataFrame]()
    for first_line, lines in line_chunks(file.path):
        texts = pl.Series("text", decode_lines(file.path, first_line, lines).split("\n"))
        frame = texts.to_frame().with_row_index("line", offset=first_line)
        frame = frame.filter((text.str.strip_chars() != "") & (pl.col("line") > file.comments))
        frame = frame.with_columns(fields=split)
        wrong = frame.filter(fields.list.len() != _WIDTH)
        if wrong.height:
            line, raw, cells = wrong.row(0)
            message = f"expected 3 fields, as in the first line, got {len(cells)}: {shorten(raw)}"
            raise DataError(file.path, message, line=line)
        names = ("query", "document", "third")
        cells = {name: fields.list.get(position) for position, name in enumerate(names)}
        parts.append(frame.select("line", **cells))
    return pl.concat(parts)
