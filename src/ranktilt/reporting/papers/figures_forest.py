"""Relative Δ of rankers × measures as a forest plot, in one column or two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import Pair
from ranktilt.auditing.result import Audit
from ranktilt.errors import counted
from ranktilt.reporting.papers.figures_style import (
    COLOURS,
    COLUMN,
    DARK,
    DIM,
    INCH,
    PAGE,
    PALE,
    SMALL,
    TALLEST,
    Plate,
    blank,
    breadth,
    fitted,
    label,
    legend,
    library,
)

_ROW, _NAME, _GAP = 1.0, 1.15, 0.35
"""Heights, in rows: of a measure, of a ranker's name, and of the gap below its measures."""
_INCHES = 0.132
"""Height of a row."""
_BELOW = 0.85
"""Inches below the rows: axis, its title, and what the marks mean."""
_ONE_COLUMN = 40
"""Rows up to which one column is enough."""
_KINDS = {
    "a": ("o", COLOURS[0], COLOURS[0]),
    "b": ("D", COLOURS[1], COLOURS[1]),
    "level": ("s", COLOURS[2], COLOURS[2]),
    "inconclusive": ("o", DIM, "white"),
}
"""Mark, colour and filling."""


@dataclass(frozen=True)
class _Block:
    """The measures of one ranker."""

    run: str
    tilts: tuple[Effect, ...]

    @property
    def rows(self) -> float:
        return _NAME + _ROW * len(self.tilts) + _GAP


def forests(audit: Audit, pair: Pair, name: str) -> Iterator[Plate]:
    """Draw Relative Δ of every ranker and measure for one pair of groups; call it within `inked`."""
    blocks = [_Block(run, tuple(t for t in audit.tilts if (t.run, t.a, t.b) == (run, *pair))) for run in audit.runs]
    blocks = [block for block in blocks if block.tilts]
    if not any(np.isfinite(t.value) for block in blocks for t in block.tilts):
        return
    parts = list(_pages(blocks))
    for number, columns in enumerate(parts, start=1):
        yield _plate(audit, pair, columns, f"{name}-{number}" if len(parts) > 1 else name)


def _pages(blocks: Sequence[_Block]) -> Iterator[list[list[_Block]]]:
    """Spread rankers over columns and pages: one column where that is enough, otherwise two of like height."""
    if sum(block.rows for block in blocks) <= _ONE_COLUMN:
        yield [list(blocks)]
        return
    most = (TALLEST - _BELOW) / _INCHES
    left = list(blocks)
    while left:
        whole = sum(block.rows for block in left)
        first = _taken(left, min(most, whole / 2))
        second = _taken(left[len(first) :], most)
        yield [first, second] if second else [first]
        left = left[len(first) + len(second) :]


def _taken(blocks: Sequence[_Block], room: float) -> list[_Block]:
    """Take the first blocks until so many rows are full; one at least."""
    taken: list[_Block] = []
    for block in blocks:
        used = sum(one.rows for one in taken)
        if taken and used + block.rows / 2 > room:
            break
        taken.append(block)
    return taken


def _plate(audit: Audit, pair: Pair, columns: Sequence[Sequence[_Block]], name: str) -> Plate:
    rows = max(sum(block.rows for block in blocks) for blocks in columns)
    figure = blank(COLUMN if len(columns) == 1 else PAGE, rows * _INCHES + _BELOW)
    panels = figure.subplots(1, len(columns), sharex=True, squeeze=False)[0]
    room = (COLUMN - 0.2) * INCH
    for axes, blocks in zip(panels, columns, strict=True):
        _column(axes, blocks, audit.level, room)
        axes.set_ylim(rows, 0)
        _ends(axes, pair, room - _beside(blocks))
    tilts = [t for blocks in columns for block in blocks for t in block.tilts]
    _reach(panels[0], tilts, audit.level)
    _legend(figure, audit, pair, tilts)
    return Plate(name, figure, f"Relative Δ between {pair[0]} and {pair[1]}", _says(audit, pair, tilts))


def _column(axes: Any, blocks: Sequence[_Block], level: float, room: float) -> None:
    """Draw rankers below each other, each under its name."""
    top, ticks, names = 0.0, [], []
    beside = _beside(blocks)
    for block in blocks:
        heading = axes.annotate(
            fitted(block.run, room), (0, top + 0.6), (-beside, 0), xycoords=("axes fraction", "data"),
            textcoords="offset points", ha="left", va="center", annotation_clip=False, fontsize=SMALL,
            fontweight="bold",
        )  # fmt: skip
        heading.set_in_layout(False)
        first = top + _NAME
        for number, tilt in enumerate(block.tilts):
            place = first + (number + 0.5) * _ROW
            ticks.append(place)
            names.append(label(tilt.measure))
            _row(axes, tilt, place, level)
        top += block.rows
    axes.set_yticks(ticks, names)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def _beside(blocks: Sequence[_Block]) -> float:
    """Points that the names of the measures take, left of the axis."""
    return max(breadth(label(t.measure)) for block in blocks for t in block.tilts) + 2


def _ends(axes: Any, pair: Pair, room: float) -> None:
    """Name the axis, and the side that each of its ends favours."""
    axes.set_xlabel("Relative Δ, %", fontsize=SMALL)
    half = room - breadth(f"{label(pair[0])} →") - 6
    first = fitted(pair[0], room / 2 - 12)
    second = fitted(pair[1], max(room / 2, half) - 12)
    for text, at in ((f"← {second}", 0), (f"{first} →", 1)):
        axes.annotate(
            text, (at, 0), (0, -25), xycoords="axes fraction", textcoords="offset points", ha=("left", "right")[at],
            va="top", annotation_clip=False,
        )  # fmt: skip


def _row(axes: Any, tilt: Effect, place: float, level: float) -> None:
    """Draw one measure: what would have been detected, zero, level, the interval and the value."""
    at, half = tilt.level, _ROW / 2
    if np.isfinite(tilt.detectable):
        axes.barh(place, 2 * tilt.detectable, 0.86 * _ROW, at - tilt.detectable, color=PALE, linewidth=0, zorder=0)
    if not tilt.twins:
        axes.barh(
            place, tilt.band_high - tilt.band_low, 0.86 * _ROW, tilt.band_low, facecolor="none", edgecolor=DIM,
            hatch="////", linewidth=0.4, zorder=1,
        )  # fmt: skip
    axes.vlines(at, place - half, place + half, colors=DARK, linewidth=0.7, zorder=2)
    if level:
        axes.vlines(
            [at - level, at + level], place - half, place + half, colors=DIM, linewidth=0.6, linestyles=(0, (1, 1.5)),
            zorder=1,
        )  # fmt: skip
    shape, colour, filling = _KINDS[tilt.verdict(level)]
    if np.isfinite(tilt.low):
        axes.hlines(place, tilt.low, tilt.high, colors=colour, linewidth=1.1, zorder=3)
    if np.isfinite(tilt.value):
        axes.plot(
            [tilt.value], [place], shape, color=colour, markerfacecolor=filling, markersize=3.8, markeredgewidth=0.9,
            zorder=4,
        )  # fmt: skip


def _reach(axes: Any, tilts: Sequence[Effect], level: float) -> None:
    """Show every interval, and what is level; what would have been detected may be cut off."""
    ends = [end for t in tilts for end in (t.low, t.high, t.value, t.level - level, t.level + level)]
    ends += [end for t in tilts if not t.twins for end in (t.band_low, t.band_high)]
    ends = [end for end in ends if np.isfinite(end)]
    low, high = min(ends, default=-1.0), max(ends, default=1.0)
    room = 0.04 * (high - low or 1.0)
    axes.set_xlim(low - room, high + room)


def _legend(figure: Any, audit: Audit, pair: Pair, tilts: Sequence[Effect]) -> None:
    drawn = library("matplotlib.lines").Line2D
    patch = library("matplotlib.patches").Patch
    said = {"a": f"favours {pair[0]}", "b": f"favours {pair[1]}"}
    handles, names = [], []
    kinds = {t.verdict(audit.level) for t in tilts if np.isfinite(t.value)}
    for kind, (shape, colour, filling) in _KINDS.items():
        if kind in kinds:
            handles.append(
                drawn([], [], color=colour, marker=shape, markersize=3.8, markerfacecolor=filling, linewidth=1.1)
            )
            names.append(said.get(kind, kind))
    if any(t.detectable > 0 for t in tilts):
        handles.append(patch(color=PALE, linewidth=0))
        names.append("not detectable (80 % power)")
    if any(not t.twins for t in tilts):
        handles.append(patch(facecolor="none", edgecolor=DIM, hatch="////", linewidth=0.4))
        names.append("random labels, 95 %")
    if audit.level:
        handles.append(drawn([], [], color=DIM, linewidth=0.6, linestyle=(0, (1, 1.5))))
        names.append(f"±{audit.level:g} points: level")
    legend(figure, handles, names)


def _says(audit: Audit, pair: Pair, tilts: Sequence[Effect]) -> str:
    correction = str(audit.spec.get("correction", "holm")).capitalize()
    counts = sorted({t.queries for t in tilts})
    queries = (
        counted(counts[-1], "query", "queries") if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,} queries"
    )
    twins = all(t.twins for t in tilts)
    sides = f"Above 0 a ranker puts relevant texts of {pair[0]} higher, below 0 those of {pair[1]}."
    if not twins:
        sides = (
            f"The larger, the higher stand relevant texts of {pair[0]}, the smaller, those of {pair[1]}; level is the "
            "middle of what random labels give, not 0."
        )
    band = "" if twins else " Hatched: what random labels give in 95 %."
    level = f" Dotted: ±{audit.level:g} points, within which an interval counts as level." if audit.level else ""
    return (
        f"{sides} Marks: Relative Δ with its 95 % interval over {queries}; filled where a side is favoured (p, "
        f"corrected by {correction}, below .05 and the interval excludes the level value) or the interval is level, "
        f"open where it is inconclusive. Grey: effects too small to be detected with 80 % power.{band}{level}"
    )
