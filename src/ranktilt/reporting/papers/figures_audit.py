"""An audit's figures for a paper: effectiveness beside tilt, and who stands at which rank."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ranktilt.auditing.breakdown import RankShares, rank_shares
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import Pair
from ranktilt.auditing.result import Audit
from ranktilt.auditing.verdict import bounds, signed
from ranktilt.reporting.figures.audit import effectiveness
from ranktilt.reporting.papers.figures_forest import forests
from ranktilt.reporting.papers.figures_style import (
    COLUMN,
    DARK,
    DIM,
    INCH,
    PAGE,
    PALE,
    SMALL,
    Plate,
    blank,
    colour,
    dash,
    fitted,
    legend,
    mark,
    sides,
    slug,
)
from ranktilt.reporting.reload import Opened

_DEPTH = 100
_TICKS = (1, 2, 3, 5, 10, 20, 50, 100)
_ENDS = (*range(1, 11), 15, 20, 30, 50, 75, 100)
"""Last ranks of the stretches over which shares are averaged: single ranks down to the tenth."""
_STRETCHES = ", ".join(f"{first + 1} to {last}" for first, last in pairwise(_ENDS) if last > first + 1)
_ALIKE = 0.001
_MOST_ROWS = 5
_PANEL = 1.55
_MOST_GROUPS = 8


def audit_plates(opened: Opened) -> Iterator[Plate]:
    """Draw what an audit holds; call it within `inked`."""
    audit = opened.audit
    pairs = audit.tilted_pairs
    for pair in pairs:
        end = f"-{slug(pair[0])}-{slug(pair[1])}" if len(pairs) > 1 else ""
        yield from forests(audit, pair, f"tilt{end}")
        shown = [t for t in _of(audit, pair) if t.measure == repr(audit.measures[0])]
        if any(np.isfinite(t.value) for t in shown):
            yield _scatter(audit, shown, f"effectiveness{end}")
    if opened.collection is not None and opened.runs and len(audit.groups) > 1:
        found = [rank_shares(opened.collection, run, audit, depth=_DEPTH) for run in opened.runs]
        yield from _ranks([one for one in found if one.queries.any()])


def _of(audit: Audit, pair: Pair) -> list[Effect]:
    return [t for t in audit.tilts if (t.a, t.b) == pair]


def _scatter(audit: Audit, tilts: Sequence[Effect], name: str) -> Plate:
    """One point a ranker: how well it finds what is relevant, and which side it favours."""
    figure = blank(COLUMN, 2.35 + 0.14 * len(tilts))
    axes = figure.subplots()
    levels = {t.level for t in tilts}
    for at in levels if len(levels) == 1 else ():
        if audit.level:
            axes.axhspan(at - audit.level, at + audit.level, color=PALE, linewidth=0, zorder=0)
        axes.axhline(at, color=DARK, linewidth=0.7, zorder=1)
    handles, said, found = [], [], effectiveness(audit)
    for number, tilt in enumerate(tilts):
        percent, spread = found[tilt.run]
        mean, low, high = percent / 100, spread.low / 100, spread.high / 100
        handles.append(
            axes.errorbar(
                [mean], [tilt.value], xerr=_arms(mean, low, high), yerr=_arms(tilt.value, tilt.low, tilt.high),
                fmt=mark(number), color=colour(number), markersize=4.5, elinewidth=0.8, zorder=3 + number,
            )
        )  # fmt: skip
        said.append(f"{tilt.run}: {mean:.3f}, {signed(tilt.value)} % {bounds(tilt.low, tilt.high)}")
    axes.set_xlabel(f"{tilts[0].measure}, all relevant documents")
    room = 1.9 * INCH
    favours, level = sides(tilts[0].a, tilts[0].b, room), ""
    if not all(t.twins for t in tilts):
        favours = fitted(f"the higher, the more for {tilts[0].a}", room)
        level = " Level is the middle of what random labels give, not 0."
    axes.set_ylabel(f"Relative Δ {tilts[0].measure}, %\n{favours}")
    axes.yaxis.label.set_size(SMALL)
    axes.margins(0.08)
    legend(figure, handles, [t.run for t in tilts])
    band = f" Shaded: ±{audit.level:g} points, which count as level." if audit.level and len(levels) == 1 else ""
    return Plate(
        name,
        figure,
        f"Effectiveness and tilt between {tilts[0].a} and {tilts[0].b}, {tilts[0].measure}",
        f"{'; '.join(said)}. Bars: 95 % intervals over queries.{level}{band}",
    )


def _arms(value: float, low: float, high: float) -> Any:
    """Lengths of the bars on both sides of a value; none where they are undefined."""
    return np.nan_to_num([[max(value - low, 0.0)], [max(high - value, 0.0)]])


def _ranks(found: Sequence[RankShares]) -> Iterator[Plate]:
    each = 2 * _MOST_ROWS
    parts = [found[first : first + each] for first in range(0, len(found), each)]
    for number, part in enumerate(parts, start=1):
        yield _rank_plate(part, f"ranks-{number}" if len(parts) > 1 else "ranks")


def _rank_plate(found: Sequence[RankShares], name: str) -> Plate:
    """A panel a ranker: the share of each group among the documents at each rank."""
    columns = 1 if len(found) == 1 else 2
    rows = -(-len(found) // columns)
    groups = found[0].groups[:_MOST_GROUPS]
    figure = blank(COLUMN if columns == 1 else PAGE, 0.35 + _PANEL * rows + 0.15 * -(-len(groups) // (2 * columns)))
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    handles: list[Any] = []
    for axes, one in zip(panels.flat, found, strict=False):
        handles = _rank_panel(axes, one, len(groups))
    for axes in list(panels.flat)[len(found) :]:
        axes.set_axis_off()
    for axes in list(panels.flat)[max(0, len(found) - columns) : len(found)]:
        axes.set_xlabel("rank")
        axes.tick_params(labelbottom=True)
    for axes in panels[:, 0]:
        axes.set_ylabel("share of results, %")
    legend(figure, handles, list(groups))
    left = len(found[0].groups) - len(groups)
    more = f" {left} more groups are not drawn." if left else ""
    return Plate(
        name,
        figure,
        "Who stands at which rank",
        f"Share of each group among the results at each rank, mean over queries: {', '.join(groups)}. Dotted: its "
        f"share in the collection, which a random order would show at every rank. Below rank 10 a mark is a mean over "
        f"ranks {_STRETCHES}.{more} Rankers: {', '.join(one.run for one in found)}.",
    )


def _rank_panel(axes: Any, one: RankShares, groups: int) -> list[Any]:
    alike = float(np.ptp(one.level[:groups])) < _ALIKE
    places, shares = _binned(one)
    handles = []
    for number in range(groups):
        if not alike or not number:
            tone = DIM if alike else colour(number)
            axes.axhline(100 * one.level[number], color=tone, linewidth=0.6, linestyle=(0, (1, 1.5)), zorder=1)
        handles += axes.plot(
            places, 100 * shares[number], color=colour(number), linestyle=dash(number), marker=mark(number),
            markersize=3.2, zorder=2 + number,
        )  # fmt: skip
    axes.set_xscale("log")
    ticks = [tick for tick in _TICKS if tick <= np.count_nonzero(one.queries)]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_title(fitted(one.run, (COLUMN - 0.5) * INCH))
    return handles


def _binned(one: RankShares) -> tuple[Any, Any]:
    """Ranks, and shares at them: single ones at the top, means over stretches of ranks below."""
    weights = one.queries.astype(np.float64)
    places, shares = [], []
    for first, last in zip((0, *_ENDS), _ENDS, strict=False):
        part = slice(first, min(last, one.depth))
        if weights[part].sum() > 0:
            places.append(float(np.sqrt((first + 1) * min(last, one.depth))))
            shares.append(np.nansum(one.at[:, part] * weights[part], axis=1) / weights[part].sum())
    return np.array(places), np.array(shares).T
