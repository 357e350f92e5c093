"""Read evaluations per query: a value for each measure, system and query.

A system is a ranker; its run was evaluated by another program.

Three layouts are read; the first line shows which it is:

- trec_eval's (``-q``): measure, query, value. A line ``runid all NAME`` names the system of the
  lines around it, which are a block; blocks of several systems may follow each other. ir_measures
  writes the same with the query first.
- a table with a column for each measure: ``runid,topic,ndcg@20,err@20`` of gdeval, ndeval and
  others.
- a table with a row for each value: ``name,qid,measure,value`` of PyTerrier and others.

A file that names no system is one system, with the name of the file. Means (``all``, ``amean``) are
left out.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import polars as pl

from ranktilt.data.files import decode_text, read_bytes, require_path
from ranktilt.data.formats.ids import plain_float
from ranktilt.data.formats.tables.column_names import DOCUMENT_IDS
from ranktilt.data.formats.tables.spreadsheet import from_cell
from ranktilt.errors import DataError, UserError, shorten
from ranktilt.measures.base import measure

COLUMNS = ("run", "query_id", "measure", "value")
"""Columns of `read_evaluations`."""
_RUN = ("run", "runid", "run_id", "run-id", "name", "system", "tag")
"""Titles that the column of systems may have, in lower case, like all titles here."""
_QUERY = ("query", "query_id", "query-id", "queryid", "qid", "topic", "topic_id", "topicid")
"""Titles of the column of queries."""
_DOCUMENT = (*DOCUMENT_IDS, "document")
"""Titles of a column of documents, which is in files of grades or runs, not of evaluations."""
_MEASURE = ("measure", "metric")
"""Titles of the column of measures."""
_VALUE = ("value", "score")
"""Titles of the column of values."""
_INDEX = ("", "unnamed: 0")
"""Titles that pandas gives a column of row numbers."""
_MEANS = ("all", "amean")
"""Words in the place of the query where a line gives a mean over queries."""
_MISSING = ("", "nan", "na")
"""Texts of a missing value."""
_NO_MEASURE = re.compile("num_.*|relstring.*")
"""Names in trec_eval's first column that are no measure: counts, and strings of grades."""
_ENDINGS = re.compile(
    r"(\.(ndcgeval|gdeval|ndeval|treceval|trec_eval|eval|results?|res|txt|csv|tsv))*(\.gz)?$"
)
"""Endings of file names that only tell the format, and are no part of a system's name."""
_EXPECTED = (
    "expected values per query: measure, query, value (trec_eval -q), or a table whose header "
    "names the query (runid,topic,ndcg@20)"
)
"""What a file should hold, for error messages."""
_GRADES_HINT = "pass grades with --human and --judge, runs with --runs"
"""Advice where a file holds grades or a run, for error messages."""


class Value(NamedTuple):
    """A value of one system for one query, with the line of the file that holds it."""

    line: int
    """Line of the file."""
    run: str
    """Name of the system."""
    query: str
    """Id of the query."""
    measure: str
    """Name of the measure."""
    value: float
    """The value; NaN if it is undefined."""


class _Row(NamedTuple):
    """One line of a table."""

    line: int
    """Line of the file."""
    fields: list[str]
    """Fields of the line."""


def evaluation_name(path: Path) -> str:
    """Return a file's name without the endings that only tell its format."""
    return _ENDINGS.sub("", path.name) or path.name


@cache
def measure_name(text: str) -> str:
    """Write a measure's name as RankTilt does: ``nDCG@10`` for ``ndcg_cut_10``.

    An unknown name stays as it is.
    """
    try:
        return repr(measure(text))
    except UserError:
        return text


def read_evaluations(path: str | Path) -> pl.DataFrame:
    """Read the values of each query and system from a file, or from every file of a folder.

    Parameters
    ----------
    path : str or Path
        A file in any of the three layouts, or a folder of such files.

    Returns
    -------
    polars.DataFrame
        ``run``, ``query_id``, ``measure`` and ``value`` (NaN where it is undefined), in the order
        of the files.

    Raises
    ------
    DataError
        If a line cannot be read, or gives a second value for one system, query and measure.
    """
    path = require_path(path)
    files = _files_of(path) if path.is_dir() else [path]
    seen: dict[tuple[str, str, str], tuple[Path, int]] = {}
    values = list[Value]()
    for file in files:
        for value in _read(file):
            key = (value.run, value.query, value.measure)
            earlier_file, earlier_line = seen.setdefault(key, (file, value.line))
            if (earlier_file, earlier_line) != (file, value.line):
                raise _repeated(file, value, f"{earlier_file}:{earlier_line}")
            values.append(value)
    columns = {
        "run": [value.run for value in values],
        "query_id": [value.query for value in values],
        "measure": [value.measure for value in values],
        "value": [value.value for value in values],
    }
    schema = {"run": pl.String, "query_id": pl.String, "measure": pl.String, "value": pl.Float64}
    return pl.DataFrame(columns, schema=schema)


def _files_of(folder: Path) -> list[Path]:
    """List the files of a folder."""
    files = sorted(
        file for file in folder.iterdir() if file.is_file() and not file.name.startswith(".")
    )
    if not files:
        raise DataError(folder, "expected files of values per query, the folder has none")
    return files


def _repeated(file: Path, value: Value, earlier: str) -> DataError:
    """Return the error for a second value of one system, query and measure."""
    message = (
        f"a second value of {value.measure} for query {value.query!r} of system {value.run!r} "
        f"(the first: {earlier}); name systems by a column runid, by a line 'runid all NAME' "
        "after their queries, or by file"
    )
    return DataError(file, message, line=value.line)


def _read(path: Path) -> list[Value]:
    """Read one file: decide on its layout by the first line, and read all lines."""
    lines = decode_text(path, read_bytes(path)).splitlines()
    # Lines are counted from 1.
    first_row = next((number for number, line in enumerate(lines, start=1) if line.strip()), None)
    if first_row is None:
        raise DataError(path, "the file is empty")
    delimiter = _delimiter(lines[first_row - 1])
    rows = list(_rows(lines, delimiter))
    header = [field.strip().lower() for field in rows[0].fields]
    if any(name in _DOCUMENT for name in header):
        fields = ", ".join(rows[0].fields)
        message = f"expected values per query, got documents ({fields}); {_GRADES_HINT}"
        raise DataError(path, message, line=first_row)
    if any(name in _QUERY for name in header):
        values = list(_table_values(path, header, rows))
    elif len(header) == 3:
        values = list(_trec_eval_values(path, rows))
    else:
        line = shorten(lines[first_row - 1])
        message = f"{_EXPECTED}, got {len(header)} fields: {line}; {_GRADES_HINT}"
        raise DataError(path, message, line=first_row)
    if not values:
        raise DataError(
            path, "expected values of each query, got means only (trec_eval gives both with -q)"
        )
    return values


def _delimiter(line: str) -> str | None:
    """Return the separator of fields; None for any blanks and tabs."""
    if "," in line:
        return ","
    if "\t" not in line:
        return None
    # Where only tabs separate fields, a field may be empty or contain blanks. But trec_eval pads a
    # measure's name with blanks before the tab; there both ways to split give as many fields.
    return "\t" if len(line.split("\t")) != len(line.split()) else None


def _rows(lines: Sequence[str], delimiter: str | None) -> Iterator[_Row]:
    """Yield the fields of every line that is not blank; `delimiter` is None for blanks and tabs."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield _Row(number, [field.strip() for field in _fields(line, delimiter)])


def _fields(line: str, delimiter: str | None) -> list[str]:
    """Split a line into fields; without a delimiter at blanks and tabs."""
    if delimiter is None:
        return line.split()
    fields = next(csv.reader([line], delimiter=delimiter))
    # RankTilt marks texts that a spreadsheet would compute, in files with commas.
    return [from_cell(field) for field in fields] if delimiter == "," else fields


def _trec_eval_values(path: Path, rows: Sequence[_Row]) -> Iterator[Value]:
    """Read lines of three fields, as trec_eval or ir_measures writes them."""
    for row in rows:
        if len(row.fields) != 3:
            line = shorten(" ".join(row.fields))
            message = f"expected measure, query, value (3 fields), got {len(row.fields)}: {line}"
            raise DataError(path, message, line=row.line)
    first, second, _value = rows[0].fields
    if not _is_measure(first) and _is_measure(second):
        rows = [_with_measure_first(row) for row in rows]
    for block in _blocks(rows):
        yield from _block_values(path, block)


def _with_measure_first(row: _Row) -> _Row:
    """Turn a line of ir_measures, which begins with the query, into one of trec_eval."""
    query, name, value = row.fields
    return _Row(row.line, [name, query, value])


def _block_values(path: Path, block: Sequence[_Row]) -> Iterator[Value]:
    """Read the values of one system; its name may follow them, else it is the file's."""
    names = [row.fields[2] for row in block if row.fields[0] == "runid"]
    run = names[0] if names else evaluation_name(path)
    for row in block:
        name, query, text = row.fields
        if name != "runid" and query not in _MEANS and not _NO_MEASURE.fullmatch(name):
            yield Value(
                line=row.line,
                run=run,
                query=query,
                measure=measure_name(name),
                value=_number(path, row.line, name, text),
            )


def _blocks(rows: Sequence[_Row]) -> Iterator[list[_Row]]:
    """Cut lines of trec_eval into blocks of one system each.

    Usually a block is values per query followed by means over queries. In a file that begins with a
    line ``runid``, each such line begins a block.
    """
    is_named_first = rows[0].fields[0] == "runid"
    block = list[_Row]()
    for row in rows:
        if is_named_first:
            begins_block = row.fields[0] == "runid"
        else:
            is_after_means = bool(block) and block[-1].fields[1] in _MEANS
            begins_block = is_after_means and row.fields[1] not in _MEANS
        if block and begins_block:
            yield block
            block = []
        block.append(row)
    yield block


def _is_measure(name: str) -> bool:
    """Return whether trec_eval or ir_measures would print this as the name of a measure."""
    return name == "runid" or bool(_NO_MEASURE.fullmatch(name)) or _is_known(name)


def _is_known(name: str) -> bool:
    """Return whether RankTilt has a measure of this name."""
    try:
        measure(name)
    except UserError:
        return False
    return True


def _table_values(path: Path, header: list[str], rows: Sequence[_Row]) -> Iterator[Value]:
    """Read a table with a header, with a column for each measure or a row for each value."""
    columns = _TableColumns.from_header(path, header, rows[0])
    titles = rows[0].fields
    for row in rows[1:]:
        if row.fields == titles:  # files of several systems, one after the other
            continue
        if len(row.fields) != len(titles):
            message = f"expected {len(titles)} fields as in the header, got {len(row.fields)}"
            raise DataError(path, message, line=row.line)
        query = row.fields[columns.query]
        if query.lower() in _MEANS:
            continue
        run = evaluation_name(path) if columns.run is None else row.fields[columns.run]
        if not run or not query:
            raise DataError(path, "expected a system and a query, one is empty", line=row.line)
        for name, text in columns.cells(row):
            yield Value(
                line=row.line,
                run=run,
                query=query,
                measure=measure_name(name),
                value=_number(path, row.line, name, text),
            )


@dataclass(frozen=True, kw_only=True)
class _TableColumns:
    """Indices of the columns of a table of values; None for a column that it does not have."""

    query: int
    """Column of queries."""
    run: int | None
    """Column of systems."""
    measure: int | None
    """Column of measures, in a table with a row for each value."""
    value: int | None
    """Column of values, in a table with a row for each value."""
    measures: tuple[tuple[int, str], ...]
    """Index and title of each column of one measure, in a table with a column for each measure."""

    @classmethod
    def from_header(cls, path: Path, header: Sequence[str], titles: _Row) -> _TableColumns:
        """Find columns by their titles.

        `header` has the titles in lower case, `titles` is the same row as written.
        """
        query, run = _column(header, _QUERY), _column(header, _RUN)
        if query is None:
            raise DataError(path, _EXPECTED, line=titles.line)
        measures = []
        for index, (title, name) in enumerate(zip(header, titles.fields, strict=True)):
            if index not in (query, run) and title not in _INDEX:
                measures.append((index, name))
        if not measures:
            message = f"expected a column for each measure, got {', '.join(titles.fields)}"
            raise DataError(path, message, line=titles.line)
        return cls(
            query=query,
            run=run,
            measure=_column(header, _MEASURE),
            value=_column(header, _VALUE),
            measures=tuple(measures),
        )

    def cells(self, row: _Row) -> list[tuple[str, str]]:
        """Return the measures and values of a row, as text."""
        if self.measure is not None and self.value is not None:
            return [(row.fields[self.measure], row.fields[self.value])]
        return [(name, row.fields[index]) for index, name in self.measures]


def _column(header: Sequence[str], titles: Iterable[str]) -> int | None:
    """Return the index of the first column with one of these titles, or None without one."""
    return next((index for index, title in enumerate(header) if title in titles), None)


def _number(path: Path, line: int, name: str, text: str) -> float:
    """Read a value of the measure `name` from the `text` in a line; NaN where it is undefined.

    `DataError` for a value that is no number, or lies outside the measure's bounds.
    """
    if text.lower() in _MISSING:
        return math.nan
    try:
        value = plain_float(text)
    except ValueError:
        value = math.inf  # refused below, as an infinite number is
    if not math.isfinite(value):
        raise DataError(path, f"expected a number as {name}, got {text!r}", line=line)
    low, high = measure_bounds(measure_name(name))
    if not low <= value <= high:
        raise DataError(
            path, f"expected {name} between {low:g} and {high:g}, got {text}", line=line
        )
    return value


@cache
def measure_bounds(name: str) -> tuple[float, float]:
    """Return the smallest and largest value of a measure; infinite for an unknown measure."""
    return measure(name).bounds if _is_known(name) else (-math.inf, math.inf)
