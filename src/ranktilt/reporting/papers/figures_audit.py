"""An audit's figures for a paper: Relative Δ as a forest plot, effectiveness beside tilt, and groups by rank."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ranktilt.auditing.answer.verdict import bounds, signed
from ranktilt.auditing.breakdown import RankShares, rank_shares
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.result import Audit
from ranktilt.errors import counted
from ranktilt.reporting.figures.audit import effectiveness
from ranktilt.reporting.papers import style
from ranktilt.reporting.papers.style import COLOURS, COLUMN, DARK, DIM, INCH, PAGE, PALE, SMALL, PaperFigure
from ranktilt.reporting.reload import LoadedAudit

_NAME, _GAP = 1.15, 0.35
"""Heights, in rows of a measure: of a ranker's name, and of the gap below its measures."""
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
_DOTTED = (0, (1, 1.5))
_BAND = {"facecolor": "none", "edgecolor": DIM, "hatch": "////", "linewidth": 0.4}
"""What random labels give."""
_DEPTH = 100
_TICKS = (1, 2, 3, 5, 10, 20, 50, 100)
_ENDS = (*range(1, 11), 15, 20, 30, 50, 75, 100)
"""Last ranks of the stretches over which shares are averaged: single ranks down to the tenth."""
_STRETCHES = ", ".join(f"{first + 1} to {last}" for first, last in pairwise(_ENDS) if last > first + 1)
_ALIKE = 0.001
_MOST_PANELS = 10
_PANEL = 1.55
_MOST_GROUPS = 8


def audit_figures(opened: LoadedAudit) -> Iterator[PaperFigure]:
    """Draw what an audit holds; call it within `paper_style`."""
    audit = opened.audit
    pairs = audit.tilted_pairs
    for pair in pairs:
        end = f"-{style.slug(pair[0])}-{style.slug(pair[1])}" if len(pairs) > 1 else ""
        tilts = [t for t in audit.tilts if (t.a, t.b) == pair]
        if any(np.isfinite(t.value) for t in tilts):
            yield from _forests(audit, tilts, f"tilt{end}")
        first = [t for t in tilts if t.measure == repr(audit.primary_measure)]
        if any(np.isfinite(t.value) for t in first):
            yield _scatter(audit, first, f"effectiveness{end}")
    if opened.collection is not None and opened.runs and len(audit.groups) > 1:
        shares = [rank_shares(opened.collection, run, audit, depth=_DEPTH) for run in opened.runs]
        shares = [one for one in shares if one.queries.any()]
        parts = [shares[first : first + _MOST_PANELS] for first in range(0, len(shares), _MOST_PANELS)]
        for number, part in enumerate(parts, start=1):
            yield _ranks(part, f"ranks-{number}" if len(parts) > 1 else "ranks")


class _Block(NamedTuple):
    """The measures of one ranker."""

    run: str
    tilts: tuple[Effect, ...]

    @property
    def rows(self) -> float:
        return _NAME + len(self.tilts) + _GAP


def _forests(audit: Audit, tilts: Sequence[Effect], name: str) -> Iterator[PaperFigure]:
    """Relative Δ of every ranker and measure for one pair of groups."""
    blocks = [_Block(run, tuple(t for t in tilts if t.run == run)) for run in audit.runs]
    pages = list(_pages([block for block in blocks if block.tilts]))
    for number, columns in enumerate(pages, start=1):
        yield _forest(audit, columns, f"{name}-{number}" if len(pages) > 1 else name)


def _pages(blocks: Sequence[_Block]) -> Iterator[list[Sequence[_Block]]]:
    """Spread rankers over columns and pages: one column where that is enough, otherwise two of like height."""
    if sum(block.rows for block in blocks) <= _ONE_COLUMN:
        yield [blocks]
        return
    most = (style.TALLEST - _BELOW) / _INCHES
    while blocks:
        first = _first(blocks, min(most, sum(block.rows for block in blocks) / 2))
        second = _first(blocks[len(first) :], most)
        yield [first, second] if second else [first]
        blocks = blocks[len(first) + len(second) :]


def _first(blocks: Sequence[_Block], room: float) -> Sequence[_Block]:
    """The first blocks until so many rows are full; one at least."""
    used = 0.0
    for number, block in enumerate(blocks):
        if number and used + block.rows / 2 > room:
            return blocks[:number]
        used += block.rows
    return blocks


def _forest(audit: Audit, columns: Sequence[Sequence[_Block]], name: str) -> PaperFigure:
    rows = max(sum(block.rows for block in blocks) for blocks in columns)
    figure = style.blank(COLUMN if len(columns) == 1 else PAGE, rows * _INCHES + _BELOW)
    panels = figure.subplots(1, len(columns), sharex=True, squeeze=False)[0]
    tilts = [t for blocks in columns for block in blocks for t in block.tilts]
    for axes, blocks in zip(panels, columns, strict=True):
        _column(axes, blocks, audit.level)
        axes.set_ylim(rows, 0)
    _reach(panels[0], tilts, audit.level)
    _legend(figure, audit.level, tilts)
    a, b = tilts[0].a, tilts[0].b
    correction = str(audit.spec.get("correction", "holm")).capitalize()
    return PaperFigure(name, figure, f"Relative Δ between {a} and {b}", _explained(tilts, audit.level, correction))


def _column(axes: Any, blocks: Sequence[_Block], level: float) -> None:
    """Draw rankers below each other, each under its name, and say which side each end of the axis favours."""
    top, room = 0.0, (COLUMN - 0.2) * INCH
    measures = [t.measure for block in blocks for t in block.tilts]
    beside = max(style.breadth(style.label(measure)) for measure in measures) + 2
    ticks: list[float] = []
    for block in blocks:
        heading = axes.annotate(
            style.fitted(block.run, room), (0, top + 0.6), (-beside, 0), xycoords=("axes fraction", "data"),
            textcoords="offset points", ha="left", va="center", annotation_clip=False, fontsize=SMALL,
            fontweight="bold",
        )  # fmt: skip
        heading.set_in_layout(False)
        for number, tilt in enumerate(block.tilts):
            ticks.append(top + _NAME + (number + 0.5))
            _row(axes, tilt, ticks[-1], level)
        top += block.rows
    axes.set_yticks(ticks, [style.label(measure) for measure in measures])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    _axis_ends(axes, blocks[0].tilts[0], room - beside)


def _axis_ends(axes: Any, tilt: Effect, room: float) -> None:
    axes.set_xlabel("Relative Δ, %", fontsize=SMALL)
    half = room - style.breadth(f"{style.label(tilt.a)} →") - 6
    first = style.fitted(tilt.a, room / 2 - 12)
    second = style.fitted(tilt.b, max(room / 2, half) - 12)
    for text, at in ((f"← {second}", 0), (f"{first} →", 1)):
        axes.annotate(
            text, (at, 0), (0, -25), xycoords="axes fraction", textcoords="offset points", ha=("left", "right")[at],
            va="top", annotation_clip=False,
        )  # fmt: skip


def _row(axes: Any, tilt: Effect, place: float, level: float) -> None:
    """Draw one measure: what would have been detected, zero, level, the interval and the value."""
    at, low, high = tilt.level, place - 0.5, place + 0.5
    if np.isfinite(tilt.detectable):
        axes.barh(place, 2 * tilt.detectable, 0.86, at - tilt.detectable, color=PALE, linewidth=0, zorder=0)
    if not tilt.twins:
        axes.barh(place, tilt.band_high - tilt.band_low, 0.86, tilt.band_low, **_BAND, zorder=1)
    axes.vlines(at, low, high, colors=DARK, linewidth=0.7, zorder=2)
    if level:
        axes.vlines([at - level, at + level], low, high, colors=DIM, linewidth=0.6, linestyles=_DOTTED, zorder=1)
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


def _legend(figure: Any, level: float, tilts: Sequence[Effect]) -> None:
    line, patch = style.library("matplotlib.lines").Line2D, style.library("matplotlib.patches").Patch
    names = {"a": f"favours {tilts[0].a}", "b": f"favours {tilts[0].b}"}
    kinds = {t.verdict(level) for t in tilts if np.isfinite(t.value)}
    shown = []
    for kind, (shape, colour, filling) in _KINDS.items():
        if kind in kinds:
            drawn = line([], [], color=colour, marker=shape, markersize=3.8, markerfacecolor=filling, linewidth=1.1)
            shown.append((drawn, names.get(kind, kind)))
    if any(t.detectable > 0 for t in tilts):
        shown.append((patch(color=PALE, linewidth=0), "not detectable (80 % power)"))
    if any(not t.twins for t in tilts):
        shown.append((patch(**_BAND), "random labels, 95 %"))
    if level:
        shown.append((line([], [], color=DIM, linewidth=0.6, linestyle=_DOTTED), f"±{level:g} points: level"))
    style.legend(figure, [handle for handle, _ in shown], [name for _, name in shown])


def _explained(tilts: Sequence[Effect], margin: float, correction: str) -> str:
    a, b, counts = tilts[0].a, tilts[0].b, sorted({t.queries for t in tilts})
    queries = (
        counted(counts[-1], "query", "queries") if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,} queries"
    )
    favoured, band = f"Above 0 a ranker puts relevant texts of {a} higher, below 0 those of {b}.", ""
    if not all(t.twins for t in tilts):
        favoured = (
            f"The larger, the higher stand relevant texts of {a}, the smaller, those of {b}; level is the "
            "median of what random labels give, not 0."
        )
        band = " Hatched: what random labels give in 95 %."
    level = f" Dotted: ±{margin:g} points, within which an interval counts as level." if margin else ""
    return (
        f"{favoured} Marks: Relative Δ with its 95 % interval over {queries}; filled where a side is favoured (p, "
        f"corrected by {correction}, below .05 and the interval excludes the level value) or the interval is level, "
        f"open where it is inconclusive. Grey: effects too small to be detected with 80 % power.{band}{level}"
    )


def _scatter(audit: Audit, tilts: Sequence[Effect], name: str) -> PaperFigure:
    """One point a ranker: how well it finds what is relevant, and which side it favours."""
    figure = style.blank(COLUMN, 2.35 + 0.14 * len(tilts))
    axes = figure.subplots()
    levels = {t.level for t in tilts}
    for at in levels:
        style.level_band(axes, at, audit.level if len(levels) == 1 else 0.0)
    handles, numbers, found = [], [], effectiveness(audit)
    for number, tilt in enumerate(tilts):
        percent, spread = found[tilt.run]
        mean = percent / 100
        handles.append(
            axes.errorbar(
                [mean], [tilt.value], xerr=style.error_bars([mean], [spread.low / 100], [spread.high / 100]),
                yerr=style.error_bars([tilt.value], [tilt.low], [tilt.high]), fmt=style.mark(number),
                color=style.colour(number), markersize=4.5, elinewidth=0.8, zorder=3 + number,
            )
        )  # fmt: skip
        value = f"{signed(tilt.value)} % {bounds(tilt.low, tilt.high)}" if tilt.value == tilt.value else "undefined"
        numbers.append(f"{tilt.run}: {mean:.3f}, {value}")
    a, b, measure = tilts[0].a, tilts[0].b, tilts[0].measure
    twins, room = all(t.twins for t in tilts), 1.9 * INCH
    favours = style.favours(a, b, room) if twins else style.fitted(f"the higher, the more for {a}", room)
    axes.set_xlabel(f"{measure}, all relevant documents")
    axes.set_ylabel(f"Relative Δ {measure}, %\n{favours}")
    axes.yaxis.label.set_size(SMALL)
    axes.margins(0.08)
    style.legend(figure, handles, [t.run for t in tilts])
    level = "" if twins else " Level is the median of what random labels give, not 0."
    band = f" Shaded: ±{audit.level:g} points, which count as level." if audit.level and len(levels) == 1 else ""
    return PaperFigure(
        name,
        figure,
        f"Effectiveness and tilt between {a} and {b}, {measure}",
        f"{'; '.join(numbers)}. Bars: 95 % intervals over queries.{level}{band}",
    )


def _ranks(found: Sequence[RankShares], name: str) -> PaperFigure:
    """A panel a ranker: the share of each group among the documents at each rank."""
    columns = 1 if len(found) == 1 else 2
    rows = -(-len(found) // columns)
    groups = found[0].groups[:_MOST_GROUPS]
    figure = style.blank(
        COLUMN if columns == 1 else PAGE, 0.35 + _PANEL * rows + 0.15 * -(-len(groups) // (2 * columns))
    )
    panels, handles = style.panels(figure, rows, columns, len(found), "rank"), list[Any]()
    for place, (axes, one) in enumerate(zip(panels, found, strict=True)):
        handles = _rank_panel(axes, one, len(groups))
        if place % columns == 0:
            axes.set_ylabel("share of results, %")
    style.legend(figure, handles, list(groups))
    left = len(found[0].groups) - len(groups)
    more = f" {left} more groups are not drawn." if left else ""
    return PaperFigure(
        name,
        figure,
        "Who stands at which rank",
        f"Share of each group among the results at each rank, mean over queries: {', '.join(groups)}. Dotted: its "
        f"share in the collection, which a random order would show at every rank. Below rank 10 a mark is a mean over "
        f"ranks {_STRETCHES}.{more} Rankers: {', '.join(one.run for one in found)}.",
    )


def _rank_panel(axes: Any, one: RankShares, groups: int) -> list[Any]:
    alike = float(np.ptp(one.level[:groups])) < _ALIKE
    ranks, shares = _binned(one)
    handles = []
    for number in range(groups):
        colour = style.colour(number)
        if not alike or not number:
            axes.axhline(
                100 * one.level[number], color=DIM if alike else colour, linewidth=0.6, linestyle=_DOTTED, zorder=1
            )
        handles += axes.plot(
            ranks, 100 * shares[number], color=colour, linestyle=style.dash(number), marker=style.mark(number),
            markersize=3.2, zorder=2 + number,
        )  # fmt: skip
    axes.set_xscale("log")
    ticks = [tick for tick in _TICKS if tick <= np.count_nonzero(one.queries)]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_title(style.fitted(one.run, (COLUMN - 0.5) * INCH))
    return handles


def _binned(one: RankShares) -> tuple[Any, Any]:
    """Ranks, and shares at them: single ones at the top, means over stretches of ranks below."""
    weights = one.queries.astype(np.float64)
    ranks, shares = [], []
    for first, last in zip((0, *_ENDS), _ENDS, strict=False):
        part = slice(first, min(last, one.depth))
        if weights[part].sum() > 0:
            ranks.append(float(np.sqrt((first + 1) * min(last, one.depth))))
            shares.append(np.nansum(one.at[:, part] * weights[part], axis=1) / weights[part].sum())
    return np.array(ranks), np.array(shares).T
