"""Judgments as JSON: ``{query: {document: grade}}`` of ranx, records, and engines' evaluations.

Elasticsearch's ``_rank_eval`` has ``requests`` with ``ratings``, OpenSearch's Search Relevance
Workbench has ``judgmentRatings`` with ``ratings``. Both are read as *answers*, lists of documents
for each query, whose documents have grades. Logs of evaluation tools are read by `grade_logs`.
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
    if file.has_json_lines and len(file.rows) > 1:
        return _read_lines(file)
    document = stored_judgments(read_document(file.path))
    log = log_of(document)
    if log is not None:
        return _read_log(file, log, log.samples_in(document))
    document = document if file.columns else without_run_name(document)
    content = content_of(document, QRELS_COLUMNS, file.columns)
    if not file.columns and _is_grade_map(document, content):
        return _read_map(file, document)
    block = ValueBlock(values=list(content.values), lines=[])
    return _read_values(file, content, iter([block]))


def _read_log(
    file: DataFile, log: GradeLog, samples: Sequence[Any], lines: Sequence[int] = ()
) -> JudgmentFile:
    """Read the grades in a tool's log."""
    require_single_model(file, log, samples)
    return read_log(file, log, samples, lines)


def _is_grade_map(document: Any, content: Content) -> bool:
    """Return whether an object may be ``{query: {document: grade}}``."""
    if not isinstance(document, Mapping):
        return False
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
        noun="grade",
        read_as="{query: {document: grade}}",
    )


def _read_lines(file: DataFile) -> JudgmentFile:
    """Read judgments, or the samples of a log, line by line."""
    first, blocks = first_blocks(file.path)
    values = list(chain.from_iterable(block.values for block in first))
    log = log_of(values)
    if log is not None:
        all_blocks = [*first, *blocks]
        samples = list(chain.from_iterable(block.values for block in all_blocks))
        lines = list(chain.from_iterable(block.lines for block in all_blocks))
        return _read_log(file, log, samples, lines)
    content = Content(values=values, form="JSON lines")
    return _read_values(file, content, chain(first, blocks))


def _read_values(file: DataFile, content: Content, blocks: Iterator[ValueBlock]) -> JudgmentFile:
    """Read the judgments of all values in `blocks`.

    `content` has the first values, which show where their fields are.
    """
    path = file.path
    try:
        if not content.values:
            raise UserError("expected judgments, got none")
        shape = shape_of(content, QRELS_COLUMNS, file.columns)
        has_grades = "grade" in shape.fields or not shape.has_bare_ids(content.values)
        _require_shape(content, shape, needs_grade=has_grades)
    except UserError as error:
        raise error_in_file(path, error) from error
    entries = Entries()
    for block in blocks:
        gather(path, entries, shape, block.values, queries=content.keys, lines=block.lines)
    # A run leaves out the answers that are errors; judgments must be complete.
    if entries.failed:
        query, fault = next(iter(entries.failed.items()))
        line = next(iter(entries.failed_lines), None)
        raise DataError(path, f"query {query!r}: {fault}", line=line)
    records = entries.records
    grades = [1] * len(records)
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
        noun=shape.fields.get("grade", "grade"),
        lines=entries.lines,
        read_as=read_as,
        confidence=NumberColumn.from_json(confidences) if has_confidence else None,
    )


def _require_shape(content: Content, shape: ValueShape, *, needs_grade: bool) -> None:
    """Refuse values that have no query, no document or, if it is needed, no grade."""
    columns = dict(shape.fields)
    if shape.query or content.keys is not None:
        columns["query"] = shape.query
    first_value = content.values[0]
    names = list(first_value) if isinstance(first_value, Mapping) else []
    needed = ("query", "document", "grade") if needs_grade else ("query", "document")
    require_columns(columns, needed, form=shape.form, names=names)


def _as_number(value: Any) -> Any:
    """Return 1 or 0 for a truth value, and any other grade as it is."""
    return int(value) if isinstance(value, bool) else value
