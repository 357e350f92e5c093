"""The records that readers of files return: entries of runs, and judgments.

An *entry* is one document in the list of one query. The *repeats* of a run are several rankings of
each query, by an engine that does not always rank alike. A *judgment* is the *grade* of a document
for a query, that is, how relevant it is. A *layout* is a way to write such content in a file; to
*sniff* is to tell by its start whether a file has the layout.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from ranktilt.data.formats.data_file import DataFile
from ranktilt.data.formats.responses.search_responses import MAX_FAILURES

RUN, JUDGMENTS, LABELS, QUERIES = "a run", "judgments", "labels", "queries"
"""Kinds of content that a file can be read as."""


@dataclass(frozen=True, kw_only=True)
class RunFile:
    """The entries of a run's file, in the order of the file."""

    frame: pl.DataFrame
    """``query_id``, ``doc_id``, ``score`` (Float64; null if ranks count) and ``rank`` (or null).

    A file of several repeats has ``repeat`` too, with the repeat of each entry.
    """
    queries: pl.Series
    """Ids of all queries in the order of first appearance; in JSON a query may have no entry."""
    has_lines: bool = False
    """Whether each entry is a line of its own, as in TREC files."""
    first_line: int = 1
    """Line of the first entry, after comments."""
    lines: Sequence[int] = ()
    """Line of each entry; empty if unknown."""
    score_order: str | None = None
    """How scores order documents: ``score``, ``ascending`` or ``rank``, as for `Run.load`.

    ``rank`` if the file has no scores; None if it has some and the user chose no order.
    """
    read_as: str = ""
    """Description of how the file is read; empty for TREC and ``{query: {document: score}}``."""
    tag: str = ""
    """Tag of all lines of a TREC file, if it is a name and no placeholder."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """What is wrong with an engine's responses, by query: errors, or partial results.

    Such queries have no entries.
    """
    skipped: int = 0
    """Number of entries without a query or a document, which are left out."""


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """The user's options for reading a run's file."""

    score_order: str | None = None
    """How scores order documents, if the user says so; None to find it out."""
    queries: Sequence[str] | None = None
    """Ids of the queries of responses that do not name them, in their order."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Id of each query by its text, which responses often repeat."""
    max_failures: float = MAX_FAILURES
    """Largest accepted share of failed responses, in percent."""


@dataclass(frozen=True, kw_only=True)
class JudgmentFile:
    """The judgments of a file, in the order of the file."""

    frame: pl.DataFrame
    """``query_id``, ``doc_id``, ``grade`` (Int32, or Float64 if one is a fraction) and ``line``."""
    has_lines: bool = True
    """Whether ``line`` is a line of the file; otherwise it is the number of the judgment."""
    read_as: str = ""
    """Layout that the file was read as."""
    skipped: int = 0
    """Number of judgments that were left out."""


@dataclass(frozen=True, kw_only=True)
class FileLayout:
    """A layout of files, with the functions that recognise and read it."""

    name: str
    """Name such as ``TREC run``."""
    sniff: Callable[[DataFile], bool]
    """Tells whether a file has this layout."""
    read: Callable[..., Any]
    """Reads a file of this layout."""
