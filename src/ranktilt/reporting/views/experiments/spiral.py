"""A spiral: the reference's share of the page, round by round, as a figure and a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ranktilt.auditing.effects import Change
from ranktilt.errors import counted
from ranktilt.experiments.spiral_result import QueryMean, Spiral, SpiralRound
from ranktilt.reporting.document import (
    Block,
    Cell,
    Column,
    ColumnOf,
    Document,
    Emphasis,
    Figure,
    Section,
    Sentence,
    Table,
    named,
    tabulated,
    worded,
)
from ranktilt.reporting.figures.charts import Point, lines
from ranktilt.reporting.numbers import count, ends, estimate, interval, number, p_value, percent, signed
from ranktilt.reporting.provenance import provenance, titled

_DODGE = 0.03


def view(found: Spiral) -> Document:
    """Return what is said of a spiral."""
    blocks: tuple[Block, ...] = (*_figures(found), _table(found), *_differences(found))
    lead = (f"How much of the first {found.page} is left to {found.reference} documents as rewrites enter?",)
    return Document(
        kind=titled("Spiral on", found.spec),
        headline=f"{found.headline}.",
        sections=(Section("rounds", "Round by round", lead, blocks), provenance(found.spec, found.notes)),
        sentences=(Sentence(found.headline, emphasis="strong"), *map(Sentence, found.sentences)),
        legend=tuple(legend(found)),
        notes=found.notes,
    )


def _table(found: Spiral) -> Table:
    reference = found.reference
    columns: list[ColumnOf] = [
        (Column("round", header=True), lambda one: number(one.number, str)),
        (Column("rewrites", hint="in the collection"), lambda one: number(one.rewrites, count)),
        (Column("collection", hint=f"{reference} documents in it, in %"), lambda one: number(one.held, percent)),
        (Column("page", hint=f"{reference} documents on it, in %"), lambda one: estimate(one.share, percent)),
        (
            Column("rewrites first", hint="their share of the page in the other direction, in %"),
            lambda one: estimate(one.mirrored, percent),
        ),
        (Column("page less middle", hint="of both directions, in points"), _lead),
    ]
    if any(one.effectiveness.value == one.effectiveness.value for one in found.rounds):
        columns.append((found.valued, lambda one: estimate(one.effectiveness, percent)))
    return tabulated(
        f"The first {found.page}, round by round", found.rounds, columns, group=lambda one: (one.run,),
        groups=("ranker",),
    )  # fmt: skip


def _lead(one: SpiralRound) -> Cell:
    value, low, high = (100 * part for part in one.lead)
    strong: Emphasis = "strong" if low > 0 or high < 0 else ""
    return Cell(signed(value), value, ends=ends(low, high), emphasis=strong)


def _differences(found: Spiral) -> Iterator[Table]:
    """How the last rounds of the other rankers differ from that of the first."""
    if not found.differences:
        return
    columns = (
        (named("ranker"), lambda d: d.run),
        (worded("of"), lambda d: d.measure if d.measure == found.valued else f"{found.reference} share of the page"),
        ("points", _change),
        ("corrected p", lambda d: number(d.p_corrected, p_value)),
    )
    yield tabulated(f"The last round, less {found.runs[0]}", found.differences, columns)


def _change(one: Change) -> Cell:
    strong: Emphasis = "strong" if one.shown else ""
    return estimate(one, signed, "*" * one.shown, emphasis=strong)


def _figures(found: Spiral) -> Iterator[Figure]:
    """The share of the page by round, and that share less the middle of both directions: a line a ranker."""
    lowest = 100 * min(one.share.low for one in found.rounds)
    yield Figure(
        f"Share of {found.reference} documents among the first {found.page}, by round",
        "Bars: 95 % intervals.",
        lines(
            _by_round(found, lambda one: one.share), x="round", y=f"{found.reference} documents on the page, %",
            dodge=_DODGE, domain=(max(0.0, lowest - 5), 102),
        ),
        half=True,
    )  # fmt: skip
    yield Figure(
        "Page less middle, by round",
        f"Below 0 the ranker leaves less of the page to {found.reference} documents than to rewrites that were first. "
        "Bars: 95 % intervals.",
        lines(_by_round(found, lambda one: one.lead), x="round", y="page less middle, points", dodge=_DODGE),
        half=True,
    )


def _by_round(found: Spiral, mean: Callable[[SpiralRound], QueryMean]) -> dict[str, list[Point]]:
    """A mean of every ranker and round, in percent."""
    drawn: dict[str, list[Point]] = {run: [] for run in found.runs}
    for one in found.rounds:
        value, low, high = (100 * part for part in mean(one))
        label = f"round {one.number}: {signed(value)} {interval(low, high)}"
        drawn[one.run].append(Point(float(one.number), value, low, high, label))
    return drawn


def legend(found: Spiral) -> Iterator[str]:
    """Say what the numbers are, in a few lines."""
    spec = found.spec
    how = "of documents that the last pages showed" if spec["entry_rule"] == "retrieved" else "drawn at random"
    yield (
        f"Each round rewrites {how} enter, of at most {100 * spec['share']:.3g} % of the documents. Page: "
        f"{found.reference} documents among the first {found.page}; collection: among all. Rewrites first: their "
        f"share of the page in the other direction, where they are there first and {found.reference} documents enter. "
        "A ranker that does not care who wrote a text leaves as much to either, the middle of both."
    )
    queries = counted(found.queries, "query", "queries")
    yield f"* corrected p < .05 (Holm). Intervals: bootstrap over {queries}, {spec['resamples']:,} resamples."
