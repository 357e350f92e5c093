"""The figures of a bench for a paper: tilt, and effectiveness on human documents alone, by strength."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ranktilt.auditing.effects import Effect
from ranktilt.experiments.tradeoff_result import Bench, Intervention
from ranktilt.reporting.numbers import decimal
from ranktilt.reporting.papers import style
from ranktilt.reporting.papers.style import PAGE, SMALL, PaperFigure

_DODGE = 0.08
_ABREAST = 3


_Rows = Mapping[str, Sequence[Sequence[Effect]]]
"""By the name of a line, for each measure, an effect a strength."""


def bench_figures(bench: Bench, layouts: Sequence[str]) -> Iterator[PaperFigure]:
    """Draw Figures 10 and 11 of Dai et al. (KDD 2024) for every method; call it within `paper_style`."""
    reference = str(bench.spec.get("reference"))
    for method in bench.methods:
        steps = bench.strengths(method)
        end = f"-{style.slug(method)}" if len(bench.methods) > 1 else ""
        over = f"by {steps[-1].dial} ({method})"
        if "dai-fig10" in layouts:
            tilts = {p[1]: [[bench.tilt(s.name, p, m) for s in steps] for m in bench.measures] for p in bench.pairs}
            band = f" Shaded: ±{bench.level:g} points, which count as level." if bench.level else ""
            figure = _panels(bench, steps, tilts, "Relative Δ, %", level=bench.level)
            says = f"Above 0 {reference} text ranks higher.{band} {_said(bench, steps, tilts)}"
            yield PaperFigure(f"dai-figure-10{end}", figure, f"Relative Δ {over}", says)
        if "dai-fig11" in layouts and reference in bench.over:
            means = {reference: [[bench.mean(s.name, reference, m) for s in steps] for m in bench.measures]}
            figure = _panels(bench, steps, means, "mean, %", scale=100.0)
            title = f"Effectiveness on {reference} documents alone {over}"
            yield PaperFigure(f"dai-figure-11{end}", figure, title, _said(bench, steps, means, scale=100.0))


def _said(bench: Bench, steps: Sequence[Intervention], found: _Rows, *, scale: float = 1.0) -> str:
    """The numbers of the primary measure."""
    lines = []
    for name, some in found.items():
        values = zip(steps, some[0], strict=True)
        lines.append(f"{name} {', '.join(f'{decimal(scale * e.value)} at {s.strength:g}' for s, e in values)}")
    return f"Bars: 95 % intervals over queries. {bench.measures[0]}: {'; '.join(lines)}."


def _panels(
    bench: Bench, steps: Sequence[Intervention], found: _Rows, y: str, *, scale: float = 1.0, level: float | None = None
) -> Any:
    """A panel a measure, a line a name; strengths stand in equal steps, for they may span decades and begin with 0."""
    many = len(bench.measures)
    columns = min(many, _ABREAST)
    rows = -(-many // columns)
    figure = style.blank(PAGE, 0.5 + 1.6 * rows + 0.14 * len(found) / columns)
    panels = style.panels(figure, rows, columns, many, steps[-1].dial)
    for place, (axes, measure) in enumerate(zip(panels, bench.measures, strict=True)):
        if level is not None:
            style.level_band(axes, 0, level)
        handles = [_line(axes, number, len(found), of[place], scale) for number, of in enumerate(found.values())]
        axes.set_title(style.label(measure))
        axes.set_xticks(range(len(steps)), [f"{one.strength:g}" for one in steps])
        if place % columns == 0:
            axes.set_ylabel(y, fontsize=SMALL)
    style.legend(figure, handles, list(found))
    return figure


def _line(axes: Any, number: int, of: int, found: Sequence[Effect], scale: float) -> Any:
    """Draw one line with its intervals, a little beside the others."""
    values, low, high = ([scale * getattr(e, end) for e in found] for end in ("value", "low", "high"))
    return axes.errorbar(
        [place + _DODGE * (number - (of - 1) / 2) for place in range(len(found))], values,
        yerr=style.error_bars(values, low, high), color=style.colour(number), marker=style.mark(number),
        linestyle=style.dash(number), elinewidth=0.8, capsize=1.5, zorder=2 + number,
    )  # fmt: skip
