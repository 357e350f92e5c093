"""Choices between two documents: asked of a language model, or read from a file; and kept in one."""

from __future__ import annotations

import csv
import io
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from ranktilt.auditing.pairwise.pairs import DrawnPairs, TwoGroups, relevant_pairs
from ranktilt.collection import Collection
from ranktilt.errors import DataError, UserError, counted, shorten
from ranktilt.io.files import read_text, write_bytes
from ranktilt.llm.journal import journalled
from ranktilt.rankers.base import readable_texts
from ranktilt.rankers.llm.answers import Reading, read_choice
from ranktilt.rankers.llm.base import Asker, Shown, Task
from ranktilt.rankers.llm.pairwise import Pairwise
from ranktilt.run import codes

SCHEMA = {
    "query": pl.String, "kind": pl.String, "first": pl.String, "second": pl.String, "choice": pl.String,
    "reading": pl.String,
}  # fmt: skip
_NEEDED = ("query", "first", "second")
_IMPORTED = "imported"


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

    def save(self, path: str | Path) -> Path:
        write_bytes(Path(path), self.contents())
        return Path(path)


def ask_pairs(collection: Collection, drawn: DrawnPairs, ranker: Pairwise, *, asker: Asker = journalled) -> Decisions:
    """Ask a language model about each pair in both orders, all prompts at once; `ranker` says how, not its method.

    A `Rehearsal` as `asker` counts what would be asked.
    """
    texts = readable_texts(ranker, collection)
    shown = [
        [ranker.shown(text) for text in texts.gather(codes(drawn.frame[side], collection.ids))]
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


def _both_orders() -> Generator[list[Shown], list[Reading], list[Reading]]:
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


def read_decisions(path: str | Path, collection: Collection, sides: TwoGroups) -> Decisions:
    """Read stored choices: JSON lines, or CSV where the name says so; plain or .gz.

    A row names ``query``, ``first`` and ``second`` (ids), and ``choice`` (one of both ids, empty for none) or
    ``answer``, a text that is read as an answer to a prompt that shows the first document as [1]. Rows about two
    documents of one side, or of which one is relevant and the other is not, are counted and left out.
    """
    path = Path(path)
    relevant = set(relevant_pairs(collection).iter_rows())
    queries, row_of = set(collection.queries["id"]), {name: row for row, name in enumerate(collection.ids)}
    seen: dict[tuple[str, str, str], int] = {}
    rows, unlike, mixed = [], 0, 0
    for line, found in _rows(path):
        query, first, second = key = _names(path, line, found)
        if key in seen:
            raise DataError(path, f"the same query and documents in this order came in line {seen[key]}", line=line)
        seen[key] = line
        if query not in queries:
            raise DataError(path, f"query {query!r} is not in the collection", line=line)
        strange = next((name for name in (first, second) if name not in row_of), None)
        if strange is not None:
            raise DataError(path, f"document {strange!r} is not in the collection", line=line)
        choice, reading = _choice(path, line, found, (first, second))
        codes_of, grades = (
            {int(sides.code[row_of[name]]) for name in (first, second)},
            {(query, row_of[name]) in relevant for name in (first, second)},
        )
        unlike += codes_of != {0, 1}
        mixed += codes_of == {0, 1} and len(grades) > 1
        if codes_of == {0, 1} and len(grades) == 1:
            rows.append((query, "relevant" if grades == {True} else "irrelevant", first, second, choice, reading))
    left = {f"not of {sides.protected} and {sides.unprotected}": unlike, "of a relevant and an irrelevant one": mixed}
    notes = [f"{path.name}: {counted(n, 'choice', 'choices')} {what}, left out" for what, n in left.items() if n]
    if not rows:
        raise DataError(path, "; ".join(["no choice between documents of both sides", *notes]))
    frame = pl.DataFrame(rows, SCHEMA, orient="row")
    return Decisions(frame, sides, path.name, {"decisions": str(path)}, (*sides.notes, *notes))


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    text = read_text(path)
    if not text.strip():
        raise DataError(path, "the file is empty")
    if path.name.lower().removesuffix(".gz").endswith(".csv"):
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        try:
            yield from ((reader.line_num, row) for row in reader)
        except csv.Error as error:
            raise DataError(path, f"cannot be read as CSV: {error}", line=reader.line_num) from error
        return
    for line, written in enumerate(text.splitlines(), start=1):
        if written.strip():
            try:
                row = orjson.loads(written)
            except orjson.JSONDecodeError as error:
                raise DataError(path, f"expected one JSON object, got {shorten(written)}", line=line) from error
            if not isinstance(row, dict):
                raise DataError(path, f"expected one JSON object, got {shorten(written)}", line=line)
            yield line, row


def _names(path: Path, line: int, row: Mapping[str, Any]) -> tuple[str, str, str]:
    for name in _NEEDED:
        if not isinstance(row.get(name), str) or not row[name]:
            came = ", ".join(str(key) for key in row if key)
            raise DataError(path, f"expected {', '.join(_NEEDED)}, and choice or answer; {name} is missing in {came}",
                            line=line)  # fmt: skip
    query, first, second = (str(row[name]) for name in _NEEDED)
    if first == second:
        raise DataError(path, f"expected two documents, got {first!r} twice", line=line)
    return query, first, second


def _choice(path: Path, line: int, row: Mapping[str, Any], pair: tuple[str, str]) -> tuple[str | None, str]:
    """The document chosen, if any, and how that is known."""
    if isinstance(row.get("answer"), str) and not row.get("choice"):
        reading = read_choice(row["answer"], 2)
        return (pair[reading.order[0]] if reading.order else None), reading.kind
    if "choice" not in row:
        raise DataError(path, f"expected choice or answer, got {', '.join(map(str, row))}", line=line)
    choice = row["choice"] or None
    if choice is not None and choice not in pair:
        raise DataError(path, f"choice {shorten(choice)} is none of {pair[0]!r} and {pair[1]!r}", line=line)
    return choice, str(row.get("reading") or _IMPORTED)
