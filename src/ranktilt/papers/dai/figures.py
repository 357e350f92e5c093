"""Figures of Dai et al. that lay all sources over each other, which no page of a result does."""

from __future__ import annotations

import numpy as np
import polars as pl

from ranktilt.explaining.check import CheckResult
from ranktilt.reporting.document import Figure
from ranktilt.reporting.figures.charts import clouds
from ranktilt.reporting.views.check_sections import distribution_figure


def draw_cosines(check: CheckResult) -> tuple[Figure, ...]:
    """Draw the cosines of all sources in one; nothing of one source."""
    cosines = {one.source: one.twins for one in check.similarity if one.twins.count}
    if len(cosines) < 2:
        return ()
    title = f"Cosine similarity of {check.reference} texts and rewrites"
    return (distribution_figure(title, cosines, "cosine similarity"),)


def texts_drawn(check: CheckResult) -> pl.DataFrame:
    """Return how many texts of each source the map of all of them shows: ``source``, ``model``, ``texts``."""
    if not draw_map(check):
        return pl.DataFrame()
    maps = {one.source: one for one in check.similarity if one.map is not None}
    model, drawn = next(iter(maps.values())).model, next(iter(maps.values())).map
    count = 0 if drawn is None else drawn.pairs
    return pl.DataFrame(
        [{"source": name, "model": model, "texts": count} for name in (check.reference, *maps)]
    )


def draw_map(check: CheckResult) -> tuple[Figure, ...]:
    """Draw the texts of all sources in one plane; nothing where that is not one plane, or one source."""
    maps = {one.source: one.map for one in check.similarity if one.map is not None}
    if len(maps) < 2:
        return ()
    first = next(iter(maps.values()))
    half = first.pairs
    groups = {check.reference: (np.column_stack([first.x, first.y])[:half], first.ids[:half])}
    for source, drawn in maps.items():
        shares_reference = drawn.ids[:half] == first.ids[:half] and np.array_equal(
            drawn.x[:half], first.x[:half]
        )
        if not shares_reference:
            return ()
        groups[source] = np.column_stack([drawn.x, drawn.y])[half:], drawn.ids[half:]
    figure = Figure(
        title=f"Texts of {check.reference} and of {len(maps)} models in an encoder's space",
        says=f"{half:,} texts and their rewrites by each model; near points have near vectors (t-SNE).",
        drawing=clouds(groups),
    )
    return (figure,)
