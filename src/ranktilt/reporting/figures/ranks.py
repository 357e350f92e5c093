"""Figures of an audit: one curve a ranker or group over the ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from ranktilt.reporting.figures.drawing import COLOURS, DASHES, DIM, Drawing, frame, mark_zero, numbers, plain

GROUP_COLOURS = ("var(--first)", "var(--second)", *COLOURS[2:])
"""Of groups in the order of a comparison: those of both sides first."""
_CURVES, _NAME = 290, 24
_TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


def curves(
    series: Mapping[str, ArrayLike],
    *,
    x: str,
    y: str,
    levels: Sequence[float] = (),
    colours: Sequence[str] = COLOURS,
    zero: bool = False,
) -> Drawing:
    """Draw one line a name over the ranks 1, 2, 3 …, on a logarithmic axis."""
    found = {name: np.asarray(heights, dtype=np.float64) for name, heights in series.items()}
    ranks = max((len(heights) for heights in found.values()), default=1)
    data = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": plain(name),
            "x": list(range(1, len(heights) + 1)),
            "y": numbers(heights, 4),
            "line": {"color": colours[number % len(colours)], "width": 2.5, "dash": DASHES[number % len(DASHES)]},
            "hovertemplate": "rank %{x}: %{y:.1f}<extra>%{fullData.name}</extra>",
        }
        for number, (name, heights) in enumerate(found.items())
    ]
    drawing = frame(_CURVES + _NAME * len(found), x=x, y=y, legend=True)
    line = {"color": DIM, "width": 1.5, "dash": "dot"}
    drawing["shapes"] = [
        {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": level, "y1": level, "line": line}
        for level in levels
        if np.isfinite(level)
    ]
    if zero:
        mark_zero(drawing["yaxis"])
    shown = [tick for tick in _TICKS if tick <= ranks]
    drawing["xaxis"] |= {"type": "log", "tickmode": "array", "tickvals": shown, "ticktext": [f"{t:,}" for t in shown]}
    drawing["xaxis"]["range"] = [-0.03, float(np.log10(max(ranks, 2))) + 0.03]
    return {"data": data, "layout": drawing}
