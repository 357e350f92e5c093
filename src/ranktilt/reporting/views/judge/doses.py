"""Grades by the length of a passage: a table and a figure."""

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
    """The grade at one dose, and the doses that it belongs to."""

    doses: LengthDoses
    """All doses of the judge."""
    dose: DoseGrade
    """The dose."""

    @property
    def cell(self) -> Cell:
        """The mean grade with its interval."""
        return estimate_cell(_grade(self.dose), fixed)

    @property
    def name(self) -> str:
        """The dose in words."""
        return f"×{self.dose.dose}"


_signed = partial(signed, digits=2)
_COLUMNS: tuple[ColumnSpec, ...] = (
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
        _COLUMNS,
        group_of=_judge_of,
        group_titles=("judge",),
    )
    slopes: list[ColumnSpec] = [
        (name_column("judge"), attrgetter("judge")),
        ("grades per doubling", _slope),
        ("p", number_cells("p", p_value)),
        (text_column("from dose to dose"), attrgetter("course")),
        (Column("queries", drop_order=1), number_cells("queries", with_commas)),
    ]
    yield make_table("Effect of length, within passages", audit.length_doses, slopes)
    yield PageBlocks(make=partial(_charts, audit))


def _judge_of(row: _DoseRow) -> tuple[str]:
    return (row.doses.judge,)


def _grade(dose: DoseGrade) -> Estimate:
    return Estimate(dose.grade, dose.low, dose.high)


def _slope(doses: LengthDoses) -> Cell:
    """Print a slope, with a star where it is shown."""
    slope = Estimate(doses.slope, doses.low, doses.high)
    return estimate_cell(slope, _signed, "*" if doses.is_shown else "")


def _charts(audit: JudgeAudit) -> Iterator[IntervalChart]:
    """Draw the grade at each dose, for each judge."""
    for doses in audit.length_doses:
        tone: Tone = "warning" if doses.is_shown else "unsure"
        yield interval_chart(
            f"{doses.judge}: grade by length of the passage",
            "Neutral sentences of other documents make passages longer. Line: 95 % interval.",
            [_chart_row(dose, tone) for dose in doses.grades],
            scale_titles=["mean grade of passages that humans graded 0"],
        )


def _chart_row(dose: DoseGrade, tone: Tone) -> IntervalRow:
    grade = _grade(dose)
    mark = IntervalMark(value=grade.value, low=grade.low, high=grade.high)
    text = fixed(grade.value)
    if mark.has_interval:
        text = f"{text} [{fixed(grade.low)}, {fixed(grade.high)}]"
    return IntervalRow(
        label=f"×{dose.dose}", readings=(IntervalReading(mark=mark, text=text, tone=tone),)
    )
