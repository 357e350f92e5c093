"""A comparison of judges: in what a judge has changed, on the pairs that both graded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from math import isfinite
from operator import attrgetter

from ranktilt.judging.drift.result import JudgeChange, JudgeDrift, JudgePair, OrderLikeness
from ranktilt.judging.records import Estimate
from ranktilt.reporting.document import (
    Block,
    Cell,
    Column,
    ColumnSpec,
    Document,
    PageBlocks,
    Section,
    Sentence,
    Table,
    make_table,
    name_column,
    text_column,
)
from ranktilt.reporting.headline import headline
from ranktilt.reporting.interval_chart import (
    MOST_ROWS,
    IntervalChart,
    IntervalMark,
    IntervalReading,
    IntervalRow,
    interval_chart,
)
from ranktilt.reporting.numbers import (
    decimal,
    estimate_cell,
    estimate_cells,
    fixed,
    number_cells,
    p_value,
    signed,
    with_commas,
)
from ranktilt.reporting.provenance import provenance
from ranktilt.reporting.sentences.judging.drift import (
    change_name,
    change_tone,
    drift_findings,
    drift_meaning,
    drift_steps,
    order_sentences,
    pair_sentence,
)
from ranktilt.reporting.sentences.notes import note_sentences

_signed = partial(signed, digits=2)


def view(drift: JudgeDrift) -> Document:
    """Return the document of a comparison of judges."""
    notes = note_sentences(drift.notes)
    lead = [pair_sentence(pair) for pair in drift.judges]
    lead += chain.from_iterable(map(order_sentences, drift.judges))
    sections = (
        Section("result", "Every number", blocks=(_change_table(drift),), short_title="Numbers"),
        Section(
            "pairs", "What both judges graded", lead=tuple(lead), blocks=tuple(_pair_tables(drift))
        ),
        provenance(drift.spec, notes),
    )
    sentences = [
        Sentence(finding.sentence, finding.tone, "strong") for finding in drift_findings(drift)
    ]
    return Document(
        kind=_kind(drift),
        headline=headline(drift),
        sections=sections,
        sentences=tuple(sentences),
        meaning=drift_meaning(drift),
        first_figure=PageBlocks(make=partial(_first_figure, drift)),
        next_steps=tuple(drift_steps(drift)),
        legend=tuple(_legend(drift)),
        notes=notes,
        names=tuple(dict.fromkeys(chain.from_iterable(map(_names, drift.judges)))),
    )


_names = attrgetter("judge", "old_judge")


def _kind(drift: JudgeDrift) -> str:
    """Name the comparison."""
    if len(drift.judges) > 1:
        return f"{len(drift.judges)} judges, new and old, on the same pairs"
    (pair,) = drift.judges
    if pair.judge == pair.old_judge:
        return f"{pair.judge}, new and old, on the same pairs"
    return f"{pair.judge} and {pair.old_judge} on the same pairs"


def _change_table(drift: JudgeDrift) -> Table:
    columns: list[ColumnSpec] = [
        (name_column("number"), change_name),
        ("new", number_cells("new", fixed)),
        ("old", number_cells("old", fixed)),
        ("difference", _difference),
        (Column("corrected p", drop_order=1), number_cells("p_corrected", p_value)),
        (
            Column("would find", drop_order=2, hint="smallest change found four times in five"),
            number_cells("detectable", fixed),
        ),
        (
            Column("of", drop_order=3, hint="pairs, twins or systems"),
            number_cells("pairs", with_commas),
        ),
        (Column("queries", drop_order=3), number_cells("queries", with_commas)),
    ]
    caption = "What the new judge does, and what the old one did, on the same pairs"
    if len(drift.judges) == 1:
        return make_table(caption, drift.changes, columns)
    return make_table(
        caption, drift.changes, columns, group_of=lambda row: (row.judge,), group_titles=("judge",)
    )


def _difference(change: JudgeChange) -> Cell:
    """Print a change, with a star where it is shown."""
    return estimate_cell(change, _signed, "*" if change.kind == "changed" else "")


@dataclass(frozen=True, kw_only=True)
class _OrderRow:
    """How alike two judges order systems, with the new one's name."""

    judge: str
    """Name of the new judge."""
    order: OrderLikeness
    """Likeness of the orders."""


_ORDER_COLUMNS: tuple[ColumnSpec, ...] = (
    (name_column("judge"), attrgetter("judge")),
    (text_column("measure"), attrgetter("order.measure")),
    ("τ-b", estimate_cells("order.tau", fixed)),
    (Column("systems", drop_order=1), number_cells("order.systems", with_commas)),
    (Column("queries", drop_order=1), number_cells("order.queries", with_commas)),
)
"""Columns of the table of orders."""


def _pair_tables(drift: JudgeDrift) -> Iterator[Block]:
    """Yield the counts of pairs, and how alike the judges order systems."""
    columns: list[ColumnSpec] = [
        (name_column("new judge"), attrgetter("judge")),
        (text_column("old judge"), attrgetter("old_judge")),
        ("graded by the new", number_cells("new_pairs", with_commas)),
        ("by the old", number_cells("old_pairs", with_commas)),
        ("by both", number_cells("common_pairs", with_commas)),
        (Column("and humans", drop_order=1), number_cells("human_pairs", with_commas)),
        (Column("same grade, %", drop_order=1), _same_cell),
    ]
    yield make_table("Pairs of query and document", drift.judges, columns)
    orders = list[_OrderRow]()
    for pair in drift.judges:
        orders += [_OrderRow(judge=pair.judge, order=order) for order in pair.orders]
    if orders:
        yield make_table(
            "Order of systems under the new judge and under the old one",
            orders,
            _ORDER_COLUMNS,
            collapsed=True,
        )


def _same_cell(pair: JudgePair) -> Cell:
    """Print the share of pairs with the same grade, in percent."""
    percent = Estimate(*(100 * end for end in pair.same))
    return estimate_cell(percent, decimal)


def _first_figure(drift: JudgeDrift) -> Iterator[IntervalChart]:
    """Draw every change: coefficients on one scale, grades on the other."""
    changes = [change for change in drift.changes if isfinite(change.value)][:MOST_ROWS]
    if not changes:
        return
    has_grades = any(change.question in ("grade", "tilt") for change in changes)
    scales = ("κ, τ-b", "grades") if has_grades else ("κ, τ-b",)
    yield interval_chart(
        "Difference between the new judge and the old one",
        "At 0 nothing changed. Line: 95 % interval.",
        [_row(drift, change, has_grades=has_grades) for change in changes],
        scale_titles=scales,
    )


def _row(drift: JudgeDrift, change: JudgeChange, *, has_grades: bool) -> IntervalRow:
    mark = IntervalMark(value=change.value, low=change.low, high=change.high)
    text = _signed(change.value)
    if mark.has_interval:
        text = f"{text} [{_signed(change.low)}, {_signed(change.high)}]"
    reading = IntervalReading(mark=mark, text=text, tone=change_tone(change))
    readings: tuple[IntervalReading | None, ...] = (reading,)
    if has_grades:
        is_grade = change.question in ("grade", "tilt")
        readings = (None, reading) if is_grade else (reading, None)
    front = f"{change.judge}: " if len(drift.judges) > 1 else ""
    return IntervalRow(label=f"{front}{change_name(change)}", readings=readings)


def _legend(drift: JudgeDrift) -> Iterator[str]:
    """Yield what numbers mean."""
    questions = {change.question for change in drift.changes}
    yield (
        "Differences are new − old, over the pairs of query and document that both judges graded, "
        "on the same resampled queries."
    )
    if "agreement" in questions:
        yield f"κ is Cohen's, of grades 0 to {drift.top_grade}, with the human grades."
    if "tilt" in questions:
        of_twins = any(change.is_of_twins for change in drift.changes)
        yield (
            "Grade gap: grade of the first side minus that of its twin, for the same query and "
            "human grade."
            if of_twins
            else "Grade gap, beyond humans: how much higher than humans the judge grades the first "
            "source, minus the same for the second."
        )
    yield (
        "Intervals are over queries, those of grades also over documents, and one at a time; p is "
        f"corrected over all numbers ({drift.correction.title()}). * corrected p < .05."
    )
