"""Runs of three columns: MS MARCO's ``query, document, rank``, and ``query, document, score`` of dense retrievers.

The third column tells the two apart, and both from judgments: ranks count 1, 2, 3, … in each query,
scores are not all whole. What could be judgments as well is refused.
"""

from __future__ import annotations

import polars as pl

from ranktilt.data.files import decode_lines, line_chunks
from ranktilt.data.formats.base import RunFile, RunRequest
from ranktilt.data.formats.cells import NumberColumn, text_ids
from ranktilt.data.formats.data_file import DataFile, blank_fields
from ranktilt.data.formats.run_columns import RunColumns, run_of_columns
from ranktilt.errors import DataError, shorten

_NAMES = {"query": "1", "document": "2", "score": "3", "rank": "3"}
_JUDGMENTS = (
    "three columns of whole numbers that do not count ranks are judgments (--qrels); "
    "a header such as qid,docno,score says otherwise"
)


def sniff(file: DataFile) -> bool:
    """Return whether the first lines have three fields, the last a number."""
    if file.columns or file.separator or file.has_json or not file.rows:
        return False
    fields = _split(file.rows[0], _is_tabbed(file))
    return (
        len(fields) == 3
        and NumberColumn.from_texts(pl.Series([fields[2]])).values.null_count() == 0
    )


def _is_tabbed(file: DataFile) -> bool:
    return file.rows[0].count("\t") == 2


def _split(line: str, is_tabbed: bool) -> list[str]:
    return line.split("\t") if is_tabbed else blank_fields(line)


def has_ranks(queries: pl.Series, third: pl.Series) -> bool:
    """Return whether a column counts 1, 2, 3, … in each query, and further than one in some."""
    frame = pl.DataFrame({"query": queries, "number": third})
    place = pl.int_range(1, pl.len() + 1).over("query")
    counts = frame.select(is_place=pl.col("number") == place, number="number")
    return bool(counts["is_place"].fill_null(value=False).all()) and counts["number"].n_unique() > 1


def read(file: DataFile, request: RunRequest) -> RunFile:
    """Read a run of three columns."""
    is_tabbed = _is_tabbed(file)
    rows, lines = list[list[str]](), list[int]()
    for first_line, chunk in line_chunks(file.path):
        text = decode_lines(file.path, first_line, chunk)
        for number, line in enumerate(text.split("\n"), start=first_line):
            if number <= file.comments or not line.strip():
                continue
            fields = _split(line, is_tabbed)
            if len(fields) != 3:
                message = f"expected 3 fields, as in the first line, got {len(fields)}"
                raise DataError(file.path, f"{message}: {shorten(line)}", line=number)
            rows.append(fields)
            lines.append(number)
    table = pl.DataFrame(rows, schema=["query", "document", "third"], orient="row")
    numbers = NumberColumn.from_texts(table["third"])
    query = text_ids(table["query"])
    is_ranked = has_ranks(table["query"], numbers.values)
    is_whole = numbers.values.null_count() == 0 and numbers.whole.null_count() == 0
    if is_whole and not is_ranked:
        raise DataError(
            file.path, f"expected a run, got {shorten(rows[0])}: {_JUDGMENTS}", line=lines[0]
        )
    nothing = NumberColumn.none(len(query))
    columns = RunColumns(
        path=file.path,
        query=query,
        document=text_ids(table["document"]),
        score=nothing if is_ranked else numbers,
        rank=numbers if is_ranked else nothing,
        names=_NAMES,
        lines=lines,
    )
    meaning = "rank" if is_ranked else "score"
    return run_of_columns(
        columns, request.score_order, f"three columns: query, document, {meaning}"
    )
