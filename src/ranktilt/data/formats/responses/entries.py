"""Documents of answers in JSON, gathered value by value, and their fields as columns.

An *answer* is the ranked documents of one query. The *repeats* of a query are several answers to
it by one engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import methodcaller
from pathlib import Path
from typing import Any

import polars as pl

from ranktilt.data.formats.notation import value_at
from ranktilt.data.formats.responses.answer_shape import ValueShape
from ranktilt.data.formats.responses.hit_fields import plain_value
from ranktilt.data.formats.runs.repeats import RepeatColumn
from ranktilt.data.formats.tables.cells import json_ids
from ranktilt.errors import DataError, UserError, shorten


@dataclass(kw_only=True)
class Entries:
    """Documents of answers, gathered value by value by `gather`.

    Lists of lines stay empty if values are not lines of the file.
    """

    query: list[Any] = field(default_factory=list)
    """Query of each document."""
    records: list[Any] = field(default_factory=list)
    """Each document as the file has it."""
    lines: list[int] = field(default_factory=list)
    """Line of each document."""
    queries: list[Any] = field(default_factory=list)
    """Query of each answer; an answer may have no document."""
    query_lines: list[int] = field(default_factory=list)
    """Line of each answer."""
    failed: dict[str, str] = field(default_factory=dict)
    """What is wrong with each failed answer, by its query."""
    failures: int = 0
    """Number of failed answers; a query may have several, which are repeats."""
    failed_lines: list[int] = field(default_factory=list)
    """Line of each failed answer."""
    repeat_column: RepeatColumn | None = None
    """The key that may number repeats, in a document or in its answer."""
    repeats: list[Any] = field(default_factory=list)
    """Repeat of each document; empty where no key numbers repeats."""
    query_repeats: list[Any] = field(default_factory=list)
    """Repeat of each answer; empty where no key numbers repeats."""

    def add_repeats(self, values: Sequence[Any]) -> None:
        """Add the repeat of each document; `values` are the values that name it."""
        if self.repeat_column is not None:
            self.repeats += field_values(values, self.repeat_column.name)

    def add_repeat_of_answer(self, value: Any) -> None:
        """Add the repeat that an answer names."""
        if self.repeat_column is not None:
            self.query_repeats.append(value_at(value, self.repeat_column.name))

    def add_answer(self, query: Any, hits: Sequence[Any], line: int | None) -> None:
        """Add the answer to a query; `hits` are its documents, and `line` its line in the file."""
        self.queries.append(query)
        self.query += [query] * len(hits)
        self.records += hits
        if line is not None:
            self.query_lines.append(line)
            self.lines += [line] * len(hits)

    def add_failure(self, query: Any, fault: str, line: int | None) -> None:
        """Add an answer that failed, with the reason; it has no documents."""
        self.failed[str(query)] = fault
        self.failures += 1
        if line is not None:
            self.failed_lines.append(line)


def gather(
    path: Path,
    entries: Entries,
    shape: ValueShape,
    values: Sequence[Any],
    *,
    queries: Sequence[Any] | None = None,
    lines: Sequence[int] = (),
) -> None:
    """Add the documents of some values to the entries.

    A value is a document itself if the shape is flat. Otherwise it is the answer to a query, with a
    list of documents.

    Parameters
    ----------
    path : Path
        File of the values, for errors.
    entries : Entries
        What was gathered so far.
    shape : ValueShape
        Where values have their fields.
    values : sequence
        Values of JSON.
    queries : sequence, optional
        Query of each value; by default values name their queries.
    lines : sequence of int, optional
        Line of each value; empty if values are not lines.
    """
    if shape.is_flat:
        _require_records(path, values, lines)
        entries.query += field_values(values, shape.query)
        entries.records += values
        entries.add_repeats(values)
        entries.lines += lines
        return
    for number, value in enumerate(values):
        query = shape.query_of(value) if queries is None else queries[number]
        line = lines[number] if lines else None
        fault = shape.fault_of(value)
        if not fault:
            hits = shape.hits_of(value) or []
            entries.add_answer(query, hits, line)
            entries.add_repeats([value] * len(hits))
            entries.add_repeat_of_answer(value)
            continue
        if query is None:
            expected = f"expected {shape.query or 'a query'} and {shape.hits}"
            raise DataError(path, f"{expected}, got {shorten(value)}", line=line)
        entries.add_failure(query, fault, line)


def _require_records(path: Path, values: Sequence[Any], lines: Sequence[int]) -> None:
    """Refuse a document that is no record although the first one is."""
    if set(map(type, values)) <= {dict}:
        return
    number = next(row for row, value in enumerate(values) if not isinstance(value, dict))
    prefix = "" if lines else f"document {number + 1}: "
    message = f"{prefix}expected a record like the first one, got {shorten(values[number])}"
    raise DataError(path, message, line=lines[number] if lines else None)


def field_values(records: Sequence[Any], path: str) -> list[Any]:
    """Return the value at a path of each record; None where a record has none."""
    if not path:
        return [None] * len(records)
    if "." in path:
        return [plain_value(value_at(record, path)) for record in records]
    values = list(map(methodcaller("get", path), records))
    return values if dict not in set(map(type, values)) else list(map(plain_value, values))


def entry_ids(path: Path, noun: str, values: list[Any], entries: Entries) -> pl.Series:
    """Return ids as strings; null for missing ones.

    `DataError` names the first value that cannot be an id, with its line. `noun` says what the
    values identify, and `entries` has their lines.
    """
    try:
        return json_ids(values, noun)
    except UserError:
        pass
    # The error about all values does not say which of them is wrong.
    for number, value in enumerate(values):
        try:
            json_ids([value], noun)
        except UserError as error:
            lines = entries.lines[-len(values) :]
            prefix = "" if lines else f"document {number + 1}: "
            line = lines[number] if lines else None
            raise DataError(path, f"{prefix}{error}", line=line) from error
    raise DataError(path, f"expected {noun} ids as strings or whole numbers")
