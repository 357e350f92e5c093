"""Recognise repeats in a file of results: a column that numbers the rankings of each query.

A column named ``repeat`` says so itself. A column named ``run``, and the sixth column of TREC (the
tag), usually name a system. They number repeats only if a user says so (``FILE:repeat=run``), or if
nothing else can be meant: one query has several of their values, and the values are numbers, or
names that differ in a last number alone (``gpt-1``, ``gpt-2``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ranktilt.data.formats.tables.column_names import snake_case
from ranktilt.errors import DataError, join_words, unknown

REPEAT = "repeat"
"""Column of a run's entries that numbers repeats, and the key in ``FILE:repeat=COLUMN``."""
TAG = "tag"
"""Name of the sixth column of a TREC run."""
_SURE = ("repeat", "repetition", "repeat_id", "trial")
"""Names of a column that can number nothing but repeats."""
_POSSIBLE = ("run", "run_id", "runid", "run_name", TAG)
"""Names of a column that numbers repeats, or names systems."""
_NUMBERED = re.compile(r"(?P<stem>.*?)[\s_.#-]*(?P<number>\d+)")
"""A name that ends with a number."""
_NAMED = 3
"""Values of a column that a message names."""


@dataclass(frozen=True, kw_only=True)
class RepeatColumn:
    """A column that may number repeats."""

    name: str
    """Name in the file."""
    is_sure: bool
    """Whether it numbers repeats for certain: by its name, or because the user says so."""


def repeat_column(names: Sequence[str], choices: Mapping[str, str] = {}) -> RepeatColumn | None:
    """Return the column that may number repeats; None where there is none.

    `choices` has the user's names; `UserError` if the one of ``repeat`` is no column.
    """
    if REPEAT in choices:
        if choices[REPEAT] not in names:
            raise unknown("column", choices[REPEAT], filter(None, names))
        return RepeatColumn(name=choices[REPEAT], is_sure=True)
    by_snake_case = {snake_case(name): name for name in reversed(names)}
    taken = set(choices.values())
    for known in (*_SURE, *_POSSIBLE):
        if known in by_snake_case and by_snake_case[known] not in taken:
            return RepeatColumn(name=by_snake_case[known], is_sure=known in _SURE)
    return None


def repeat_labels(path: Path, entries: pl.DataFrame, column: RepeatColumn) -> pl.Series | None:
    """Return the repeat of each entry; None where the column numbers none.

    Parameters
    ----------
    entries : polars.DataFrame
        ``query_id``, ``doc_id`` and ``repeat``, which holds the column's values as texts.

    Raises
    ------
    DataError
        If a document comes twice for a query under several values that may name systems.
    """
    labels = entries[REPEAT]
    values = labels.drop_nulls().unique(maintain_order=True)
    if len(values) < 2:
        return None
    if labels.null_count():
        if not column.is_sure:
            return None
        row = int(labels.is_null().arg_max() or 0)
        raise DataError(
            path, f"entry {row + 1}: no value in column {column.name!r}, which numbers repeats"
        )
    counts = entries.group_by("query_id", maintain_order=True).agg(pl.col(REPEAT).n_unique())
    shared = counts.filter(pl.col(REPEAT) > 1)["query_id"]
    if column.is_sure and not len(shared):
        raise DataError(
            path,
            f"repeats must answer the same queries, and no query has two values of "
            f"{column.name!r}; remove that column if these are no repeats",
        )
    if column.is_sure or (len(shared) and _are_numbered(values.to_list())):
        return labels
    # If no document comes twice, the column tells of something else, such as a first stage.
    if not len(shared) or not entries.select("query_id", "doc_id").is_duplicated().any():
        return None
    raise DataError(path, _ambiguous(column, values, shared[0]))


def _are_numbered(values: Sequence[str]) -> bool:
    """Tell whether names are numbers, or differ in a last number alone."""
    matches = [_NUMBERED.fullmatch(value) for value in values]
    return all(matches) and len({match["stem"] for match in matches if match}) == 1


def _ambiguous(column: RepeatColumn, values: pl.Series, query: str) -> str:
    """Say that a column may hold repeats or systems, and how to tell which."""
    names = [repr(value) for value in values[:_NAMED]]
    more = len(values) - len(names)
    listed = join_words([*names, f"{more:,} more"] if more else names)
    return (
        f"{column.name!r} has several values for query {query!r} ({listed}); if they are repeats "
        f"of one engine, use FILE:repeat={column.name}; if they are different runs, write a file "
        "for each"
    )
