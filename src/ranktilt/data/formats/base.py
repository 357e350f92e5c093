"""What readers give and are asked: the entries of a run, the grades of judgments, and how to read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from ranktilt.data.formats.data_file import DataFile
from ranktilt.data.formats.search_responses import MAX_FAILURES

RUN, JUDGMENTS, LABELS, QUERIES = "a run", "judgments", "labels", "queries"
"""What a file may be read as."""


@dataclass(frozen=True, kw_only=True)
class RunFile:
    """What a file holds, entry by entry in its own order."""

    frame: pl.DataFrame
    """``query_id``, ``doc_id``; ``score`` (Float64; null where ranks count); ``rank``, null where none is."""
    queries: pl.Series
    """Every query in order of first appearance; in JSON one may have no entry."""
    has_lines: bool = False
    """Whether each entry is a line of its own, as in TREC files."""
    first_line: int = 1
    """The first line of these, where lines before them are comments."""
    lines: Sequence[int] = ()
    """The line of each entry, where these are known."""
    score_order: str | None = None
    """Which of `SCORE_ORDERS` the scores have; ``rank`` where the file has none, None where nobody named one."""
    read_as: str = ""
    """What was understood of a file that is neither TREC's nor ``{query: {document: score}}``."""
    tag: str = ""
    """What all lines of a TREC file say made them, where that is a name and no placeholder."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Why an engine's response to a query is an error or partial; such queries have no entries."""
    skipped: int = 0
    """Entries without a query or a document, which are left out."""


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """How a run's file is read."""

    score_order: str | None = None
    queries: Sequence[str] | None = None
    """Ids of the queries of responses that do not name them, in their order."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Id of each query by its text, which responses often repeat."""
    max_failures: float = MAX_FAILURES


@dataclass(frozen=True, kw_only=True)
class JudgmentFile:
    """What a file of judgments holds, one by one in its own order."""

    frame: pl.DataFrame
    """``query_id``, ``doc_id``, ``grade`` (Int32, or Float64 where one is a fraction), ``line`` (or a row)."""
    has_lines: bool = True
    """Whether ``line`` is a line of the file."""
    read_as: str = ""
    skipped: int = 0


@dataclass(frozen=True, kw_only=True)
class FileLayout:
    """One layout of files: how it is recognised, and how it is read."""

    name: str
    """What it is called, such as ``TREC run``."""
    sniff: Callable[[DataFile], bool]
    read: Callable[..., Any]
