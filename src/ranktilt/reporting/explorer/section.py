"""The explorer's part of a page: the queries that matter most, their ranked lists, and the texts behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.groups import ALL, Pair, grouping
from ranktilt.auditing.judged_rankings import Judgments
from ranktilt.auditing.notes import only_labels
from ranktilt.collection import Collection
from ranktilt.errors import UserError, counted
from ranktilt.measures.printing import signed
from ranktilt.reporting.document import Cell, Column, Explorer, Row, Table
from ranktilt.reporting.explorer.lists import FURTHER, first_rows, lists
from ranktilt.reporting.explorer.numbers import Numbers
from ranktilt.reporting.explorer.pack import LONGEST, Material, Packed
from ranktilt.reporting.numbers import percent
from ranktilt.reporting.reload import LoadedAudit
from ranktilt.reporting.tones import Tone
from ranktilt.run import Run

Ints = npt.NDArray[np.int64]
BUDGET = 5_000_000
DEPTH = 10
MOST = 50
MOST_GROUPS = 3
"""Groups with a column of their own; where there are more, the first pair's only."""
MOST_VALUES = 9
"""Values of a query that fit on paper; where all rankers have more, each has its part of Relative Δ alone."""
_WORDS = 120
_FEWEST = 0.15  # characters in the page for a byte of text, where it can hardly be less
_ENTRY = 3


def explorer(opened: LoadedAudit, *, budget: int = BUDGET, depth: int = DEPTH) -> Explorer | None:
    """Collect the queries, ranked lists and texts of an audit for its page."""
    for name, number in (("budget", budget), ("depth", depth)):
        if number < 1:
            raise UserError(f"expected a {name} of at least 1, got {number}")
    audit, collection, runs = opened.audit, opened.collection, opened.runs
    if collection is None or not runs or not audit.queries or not (audit.measures or audit.pairs):
        return None
    groups = grouping(collection, audit.spec.get("by"), audit.groups)
    judgments = Judgments.of(collection, groups)
    if judgments.queries != audit.queries or groups.names != audit.groups[1:]:
        raise UserError("this is not the collection that was audited: its queries or groups differ")
    names = tuple(run.name for run in runs)
    numbers = Numbers.of(audit, names)
    order = _candidates(
        collection, runs, audit.queries, numbers.order(audit.place if audit.measures else 0), budget=budget, depth=depth
    )
    ties = str(audit.spec.get("ties", "expected"))
    found = lists(collection, groups, judgments, runs, queries=order, depth=depth, ties=ties)
    material = Material(audit, collection, groups, judgments, names, order, numbers, found, depth)
    packed = material.fitted(budget)
    says = " ".join(_says(material, packed))
    return Explorer(
        "Queries, ranked lists and texts", says, packed.lists, packed.texts, query_rows(material, packed.queries)
    )


def _candidates(
    collection: Collection, runs: Sequence[Run], queries: Sequence[str], order: Ints, *, budget: int, depth: int
) -> Ints:
    """The first queries of the order, certainly as many as fit: only they are looked at more closely."""
    names = pl.Series(queries, dtype=pl.String).gather(order).to_list()
    cost = np.zeros(len(order))
    needed = np.full(collection.docs.height, len(order))
    for run in runs:
        query, row = first_rows(run, collection, names, depth)
        cost += np.bincount(query, minlength=len(order)) * _ENTRY
        np.minimum.at(needed, row, query)
    seen = np.flatnonzero(needed < len(order))
    length = collection.docs["text"].gather(seen).str.len_bytes().to_numpy().clip(max=LONGEST["text"])
    cost += np.bincount(needed[seen], weights=length * _FEWEST, minlength=len(order))
    return order[: int(np.searchsorted(np.cumsum(cost), budget, side="right")) + 1]


def _says(material: Material, packed: Packed) -> Iterator[str]:
    """Say what is carried and what is not."""
    audit, every = material.audit, len(material.audit.queries)
    if packed.queries == every:
        yield f"All {counted(every, 'query', 'queries')} of the audit." if every > 1 else "The audit's only query."
    else:
        yield f"{packed.queries:,} of {every:,} queries: {_why(material)}. With all, the page would be too large."
    runs, of = len(material.runs), len(audit.runs)
    whose = counted(of, "ranker", "rankers") if runs == of else f"{runs} of {counted(of, 'ranker', 'rankers')}"
    named = [
        ("relevant documents", len(material.judgments.grade)),
        ("the twins of what is listed", material.lists.twins.height),
    ]
    what = " and ".join(name for name, number in named if number)
    where = f", and where {what} stand further down" if what else ""
    yield f"Each list shows the first {counted(material.depth, 'result', 'results')} of {whose}{where}."
    if audit.spec.get("rounding") == "paper" and material.numbers.pairs:
        yield "Parts of Relative Δ add up to it as it is before its means are rounded."
    more = sum(int((part.more[: packed.queries] > 0).sum()) for part in material.lists.entries)
    if more:
        noun = counted(more, "list", "lists")
        yield f"In {noun}, only the {FURTHER} best ranked of the relevant documents further down are shown."
    yield from _says_texts(material, packed)


def _why(material: Material) -> str:
    numbers, audit = material.numbers, material.audit
    if not numbers.pairs:
        return "the first ones"
    a, b = numbers.pairs[0]
    if audit.measures:
        return f"those that contribute most to some ranker's Relative Δ ({audit.primary_measure!r}, {a} against {b})"
    return f"those in which the twins of {a} and {b} differ most"


def _says_texts(material: Material, packed: Packed) -> Iterator[str]:
    if not packed.texts and only_labels(material.collection):
        yield "There are no texts to show: only the documents' labels are known."
    elif not packed.texts:
        yield "There are no texts to show: the documents have none."
    if packed.cut:
        noun = counted(packed.cut, "text is", "texts are")
        yield f"{noun} cut after {LONGEST['text']:,} characters."


def query_rows(material: Material, queries: int) -> Table:
    """Make a table of the queries that contribute most."""
    chosen, every = material.order[: min(queries, MOST)], len(material.audit.queries)
    pair = material.numbers.pairs[0] if material.numbers.pairs else None
    groups = material.groups.names
    names = pair if pair is not None and len(groups) > MOST_GROUPS else groups
    sides = _value_groups(material, pair, names)
    per_run = _columns(material, pair, sides)
    columns = [Column("query", number=False, header=True)]
    columns += [Column(name, hint=f"relevant documents of {name}") for name in names if material.audit.measures]
    over = [("", 1), ("relevant documents", len(columns) - 1)][: 1 + (len(columns) > 1)]
    over += [(name, len(per_run)) for name in material.runs if per_run]
    if len(chosen) < every:
        which = f"{len(chosen):,} of {every:,} queries"
    else:
        which = "The query" if every == 1 else f"All {every:,} queries"
    return Table(
        f"{which}{_which(material, pair)}",
        (*columns, *(per_run * len(material.runs))),
        tuple(_row(material, query, pair, names) for query in chosen.tolist()),
        _note(material, pair, sides),
        spans=tuple(over),
    )


def _value_groups(material: Material, pair: Pair | None, names: tuple[str, ...]) -> tuple[str, ...]:
    """The groups whose values stand beside each ranker's part."""
    many = pair is not None and len(material.runs) * (1 + len(names)) > MOST_VALUES
    return () if many else names


def _columns(material: Material, pair: Pair | None, names: tuple[str, ...]) -> tuple[Column, ...]:
    if not material.audit.measures:
        a, b = pair if pair is not None else ("", "")
        sides = ((a, f"twins in which {a} stands higher"), (b, f"twins in which {b} stands higher"))
        return tuple(Column(name, hint=hint) for name, hint in (*sides, ("tied", "twins with equal scores")))
    primary = repr(material.audit.primary_measure)
    if pair is None:
        return (Column(primary, hint=f"{primary} of all relevant documents, in %"),)
    part = Column("part of Relative Δ", hint=f"points of Relative Δ that the query brings; positive for {pair[0]}")
    return (part, *(Column(name, hint=f"{primary} of {name} documents, in %") for name in names))


def _row(material: Material, query: int, pair: Pair | None, names: tuple[str, ...]) -> Row:
    text, name = material.queries[query], material.audit.queries[query]
    brief = text if len(text) <= _WORDS else text[: _WORDS - 1] + "…"
    cells = [Cell(brief, note=name) if text.strip() else Cell(name)]
    if material.audit.measures:
        relevant = (int(material.relevant[material.groups.names.index(group), query]) for group in names)
        cells += [Cell(f"{number:,}", number) for number in relevant]
    for run in range(len(material.runs)):
        if material.audit.measures:
            cells += _measured(material, run, query, pair, _value_groups(material, pair, names))
        else:
            met = material.numbers.heads[run, 0, query]
            cells += [Cell(f"{n:,}", n) if met.any() else Cell("–", float("nan")) for n in met.tolist()]
    return Row(tuple(cells))


def _measured(material: Material, run: int, query: int, pair: Pair | None, names: tuple[str, ...]) -> list[Cell]:
    """What a run has of a query on the primary measure."""
    values = material.numbers.values[run, material.audit.place, :, query]
    shown = [float(values[material.audit.groups.index(name)]) for name in (names if pair is not None else (ALL,))]
    cells = [Cell(percent(value), value) for value in shown]
    return cells if pair is None else [_part(float(material.numbers.tilt[run, 0, material.audit.place, query])), *cells]


def _part(value: float) -> Cell:
    """Points of Relative Δ, with the side that they favour."""
    text = "–" if value != value else signed(value, 2)
    tone: Tone = "first" if value > 0 else "second" if value < 0 else ""
    return Cell(text, value, tone)


def _which(material: Material, pair: Pair | None) -> str:
    """What the order goes by."""
    if pair is None:
        return ""
    if material.audit.measures:
        question = f"{material.audit.primary_measure!r}, {pair[0]} − {pair[1]}"
        return f", those first that contribute most to Relative Δ ({question})"
    return f", those first in which the twins of {pair[0]} and {pair[1]} differ most"


def _note(material: Material, pair: Pair | None, sides: tuple[str, ...]) -> str:
    if not material.audit.measures:
        return "Of twins with at least one side retrieved: how often each stands higher."
    primary = repr(material.audit.primary_measure)
    if pair is None:
        return f"{primary} in %."
    beside = f" Beside them {primary} of each group in %." if sides else ""
    return f"Parts in points, positive for {pair[0]}: over all queries of the audit they add up to Relative Δ.{beside}"
