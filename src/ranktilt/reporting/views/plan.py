"""A cost plan: a row a step, its time, memory and disk with their intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ranktilt.llm.estimate import duration
from ranktilt.planning.plan import Amount, CostPlan, PlannedStep
from ranktilt.reporting.document import Cell, Column, ColumnOf, Document, Section, Sentence, Table, named, tabulated
from ranktilt.reporting.numbers import DASH, count, estimate, number, size
from ranktilt.reporting.provenance import provenance, titled

_MEMORY = "of the process at its peak; files that are mapped do not count"
_EVERY = "every ranker"
_REPEATS = "times differ from one measurement to the next, and with what else the machine does"


def view(found: CostPlan) -> Document:
    """Return what is said of a plan."""
    lead = ("What would it take, and where does the time go?",)
    made = provenance(found.spec, found.notes, repeats=_REPEATS)
    return Document(
        kind=titled("Plan for", found.spec),
        headline=f"{found.headline}.",
        sections=(Section("steps", "Step by step", lead, (_table(found),)), made),
        sentences=(Sentence(found.headline, emphasis="strong"),),
        legend=tuple(_legend(found)),
        notes=found.notes,
    )


def _table(found: CostPlan) -> Table:
    columns: list[ColumnOf] = [
        (named("step"), lambda one: Cell(one.name, emphasis="strong" if one is found.total else "")),
        ("time", lambda one: _cell(one.seconds, time_span)),
        (Column("memory", hint=_MEMORY), lambda one: _cell(one.memory, size)),
        ("disk", lambda one: _cell(one.disk, size, interval=False)),
        (Column("grows with", number=False, hint="the term that most of the time comes from"), lambda one: one.grows),
        (Column("× sample", hint="how far the time is extrapolated"), lambda one: _factor(one, found)),
    ]  # fmt: skip
    return tabulated(
        "What each step would take", (*found.steps, found.total), columns, groups=("ranker",),
        group=lambda one: ("in all" if one is found.total else one.ranker or _EVERY,),
        rule=lambda one: one is found.total,
    )  # fmt: skip


def _factor(one: PlannedStep, found: CostPlan) -> Cell:
    times = count(round(one.factor)) if one.factor >= 100 else f"{one.factor:.3g}"
    return Cell("" if one is found.total else times if one.seconds.known else DASH, one.factor)


def _cell(amount: Amount, printed: Callable[[float], str], *, interval: bool = True) -> Cell:
    """A dash for nothing and for what is not known."""
    if not amount.known or not amount.value:
        return Cell(DASH, amount.value)
    return estimate(amount, printed) if interval else number(amount.value, printed)


def time_span(seconds: float) -> str:
    """Print a time with about two digits: ``0.31 s``, ``42 s``, ``9 h 58 min``."""
    return f"{seconds:.2g} s" if seconds < 10 else duration(seconds)


def _legend(found: CostPlan) -> Iterator[str]:
    rows = found.measurements
    most = max(row.documents for row in rows), max(row.queries for row in rows)
    yield (
        f"Measured on this machine on samples of up to {count(most[0])} documents and {count(most[1])} queries, and "
        "extrapolated; brackets: 95 % prediction intervals. × sample: time over that of the largest sample."
    )
