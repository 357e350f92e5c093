"""Figures of Dai et al. that show all sources in one; pages of results have one for each source.

A *source* is who wrote texts, such as a language model; the *reference* is the source whose texts
the others rewrote, human text. Texts are compared as vectors of an encoder: by the cosine of a text
and its rewrite, and in a *map* that puts all vectors into a plane.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from ranktilt.explaining.check_result import CheckResult
from ranktilt.explaining.similarity import Map
from ranktilt.measures.ranking import Floats
from ranktilt.reporting.document import Figure
from ranktilt.reporting.figures.charts import clouds
from ranktilt.reporting.views.check.sections import distribution_figure


def draw_cosines(check: CheckResult) -> tuple[Figure, ...]:
    """Draw the cosines of all sources in one figure; no figure if there is only one source."""
    cosines = {
        similarity.source: similarity.twins
        for similarity in check.similarity
        if similarity.twins.count
    }
    if len(cosines) < 2:
        return ()
    title = f"Cosine similarity of {check.reference} texts and rewrites"
    return (distribution_figure(title, cosines, "cosine similarity"),)


def texts_drawn(check: CheckResult) -> pl.DataFrame:
    """Return how many texts of each source are in the map: ``source``, ``model``, ``texts``."""
    if not draw_map(check):
        return pl.DataFrame()
    maps = _maps(check)
    first_map = next(iter(maps.values()))
    models = [similarity.model for similarity in check.similarity if similarity.source in maps]
    rows = [
        {"source": name, "model": models[0], "texts": first_map.pairs}
        for name in (check.reference, *maps)
    ]
    return pl.DataFrame(rows)


def draw_map(check: CheckResult) -> tuple[Figure, ...]:
    """Draw the texts of all sources in one plane.

    A check has a map for each source, with the reference's texts and their rewrites. Sources can
    share one plane only if the reference's texts lie at the same points in all maps. Otherwise
    there is no figure, nor if there is only one source.
    """
    maps = _maps(check)
    if len(maps) < 2:
        return ()
    reference_map = next(iter(maps.values()))
    # The first half of a map's points are the reference's texts, and the second half their
    # rewrites.
    half = reference_map.pairs
    groups = {check.reference: (_points(reference_map)[:half], reference_map.ids[:half])}
    for source, source_map in maps.items():
        has_same_texts = source_map.ids[:half] == reference_map.ids[:half]
        if not (has_same_texts and np.array_equal(source_map.x[:half], reference_map.x[:half])):
            return ()
        groups[source] = _points(source_map)[half:], source_map.ids[half:]
    figure = Figure(
        title=f"Texts of {check.reference} and of {len(maps)} models in an encoder's space",
        description=f"{half:,} texts and their rewrites by each model; "
        "near points have near vectors (t-SNE).",
        drawing=clouds(groups),
    )
    return (figure,)


def _maps(check: CheckResult) -> dict[str, Map]:
    """Return the map of each source that has one."""
    maps = dict[str, Map]()
    for similarity in check.similarity:
        if similarity.map is not None:
            maps[similarity.source] = similarity.map
    return maps


def _points(text_map: Map) -> Floats:
    """Return the points of a map: (texts, 2)."""
    return np.column_stack([text_map.x, text_map.y])
