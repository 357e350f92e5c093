"""Decisions of a language model: its choice for each pair of documents, in each of both orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
import polars as pl

from ranktilt.auditing.pairwise.pairs import TwoGroups
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.pairwise import QueriesWithoutPair
from ranktilt.errors import UserError, counted

SCHEMA = {
    "query": pl.String,
    "kind": pl.String,
    "first": pl.String,
    "second": pl.String,
    "choice": pl.String,
    "reading": pl.String,
}
"""Columns of `Decisions.frame`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Decisions:
    """The choices of a language model, or from a file."""

    frame: pl.DataFrame
    """Table with a row for each answer.

    The columns are ``query``, ``kind`` (``relevant`` or ``irrelevant``: whether both documents
    are), ``first`` and ``second`` (ids in the order of the prompt), ``choice`` (one of these ids,
    or null if an answer could not be read) and ``reading`` (the kind of answer).
    """
    sides: TwoGroups
    """Which documents are protected, and which are not."""
    model: str
    """Name of the language model that chose, or of the file of choices."""
    spec: Mapping[str, Any] = field(default_factory=dict)
    """How the choices were made."""
    notes: tuple[Note, ...] = ()
    """Notes on pairs and choices."""
    training_queries: frozenset[str] = frozenset()
    """Ids of queries that the model was trained on, as far as that is known."""

    def contents(self) -> bytes:
        """Return the choices as JSON lines, which `decision_file.read_decisions` reads."""
        return b"".join(
            orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
            for row in self.frame.iter_rows(named=True)
        )


def only_queries(decisions: Decisions, queries: Sequence[str]) -> Decisions:
    """Keep the choices of these queries; a note counts the queries without choices."""
    frame = decisions.frame.filter(pl.col("query").is_in(list(queries)))
    if not frame.height:
        raise UserError(
            f"no pair to count: {counted(len(queries), 'query has', 'queries have')} none"
        )
    queries_with_choices = set(frame["query"])
    lacking = sum(query not in queries_with_choices for query in queries)
    notes = decisions.notes
    if lacking:
        notes = (*notes, QueriesWithoutPair(lacking=lacking, queries=len(queries)))
    return replace(decisions, frame=frame, notes=notes)
