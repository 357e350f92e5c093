"""Read runs in JSON: responses, lists, records, lines of these, and ``{query: {document: score}}``.

An *answer* is the ranked documents of one query. A *response* is an answer as an engine sends it,
and may be an error instead. An *entry* is one document in the list of one query. The *repeats* of a
query are several answers to it by one engine. Lines of a large file are read a *block* at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl

from ranktilt.data.formats.base import RunFile, RunRequest
from ranktilt.data.formats.data_file import DataFile
from ranktilt.data.formats.json_values import first_blocks, read_document
from ranktilt.data.formats.responses.answer_shape import ValueShape, sample_keys, shape_of
from ranktilt.data.formats.responses.answers import Content, content_of, without_run_name
from ranktilt.data.formats.responses.entries import Entries, entry_ids, field_values, gather
from ranktilt.data.formats.responses.search_responses import allowed_failures, too_many_failures
from ranktilt.data.formats.runs.repeats import REPEAT, RepeatColumn, repeat_column
from ranktilt.data.formats.runs.run_columns import RunColumns, run_of_columns
from ranktilt.data.formats.runs.score_map import MTEB, mteb_scores, read_scores
from ranktilt.data.formats.tables.cells import NumberColumn
from ranktilt.data.formats.tables.column_names import RUN_COLUMNS, require_columns
from ranktilt.errors import DataError, UserError, counted, error_in_file, shorten

_UNNAMED_HINT = (
    "the responses do not name their queries; give these in the same order with --queries FILE "
    "(queries=[…] in Python), or name the field that holds them: FILE:query=FIELD"
)
"""What to do if responses do not name their queries, for messages."""
_NUMBER_COLUMNS = ("score", "rank")
"""Columns of numbers."""
_INDEX = "index"
"""Field in which re-ranking services return a document's position in the request."""


@dataclass(frozen=True, kw_only=True)
class EntryColumns:
    """Columns of some entries."""

    query: pl.Series
    """Query of each entry."""
    document: pl.Series
    """Document of each entry."""
    score: NumberColumn
    """Score of each entry."""
    rank: NumberColumn
    """Rank of each entry."""
    repeat: pl.Series | None = None
    """Values that may number the repeats; None if no field may number them."""


def sniff(file: DataFile) -> bool:
    """Return whether a file begins as JSON does."""
    return file.has_json


def read(file: DataFile, request: RunRequest) -> RunFile:
    """Read JSON of results: one value, or a value in each line."""
    if file.has_json_lines and len(file.rows) > 1:
        return _read_lines(file, request)
    return read_content(file, read_document(file.path), request)


def read_content(file: DataFile, document: Any, request: RunRequest) -> RunFile:
    """Read a run from a JSON value."""
    tag = ""
    if isinstance(document, Mapping) and isinstance(document.get(MTEB), Mapping):
        tag = str(document[MTEB].get("model_name", ""))
        document = mteb_scores(file.path, document)
        # mteb's dictionaries are in no order, so that the direction of scores cannot be seen.
        request = replace(request, score_order=request.score_order or "score")
    elif not file.columns:
        document = without_run_name(document)
    try:
        content = content_of(document, RUN_COLUMNS, file.columns)
        if not file.columns and _is_score_map(document, content):
            return read_scores(file.path, document, request.score_order, tag)
        content = _as_one_answer(content, file.columns)
        if not content.values:
            raise UserError(
                f"expected results of queries, got {shorten(document)}; {_UNNAMED_HINT}"
            )
        shape = shape_of(content, RUN_COLUMNS, file.columns)
    except UserError as error:
        raise error_in_file(file.path, error) from error
    queries = _queries(file.path, content, shape, request)
    repeat_key = _repeat_key(file, content.values)
    return read_answers(
        file.path, content, shape, queries=queries, request=request, repeat_column=repeat_key
    )


def read_answers(
    path: Path,
    content: Content,
    shape: ValueShape,
    *,
    queries: Sequence[Any] | None,
    request: RunRequest,
    repeat_column: RepeatColumn | None = None,
) -> RunFile:
    """Read the documents of answers.

    Parameters
    ----------
    path : Path
        The file or folder, for errors.
    content : Content
        The values of the file.
    shape : ValueShape
        Where values have their fields.
    queries : sequence or None
        Query of each value; None if values name their queries.
    request : RunRequest
        The user's options.
    repeat_column : RepeatColumn, optional
        The field that may number repeats.
    """
    entries = Entries(repeat_column=repeat_column)
    gather(path, entries, shape, content.values, queries=queries)
    columns = _columns(path, shape, entries)
    return _run(path, shape, entries, [columns], request=request)


def _read_lines(file: DataFile, request: RunRequest) -> RunFile:
    """Read one value per line; the first ones show the paths of fields."""
    first, rest = first_blocks(file.path)
    values = list(chain.from_iterable(block.values for block in first))
    try:
        content = Content(values=values, form="JSON lines")
        shape = shape_of(content, RUN_COLUMNS, file.columns)
    except UserError as error:
        raise error_in_file(file.path, error, line=first[0].lines[0]) from error
    line_queries = _LineQueries.from_first_lines(shape, values, request)
    entries = Entries(repeat_column=_repeat_key(file, values))
    blocks, count = list[EntryColumns](), 0
    for block in chain(first, rest):
        queries = line_queries.queries_of(block.values, count)
        count += len(block.values)
        gather(file.path, entries, shape, block.values, queries=queries, lines=block.lines)
        blocks.append(_columns(file.path, shape, entries))
        # The columns hold them now, in less memory.
        entries.query, entries.records, entries.repeats = [], [], []
    if line_queries.is_by_order and count != len(request.queries or ()):
        raise _unnamed_error(file.path, count, request)
    return _run(file.path, shape, entries, blocks, request=request)


@dataclass(frozen=True, kw_only=True)
class _LineQueries:
    """How the query of each line is found: by its own field, its text, or the order of the ids."""

    shape: ValueShape
    """Places of the fields."""
    request: RunRequest
    """The user's options."""
    is_by_text: bool
    """Whether queries are found by their texts."""
    is_by_order: bool
    """Whether queries are found by the order of the lines."""

    @classmethod
    def from_first_lines(
        cls, shape: ValueShape, values: Sequence[Any], request: RunRequest
    ) -> _LineQueries:
        """Decide how queries are found; `values` are those of the first lines."""
        is_by_text = _ids_by_text(values, shape, request) is not None
        names_query = shape.is_flat or bool(shape.query)
        gives_missing_ids = request.queries is not None and shape.names_no_ids
        return cls(
            shape=shape,
            request=request,
            is_by_text=is_by_text,
            is_by_order=not is_by_text and (gives_missing_ids or not names_query),
        )

    def queries_of(self, values: Sequence[Any], start: int) -> list[str | None] | None:
        """Return the query of each value; None if the values name their queries.

        `start` is the number of values before these. The query is None for a value whose text is
        unknown, or that comes after the last id.
        """
        if self.is_by_text:
            ids_by_text = self.request.texts
            return [ids_by_text.get(str(self.shape.query_of(value))) for value in values]
        if not self.is_by_order:
            return None
        ids = list((self.request.queries or ())[start : start + len(values)])
        missing_count = len(values) - len(ids)
        return [*ids, *[None] * missing_count]


def _is_score_map(document: Any, content: Content) -> bool:
    """Return whether an object may be ``{query: {document: score}}``.

    The content of an object is the object itself, unless a list of answers is in it.
    """
    if not isinstance(document, Mapping) or not content.values or content.values[0] is not document:
        return False
    if not document:
        return True
    if not any(isinstance(value, Mapping) for value in document.values()):
        return False
    try:
        shape = shape_of(content, RUN_COLUMNS, {})
    except UserError:
        return False
    return not shape.hits


def _as_one_answer(content: Content, choices: Mapping[str, str]) -> Content:
    """Return documents that name no query as one answer; any other content as it is.

    The user then names the query. `choices` has the user's names of fields.
    """
    values = content.values
    if content.keys is not None or not values or any(isinstance(value, list) for value in values):
        return content
    if all(isinstance(value, Mapping) for value in values):
        shape = shape_of(content, RUN_COLUMNS, choices)
        are_documents = shape.is_flat and not shape.query and "document" in shape.fields
    else:
        are_documents = all(type(value) in (str, int) for value in values)  # ids
    return replace(content, values=[values]) if are_documents else content


def answer_in(document: Any, choices: Mapping[str, str]) -> Any:
    """Return the answer in a JSON value; `UserError` unless it holds exactly one.

    `choices` has the user's names of fields.
    """
    content = _as_one_answer(content_of(document, RUN_COLUMNS, choices), choices)
    if content.keys is not None or len(content.values) != 1:
        raise UserError("expected a response to one query")
    return content.values[0]


def _queries(
    path: Path, content: Content, shape: ValueShape, request: RunRequest
) -> Sequence[Any] | None:
    """Return the query of each value; None if the values name their queries."""
    if content.keys is not None:
        return content.keys
    if shape.is_flat:
        return None
    ids_by_text = _ids_by_text(content.values, shape, request)
    if ids_by_text is not None:
        return ids_by_text
    ids = request.queries
    # The user's ids count more than the texts of queries, which responses repeat at most.
    if ids is not None and shape.names_no_ids and len(ids) == len(content.values):
        return ids
    if shape.query and all(shape.query_of(value) is not None for value in content.values):
        return None
    raise _unnamed_error(path, len(content.values), request)


def _ids_by_text(values: Sequence[Any], shape: ValueShape, request: RunRequest) -> list[str] | None:
    """Return the id of each value's query, by the text of the query in the value.

    None if the user gave no texts, or any text is unknown.
    """
    if not request.texts or not shape.query:
        return None
    ids = [request.texts.get(str(shape.query_of(value))) for value in values]
    known_ids = [query_id for query_id in ids if query_id is not None]
    return known_ids if len(known_ids) == len(ids) else None


def _unnamed_error(path: Path, count: int, request: RunRequest) -> DataError:
    """Return the error for `count` responses whose queries are not known."""
    ids = f"{counted(count, 'response', 'responses')} and {len(request.queries or ()) or 'no'} ids"
    message = f"expected responses to searches and an id for each, got {ids}; {_UNNAMED_HINT}"
    return DataError(path, message)


def _columns(path: Path, shape: ValueShape, entries: Entries) -> EntryColumns:
    """Return the columns of the entries; `DataError` names the file if a column is missing."""
    records = entries.records
    needed = ("query", "document") if shape.is_flat else ("document",)
    try:
        if records:
            require_columns(shape.fields, needed, form=shape.form, names=sample_keys(records))
    except UserError as error:
        raise DataError(path, f"{error}{_index_hint(shape, records)}") from error
    documents = field_values(records, shape.fields.get("document", ""))
    scores, ranks = (
        field_values(records, shape.fields.get(column, "")) for column in _NUMBER_COLUMNS
    )
    if shape.layout is not None and shape.layout.id_after:
        separator = shape.layout.id_after
        documents = [
            str(doc_id).split(separator, 1)[-1] if doc_id else doc_id for doc_id in documents
        ]
    return EntryColumns(
        query=entry_ids(path, "query", entries.query, entries),
        document=entry_ids(path, "document", documents, entries),
        score=NumberColumn.from_json(scores),
        rank=NumberColumn.from_json(ranks),
        repeat=_repeat_texts(entries),
    )


def _repeat_texts(entries: Entries) -> pl.Series | None:
    """Return the values that may number repeats, as texts; None if no field may number them."""
    if entries.repeat_column is None:
        return None
    texts = [None if value is None else str(value) for value in entries.repeats]
    return pl.Series(texts, dtype=pl.String)


def _repeat_key(file: DataFile, values: Sequence[Any]) -> RepeatColumn | None:
    """Return the field of values that may number repeats; None if there is no such field."""
    records = [value for value in values if isinstance(value, Mapping)]
    if not records:
        return None
    try:
        return repeat_column(sample_keys(records), file.columns)
    except UserError as error:
        raise error_in_file(file.path, error) from error


def _index_hint(shape: ValueShape, records: Sequence[Any]) -> str:
    """Say that a position is no id, if documents have a position and no id; empty otherwise."""
    if "document" in shape.fields or _INDEX not in sample_keys(records):
        return ""
    return (
        "; index is a document's position in the request, not its id (to use it as the id, "
        "FILE:id=index)"
    )


def _run(
    path: Path,
    shape: ValueShape,
    entries: Entries,
    blocks: Sequence[EntryColumns],
    *,
    request: RunRequest,
) -> RunFile:
    """Make the run of all entries, whose columns are in `blocks`."""
    _require_few_failures(path, entries, request)
    queries = None
    if not shape.is_flat:
        query_ids = [str(query_id) for query_id in entries.queries if query_id is not None]
        queries = list(dict.fromkeys(query_ids))
    stacked, repeat_column = _stacked_columns(blocks), entries.repeat_column
    if repeat_column is None:
        _require_single_queries(path, entries, are_repeats=False)
    columns = RunColumns(
        path=path,
        query=stacked.query,
        document=stacked.document,
        score=stacked.score,
        rank=stacked.rank,
        names=shape.fields,
        lines=entries.lines,
        queries=queries,
    )
    if repeat_column is not None and stacked.repeat is not None:
        columns = columns.with_repeats(stacked.repeat, repeat_column)
    uses_scores = request.score_order != "rank" and columns.score.is_given
    is_by_place = not uses_scores and not columns.rank.is_given
    nouns = ("document", "score" if uses_scores else "rank")
    read_as = shape.read_as(nouns, is_by_place=is_by_place)
    run = run_of_columns(columns, request.score_order, read_as)
    _require_single_queries(path, entries, are_repeats=REPEAT in run.frame.columns)
    return replace(run, failed=_unanswered(entries))


def _stacked_columns(blocks: Sequence[EntryColumns]) -> EntryColumns:
    """Put the columns of several blocks one below the other."""
    return EntryColumns(
        query=pl.concat([block.query for block in blocks]),
        document=pl.concat([block.document for block in blocks]),
        score=_stacked_numbers([block.score for block in blocks]),
        rank=_stacked_numbers([block.rank for block in blocks]),
        repeat=_stacked_texts([block.repeat for block in blocks]),
    )


def _stacked_texts(columns: Sequence[pl.Series | None]) -> pl.Series | None:
    """Put columns of texts one below the other; None if all are None."""
    present = [column for column in columns if column is not None]
    return pl.concat(present) if present else None


def _stacked_numbers(columns: Sequence[NumberColumn]) -> NumberColumn:
    """Put columns of numbers one below the other."""
    if len(columns) == 1:
        return columns[0]
    raw = list(chain.from_iterable(column.raw for column in columns))
    return NumberColumn(raw=raw, values=pl.concat([column.values for column in columns]))


def _require_few_failures(path: Path, entries: Entries, request: RunRequest) -> None:
    """Refuse more failed responses than allowed, and a file of failed ones alone."""
    unanswered = _unanswered(entries)
    failed, noun = len(unanswered), ("query", "queries")
    if entries.repeat_column is not None:
        failed, noun = entries.failures, ("answer", "answers")
    total = failed + len(entries.queries)
    if not failed:
        return
    if failed > allowed_failures(total, request.max_failures) or failed == total:
        query, fault = next(iter(unanswered.items()))
        message = too_many_failures(failed, total, request.max_failures, noun=noun)
        line = next(iter(entries.failed_lines), None)
        raise DataError(path, f"{message} (--max-failures): {query!r}: {fault}", line=line)


def _unanswered(entries: Entries) -> dict[str, str]:
    """Return what is wrong with failed answers, by query, without queries that were asked again.

    A log may hold an error, and the answer to the same query at another attempt. If answers may be
    repeats, an error is that of one repeat, and stays.
    """
    if entries.repeat_column is not None:
        return entries.failed
    answered = set(map(str, entries.queries))
    return {query: fault for query, fault in entries.failed.items() if query not in answered}


def _require_single_queries(path: Path, entries: Entries, *, are_repeats: bool) -> None:
    """Refuse two lists of one query; with `are_repeats`, two lists of one query in one repeat."""
    names = list(map(str, entries.queries))
    if are_repeats:
        repeats = entries.query_repeats
        names = [f"{name} (repeat {repeat})" for name, repeat in zip(names, repeats, strict=True)]
    if len(set(names)) == len(names):
        return
    seen_names = set[str]()
    for number, name in enumerate(names):
        if name in seen_names:
            line = entries.query_lines[number] if entries.query_lines else None
            raise DataError(path, f"query {name!r} occurs twice", line=line)
        seen_names.add(name)
