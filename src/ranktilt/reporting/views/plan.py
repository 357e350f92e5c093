"""A cost plan: a row a step, its time, memory, disk, tokens and price with their intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ranktilt.llm.estimate import duration
from ranktilt.planning.plan import Amount, CostPlan, PlannedStep
from ranktilt.reporting.document import Cell, Column, Document, Row, Section, Sentence, Table
from ranktilt.reporting.numbers import DASH, count, decimal, size
from ranktilt.reporting.views.provenance import folder, provenance

_EVERY = "every ranker"
_REPEATS = "times differ from one measurement to the next, and with what else the machine does"
_METHOD = (
    "Each step is measured on samples, each up to four times as large as the one before, with many and with few "
    "queries and an empty cache: its wall and processor time, the peak of the process's memory that is no file's, the "
    "bytes it writes. Samples are drawn evenly over the lengths of documents and queries, twins together; loading, "
    "indexing, search and the audit are measured on copies of the documents, too. A search by vectors is measured with "
    "random ones.",
    "A cost is a sum of terms with coefficients of at least 0, fitted to relative errors; time is the processors', at "
    "the pace of the larger samples. Intervals: 95 % prediction intervals (t) of a line through the logarithms, so "
    "that they widen with the distance from the sample, but for models that work in batches.",
)


def view(found: CostPlan) -> Document:
    """Return what is said of a plan."""
    name = folder(found.spec)
    title = f"Plan for {name}" if name else "Plan"
    lead = ("What would it take, and where does the time go?",)
    made = provenance(found.spec, found.notes, repeats=_REPEATS)
    return Document(
        title=title,
        kind=title,
        headline=f"{found.headline}.",
        sections=(Section("steps", "Step by step", lead, (_table(found),)), made),
        sentences=(Sentence(found.headline, emphasis="strong"),),
        legend=tuple(_legend(found)),
        notes=found.notes,
        method=_METHOD,
    )


def _table(found: CostPlan) -> Table:
    asks = found.total.tokens_in.known and found.total.tokens_in.value > 0
    columns = (
        Column("step", number=False, header=True),
        Column("time"),
        *([Column("shared", number=False, hint=f"by {found.machines} machines")] if found.machines > 1 else []),
        Column("memory", hint="of the process at its peak; files that are mapped do not count"),
        Column("disk"),
        *([Column("tokens in"), Column("tokens out"), Column("price")] if asks else []),
        Column("grows with", number=False, hint="the term that most of the time comes from"),
        Column("× sample", hint="how far the time is extrapolated"),
    )
    rows = [Row(tuple(_cells(one, found, asks=asks)), (one.ranker or _EVERY,)) for one in found.steps]
    rows.append(Row(tuple(_cells(found.total, found, asks=asks)), ("in all",), rule=True))
    return Table("What each step would take", columns, tuple(rows), groups=("ranker",))


def _cells(one: PlannedStep, found: CostPlan, *, asks: bool) -> Iterator[Cell]:
    total = one is found.total
    yield Cell(one.name, emphasis="strong" if total else "")
    yield _cell(one.seconds, time_span, interval=True)
    if found.machines > 1:
        yield Cell("" if total else "yes" if one.spreads else "no")
    yield _cell(one.memory, size, interval=True)
    yield _cell(one.disk, size)
    if asks:
        yield _cell(one.tokens_in, _tokens)
        yield _cell(one.tokens_out, _tokens)
        yield _cell(one.price, lambda value: decimal(value, 2), interval=True)
    yield Cell(one.grows)
    yield Cell("" if total else _times(one.factor) if one.seconds.known else DASH, one.factor)


def _times(factor: float) -> str:
    return count(round(factor)) if factor >= 100 else f"{factor:.3g}"


def _cell(amount: Amount, printed: Callable[[float], str], *, interval: bool = False) -> Cell:
    """A dash for nothing and for what is not known."""
    if not amount.known or not amount.value:
        return Cell(DASH, amount.value)
    ends = (printed(amount.low), printed(amount.high)) if interval else None
    return Cell(printed(amount.value), amount.value, ends=ends)


def time_span(seconds: float) -> str:
    """Print a time with about two digits: ``0.31 s``, ``42 s``, ``9 h 58 min``."""
    return f"{seconds:.2g} s" if seconds < 10 else duration(seconds)


def _tokens(number: float) -> str:
    return f"{number / 1e6:,.1f}M" if number >= 1e6 else count(round(number))


def _legend(found: CostPlan) -> Iterator[str]:
    rows = found.measurements
    most = max(row.documents for row in rows), max(row.queries for row in rows)
    yield (
        f"Measured on this machine on samples of up to {count(most[0])} documents and {count(most[1])} queries, and "
        "extrapolated; brackets: 95 % prediction intervals. × sample: time over that of the largest sample."
    )
