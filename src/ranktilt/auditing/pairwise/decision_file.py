"""Read a file of earlier choices between two documents, as JSON lines.

A pair is a protected and an unprotected document (its two *sides*), both relevant to the query or
neither.
"""

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
from ranktilt.rankers.llm.answers import UNANSWERED, read_choice

_LeftOutReason = Literal["groups", "relevance"]
"""Reason why a choice is left out.

- ``groups``: the documents are not one of each side.
- ``relevance``: one document is relevant, and the other is not.
"""

_IMPORTED = "imported"
"""Kind of answer of a choice of which the model's answer is not stored."""
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
    """Id of the chosen document; empty or null if none was chosen."""
    answer: Any = None
    """The model's answer, in any form that `stored_answer` reads; it counts if `choice` is empty.

    The answer calls the first document ``[1]`` and the second ``[2]``, as the prompt does.
    """
    reading: str | None = None
    """Kind of answer, one of `ranktilt.rankers.llm.answers.KINDS`; `Decisions.contents` writes it.
    """

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
            return self.choice or None, self.reading or _IMPORTED
        text = stored_answer(self.answer)
        if text is None:
            return None, UNANSWERED
        documents = self.first, self.second
        reading = read_choice(text, len(documents))
        if not reading.order:
            return None, reading.kind
        chosen_position = reading.order[0]
        return documents[chosen_position], reading.kind


def read_decisions(path: str | Path, collection: Collection, sides: TwoGroups) -> Decisions:
    """Read stored choices, one in each line: ``query``, ``first``, ``second``, and the choice.

    The choice is an id (``choice``) or a model's answer (``answer``). A choice is left out, with a
    note, if its documents are not one of each side, or if only one of them is relevant.

    Raises
    ------
    DataError
        If a line does not have this form or does not fit the collection, or if no choice is left.
    """
    path = Path(path)
    row_of_id = {document: row for row, document in enumerate(collection.ids)}
    judged_sides = _JudgedSides(
        row_of_id=row_of_id, relevant=frozenset(relevant_pairs(collection).iter_rows()), sides=sides
    )
    rows = []
    left_out = Counter[_LeftOutReason]()
    for choice in _read_choices(path, set(collection.queries["id"]), row_of_id):
        reason = judged_sides.left_out_reason(choice)
        if reason is not None:
            left_out[reason] += 1
            continue
        kind = judged_sides.kind(choice)
        rows.append((choice.query, kind, choice.first, choice.second, *choice.read()))
    notes = list(_left_out_notes(path.name, sides, left_out))
    if not rows:
        sentences = [note.sentence for note in notes]
        raise DataError(path, "; ".join(["no choice between documents of both sides", *sentences]))
    return Decisions(
        frame=pl.DataFrame(rows, SCHEMA, orient="row"),
        sides=sides,
        model=path.name,
        spec={"decisions": str(path)},
        notes=(*sides.notes, *notes),
    )


def _read_choices(path: Path, queries: set[str], documents: Mapping[str, int]) -> Iterator[_Choice]:
    """Yield the choices of a file; refuse those that do not fit the collection, or come twice.

    The same two documents in the other order are another choice. `queries` are the ids of the
    collection's queries, and `documents` has those of its documents as keys.
    """
    line_of_choice: dict[tuple[str, str, str], int] = {}
    for line, record in json_objects(path):
        choice = _read_choice(path, line, record)
        fault = choice.fault(queries, documents)
        key = choice.query, choice.first, choice.second
        if key in line_of_choice:
            fault = f"line {line_of_choice[key]} has the same query and documents in this order"
        if fault:
            raise DataError(path, fault, line=line)
        line_of_choice[key] = line
        yield choice


@dataclass(frozen=True, kw_only=True)
class _JudgedSides:
    """Sides and judgments of a collection's documents, to check the documents of a choice."""

    row_of_id: Mapping[str, int]
    """Row of each document, by its id."""
    relevant: frozenset[tuple[str, int]]
    """Query and row of every relevant judgment."""
    sides: TwoGroups
    """Sides of the documents."""

    def left_out_reason(self, choice: _Choice) -> _LeftOutReason | None:
        """Return why a choice does not compare the two sides; None if it does."""
        first, second = self.row_of_id[choice.first], self.row_of_id[choice.second]
        # The code is 1 for protected, 0 for unprotected documents.
        if {int(self.sides.code[first]), int(self.sides.code[second])} != {0, 1}:
            return "groups"
        if self._is_relevant(choice.query, first) != self._is_relevant(choice.query, second):
            return "relevance"
        return None

    def kind(self, choice: _Choice) -> Kind:
        """Return the kind of a pair that is not left out: both documents are relevant, or none."""
        is_relevant = self._is_relevant(choice.query, self.row_of_id[choice.first])
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


def _left_out_notes(
    file: str, sides: TwoGroups, counts: Mapping[_LeftOutReason, int]
) -> Iterator[Note]:
    """Note how many choices were left out, reason by reason."""
    reasons: tuple[_LeftOutReason, ...] = ("groups", "relevance")
    for reason in reasons:
        if counts[reason]:
            yield ChoicesLeftOut(
                file=file,
                choices=counts[reason],
                reason=reason,
                protected=sides.protected,
                unprotected=sides.unprotected,
            )
