"""The section on confidence in an audit of judges: whether a judge is right when it is sure.

A *judge* is a model that grades *pairs* of a query and a document. It tells its confidence in each
grade, from 0 to 1, and is *right* where it gives the human grade. A *calibration curve* sorts pairs
into bins by confidence, and shows the share of right grades in each bin. A *source* is who wrote a
document, such as a human or a language model. The *grade gap*, or *tilt*, is how much higher a
judge grades one source than another. The section also asks whether the gap is larger where a judge
is unsure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import isfinite
from operator import attrgetter

from ranktilt.judging.records import Calibration, ConfidenceBin, Estimate, UnsureTilt
from ranktilt.judging.result import JudgeAudit
from ranktilt.reporting.document import (
    Block,
    Cell,
    Column,
    ColumnSpec,
    PageBlocks,
    Section,
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
    decimal,
    estimate_cell,
    estimate_cells,
    number_cells,
    p_value,
    signed,
    with_commas,
)
from ranktilt.reporting.tones import Tone

_two_decimals = partial(signed, digits=2)
"""Print a number with its sign and two decimals."""


@dataclass(frozen=True, kw_only=True)
class _BinRow:
    """A row of the calibration curve's table: a bin of one judge."""

    judge: str
    """Name of the judge."""
    bin: ConfidenceBin
    """The bin."""

    @property
    def name(self) -> str:
        """The range of confidence in the bin: ``0.85 to 0.95``."""
        return _bin_name(self.bin)

    @property
    def agreement(self) -> Cell:
        """The share of pairs with the human grade, in percent."""
        return estimate_cell(_percent(self.bin.agreement), decimal)


@dataclass(frozen=True, kw_only=True)
class _TiltRow:
    """A row of the table of grade gaps by confidence: the gaps of one judge."""

    judge: str
    """Name of the judge."""
    tilt: UnsureTilt
    """Grade gap of the least sure grades and of all others, and their difference."""

    @property
    def source_names(self) -> str:
        """The two sources, and how their gap is measured.

        Twins are two versions of one text by the two sources: the gap is between their grades.
        Without twins, it is the gap of the judge's grades minus the gap of human grades.
        """
        basis = "twins" if self.tilt.is_of_twins else "beyond humans"
        return f"{self.tilt.a} − {self.tilt.b}, {basis}"

    @property
    def difference(self) -> Cell:
        """The difference, with a star where its corrected p is below .05."""
        return estimate_cell(self.tilt.difference, _two_decimals, "*" if self.tilt.is_shown else "")


def _percent(share: Estimate) -> Estimate:
    """Return a share and its interval in percent."""
    return Estimate(value=100 * share.value, low=100 * share.low, high=100 * share.high)


def _excess_cell(calibration: Calibration) -> Cell:
    """Return the cell of a judge's mean confidence minus its share of right grades, in points."""
    return estimate_cell(_percent(calibration.excess), signed)


def _error_cell(calibration: Calibration) -> Cell:
    """Return the cell of the expected calibration error, in points."""
    return estimate_cell(_percent(calibration.error), decimal)


# A narrow terminal leaves out the columns with `drop_order` 1 first, and then those with 2.
_BIN_COLUMNS: tuple[ColumnSpec, ...] = (
    (name_column("confidence"), attrgetter("name")),
    ("mean, %", number_cells("bin.confidence", decimal, scale=100)),
    ("the human grade, %", attrgetter("agreement")),
    (Column("pairs", drop_order=1), number_cells("bin.pairs", with_commas)),
)
"""Columns of the calibration curve."""
_ERROR_COLUMNS: tuple[ColumnSpec, ...] = (
    (name_column("judge"), attrgetter("judge")),
    ("too sure by, points", _excess_cell),
    ("calibration error, points", _error_cell),
    (Column("pairs", drop_order=1), number_cells("pairs", with_commas)),
    (Column("without confidence", drop_order=2), number_cells("without", with_commas)),
)
"""Columns of the table of calibration errors."""
_TILT_COLUMNS: tuple[ColumnSpec, ...] = (
    (name_column("judge"), attrgetter("judge")),
    (text_column("grade gap"), attrgetter("source_names")),
    ("least sure", estimate_cells("tilt.unsure", _two_decimals)),
    ("others", estimate_cells("tilt.rest", _two_decimals)),
    ("difference", attrgetter("difference")),
    (Column("corrected p", drop_order=1), number_cells("tilt.p_corrected", p_value)),
    (Column("unsure up to", drop_order=2), number_cells("tilt.border", partial(decimal, digits=2))),
    (Column("least sure, %", drop_order=2), number_cells("tilt.share", decimal, scale=100)),
)
"""Columns of the table of grade gaps by confidence.

The first three numbers are gaps: of the grades that the judge is least sure of, of all others, and
their difference. The last two columns say which grades are the least sure: their highest
confidence, and their share of all grades.
"""


def confidence_section(audit: JudgeAudit) -> Iterator[Section]:
    """Yield the section on confidence; nothing if no judge tells its confidence."""
    if not audit.calibrations:
        return
    bin_rows = list[_BinRow]()
    for calibration in audit.calibrations:
        bin_rows += [
            _BinRow(judge=calibration.judge, bin=confidence_bin)
            for confidence_bin in calibration.bins
        ]
    blocks: list[Block] = [
        make_table("Confidence against the human grade", audit.calibrations, _ERROR_COLUMNS),
        # Only pages show the curves, which are drawn when a page asks for them.
        PageBlocks(make=partial(_curve_charts, audit)),
        make_table(
            "Calibration curve, in bins of equal count",
            bin_rows,
            _BIN_COLUMNS,
            group_of=lambda row: (row.judge,),
            group_titles=("judge",),
            collapsed=True,
        ),
    ]
    tilt_rows = [
        _TiltRow(judge=calibration.judge, tilt=calibration.tilt)
        for calibration in audit.calibrations
        if calibration.tilt is not None
    ]
    if tilt_rows:
        blocks.append(make_table("Tilt where a judge is least sure", tilt_rows, _TILT_COLUMNS))
    yield Section("confidence", "Is a judge right when it is sure?", blocks=tuple(blocks))


def _bin_name(confidence_bin: ConfidenceBin) -> str:
    """Name a bin by its range of confidence: ``0.85 to 0.95``, or ``0.90`` for a single value."""
    low = decimal(confidence_bin.lowest, 2)
    high = decimal(confidence_bin.highest, 2)
    return low if low == high else f"{low} to {high}"


def _curve_charts(audit: JudgeAudit) -> Iterator[IntervalChart]:
    """Yield the calibration curve of each judge as a chart with a row for each bin."""
    for calibration in audit.calibrations:
        yield interval_chart(
            f"{calibration.judge}: how often it gives the human grade, by its confidence",
            "Black: the confidence it tells. Dot and line: how often it is right, with a 95 % "
            "interval. Left of black it is more sure than right.",
            [_curve_row(confidence_bin) for confidence_bin in calibration.bins],
            scale_titles=["share of grades that are the human one, in %"],
        )


def _curve_row(confidence_bin: ConfidenceBin) -> IntervalRow:
    """Return a bin's row in the chart: its share of right grades, and its mean confidence.

    Charts draw a black mark at the value that they call neutral. Here it is the mean confidence,
    which a well calibrated judge's share of right grades would equal.
    """
    right = _percent(confidence_bin.agreement)
    confidence = 100 * confidence_bin.confidence
    mark = IntervalMark(value=right.value, low=right.low, high=right.high)
    text = decimal(right.value)
    if mark.has_interval:
        text = f"{text} [{decimal(right.low)}, {decimal(right.high)}]"
    reading = IntervalReading(
        mark=mark, text=text, tone=_bin_tone(right, confidence), neutral=confidence
    )
    return IntervalRow(label=_bin_name(confidence_bin), readings=(reading,))


def _bin_tone(right: Estimate, confidence: float) -> Tone:
    """Return the tone, which decides the colour, of a bin.

    It is a warning if the interval excludes the mean confidence. A bin without an interval is
    ``unsure``. `right` is the share of right grades; both are in percent.
    """
    if not isfinite(right.low):
        return "unsure"
    return "good" if right.low <= confidence <= right.high else "warning"
