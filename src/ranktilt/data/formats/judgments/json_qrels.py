"""Judgments as JSON.

These layouts are read:

- a *grade map*, ``{query: {document: grade}}``, which ranx writes;
- *records*, an object for each judgment, in a list or in lines;
- *answers*: an object for each query, with a list of its graded documents. Requests of
  Elasticsearch's ``_rank_eval`` and judgments of OpenSearch's Search Relevance Workbench have this
  layout;
- *logs* of evaluation tools, whose *samples* are graded pairs of a query and a document
  (`grade_logs`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from ranktilt.data.formats.base import JudgmentFile
from ranktilt.data.formats.data_file import DataFile
from ranktilt.data.formats.json_values import ValueBlock, first_blocks, read_document
from ranktilt.data.formats.judgments.grade_logs import (
    GradeLog,
    log_of,
    read_log,
    require_single_model,
)
from ranktilt.data.formats.judgments.judgment_columns import judgments_of_columns
from ranktilt.data.formats.responses.answer_shape import ValueShape, shape_of
from ranktilt.data.formats.responses.answers import (
    Content,
    content_of,
    stored_judgments,
    without_run_name,
)
from ranktilt.data.formats.responses.entries import Entries, entry_ids, field_values, gather
from ranktilt.data.formats.runs.score_map import map_of
from ranktilt.data.formats.tables.cells import NumberColumn
from ranktilt.data.formats.tables.column_names import QRELS_COLUMNS, require_columns
from ranktilt.errors import DataError, UserError, error_in_file


def sniff(file: DataFile) -> bool:
    """Return whether a file begins as JSON does."""
    return file.has_json


def read(file: DataFile) -> JudgmentFile:
    """Read JSON of judgments: one value, or a value in each line."""
    # A single line may be a whole file of any layout, so it is read as one value.
    if file.has_json_lines and len(file.rows) > 1:
        return _read_lines(file)
    # `stored_judgments` unwraps judgments that an engine stores and returns as search results.
    document = stored_judgments(read_document(file.path))
    log = log_of(document)
    if log is not None:
        return _read_log(file, log, log.samples_in(document))
    # The paths that a user gives begin at the outermost object, so that one is kept.
    if not file.columns:
        document = without_run_name(document)
    content = content_of(document, QRELS_COLUMNS, file.columns)
    if not file.columns and _is_grade_map(document, content):
        return _read_map(file, document)
    block = ValueBlock(values=list(content.values), lines=[])
    return _read_values(file, content, iter([block]))


def _read_log(
    file: DataFile, log: GradeLog, samples: Sequence[Any], lines: Sequence[int] = ()
) -> JudgmentFile:
    """Read the grades in a tool's log; `DataError` if several models graded its samples.

    `lines` has the line of each sample in the file; it is empty if samples are not lines.
    """
    require_single_model(file, log, samples)
    return read_log(file, log, samples, lines)


def _is_grade_map(document: Any, content: Content) -> bool:
    """Return whether an object may be ``{query: {document: grade}}``."""
    if not isinstance(document, Mapping):
        return False
    # `_read_map` refuses an empty object, with an error that names the expected layout.
    if not document:
        return True
    # The content of an object is the object itself, unless a list of records is in it.
    if not content.values or content.values[0] is not document:
        return False
    return any(isinstance(value, Mapping) for value in document.values())


def _read_map(file: DataFile, document: Mapping[str, Any]) -> JudgmentFile:
    """Read ``{query: {document: grade}}``."""
    grades = map_of(file.path, document)
    return judgments_of_columns(
        file.path,
        query=grades.query,
        document=grades.document,
        grade=grades.numbers,
        grade_name="grade",
        read_as="{query: {document: grade}}",
    )


def _read_lines(file: DataFile) -> JudgmentFile:
    """Read judgments, or the samples of a log, line by line."""
    first, later = first_blocks(file.path)
    values = list(chain.from_iterable(block.values for block in first))
    log = log_of(values)
    if log is not None:
        all_blocks = [*first, *later]
        samples = list(chain.from_iterable(block.values for block in all_blocks))
        lines = list(chain.from_iterable(block.lines for block in all_blocks))
        return _read_log(file, log, samples, lines)
    content = Content(values=values, form="JSON lines")
    return _read_values(file, content, chain(first, later))


def _read_values(file: DataFile, content: Content, blocks: Iterator[ValueBlock]) -> JudgmentFile:
    """Read the judgments of all values in `blocks`.

    `content` has the first of these values, which show where all have their fields; if it has
    keys, these are the queries of the values.
    """
    path = file.path
    try:
        if not content.values:
            raise UserError("expected judgments, got none")
        shape = shape_of(content, QRELS_COLUMNS, file.columns)
        # A list of bare ids names the relevant documents; every other layout needs grades.
        has_grades = "grade" in shape.fields or not shape.has_bare_ids(content.values)
        _require_shape(content, shape, needs_grade=has_grades)
    except UserError as error:
        raise error_in_file(path, error) from error
    entries = Entries()
    for block in blocks:
        gather(path, entries, shape, block.values, queries=content.keys, lines=block.lines)
    # An engine may have answered a query with an error. A run can do without such a query, but
    # judgments must be complete.
    if entries.failed:
        query, fault = next(iter(entries.failed.items()))
        line = next(iter(entries.failed_lines), None)
        raise DataError(path, f"query {query!r}: {fault}", line=line)
    records = entries.records
    grades = [1] * len(records)
    # The place of a document in its list means nothing in judgments.
    read_as = shape.read_as(("document", "grade"), is_by_place=False)
    if has_grades:
        grades = [_as_number(grade) for grade in field_values(records, shape.fields["grade"])]
    else:
        read_as += ", all of them relevant (grade 1)"
    confidences = field_values(records, file.columns.get("confidence", "confidence"))
    has_confidence = any(value is not None for value in confidences)
    documents = field_values(records, shape.fields["document"])
    return judgments_of_columns(
        path,
        query=entry_ids(path, "query", entries.query, entries),
        document=entry_ids(path, "document", documents, entries),
        grade=NumberColumn.from_json(grades),
        grade_name=shape.fields.get("grade", "grade"),
        lines=entries.lines,
        read_as=read_as,
        confidence=NumberColumn.from_json(confidences) if has_confidence else None,
    )


def _require_shape(content: Content, shape: ValueShape, *, needs_grade: bool) -> None:
    """Refuse values that have no query, no document or, if it is needed, no grade."""
    columns = dict(shape.fields)
    # With keys, the keys are the queries, and `shape.query` is empty.
    if shape.query or content.keys is not None:
        columns["query"] = shape.query
    first_value = content.values[0]
    names = list(first_value) if isinstance(first_value, Mapping) else []
    needed = ("query", "document", "grade") if needs_grade else ("query", "document")
    require_columns(columns, needed, form=shape.form, names=names)


def _as_number(value: Any) -> Any:
    """Return 1 or 0 for a truth value, and any other grade as it is."""
    return int(value) if isinstance(value, bool) else value
