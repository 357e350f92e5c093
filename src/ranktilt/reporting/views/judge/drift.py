"""The report on a comparison of judges: what a new judge does differently from an old one.

The report is a `Document`, which is shown as text or as a page. Both judges grade the same *pairs*
of a query and a text. A *source* is who wrote a text, such as human or an LLM; *twins* are two
versions of one text, by different sources. *Systems* are the retrieval runs that grades evaluate. A
*change* is new − old of one number: agreement with humans, mean grade, grade gap between two
sources, or order of systems. *Drift* is any of these changes, and the result that holds them.
"""

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
    drawn_words,
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

_two_decimals = partial(signed, digits=2)
"""Print a number with its sign and two decimals."""
_judge_names = attrgetter("judge", "old_judge")
"""Return the names of the new and of the old judge of a change."""


def view(drift: JudgeDrift) -> Document:
    """Return the report on a comparison of judges."""
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
        Sentence(finding.sentence, finding.tone, emphasis="strong")
        for finding in drift_findings(drift)
    ]
    return Document(
        kind=_kind(drift),
        headline=headline(drift),
        sections=sections,
        sentences=tuple(sentences),
        meaning=drift_meaning(drift),
        # Text has no figures, so a page draws this one when it asks for it.
        first_figure=PageBlocks(make=partial(_first_figure, drift)),
        next_steps=tuple(drift_steps(drift)),
        legend=tuple(_legend(drift)),
        notes=notes,
        # A page shortens long names in its sentences; these are the names to look for.
        names=tuple(dict.fromkeys(chain.from_iterable(map(_judge_names, drift.judges)))),
    )


def _kind(drift: JudgeDrift) -> str:
    """Return the title of the report, which names the judges or gives their number."""
    if len(drift.judges) > 1:
        return f"{len(drift.judges)} judges, new and old, on the same pairs"
    (pair,) = drift.judges
    if pair.judge == pair.old_judge:
        return f"{pair.judge}, new and old, on the same pairs"
    return f"{pair.judge} and {pair.old_judge} on the same pairs"


def _change_table(drift: JudgeDrift) -> Table:
    """Return the table of every change, with a row for each number of each judge."""
    # A narrow terminal leaves out the columns with `drop_order` 1 first, then 2 and 3.
    columns: list[ColumnSpec] = [
        (name_column("number"), change_name),
        ("new", number_cells("new", fixed)),
        ("old", number_cells("old", fixed)),
        ("difference", _difference_cell),
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


def _difference_cell(change: JudgeChange) -> Cell:
    """Return the cell of a change, with a star where its corrected p is below .05."""
    return estimate_cell(change, _two_decimals, "*" if change.kind == "changed" else "")


@dataclass(frozen=True, kw_only=True)
class _OrderRow:
    """A row of the table of orders: how alike the new and the old judge order systems."""

    judge: str
    """Name of the new judge."""
    order: OrderLikeness
    """Rank correlation (τ-b) of the two orders on one measure."""


_ORDER_COLUMNS: tuple[ColumnSpec, ...] = (
    (name_column("judge"), attrgetter("judge")),
    (text_column("measure"), attrgetter("order.measure")),
    ("τ-b", estimate_cells("order.tau", fixed)),
    (Column("systems", drop_order=1), number_cells("order.systems", with_commas)),
    (Column("queries", drop_order=1), number_cells("order.queries", with_commas)),
)
"""Columns of the table of orders."""


def _pair_tables(drift: JudgeDrift) -> Iterator[Block]:
    """Yield the table of how many pairs each judge graded, and the table of orders of systems."""
    columns: list[ColumnSpec] = [
        (name_column("new judge"), attrgetter("judge")),
        (text_column("old judge"), attrgetter("old_judge")),
        ("graded by the new", number_cells("new_pairs", with_commas)),
        ("by the old", number_cells("old_pairs", with_commas)),
        ("by both", number_cells("common_pairs", with_commas)),
        (Column("and humans", drop_order=1), number_cells("human_pairs", with_commas)),
        (Column("same grade, %", drop_order=1), _same_grade_cell),
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


def _same_grade_cell(pair: JudgePair) -> Cell:
    """Return the cell of the share of pairs to which both judges give the same grade."""
    value, low, high = pair.same
    return estimate_cell(Estimate(100 * value, 100 * low, 100 * high), decimal)


def _first_figure(drift: JudgeDrift) -> Iterator[IntervalChart]:
    """Draw the first changes, as many as the first screen has room for.

    Coefficients have the first scale, and grades the second.
    """
    defined = [change for change in drift.changes if isfinite(change.value)]
    changes = defined[:MOST_ROWS]
    if not changes:
        return
    has_grades = any(map(_is_in_grades, changes))
    scale_titles = ("κ, τ-b", "grades") if has_grades else ("κ, τ-b",)
    yield interval_chart(
        "Difference between the new judge and the old one",
        f"At 0 nothing changed. Line: 95 % interval.{drawn_words(len(changes), len(defined))}",
        [_chart_row(drift, change, has_grade_scale=has_grades) for change in changes],
        scale_titles=scale_titles,
    )


def _is_in_grades(change: JudgeChange) -> bool:
    """Tell whether a change is in grades: of a mean grade, or of a grade gap (``tilt``).

    All others are changes of coefficients.
    """
    return change.question in ("grade", "tilt")


def _chart_row(drift: JudgeDrift, change: JudgeChange, *, has_grade_scale: bool) -> IntervalRow:
    """Return the row of a change, with its value on one of the scales.

    With `has_grade_scale` the figure has two scales, of which the other one stays empty.
    """
    mark = IntervalMark(value=change.value, low=change.low, high=change.high)
    text = _two_decimals(change.value)
    if mark.has_interval:
        text = f"{text} [{_two_decimals(change.low)}, {_two_decimals(change.high)}]"
    reading = IntervalReading(mark=mark, text=text, tone=change_tone(change))
    readings: tuple[IntervalReading | None, ...] = (reading,)
    if has_grade_scale:
        readings = (None, reading) if _is_in_grades(change) else (reading, None)
    judge = f"{change.judge}: " if len(drift.judges) > 1 else ""
    return IntervalRow(label=f"{judge}{change_name(change)}", readings=readings)


def _legend(drift: JudgeDrift) -> Iterator[str]:
    """Yield sentences on differences, on each kind of number, and on intervals."""
    questions = {change.question for change in drift.changes}
    yield (
        "Differences are new − old, over the pairs of query and document that both judges graded, "
        "on the same resampled queries."
    )
    if "agreement" in questions:
        yield f"κ is Cohen's, of grades 0 to {drift.top_grade}, with the human grades."
    if "tilt" in questions:
        if any(change.is_of_twins for change in drift.changes):
            yield (
                "Grade gap: grade of the first side minus that of its twin, for the same query and "
                "human grade."
            )
        else:
            yield (
                "Grade gap, beyond humans: how much higher than humans the judge grades the first "
                "source, minus the same for the second."
            )
    yield (
        "Intervals are over queries, those of grades also over documents, and one at a time; p is "
        f"corrected over all numbers ({drift.correction.title()}). * corrected p < .05."
    )
