"""The explorer's part of a page: the queries that matter most, their ranked lists, and the texts behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.alignment import Judgments
from ranktilt.auditing.groups import grouping
from ranktilt.auditing.notes import only_labels
from ranktilt.collection import Collection
from ranktilt.errors import UserError, counted
from ranktilt.reporting.document import Explorer
from ranktilt.reporting.explorer.lists import FURTHER, first_rows, lists
from ranktilt.reporting.explorer.numbers import Numbers
from ranktilt.reporting.explorer.pack import LONGEST, Material, Packed
from ranktilt.reporting.explorer.rows import rows
from ranktilt.reporting.reload import Opened
from ranktilt.run import Run

Ints = npt.NDArray[np.int64]
BUDGET = 5_000_000
DEPTH = 10
_FEWEST = 0.15  # characters in the page for a byte of text, where it can hardly be less
_ENTRY = 3


def explorer(opened: Opened, *, budget: int = BUDGET, depth: int = DEPTH) -> Explorer | None:
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
    order = _candidates(collection, runs, audit.queries, numbers.order(), budget=budget, depth=depth)
    ties = str(audit.spec.get("ties", "expected"))
    found = lists(collection, groups, judgments, runs, queries=order, depth=depth, ties=ties)
    material = Material(audit, collection, groups, judgments, names, order, numbers, found, depth)
    packed = material.fitted(budget)
    says = " ".join(_says(material, packed))
    return Explorer("Queries, ranked lists and texts", says, packed.lists, packed.texts, rows(material, packed.queries))


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
        return f"those that contribute most to some ranker's Relative Δ ({audit.measures[0]!r}, {a} against {b})"
    return f"those in which the twins of {a} and {b} differ most"


def _says_texts(material: Material, packed: Packed) -> Iterator[str]:
    if not packed.texts and only_labels(material.collection):
        yield "There are no texts to show: only the documents' labels are known."
    elif not packed.texts:
        yield "There are no texts to show: the documents have none."
    if packed.cut:
        noun = counted(packed.cut, "text is", "texts are")
        yield f"{noun} cut after {LONGEST['text']:,} characters."
