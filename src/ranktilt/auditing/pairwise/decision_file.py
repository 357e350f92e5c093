"""A file of earlier choices, as JSON lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import polars as pl

from ranktilt.auditing.pairwise.decisions import SCHEMA, Decisions
from ranktilt.auditing.pairwise.pairs import Kind, TwoGroups, relevant_pairs
from ranktilt.data.collection import Collection
from ranktilt.data.formats.jsonl import json_objects
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.pairwise import ChoicesLeftOut
from ranktilt.errors import DataError, shorten
from ranktilt.llm.stored_answers import stored_answer
from ranktilt.rankers.llm.answer_kinds import UNANSWERED
from ranktilt.rankers.llm.answers import read_choice

_Difference = Literal["groups", "relevance"]
"""Reason why a pair is left out: both documents are on one side, or only one is relevant."""

_Id = Annotated[str, msgspec.Meta(min_length=1)]
"""An id; it may not be empty."""


class _Choice(msgspec.Struct):
    """A line of the file: one choice between two documents."""

    query: _Id
    """Id of the query."""
    first: _Id
    """Id of the document that is shown first."""
    second: _Id
    """Id of the document that is shown second."""
    choice: str | msgspec.UnsetType | None = msgspec.UNSET
    """The chosen id; empty or null for none."""
    answer: Any = None
    """The model's answer, in place of `choice`; the first document is [1].

    It has any form that `stored_answer` reads.
    """
    reading: str | None = None
    """Kind of answer, one of `ranktilt.rankers.llm.answers.KINDS`."""

    def fault(self, queries: set[str], documents: Mapping[str, int]) -> str:
        """Say what does not fit the collection; empty if everything does."""
        if self.query not in queries:
            return f"query {self.query!r} is not in the collection"
        for name in (self.first, self.second):
            if name not in documents:
                return f"document {name!r} is not in the collection"
        if self.first == self.second:
            return f"expected two documents, got {self.first!r} twice"
        if self.choice is msgspec.UNSET and self.answer is None:
            return "expected choice or answer, got neither"
        if self.choice and self.choice not in (self.first, self.second):
            return f"choice {shorten(self.choice)} is neither {self.first!r} nor {self.second!r}"
        try:
            stored_answer(self.answer)
        except ValueError as error:
            return f"answer: {error}"
        return ""

    def read(self) -> tuple[str | None, str]:
        """Return the document chosen, if any, and the kind of answer."""
        if self.choice or self.answer is None:
            return self.choice or None, self.reading or "imported"
        text = stored_answer(self.answer)
        if text is None:
            return None, UNANSWERED
        reading = read_choice(text, 2)
        documents = self.first, self.second
        return documents[reading.order[0]] if reading.order else None, reading.kind


def read_decisions(path: str | Path, collection: Collection, sides: TwoGroups) -> Decisions:
    """Read stored choices: JSON lines, each a `_Choice`.

    Pairs of one side, and of one relevant and one other document, are left out and noted.
    """
    path = Path(path)
    row_of = {name: row for row, name in enumerate(collection.ids)}
    known_pairs = _KnownPairs(
        row_of=row_of, relevant=frozenset(relevant_pairs(collection).iter_rows()), sides=sides
    )
    rows = []
    left_out = Counter[_Difference]()
    for choice in _read_choices(path, set(collection.queries["id"]), row_of):
        difference = known_pairs.difference(choice)
        if difference is not None:
            left_out[difference] += 1
            continue
        kind = known_pairs.kind(choice)
        rows.append((choice.query, kind, choice.first, choice.second, *choice.read()))
    notes = list(_left_out(path.name, sides, left_out))
    if not rows:
        reasons = [note.sentence for note in notes]
        raise DataError(path, "; ".join(["no choice between documents of both sides", *reasons]))
    return Decisions(
        frame=pl.DataFrame(rows, SCHEMA, orient="row"),
        sides=sides,
        model=path.name,
        spec={"decisions": str(path)},
        notes=(*sides.notes, *notes),
    )


def _read_choices(path: Path, queries: set[str], documents: Mapping[str, int]) -> Iterator[_Choice]:
    """Yield the choices of a file; refuse those that do not fit, and a pair and order twice."""
    lines: dict[tuple[str, str, str], int] = {}
    for line, record in json_objects(path):
        choice = _read_choice(path, line, record)
        fault = choice.fault(queries, documents)
        key = choice.query, choice.first, choice.second
        if key in lines:
            fault = f"line {lines[key]} has the same query and documents in this order"
        if fault:
            raise DataError(path, fault, line=line)
        lines[key] = line
        yield choice


@dataclass(frozen=True, kw_only=True)
class _KnownPairs:
    """What a collection knows about the documents of a pair."""

    row_of: Mapping[str, int]
    """Row of each document, by its id."""
    relevant: frozenset[tuple[str, int]]
    """Query and row of every relevant judgment."""
    sides: TwoGroups
    """Sides of the documents."""

    def difference(self, choice: _Choice) -> _Difference | None:
        """Return why a pair does not compare both sides; None if it does."""
        first, second = self.row_of[choice.first], self.row_of[choice.second]
        if {int(self.sides.code[first]), int(self.sides.code[second])} != {0, 1}:
            return "groups"
        if self._is_relevant(choice.query, first) != self._is_relevant(choice.query, second):
            return "relevance"
        return None

    def kind(self, choice: _Choice) -> Kind:
        """Return whether both documents are relevant, or neither."""
        is_relevant = self._is_relevant(choice.query, self.row_of[choice.first])
        return "relevant" if is_relevant else "irrelevant"

    def _is_relevant(self, query: str, row: int) -> bool:
        """Return whether a document is relevant to a query."""
        return (query, row) in self.relevant


def _read_choice(path: Path, line: int, record: dict[str, Any]) -> _Choice:
    """Convert a record of the file; refuse one that does not have its form."""
    try:
        return msgspec.convert(record, _Choice)
    except msgspec.ValidationError as error:
        expected = f"expected query, first, second, and choice or answer: {error}"
        raise DataError(path, expected, line=line) from error


def _left_out(file: str, sides: TwoGroups, numbers: Mapping[_Difference, int]) -> Iterator[Note]:
    """Note how many choices were left out, reason by reason."""
    reasons: tuple[_Difference, ...] = ("groups", "relevance")
    for reason in reasons:
        if numbers[reason]:
            yield ChoicesLeftOut(
                file=file,
                choices=numbers[reason],
                reason=reason,
                protected=sides.protected,
                unprotected=sides.unprotected,
            )
