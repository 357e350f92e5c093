"""A judge's confidence: the calibration curve, and the tilt of unsure grades."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import isfinite
from operator import attrgetter

from ranktilt.judging.calibration_result import Calibration, ConfidenceBin, UnsureTilt
from ranktilt.judging.records import Estimate
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

_signed = partial(signed, digits=2)


@dataclass(frozen=True, kw_only=True)
class _BinRow:
    """A bin of a judge's curve."""

    judge: str
    """Name of the judge."""
    bin: ConfidenceBin
    """The bin."""

    @property
    def name(self) -> str:
        """The confidences of the bin: ``0.85 to 0.95``."""
        return _bin_name(self.bin)

    @property
    def agreement(self) -> Cell:
        """The share of pairs with the human grade, in percent."""
        return estimate_cell(_percent(self.bin.agreement), decimal)


@dataclass(frozen=True, kw_only=True)
class _TiltRow:
    """The tilt of unsure grades of a judge."""

    judge: str
    """Name of the judge."""
    tilt: UnsureTilt
    """The tilt."""

    @property
    def source_names(self) -> str:
        """What is compared."""
        of = "twins" if self.tilt.is_of_twins else "beyond humans"
        return f"{self.tilt.a} − {self.tilt.b}, {of}"

    @property
    def difference(self) -> Cell:
        """The difference, with a star where it is shown."""
        return estimate_cell(self.tilt.difference, _signed, "*" if self.tilt.is_shown else "")


def _percent(share: Estimate) -> Estimate:
    """Return a share and its interval in percent."""
    return Estimate(*(100 * end for end in share))


def _excess_cell(calibration: Calibration) -> Cell:
    """Print by how much a judge is too sure."""
    return estimate_cell(_percent(calibration.excess), signed)


def _error_cell(calibration: Calibration) -> Cell:
    """Print the calibration error."""
    return estimate_cell(_percent(calibration.error), decimal)


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
"""Columns of the errors."""
_TILT_COLUMNS: tuple[ColumnSpec, ...] = (
    (name_column("judge"), attrgetter("judge")),
    (text_column("grade gap"), attrgetter("source_names")),
    ("least sure", estimate_cells("tilt.unsure", _signed)),
    ("others", estimate_cells("tilt.rest", _signed)),
    ("difference", attrgetter("difference")),
    (Column("corrected p", drop_order=1), number_cells("tilt.p_corrected", p_value)),
    (Column("unsure up to", drop_order=2), number_cells("tilt.border", partial(decimal, digits=2))),
    (Column("least sure, %", drop_order=2), number_cells("tilt.share", decimal, scale=100)),
)
"""Columns of the tilt of unsure grades."""


def confidence_section(audit: JudgeAudit) -> Iterator[Section]:
    """Show whether judges are as often right as they are sure; nothing where none tells it."""
    if not audit.calibrations:
        return
    bins = list[_BinRow]()
    for calibration in audit.calibrations:
        bins += [_BinRow(judge=calibration.judge, bin=part) for part in calibration.bins]
    blocks: list[Block] = [
        make_table("Confidence against the human grade", audit.calibrations, _ERROR_COLUMNS),
        PageBlocks(make=partial(_curves, audit)),
        make_table(
            "Calibration curve, in bins of equal count",
            bins,
            _BIN_COLUMNS,
            group_of=_judge_of,
            group_titles=("judge",),
            collapsed=True,
        ),
    ]
    tilts = [
        _TiltRow(judge=calibration.judge, tilt=calibration.tilt)
        for calibration in audit.calibrations
        if calibration.tilt is not None
    ]
    if tilts:
        blocks.append(make_table("Tilt where a judge is least sure", tilts, _TILT_COLUMNS))
    yield Section("confidence", "Is a judge right when it is sure?", blocks=tuple(blocks))


def _judge_of(row: _BinRow) -> tuple[str]:
    return (row.judge,)


def _bin_name(part: ConfidenceBin) -> str:
    """Name a bin by its confidences: ``0.85 to 0.95``, or ``0.90``."""
    low, high = (decimal(end, 2) for end in (part.lowest, part.highest))
    return low if low == high else f"{low} to {high}"


def _curves(audit: JudgeAudit) -> Iterator[IntervalChart]:
    """Draw the share of human grades in each bin beside the confidence that the judge tells."""
    for calibration in audit.calibrations:
        yield interval_chart(
            f"{calibration.judge}: how often it gives the human grade, by its confidence",
            "Black: the confidence it tells. Dot and line: how often it is right, with a 95 % "
            "interval. Left of black it is more sure than right.",
            [_curve_row(part) for part in calibration.bins],
            scale_titles=["share of grades that are the human one, in %"],
        )


def _curve_row(part: ConfidenceBin) -> IntervalRow:
    share = _percent(part.agreement)
    mark = IntervalMark(value=share.value, low=share.low, high=share.high)
    sure = 100 * part.confidence
    text = decimal(share.value)
    if mark.has_interval:
        text = f"{text} [{decimal(share.low)}, {decimal(share.high)}]"
    reading = IntervalReading(mark=mark, text=text, tone=_bin_tone(share, sure), neutral=sure)
    return IntervalRow(label=_bin_name(part), readings=(reading,))


def _bin_tone(share: Estimate, sure: float) -> Tone:
    """Return the tone of a bin: a warning where its interval excludes the confidence."""
    if share.low <= sure <= share.high:
        return "good"
    return "warning" if isfinite(share.low) else "unsure"
