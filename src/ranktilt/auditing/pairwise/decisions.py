"""Choices between two documents: asked of a language model, or read from a file; and kept in one."""

from __future__ import annotations

import csv
import io
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
import orjson
import polars as pl

from ranktilt.auditing.pairwise.pairs import DrawnPairs, TwoGroups, relevant_pairs
from ranktilt.collection import Collection
from ranktilt.errors import DataError, UserError, counted, shorten
from ranktilt.io.files import read_text
from ranktilt.llm.journal import journalled
from ranktilt.rankers.base import readable_texts
from ranktilt.rankers.llm.answers import Reading, read_choice
from ranktilt.rankers.llm.base import Asker, Listing, Task
from ranktilt.rankers.llm.pairwise import Pairwise
from ranktilt.run import codes

SCHEMA = {
    "query": pl.String, "kind": pl.String, "first": pl.String, "second": pl.String, "choice": pl.String,
    "reading": pl.String,
}  # fmt: skip
_Id = Annotated[str, msgspec.Meta(min_length=1)]


@dataclass(frozen=True, eq=False)
class Decisions:
    """What was chosen of each pair and order."""

    frame: pl.DataFrame
    """``query``, ``kind`` (``relevant``, ``irrelevant``), ``first`` and ``second`` (ids, as they were shown),
    ``choice`` (one of both, or null where an answer could not be read) and ``reading`` (what kind of answer)."""
    sides: TwoGroups
    model: str
    """Who chose: a language model, or the file that says so."""
    spec: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    training_queries: frozenset[str] = frozenset()
    """Ids of queries that the model was trained on, as far as that is known."""

    def contents(self) -> bytes:
        """Return them as JSON lines, which `read_decisions` reads."""
        return b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in self.frame.iter_rows(named=True))


def ask_pairs(collection: Collection, drawn: DrawnPairs, ranker: Pairwise, *, asker: Asker = journalled) -> Decisions:
    """Ask a language model about each pair in both orders, all prompts at once; `ranker` says how, not its method."""
    texts = readable_texts(ranker, collection)
    shown = [
        [ranker.prompt_text(text) for text in texts.gather(codes(drawn.frame[side], collection.ids))]
        for side in ("protected", "unprotected")
    ]
    queries = collection.queries["text"].gather(codes(drawn.frame["query"], collection.queries["id"]))
    tasks = [Task(query, list(pair)) for query, *pair in zip(queries, *shown, strict=True)]
    answers, said = ranker.ask(tasks, [_both_orders() for _ in tasks], asker=asker)
    rows = [
        (query, kind, *order, order[reading.order[0]] if reading.order else None, reading.kind)
        for (query, kind, one, two), readings in zip(drawn.frame.iter_rows(), answers, strict=True)
        for order, reading in zip(((one, two), (two, one)), readings, strict=True)
    ]
    spec = {"asker": repr(ranker), "pairs": drawn.wanted, **said}
    trained = ranker.model().training_queries
    frame = pl.DataFrame(rows, SCHEMA, orient="row")
    return Decisions(frame, drawn.sides, ranker.model_text, spec, drawn.notes, trained)


def _both_orders() -> Generator[list[Listing], list[Reading], list[Reading]]:
    answers = yield [(0, 1), (1, 0)]
    return answers


def only_queries(decisions: Decisions, queries: Sequence[str]) -> Decisions:
    """Keep what was chosen in these queries; a note says how many of them have none."""
    frame = decisions.frame.filter(pl.col("query").is_in(list(queries)))
    lacking = [name for name in queries if name not in set(frame["query"])]
    if not frame.height:
        raise UserError(f"no pair to count: {counted(len(queries), 'query has', 'queries have')} none")
    note = f"{len(lacking):,} of the {counted(len(queries), 'query', 'queries')} asked for without a pair"
    return replace(decisions, frame=frame, notes=(*decisions.notes, *([note] if lacking else [])))


class _Choice(msgspec.Struct):
    query: _Id
    first: _Id
    second: _Id
    choice: str | msgspec.UnsetType | None = msgspec.UNSET
    """One of both ids, empty for none."""
    answer: str | None = None
    """Or a text that is read as an answer to a prompt that shows the first document as [1]."""
    reading: str | None = None

    def fault(self, queries: set[str], documents: Mapping[str, int]) -> str:
        """What does not fit a collection; empty where all does."""
        strange = next((name for name in (self.first, self.second) if name not in documents), None)
        if self.query not in queries:
            return f"query {self.query!r} is not in the collection"
        if strange is not None:
            return f"document {strange!r} is not in the collection"
        if self.first == self.second:
            return f"expected two documents, got {self.first!r} twice"
        if self.choice is msgspec.UNSET and self.answer is None:
            return "expected choice or answer, got neither"
        if self.choice and self.choice not in (self.first, self.second):
            return f"choice {shorten(self.choice)} is none of {self.first!r} and {self.second!r}"
        return ""

    def read(self) -> tuple[str | None, str]:
        """The document chosen, if any, and how that is known."""
        if self.choice or self.answer is None:
            return self.choice or None, self.reading or "imported"
        found = read_choice(self.answer, 2)
        return ((self.first, self.second)[found.order[0]] if found.order else None), found.kind


def read_decisions(path: str | Path, collection: Collection, sides: TwoGroups) -> Decisions:
    """Read stored choices, JSON lines or CSV, a row as `_Choice`; no pairs of one side or of unlike relevance."""
    path = Path(path)
    relevant = set(relevant_pairs(collection).iter_rows())
    queries, row_of = set(collection.queries["id"]), {name: row for row, name in enumerate(collection.ids)}
    seen: dict[tuple[str, str, str], int] = {}
    rows, unlike, mixed = [], 0, 0
    for line, found in _rows(path):
        key = found.query, found.first, found.second
        fault = found.fault(queries, row_of)
        if key in seen:
            fault = f"the same query and documents in this order came in line {seen[key]}"
        if fault:
            raise DataError(path, fault, line=line)
        seen[key] = line
        pair = [row_of[name] for name in key[1:]]
        grades = {(found.query, row) in relevant for row in pair}
        if {int(sides.code[row]) for row in pair} != {0, 1}:
            unlike += 1
        elif len(grades) > 1:
            mixed += 1
        else:
            rows.append((found.query, "relevant" if grades == {True} else "irrelevant", *key[1:], *found.read()))
    left = {f"not of {sides.protected} and {sides.unprotected}": unlike, "of a relevant and an irrelevant one": mixed}
    notes = [f"{path.name}: {counted(n, 'choice', 'choices')} {what}, left out" for what, n in left.items() if n]
    if not rows:
        raise DataError(path, "; ".join(["no choice between documents of both sides", *notes]))
    frame = pl.DataFrame(rows, SCHEMA, orient="row")
    return Decisions(frame, sides, path.name, {"decisions": str(path)}, (*sides.notes, *notes))


def _rows(path: Path) -> Iterator[tuple[int, _Choice]]:
    text, line = read_text(path), 0
    try:
        if path.name.lower().removesuffix(".gz").endswith(".csv"):
            reader = csv.DictReader(io.StringIO(text, newline=""), restkey="rest", strict=True)
            for row in reader:
                line = reader.line_num
                yield line, msgspec.convert(row, _Choice)
        else:
            for line, written in enumerate(text.split("\n"), start=1):
                if written.strip():
                    yield line, msgspec.json.decode(written, type=_Choice)
    except (csv.Error, msgspec.MsgspecError) as error:
        raise DataError(path, f"expected query, first, second, and choice or answer: {error}", line=line) from error
