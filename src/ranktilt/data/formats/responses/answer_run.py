"""Runs as JSON: responses, lists, records, lines of these, and ``{query: {document: score}}``."""

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
from ranktilt.data.formats.responses.answers import Content, content_of, unwrapped
from ranktilt.data.formats.responses.entries import Entries, entry_ids, field_values, gather
from ranktilt.data.formats.responses.search_responses import allowed_failures, too_many_failures
from ranktilt.data.formats.runs.repeats import REPEAT, RepeatColumn, repeat_column
from ranktilt.data.formats.runs.run_columns import RunColumns, run_of_columns
from ranktilt.data.formats.runs.score_map import MTEB, mteb_scores, read_scores
from ranktilt.data.formats.tables.cells import NumberColumn
from ranktilt.data.formats.tables.column_names import RUN_COLUMNS, require_columns
from ranktilt.errors import DataError, UserError, counted, located, shorten

_BY_ORDER = (
    "the responses do not name their queries; give these in the same order with --queries FILE "
    "(queries=[…] in Python), or name the field that holds them: FILE:query=FIELD"
)
"""What to do where responses do not name their queries."""
_NUMBERS = ("score", "rank")
"""Columns of numbers."""
_INDEX = "index"
"""Field of re-ranking services for a document's position in the request."""


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
    """What may be the repeat of each entry; None where no key numbers repeats."""


def sniff(file: DataFile) -> bool:
    """Return whether a file begins as JSON does."""
    return file.has_json


def read(file: DataFile, request: RunRequest) -> RunFile:
    """Read JSON of results: one value, or a value a line."""
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
        document = unwrapped(document)
    try:
        content = content_of(document, RUN_COLUMNS, file.columns)
        if not file.columns and _is_score_map(document, content):
            return read_scores(file.path, document, request.score_order, tag)
        content = _as_one_answer(content, file.columns)
        if not content.values:
            raise UserError(f"expected results of queries, got {shorten(document)}; {_BY_ORDER}")
        shape = shape_of(content, RUN_COLUMNS, file.columns)
    except UserError as error:
        raise located(file.path, error) from error
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

    `queries` has the query of each value, or is None if values name it.
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
        raise located(file.path, error, line=first[0].lines[0]) from error
    names = _LineNames.from_shape(shape, values, request)
    entries = Entries(repeat_column=_repeat_key(file, values))
    parts, count = list[EntryColumns](), 0
    for block in chain(first, rest):
        queries = names.of(block.values, count)
        count += len(block.values)
        gather(file.path, entries, shape, block.values, queries=queries, lines=block.lines)
        parts.append(_columns(file.path, shape, entries))
        entries.query, entries.records, entries.repeats = [], [], []
    if names.is_by_order and count != len(request.queries or ()):
        raise _unnamed(file.path, count, request)
    return _run(file.path, shape, entries, parts, request=request)


@dataclass(frozen=True, kw_only=True)
class _LineNames:
    """The way to find the queries of lines: their own fields, their texts, or the order of ids."""

    shape: ValueShape
    """Places of the fields."""
    request: RunRequest
    """The user's options."""
    is_by_text: bool
    """Whether queries are found by their texts."""
    is_by_order: bool
    """Whether queries are found by the order of the lines."""

    @classmethod
    def from_shape(
        cls, shape: ValueShape, values: Sequence[Any], request: RunRequest
    ) -> _LineNames:
        """Choose the way by the first lines."""
        is_by_text = _by_text(values, shape, request) is not None
        names_query = shape.is_flat or bool(shape.query)
        are_ids_asked = request.queries is not None and shape.names_no_ids
        return cls(
            shape=shape,
            request=request,
            is_by_text=is_by_text,
            is_by_order=not is_by_text and (are_ids_asked or not names_query),
        )

    def of(self, values: Sequence[Any], start: int) -> list[str | None] | None:
        """Return the query of each value, of which `start` came before; None if values name it."""
        if self.is_by_text:
            texts = self.request.texts
            return [texts.get(str(self.shape.query_of(value))) for value in values]
        if not self.is_by_order:
            return None
        names = list((self.request.queries or ())[start : start + len(values)])
        return [*names, *[None] * (len(values) - len(names))]


def _is_score_map(document: Any, content: Content) -> bool:
    """Return whether an object that is no answer may be ``{query: {document: score}}``."""
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
    """Read documents without a query as one answer, whose query the user names."""
    values = content.values
    if content.keys is not None or not values or any(isinstance(value, list) for value in values):
        return content
    if not all(isinstance(value, Mapping) for value in values):
        are_ids = all(type(value) in (str, int) for value in values)
        return replace(content, values=[values]) if are_ids else content
    shape = shape_of(content, RUN_COLUMNS, choices)
    is_unnamed = shape.is_flat and not shape.query and "document" in shape.fields
    return replace(content, values=[values]) if is_unnamed else content


def answer_in(document: Any, choices: Mapping[str, str]) -> Any:
    """Return the answer to one query in a JSON value; `UserError` if there are several."""
    content = _as_one_answer(content_of(document, RUN_COLUMNS, choices), choices)
    if content.keys is not None or len(content.values) != 1:
        raise UserError("expected a response to one query")
    return content.values[0]


def _queries(
    path: Path, content: Content, shape: ValueShape, request: RunRequest
) -> Sequence[Any] | None:
    """Return the query of each value; None if values name it."""
    if content.keys is not None:
        return content.keys
    if shape.is_flat:
        return None
    named_by_text = _by_text(content.values, shape, request)
    if named_by_text is not None:
        return named_by_text
    ids = request.queries
    # Whoever names the queries of responses knows better than these, which repeat the text.
    if ids is not None and shape.names_no_ids and len(ids) == len(content.values):
        return ids
    if shape.query and all(shape.query_of(value) is not None for value in content.values):
        return None
    raise _unnamed(path, len(content.values), request)


def _by_text(values: Sequence[Any], shape: ValueShape, request: RunRequest) -> list[str] | None:
    """Return the id of each value's query by the query's text; None if a text is missing."""
    if not request.texts or not shape.query:
        return None
    names = [request.texts.get(str(shape.query_of(value))) for value in values]
    known = [name for name in names if name is not None]
    return known if len(known) == len(names) else None


def _unnamed(path: Path, count: int, request: RunRequest) -> DataError:
    """Return the error for responses without a query each."""
    ids = f"{counted(count, 'response', 'responses')} and {len(request.queries or ()) or 'no'} ids"
    message = f"expected responses to searches and an id for each, got {ids}; {_BY_ORDER}"
    return DataError(path, message)


def _columns(path: Path, shape: ValueShape, entries: Entries) -> EntryColumns:
    """Return the columns of the entries."""
    records = entries.records
    needed = ("query", "document") if shape.is_flat else ("document",)
    try:
        if records:
            require_columns(shape.fields, needed, form=shape.form, names=sample_keys(records))
    except UserError as error:
        raise DataError(path, f"{error}{_index_hint(shape, records)}") from error
    documents = field_values(records, shape.fields.get("document", ""))
    scores, ranks = (field_values(records, shape.fields.get(noun, "")) for noun in _NUMBERS)
    if shape.layout is not None and shape.layout.id_after:
        sign = shape.layout.id_after
        documents = [str(name).split(sign, 1)[-1] if name else name for name in documents]
    return EntryColumns(
        query=entry_ids(path, "query", entries.query, entries),
        document=entry_ids(path, "document", documents, entries),
        score=NumberColumn.from_json(scores),
        rank=NumberColumn.from_json(ranks),
        repeat=_labels(entries),
    )


def _labels(entries: Entries) -> pl.Series | None:
    """Return what may be repeats as texts; None where no key numbers them."""
    if entries.repeat_column is None:
        return None
    labels = [None if value is None else str(value) for value in entries.repeats]
    return pl.Series(labels, dtype=pl.String)


def _repeat_key(file: DataFile, values: Sequence[Any]) -> RepeatColumn | None:
    """Return the key of values that may number repeats; None where there is none."""
    records = [value for value in values if isinstance(value, Mapping)]
    if not records:
        return None
    try:
        return repeat_column(sample_keys(records), file.columns)
    except UserError as error:
        raise located(file.path, error) from error


def _index_hint(shape: ValueShape, records: Sequence[Any]) -> str:
    """Say that a position is no id, where a response has nothing else."""
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
    parts: Sequence[EntryColumns],
    *,
    request: RunRequest,
) -> RunFile:
    """Make the run of all entries."""
    _require_enough(path, entries, request)
    queries = None
    if not shape.is_flat:
        names = [str(name) for name in entries.queries if name is not None]
        queries = list(dict.fromkeys(names))
    joined, repeat = _joined_columns(parts), entries.repeat_column
    if repeat is None:
        _require_single_queries(path, entries, are_repeats=False)
    columns = RunColumns(
        path=path,
        query=joined.query,
        document=joined.document,
        score=joined.score,
        rank=joined.rank,
        names=shape.fields,
        lines=entries.lines,
        queries=queries,
    )
    if repeat is not None and joined.repeat is not None:
        columns = columns.with_repeats(joined.repeat, repeat)
    by_score = request.score_order != "rank" and columns.score.is_given
    is_by_place = not by_score and not columns.rank.is_given
    nouns = ("document", "score" if by_score else "rank")
    read_as = shape.read_as(nouns, is_by_place=is_by_place)
    run = run_of_columns(columns, request.score_order, read_as)
    _require_single_queries(path, entries, are_repeats=REPEAT in run.frame.columns)
    return replace(run, failed=entries.failed)


def _joined_columns(parts: Sequence[EntryColumns]) -> EntryColumns:
    """Put the columns of several parts one below the other."""
    return EntryColumns(
        query=pl.concat([part.query for part in parts]),
        document=pl.concat([part.document for part in parts]),
        score=_joined([part.score for part in parts]),
        rank=_joined([part.rank for part in parts]),
        repeat=_joined_labels([part.repeat for part in parts]),
    )


def _joined_labels(parts: Sequence[pl.Series | None]) -> pl.Series | None:
    """Put what may be repeats one below the other; None where there is none."""
    known = [part for part in parts if part is not None]
    return pl.concat(known) if known else None


def _joined(parts: Sequence[NumberColumn]) -> NumberColumn:
    """Put the numbers of several parts one below the other."""
    if len(parts) == 1:
        return parts[0]
    raw = list(chain.from_iterable(part.raw for part in parts))
    return NumberColumn(raw=raw, values=pl.concat([part.values for part in parts]))


def _require_enough(path: Path, entries: Entries, request: RunRequest) -> None:
    """Refuse more failed responses than allowed."""
    failed, total = len(entries.failed), len(entries.failed) + len(entries.queries)
    if not failed:
        return
    if failed > allowed_failures(total, request.max_failures) or failed == total:
        query, fault = next(iter(entries.failed.items()))
        message = too_many_failures(failed, total, request.max_failures)
        line = next(iter(entries.failed_lines), None)
        raise DataError(path, f"{message} (--max-failures): {query!r}: {fault}", line=line)


def _require_single_queries(path: Path, entries: Entries, *, are_repeats: bool) -> None:
    """Refuse two lists of one query, or of one query in one repeat."""
    names = list(map(str, entries.queries))
    if are_repeats:
        repeats = entries.query_repeats
        names = [f"{name} (repeat {repeat})" for name, repeat in zip(names, repeats, strict=True)]
    if len(set(names)) == len(names):
        return
    seen = set[str]()
    for number, name in enumerate(names):
        if name in seen:
            line = entries.query_lines[number] if entries.query_lines else None
            raise DataError(path, f"query {name!r} occurs twice", line=line)
        seen.add(name)
