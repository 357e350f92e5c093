"""Recognise any file: its format, its content, its columns and its first record.

The *kind* of a file is what its content can be read as, such as a run or judgments. *Answers* are
the results of queries in JSON, such as responses of search engines. *Judgments* (*qrels*) are
*grades* of how relevant a document is to a query. If a file cannot be read as it is, its *remedy*
says what the user can do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import polars as pl

from ranktilt.data.formats.base import JUDGMENTS, LABELS, QUERIES, RUN
from ranktilt.data.formats.data_file import DataFile, blank_fields
from ranktilt.data.formats.json_values import parse_with_nan, read_document
from ranktilt.data.formats.responses.answer_shape import shape_of
from ranktilt.data.formats.responses.answers import content_of, without_run_name
from ranktilt.data.formats.runs.table_run import table_name
from ranktilt.data.formats.tables.cells import NumberColumn
from ranktilt.data.formats.tables.column_names import (
    DOCUMENT,
    QRELS_COLUMNS,
    QUERY,
    RUN_COLUMNS,
    Names,
    find_columns,
    snake_case,
)
from ranktilt.data.formats.tables.parquet import schema_of
from ranktilt.errors import DataError, UserError

DOCUMENTS, RESULT, EVALUATIONS = "documents", "a result of ranktilt", "values per query"
"""Kinds besides those of `formats.base`: documents, a saved result, and values of measures."""
_MEASURE_NAME = re.compile(
    r"\w+@[0-9]|(ndcg|map|mrr|err|recall|p|success)(_cut|_at)?_?[0-9]*$|recip_rank|bpref"
)
"""Beginning of the names of measures that evaluation programs print."""
_LETOR_LINE = re.compile(r"\S+ qid:\S+ [0-9]+:")
"""A line of features for learning to rank."""
_DEFAULT_REMEDY = "save it as CSV or JSON lines"
"""What to do with a file that cannot be read, unless `_REMEDIES` knows better."""
_MOST_ROWS = 200
"""Most rows that are looked at."""
_SCORE_POSITION = 4
"""Position of the scores, from 0, in a line of a TREC run."""
_RECORD_LENGTH = 200
"""Most characters of a first record."""
_MEASURE_COLUMNS = ("measure", "metric", "ndcg", "map", "mrr", "recall", "ndcg@10", "ndcg@20")
"""Names of the columns of a table of measures."""
_TEXT_COLUMNS = ("text", "contents", "content", "body", "passage", "segment")
"""Names of the column of a document's text."""
_MARKUP = {
    "<!doctype html": "a web page",
    "<html": "a web page",
    "<top>": "TREC topics",
    "<?xml": "XML",
    "<doc": "TREC documents",
    "version https://git-lfs": "a Git LFS pointer",
    "---\n": "YAML",
    "%yaml": "YAML",
}
"""Beginnings of text files without a table, and their format."""
_REMEDIES = {
    "a web page": "download the file itself, not the page that shows it",
    "a Git LFS pointer": "fetch the file: git lfs pull",
    "TREC topics": "write them as lines of id, tab and text",
}
"""What to do with a file that cannot be used as it is, by what it is."""


@dataclass(frozen=True, kw_only=True)
class Recognition:
    """The format of a file and its content."""

    format: str
    """Format, such as ``CSV`` or ``TREC run``."""
    kinds: tuple[str, ...] = ()
    """Kinds of content that it can be read as; empty if it cannot be read."""
    columns: tuple[str, ...] = ()
    """Names of the columns or fields."""
    width: int = 0
    """Number of columns, if they have no names."""
    first: str = ""
    """First record, as the file writes it; empty if it is not known."""
    remedy: str = ""
    """Advice for a file that cannot be used as it is."""

    def description(self) -> str:
        """Return a description of the file, such as ``judgments (CSV: query, docid, rating)``."""
        names = f": {', '.join(self.columns[:6])}" if self.columns else ""
        names += ", …" if len(self.columns) > 6 else ""
        if not self.kinds:
            return f"{self.format}{names}"
        form = "" if self.format in self.kinds else f" ({self.format}{names})"
        return f"{' or '.join(self.kinds)}{form}"


def recognise(file: DataFile) -> Recognition:
    """Recognise a file by its content."""
    if file.binary == "Parquet":
        return _parquet(file)
    unreadable = _unreadable(file)
    if unreadable is not None:
        return unreadable
    if file.has_json:
        return _json(file)
    if file.header and not file.is_headless:
        return _table(file.header, table_name(file.separator), file.rows[1:2])
    return _evaluation_table(file) or _plain_columns(file)


def _unreadable(file: DataFile) -> Recognition | None:
    """Recognise a file that cannot be read at all; None for any other."""
    if file.binary:
        remedy = "save it as UTF-8" if "UTF-16" in file.binary else _DEFAULT_REMEDY
        return Recognition(format=file.binary, remedy=remedy)
    start = file.start[:400].decode("utf-8", errors="replace").lstrip().lower()
    for beginning, name in _MARKUP.items():
        if start.startswith(beginning):
            return Recognition(format=name, remedy=_REMEDIES.get(name, _DEFAULT_REMEDY))
    if not file.rows:
        return Recognition(format="comments only" if file.lines else "an empty file")
    if file.has_markdown:
        return Recognition(format="a Markdown table", remedy="save it as CSV")
    if _LETOR_LINE.match(file.rows[0]):
        remedy = "write query, document and score as CSV"
        return Recognition(format="features for learning to rank (LETOR)", remedy=remedy)
    return None


def _parquet(file: DataFile) -> Recognition:
    """Recognise a Parquet file by its columns."""
    names = list(schema_of(file.path))
    return Recognition(format="Parquet", kinds=kinds_of(names), columns=tuple(names))


def _table(names: Sequence[str], form: str, rows: Sequence[str]) -> Recognition:
    """Recognise a table by its columns."""
    first = rows[0] if rows else ""
    return Recognition(format=form, kinds=kinds_of(names), columns=tuple(names), first=first)


def kinds_of(names: Sequence[str]) -> tuple[str, ...]:
    """Return the kinds of content that a table with these columns can be read as."""
    columns = {snake_case(name) for name in names}
    has_document = not columns.isdisjoint(DOCUMENT)
    has_query = not columns.isdisjoint(QUERY)
    if has_query and has_document:
        return _kinds_of_pairs(names)
    if has_query:
        has_measure = not columns.isdisjoint(_MEASURE_COLUMNS)
        # In a table of two columns, the one besides the query is its text.
        has_text = len(columns) == 2 or not columns.isdisjoint((*_TEXT_COLUMNS, "query_text"))
        if has_measure:
            return (EVALUATIONS,)
        return (QUERIES,) if has_text else ()
    if has_document and not columns.isdisjoint(_TEXT_COLUMNS):
        # An id and a text may be those of a query as well.
        return (DOCUMENTS, QUERIES) if len(columns) < 3 else (DOCUMENTS,)
    return (LABELS,) if has_document and len(columns) > 1 else ()


def _kinds_of_pairs(names: Sequence[str]) -> tuple[str, ...]:
    """Return the kinds of content that a table of queries and documents can be read as."""
    run_columns = find_columns(names, RUN_COLUMNS)
    judgment_columns = find_columns(names, QRELS_COLUMNS)
    grade_name = snake_case(judgment_columns.get("grade", ""))
    if "rank" in run_columns or "grade" not in judgment_columns:
        return (RUN,)
    if "score" not in run_columns:
        return (JUDGMENTS,)
    # BEIR calls its grades ``score``.
    return (RUN, JUDGMENTS) if grade_name == "score" else (RUN,)


def _json(file: DataFile) -> Recognition:
    """Recognise JSON by its first value, or by all of it."""
    is_lines = file.has_json_lines and len(file.rows) > 1
    form = "JSON lines" if is_lines else "JSON"
    try:
        document = parse_with_nan(file.rows[0]) if is_lines else read_document(file.path)
    except (ValueError, DataError) as error:
        message = getattr(error, "message", str(error))
        first = file.rows[0][:_RECORD_LENGTH]
        return Recognition(format=f"broken {form} ({message})", first=first)
    first = (file.rows[0] if is_lines else " ".join(file.rows))[:_RECORD_LENGTH]
    if isinstance(document, Mapping) and str(document.get("format", "")).startswith("ranktilt"):
        return Recognition(format=f"{document['format']}", kinds=(RESULT,), first=first)
    is_record = isinstance(document, Mapping) and not any(map(_is_nested, document.values()))
    if (is_lines and isinstance(document, Mapping)) or is_record:
        kinds = kinds_of(list(document))
        if kinds:
            return Recognition(format=form, kinds=kinds, columns=tuple(document), first=first)
    return _answers(form, first, without_run_name(document))


@dataclass(frozen=True, kw_only=True)
class _AnswerFields:
    """Fields of the documents in a file's answers."""

    paths: Mapping[str, str]
    """Path of each column."""
    are_listed: bool
    """Whether documents are in lists."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Paths of the fields whose meaning was recognised."""
        return tuple(self.paths.values())

    @property
    def has_grades(self) -> bool:
        """Whether documents have a grade, and not only a score."""
        grade = self.paths.get("grade", "")
        is_grade = bool(grade) and snake_case(grade.rpartition(".")[2]) != "score"
        return is_grade and "document" in self.paths


def _answers(form: str, first: str, document: Any) -> Recognition:
    """Recognise the JSON value `document` by the fields of its answers.

    `form` is the format for the result, and `first` the first record.
    """
    if isinstance(document, Mapping) and _is_number_map(document):
        numbers = chain.from_iterable(value.values() for value in document.values())
        is_whole = all(type(number) is int for number in numbers)
        kinds: tuple[str, ...] = (JUDGMENTS, RUN) if is_whole else (RUN,)
        columns: tuple[str, ...] = ("query", "document")
        return Recognition(format=form, kinds=kinds, columns=columns, first=first)
    qrels_fields = _answer_fields(document, QRELS_COLUMNS)
    if qrels_fields is not None and qrels_fields.has_grades:
        columns = qrels_fields.columns
        return Recognition(format=form, kinds=(JUDGMENTS,), columns=columns, first=first)
    run_fields = _answer_fields(document, RUN_COLUMNS)
    if run_fields is None or "document" not in run_fields.paths:
        return Recognition(format=form, first=first)
    is_run = "query" in run_fields.paths or run_fields.are_listed
    kinds = (RUN,) if is_run else kinds_of(run_fields.columns)
    return Recognition(format=form, kinds=kinds, columns=run_fields.columns, first=first)


def _answer_fields(document: Any, valid: Names) -> _AnswerFields | None:
    """Find the fields of a file's answers by the names in `valid`; None if it has no answers."""
    try:
        content = content_of(document, valid, {})
        shape = shape_of(content, valid, {})
    except UserError:
        return None
    are_listed = not shape.is_flat or content.keys is not None
    return _AnswerFields(paths=shape.fields, are_listed=are_listed)


def _is_nested(value: Any) -> bool:
    """Tell whether a value is an object or a list."""
    return isinstance(value, Mapping | list)


def _is_number_map(document: Mapping[str, Any]) -> bool:
    """Tell whether an object maps queries to documents to numbers."""
    values = list(document.values())
    if not values or not all(isinstance(value, Mapping) for value in values):
        return False
    numbers = chain.from_iterable(value.values() for value in values)
    return all(type(number) in (int, float) for number in numbers)


def _fields(row: str) -> list[str]:
    """Split a line at tabs, at blanks, or at the separator that gives the most fields."""
    if "\t" in row:
        return row.split("\t")
    if len(blank_fields(row)) > 1:
        return blank_fields(row)
    return max((row.split(separator) for separator in ",;|"), key=len)


def _evaluation_table(file: DataFile) -> Recognition | None:
    """Recognise a table whose header names queries and measures; None for any other."""
    for separator in ",\t":
        names = [snake_case(name) for name in file.rows[0].split(separator)]
        if set(names).isdisjoint(QUERY) or not any(map(_MEASURE_NAME.match, names)):
            continue
        first = file.rows[1] if len(file.rows) > 1 else ""
        return Recognition(
            format=table_name(separator),
            kinds=(EVALUATIONS,),
            columns=tuple(names),
            first=first,
        )
    return None


def _plain_columns(file: DataFile) -> Recognition:
    """Recognise lines without a header by their number of fields."""
    rows = _rows_of_same_width(file.rows[:_MOST_ROWS])
    width = len(rows[0]) if rows else 0
    form, kinds = _form_of_rows(rows, width)
    first = file.rows[0][:_RECORD_LENGTH]
    return Recognition(format=form, kinds=kinds, width=width, first=first)


def _form_of_rows(rows: Sequence[Sequence[str]], width: int) -> tuple[str, tuple[str, ...]]:
    """Return the format of rows of `width` fields, and the kinds that they can be read as."""
    columns = list(zip(*rows, strict=True))
    if width in (5, 6) and _are_numbers(columns[_SCORE_POSITION]):
        return "TREC run", (RUN,)
    if width == 4 and _are_numbers(columns[-1]):
        # The second field of TREC's judgments is the iteration, mostly 0.
        if set(columns[1]) <= {"0", "Q0"}:
            return "TREC judgments", (JUDGMENTS,)
        return "TREC run", (RUN,)
    if width == 3 and _are_numbers(columns[-1]):
        if any(_MEASURE_NAME.match(name.lower()) for name in columns[0]):
            return "trec_eval", (EVALUATIONS,)
        return "three columns", (JUDGMENTS, RUN)
    if width == 2:
        return "two columns", (QUERIES, LABELS)
    form = {0: "lines of text", 1: "text in one column"}.get(width, f"text in {width} columns")
    return form, ()


def _rows_of_same_width(lines: Sequence[str]) -> list[list[str]]:
    """Return the fields of each line; empty if lines have different numbers of fields."""
    rows = [_fields(line) for line in lines]
    if len(set(map(len, rows))) > 1:
        rows = [blank_fields(line) for line in lines]
    return rows if len(set(map(len, rows))) == 1 else []


def _are_numbers(texts: Iterable[str]) -> bool:
    """Tell whether all texts are numbers."""
    numbers = NumberColumn.from_texts(pl.Series(list(texts), dtype=pl.String))
    return numbers.values.null_count() == 0
