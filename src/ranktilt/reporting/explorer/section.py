"""The explorer's part of a page: the queries that matter most, their ranked lists, and the texts behind them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ranktilt.auditing.groups import ALL, grouping
from ranktilt.auditing.judgments import Judgments
from ranktilt.auditing.notes import only_labels
from ranktilt.errors import counted
from ranktilt.measures.printing import signed
from ranktilt.reporting.document import Cell, Column, Explorer, Row, Table
from ranktilt.reporting.explorer.lists import FURTHER, ranked_lists
from ranktilt.reporting.explorer.numbers import Numbers
from ranktilt.reporting.explorer.pack import LONGEST, Material, Packed
from ranktilt.reporting.numbers import percent
from ranktilt.reporting.reload import LoadedAudit
from ranktilt.reporting.tones import Tone

BUDGET = 2_450_000
"""Characters, so that a page with texts stays below 3 MB."""
DEPTH = 10
MOST = 50
_WORDS = 120


def explorer(opened: LoadedAudit, *, budget: int = BUDGET, depth: int = DEPTH) -> Explorer | None:
    """Collect the queries, ranked lists and texts of an audit for its page, in so many characters."""
    audit, collection, runs = opened.audit, opened.collection, opened.runs
    if collection is None or not runs or not audit.queries or not (audit.measures or audit.pairs):
        return None
    groups = grouping(collection, audit.spec.get("by"), audit.groups, fewest=1)
    judgments = Judgments.from_collection(collection, groups)
    names = tuple(run.name for run in runs)
    numbers = Numbers.of(audit, names)
    order = numbers.order(audit.primary_index if audit.measures else 0)
    ties = str(audit.spec.get("ties", "expected"))
    lists = ranked_lists(collection, groups, judgments, runs, order=order, depth=depth, ties=ties)
    material = Material(audit, collection, groups, names, order, numbers, lists, depth)
    packed = material.fitted(budget)
    says = " ".join(_says(material, packed))
    rows = query_rows(material, packed.queries)
    caption = "Queries, ranked lists and texts" if packed.texts else "Queries and ranked lists"
    return Explorer(caption, says, packed.lists, packed.texts, rows)


def _says(material: Material, packed: Packed) -> Iterator[str]:
    """Say what is carried and what is not."""
    audit, every = material.audit, len(material.audit.queries)
    if packed.queries == every:
        yield (
            f"All {counted(every, 'query', 'queries')} of the audit."
            if every > 1
            else "The audit's only query."
        )
    else:
        yield f"{packed.queries:,} of {every:,} queries: {_why(material)}. With all, the page would be too large."
    runs, of = len(material.runs), len(audit.runs)
    whose = (
        counted(of, "ranker", "rankers")
        if runs == of
        else f"{runs} of {counted(of, 'ranker', 'rankers')}"
    )
    lists = material.lists
    named = [
        ("relevant documents", lists.relevant.any()),
        ("the twins of what is listed", lists.twins.height),
    ]
    what = " and ".join(name for name, number in named if number)
    where = f", and where {what} stand further down" if what else ""
    yield f"Each list shows the first {counted(material.depth, 'result', 'results')} of {whose}{where}."
    if audit.spec.get("rounding") == "paper" and material.numbers.pairs:
        yield "Parts of Relative Δ add up to it as it is before its means are rounded."
    if (lists.relevant > FURTHER).any():
        yield f"Of a query's relevant documents further down, only the {FURTHER} best ranked are shown."
    if not packed.texts:
        if not only_labels(material.collection):  # of labels nobody expects texts
            yield "There are no texts to show: the documents have none."
    elif packed.documents < (needed := material.needed(packed.queries)):
        yield f"Texts are those of {packed.documents:,} of {needed:,} documents: those that the first queries need."
    if packed.cut:
        yield f"{counted(packed.cut, 'text is', 'texts are')} cut after {LONGEST['text']:,} characters."


def _why(material: Material) -> str:
    """What the queries' order goes by."""
    if not material.numbers.pairs:
        return "the first ones"
    a, b = material.numbers.pairs[0]
    if material.audit.measures:
        question = f"{material.audit.primary_measure!r}, {a} against {b}"
        return f"those that contribute most to some ranker's Relative Δ ({question})"
    return f"those in which the twins of {a} and {b} differ most"


def query_rows(material: Material, queries: int) -> Table:
    """Make a table of the queries that contribute most, for readers without scripts and for paper."""
    shown, every = min(queries, MOST), len(material.audit.queries)
    which = "All" if shown == every else f"{shown:,} of"
    title, hint, note = _column(material)
    rows = []
    for (name, text), query in zip(
        material.queries.head(shown).iter_rows(), material.order, strict=False
    ):
        brief = text if len(text) <= _WORDS else text[: _WORDS - 1] + "…"
        first = Cell(brief, note=name) if text.strip() else Cell(name)
        rows.append(
            Row((first, *(_cell(material, run, query) for run in range(len(material.runs)))))
        )
    return Table(
        f"{which} {counted(every, 'query', 'queries')}{f', first {_why(material)}' if material.numbers.pairs else ''}",
        (
            Column("query", number=False, header=True),
            *(Column(title, hint=hint) for _ in material.runs),
        ),
        tuple(rows),
        note,
        spans=(("", 1), *((name, 1) for name in material.runs)),
    )


def _column(material: Material) -> tuple[str, str, str]:
    """Title, hint and note of what each run has of a query."""
    pairs, audit = material.numbers.pairs, material.audit
    if not pairs:
        primary = repr(audit.primary_measure)
        return primary, f"{primary} of all relevant documents, in %", f"{primary} in %."
    a, b = pairs[0]
    if not audit.measures:
        hint = f"twins in which {a} stands higher, and in which {b} does"
        return (
            f"{a} : {b}",
            hint,
            "Of twins with at least one side retrieved: how often each stands higher.",
        )
    hint = f"points of Relative Δ that the query brings; positive for {a}"
    return (
        "part of Relative Δ",
        hint,
        f"In points, positive for {a}: over all queries they add up to Relative Δ.",
    )


def _cell(material: Material, run: int, query: np.int64) -> Cell:
    numbers, audit = material.numbers, material.audit
    if not numbers.pairs:
        value = float(numbers.values[run, audit.primary_index, audit.groups.index(ALL), query])
        return Cell(percent(value), value)
    if not audit.measures:
        wins, losses, ties = numbers.heads[run, 0, query].tolist()
        return (
            Cell(f"{wins} : {losses}", wins - losses)
            if wins + losses + ties
            else Cell("–", float("nan"))
        )
    value = float(numbers.tilt[run, 0, audit.primary_index, query])
    tone: Tone = "first" if value > 0 else "second" if value < 0 else ""
    return Cell("–" if value != value else signed(value, 2), value, tone)
