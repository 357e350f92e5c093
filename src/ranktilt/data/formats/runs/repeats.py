"""Recognise repeats in a file of results: a column that numbers the rankings of each query.

An engine that does not always rank alike may rank each query several times; each ranking is a
*repeat*. A column named ``repeat`` always numbers repeats. A column named ``run``, and the sixth
column of TREC (the tag), usually name a system. They number repeats only if a user says so
(``FILE:repeat=run``), or if nothing else can be meant: one query has several of their values, and
the values are numbers, or names that differ only in a last number (``gpt-1``, ``gpt-2``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ranktilt.data.formats.tables.column_names import snake_case
from ranktilt.errors import DataError, join_words, unknown_name

REPEAT = "repeat"
"""Column of a run's entries that numbers repeats, and the key in ``FILE:repeat=COLUMN``."""
TAG = "tag"
"""Name of the sixth column of a TREC run."""
_CERTAIN_NAMES = ("repeat", "repetition", "repeat_id", "trial")
"""Names of a column that can number nothing but repeats."""
_POSSIBLE_NAMES = ("run", "run_id", "runid", "run_name", TAG)
"""Names of a column that numbers repeats, or names systems."""
_NUMBERED_NAME = re.compile(r"(?P<stem>.*?)[\s_.#-]*(?P<number>\d+)")
"""A name that ends with a number."""
_MOST_LISTED = 3
"""Most values of a column that a message lists."""


@dataclass(frozen=True, kw_only=True)
class RepeatColumn:
    """A column that may number repeats."""

    name: str
    """Name in the file."""
    is_certain: bool
    """Whether it numbers repeats for certain: by its name, or because the user says so."""


def repeat_column(names: Sequence[str], choices: Mapping[str, str] = {}) -> RepeatColumn | None:
    """Return the column that may number repeats; None if there is no such column.

    Parameters
    ----------
    names : sequence of str
        Columns of the file; the name is empty where a column has no heading.
    choices : mapping of str to str, optional
        Columns that the user names, by what they hold: ``{"repeat": "run"}`` for
        ``FILE:repeat=run``.

    Raises
    ------
    UserError
        If the file has no column of the name that the user chose for ``repeat``.
    """
    if REPEAT in choices:
        if choices[REPEAT] not in names:
            headings = [name for name in names if name]
            raise unknown_name("column", choices[REPEAT], headings)
        return RepeatColumn(name=choices[REPEAT], is_certain=True)
    # Reversed, so that the first of several columns with one spelling counts.
    by_snake_case = {snake_case(name): name for name in reversed(names)}
    chosen_names = set(choices.values())
    for known_name in (*_CERTAIN_NAMES, *_POSSIBLE_NAMES):
        name = by_snake_case.get(known_name)
        if name is not None and name not in chosen_names:
            return RepeatColumn(name=name, is_certain=known_name in _CERTAIN_NAMES)
    return None


def repeat_labels(path: Path, entries: pl.DataFrame, column: RepeatColumn) -> pl.Series | None:
    """Return the repeat of each entry; None if the column does not number repeats.

    Parameters
    ----------
    path : Path
        The file, for errors.
    entries : polars.DataFrame
        ``query_id``, ``doc_id`` and ``repeat``, which holds the column's values as texts.
    column : RepeatColumn
        The column that may number repeats.

    Raises
    ------
    DataError
        If the column numbers repeats for certain, but lacks a value, or no query has two of its
        values. Also if the column may number repeats or name systems, and some query has the same
        document twice: then its entries are not one ranking, and the file must say what they are.
    """
    labels = entries[REPEAT]
    values = labels.drop_nulls().unique(maintain_order=True)
    # With a single value every query was ranked once, whatever the column is called.
    if len(values) < 2:
        return None
    if labels.null_count():
        if not column.is_certain:
            return None
        index = labels.is_null().to_list().index(True)
        raise DataError(
            path, f"entry {index + 1}: no value in column {column.name!r}, which numbers repeats"
        )
    counts = entries.group_by("query_id", maintain_order=True).agg(pl.col(REPEAT).n_unique())
    repeated_queries = counts.filter(pl.col(REPEAT) > 1)["query_id"]
    if column.is_certain and not len(repeated_queries):
        raise DataError(
            path,
            f"repeats must answer the same queries, and no query has two values of "
            f"{column.name!r}; remove that column if these are no repeats",
        )
    # Systems seldom have names that differ only in a number, so numbered values are repeats.
    if column.is_certain or (len(repeated_queries) and _are_numbered(values.to_list())):
        return labels
    # If no document comes twice, each query has one ranking, and the column says something else
    # of its entries, such as which of several retrievers returned the document.
    has_repeated_document = entries.select("query_id", "doc_id").is_duplicated().any()
    if not len(repeated_queries) or not has_repeated_document:
        return None
    raise DataError(path, _ambiguous_message(column, values, repeated_queries[0]))


def _are_numbered(values: Sequence[str]) -> bool:
    """Tell whether values are numbers, or names that differ only in a last number."""
    matches = [_NUMBERED_NAME.fullmatch(value) for value in values]
    return all(matches) and len({match["stem"] for match in matches if match}) == 1


def _ambiguous_message(column: RepeatColumn, values: pl.Series, query: str) -> str:
    """Say that a column may hold repeats or systems, and how a user can say which."""
    names = [repr(value) for value in values[:_MOST_LISTED]]
    further_count = len(values) - len(names)
    listed = join_words([*names, f"{further_count:,} more"] if further_count else names)
    return (
        f"{column.name!r} has several values for query {query!r} ({listed}); if they are repeats "
        f"of one engine, use FILE:repeat={column.name}; if they are different runs, write a file "
        "for each"
    )
