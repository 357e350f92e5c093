"""The part of an audit of judges on length: whether a longer passage gets a higher grade.

A *judge* is a model that grades how well a passage answers a query, in place of humans. The audit
adds sentences that say nothing about the query to passages, and asks for the grade again; a *dose*
is by how many times a passage is longer, such as ×2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from operator import attrgetter

from ranktilt.judging.grading.length_doses import DoseGrade, LengthDoses
from ranktilt.judging.records import Estimate
from ranktilt.judging.result import JudgeAudit
from ranktilt.reporting.document import (
    Block,
    Cell,
    Column,
    ColumnSpec,
    PageBlocks,
    make_table,
    name_column,
    text_column,
)
from ranktilt.reporting.interval_chart import (
    IntervalChart,
    IntervalMark,
    IntervalReading,
    IntervalRow,
    interval_chart,
)
from ranktilt.reporting.numbers import (
    estimate_cell,
    fixed,
    number_cells,
    p_value,
    signed,
    with_commas,
)
from ranktilt.reporting.tones import Tone


@dataclass(frozen=True, kw_only=True)
class _DoseRow:
    """A row of the table: a judge's mean grade at one dose."""

    doses: LengthDoses
    """All doses of the judge."""
    dose: DoseGrade
    """The dose, with the grade of passages that are so much longer."""

    @property
    def cell(self) -> Cell:
        """The mean grade with its interval."""
        return estimate_cell(_mean_grade(self.dose), fixed)

    @property
    def name(self) -> str:
        """The dose in words."""
        return f"×{self.dose.dose}"


_GRADE_COLUMNS: tuple[ColumnSpec, ...] = (
    (name_column("length"), attrgetter("name")),
    ("mean grade", attrgetter("cell")),
    (Column("length in fact", drop_order=1), number_cells("dose.length", fixed)),
    (Column("pairs", drop_order=2), number_cells("doses.pairs", with_commas)),
    (Column("left out", drop_order=2), number_cells("doses.left_out", with_commas)),
)
"""Columns of the table of grades."""


def dose_blocks(audit: JudgeAudit) -> Iterator[Block]:
    """Yield the grade of passages by their length; nothing where no doses were probed."""
    if not audit.length_doses:
        return
    rows = list[_DoseRow]()
    for doses in audit.length_doses:
        rows += [_DoseRow(doses=doses, dose=dose) for dose in doses.grades]
    yield make_table(
        "Grade of passages with human grade 0 by length",
        rows,
        _GRADE_COLUMNS,
        group_of=lambda row: (row.doses.judge,),
        group_titles=("judge",),
    )
    slope_columns: list[ColumnSpec] = [
        (name_column("judge"), attrgetter("judge")),
        ("grades per doubling", _slope_cell),
        ("p", number_cells("p", p_value)),
        (text_column("from dose to dose"), attrgetter("course")),
        (Column("queries", drop_order=1), number_cells("queries", with_commas)),
    ]
    yield make_table("Effect of length, within passages", audit.length_doses, slope_columns)
    yield PageBlocks(make=partial(_charts, audit))


def _mean_grade(dose: DoseGrade) -> Estimate:
    """Return the mean grade at a dose with its interval."""
    return Estimate(dose.grade, dose.low, dose.high)


def _slope_cell(doses: LengthDoses) -> Cell:
    """Return the cell of how many grades a doubling of the length adds, with a star if shown."""
    slope = Estimate(doses.slope, doses.low, doses.high)
    star = "*" if doses.is_shown else ""
    return estimate_cell(slope, partial(signed, digits=2), star, neutral=0.0)


def _charts(audit: JudgeAudit) -> Iterator[IntervalChart]:
    """Yield a chart of the mean grade at each dose for each judge."""
    for doses in audit.length_doses:
        tone: Tone = "warning" if doses.is_shown else "unsure"
        yield interval_chart(
            f"{doses.judge}: grade by length of the passage",
            "Neutral sentences of other documents make passages longer. Line: 95 % interval.",
            [_chart_row(dose, tone) for dose in doses.grades],
            scale_titles=["mean grade of passages that humans graded 0"],
        )


def _chart_row(dose: DoseGrade, tone: Tone) -> IntervalRow:
    """Return the row of a dose: its mean grade with the interval."""
    grade = _mean_grade(dose)
    mark = IntervalMark(value=grade.value, low=grade.low, high=grade.high)
    text = fixed(grade.value)
    if mark.has_interval:
        text = f"{text} [{fixed(grade.low)}, {fixed(grade.high)}]"
    return IntervalRow(
        label=f"×{dose.dose}", readings=(IntervalReading(mark=mark, text=text, tone=tone),)
    )
