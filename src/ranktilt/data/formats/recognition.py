"""What a file is, whatever it was named as: its format, what it holds, its columns and its first record."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ranktilt.data.formats.answers import content_of, plan_of
from ranktilt.data.formats.base import JUDGMENTS, LABELS, QUERIES, RUN
from ranktilt.data.formats.cells import NumberColumn
from ranktilt.data.formats.column_names import (
    DOCUMENT,
    GRADE,
    LABEL,
    QRELS_COLUMNS,
    QUERY,
    RUN_COLUMNS,
    find_columns,
    folded,
)
from ranktilt.data.formats.data_file import DataFile, blank_fields
from ranktilt.data.formats.json_values import loads, read_document
from ranktilt.data.formats.parquet import schema_of
from ranktilt.data.formats.table_run import table_name
from ranktilt.errors import DataError, UserError

DOCUMENTS, RESULT, EVALUATIONS = "documents", "a result of ranktilt", "values per query"
_MEASURE = re.compile(
    r"\w+@[0-9]|(ndcg|map|mrr|err|recall|p|success)(_cut|_at)?_?[0-9]*$|recip_rank|bpref"
)
"""How names of measures begin that evaluation programs print."""
_LETOR = re.compile(r"\S+ qid:\S+ [0-9]+:")
_LONGEST = 200
"""Signs of a first record that are kept."""
_MEASURE_COLUMNS = ("measure", "metric", "ndcg", "map", "mrr", "recall", "ndcg@10", "ndcg@20")
_TEXTS = ("text", "contents", "content", "body", "passage", "segment")
_MARKUP = {
    "<!doctype html": "a web page",
    "<html": "a web page",
    "<top>": "TREC topics",
    "<?xml": "XML",
    "<doc": "TREC documents",
    "version https://git-lfs": "a pointer of Git LFS",
    "---\n": "YAML",
    "%yaml": "YAML",
}
"""How files begin that are text but hold no table."""
_REMEDIES = {
    "a web page": "download the file itself, not the page that shows it",
    "a pointer of Git LFS": "fetch the file: git lfs pull",
    "TREC topics": "write them as lines of id, tab and text",
}


@dataclass(frozen=True, kw_only=True)
class Recognition:
    """What a file is."""

    format: str
    """How it is written, such as ``CSV`` or ``TREC run``."""
    kinds: tuple[str, ...] = ()
    """What it can be read as; empty for what is read as nothing."""
    columns: tuple[str, ...] = ()
    """Names of its columns or fields."""
    width: int = 0
    """Number of its columns, where these have no names."""
    first: str = ""
    """Its first record."""
    remedy: str = ""
    """What to do with it, where it is of no use as it is."""

    def described(self) -> str:
        """Return what it is in words, such as ``judgments (CSV: query, docid, rating)``."""
        names = f": {', '.join(self.columns[:6])}" if self.columns else ""
        names += ", …" if len(self.columns) > 6 else ""
        if not self.kinds:
            return f"{self.format}{names}"
        form = "" if self.format in self.kinds else f" ({self.format}{names})"
        return f"{' or '.join(self.kinds)}{form}"


def recognise(file: DataFile) -> Recognition:
    """Return what a file is."""
    if file.binary == "Parquet":
        return _parquet(file)
    if file.binary:
        remedy = "save it as UTF-8" if "UTF-16" in file.binary else "save it as CSV or JSON lines"
        return Recognition(format=file.binary, remedy=remedy)
    start = file.start[:400].decode("utf-8", errors="replace").lstrip().lower()
    for sign, name in _MARKUP.items():
        if start.startswith(sign):
            remedy = _REMEDIES.get(name, "save it as CSV or JSON lines")
            return Recognition(format=name, remedy=remedy)
    if file.has_markdown:
        return Recognition(format="a table of Markdown", remedy="save it as CSV")
    if file.rows and _LETOR.match(file.rows[0]):
        remedy = "write query, document and score as CSV"
        return Recognition(format="features for learning to rank (LETOR)", remedy=remedy)
    if not file.rows:
        return Recognition(format="an empty file" if not file.lines else "comments only")
    if file.has_json:
        return _json(file)
    if file.header and not file.is_headless:
        return _table(file.header, table_name(file.separator), file.rows[1:2])
    return _plain_columns(file)


def _parquet(file: DataFile) -> Recognition:
    names = list(schema_of(file.path))
    return Recognition(format="Parquet", kinds=kinds_of(names), columns=tuple(names))


def _table(names: Sequence[str], form: str, rows: Sequence[str]) -> Recognition:
    first = rows[0] if rows else ""
    return Recognition(format=form, kinds=kinds_of(names), columns=tuple(names), first=first)


def kinds_of(names: Sequence[str]) -> tuple[str, ...]:
    """Return what a table with these columns can be read as."""
    plain = {folded(name) for name in names}
    run, judgments = find_columns(names, RUN_COLUMNS), find_columns(names, QRELS_COLUMNS)
    has_document = not plain.isdisjoint(DOCUMENT)
    has_query = not plain.isdisjoint(QUERY)
    has_grade = not plain.isdisjoint(set(GRADE) - {"score"})
    if has_query and not plain.isdisjoint(_MEASURE_COLUMNS) and not has_document:
        return (EVALUATIONS,)
    if has_query and has_document and has_grade and "score" not in run and "rank" not in run:
        return (JUDGMENTS,)
    if has_query and has_document and ("score" in run or "rank" in run):
        return (RUN, JUDGMENTS) if "grade" in judgments and "rank" not in run else (RUN,)
    if has_document and not plain.isdisjoint(_TEXTS) and not has_query:
        return (DOCUMENTS, QUERIES) if len(plain) < 3 else (DOCUMENTS,)
    if has_document and not plain.isdisjoint(LABEL):
        return (LABELS,)
    if has_query and has_document:
        return (RUN,)
    if has_query and (len(plain) == 2 or not plain.isdisjoint((*_TEXTS, "query_text"))):
        return (QUERIES,)
    if has_document and len(plain) > 1:
        return (LABELS,)
    return ()


def _json(file: DataFile) -> Recognition:
    """Recognise JSON by its first value, or by all of it."""
    is_lines = file.has_json_lines and len(file.rows) > 1
    form = "JSON lines" if is_lines else "JSON"
    try:
        document = loads(file.rows[0]) if is_lines else read_document(file.path)
    except (ValueError, DataError) as error:
        message = getattr(error, "message", str(error))
        return Recognition(format=f"broken {form} ({message})", first=file.rows[0][:_LONGEST])
    first = file.rows[0][:_LONGEST] if is_lines else " ".join(file.rows)[:_LONGEST]
    if isinstance(document, Mapping) and str(document.get("format", "")).startswith("ranktilt"):
        return Recognition(format=f"{document['format']}", kinds=(RESULT,), first=first)
    is_record = isinstance(document, Mapping) and not any(map(_is_nested, document.values()))
    if (is_lines and isinstance(document, Mapping)) or is_record:
        kinds = kinds_of(list(document))
        if kinds:
            return Recognition(format=form, kinds=kinds, columns=tuple(document), first=first)
    return Recognition(format=form, first=first, **_answer_kinds(document))


def _answer_kinds(document: Any) -> dict[str, Any]:
    """Return what JSON can be read as, and its fields, by the shape of its answers."""
    if isinstance(document, Mapping) and _is_number_map(document):
        inner = [value for value in document.values() if value]
        numbers = [number for value in inner for number in value.values()]
        is_whole = all(type(number) is int for number in numbers)
        return {"kinds": (JUDGMENTS, RUN) if is_whole else (RUN,), "columns": ("query", "document")}
    for kind, valid in ((JUDGMENTS, QRELS_COLUMNS), (RUN, RUN_COLUMNS)):
        try:
            content = content_of(document, valid, {})
            plan = plan_of(content, valid, {})
        except UserError:
            continue
        names = tuple(plan.fields.values())
        if kind == JUDGMENTS and _is_graded(plan.fields, names) and "document" in plan.fields:
            return {"kinds": (JUDGMENTS,), "columns": names}
        if kind == RUN and "document" in plan.fields:
            if not (plan.is_flat and not plan.query and content.keys is None):
                return {"kinds": (RUN,), "columns": names}
            return {"kinds": kinds_of(names), "columns": names}
    return {}


def _is_nested(value: Any) -> bool:
    return isinstance(value, Mapping | list)


def _is_graded(fields: Mapping[str, str], names: Sequence[str]) -> bool:
    grade = fields.get("grade", "")
    return bool(grade) and folded(grade.rpartition(".")[2]) != "score"


def _is_number_map(document: Mapping[str, Any]) -> bool:
    values = list(document.values())
    if not values or not all(isinstance(value, Mapping) for value in values):
        return False
    return all(type(number) in (int, float) for value in values for number in value.values())


def _fields(row: str) -> list[str]:
    """Return the fields of a line, parted by what parts it into most."""
    if "\t" in row:
        return row.split("\t")
    if len(blank_fields(row)) > 1:
        return blank_fields(row)
    return max((row.split(separator) for separator in ",;|"), key=len)


def _plain_columns(file: DataFile) -> Recognition:
    """Recognise lines without a header of documents by their number of fields."""
    for separator in ",\t":
        names = [folded(name) for name in file.rows[0].split(separator)]
        if not set(names).isdisjoint(QUERY) and any(map(_MEASURE.match, names)):
            form, columns = table_name(separator), tuple(names)
            first = "".join(file.rows[1:2])
            return Recognition(format=form, kinds=(EVALUATIONS,), columns=columns, first=first)
    rows = [_fields(row) for row in file.rows[:200]]
    first = file.rows[0][:_LONGEST]
    widths = {len(row) for row in rows}
    if len(widths) != 1:
        blank_widths = {len(blank_fields(row)) for row in file.rows[:200]}
        if len(blank_widths) == 1:
            rows, widths = [blank_fields(row) for row in file.rows[:200]], blank_widths
    width = widths.pop() if len(widths) == 1 else 0
    last = NumberColumn.from_texts(pl.Series([row[-1] for row in rows], dtype=pl.String))
    is_number = last.values.null_count() == 0
    if width in (5, 6):
        scores = NumberColumn.from_texts(pl.Series([row[4] for row in rows], dtype=pl.String))
        if scores.values.null_count() == 0:
            return Recognition(format="TREC run", kinds=(RUN,), first=first)
    if width == 4 and is_number:
        has_zero = all(row[1] in ("0", "Q0") for row in rows)
        if has_zero:
            return Recognition(format="TREC judgments", kinds=(JUDGMENTS,), first=first)
        return Recognition(format="TREC run without tag", kinds=(RUN,), first=first)
    if width == 3 and is_number:
        is_measure = any(_MEASURE.match(row[0].lower()) for row in rows)
        if is_measure:
            return Recognition(format="trec_eval", kinds=(EVALUATIONS,), first=first)
        return Recognition(width=width, format="three columns", kinds=(JUDGMENTS, RUN), first=first)
    if width == 2:
        return Recognition(width=width, format="two columns", kinds=(QUERIES, LABELS), first=first)
    described = {0: "lines", 1: "one column"}.get(width, f"{width} columns")
    return Recognition(width=width, format=f"text of {described}", first=first)
