"""A validation's figures as the paper prints them: terms, map and similarity (Dai et al., KDD 2024, Fig. 3 to 5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ranktilt.errors import counted
from ranktilt.probes.distribution import Distribution
from ranktilt.probes.similarity import Map, Similarity
from ranktilt.probes.validation import Validation
from ranktilt.reporting.papers.figures_style import (
    COLOURS,
    COLUMN,
    DIM,
    HATCH,
    TINT,
    Plate,
    blank,
    colour,
    dash,
    legend,
    slug,
)

_BINS = 25
_FINE = 40
"""Bars of a cosine a unit."""
_SHARE = "share of pairs, %"


def validation_plates(validation: Validation) -> Iterator[Plate]:
    """Draw what a validation holds; call it within `inked`."""
    terms = [one for one in validation.overlaps if one.jaccard.count]
    if terms:
        jaccard, overlap = ({one.source: getattr(one, name) for one in terms} for name in ("jaccard", "overlap"))
        yield _terms(jaccard, overlap, validation.reference)
    near = [one for one in validation.similarities if one.cosine.count]
    for one in near:
        end = f"-{slug(one.source)}" if len(near) > 1 else ""
        if one.map is not None:
            yield _map(one.map, one, validation.reference, f"dai-figure-4{end}")
        yield _cosines(one, validation.reference, f"dai-figure-5{end}")


def _terms(jaccard: Mapping[str, Distribution], overlap: Mapping[str, Distribution], reference: str) -> Plate:
    figure = blank(COLUMN, 1.75 if len(jaccard) == 1 else 2.1)
    left, right = figure.subplots(1, 2, sharey=True)
    handles = []
    whole = np.linspace(0, 1, _BINS + 1)
    highest = max(_heights(one, whole).max() for found in (jaccard, overlap) for one in found.values())
    for axes, found, title in ((left, jaccard, "Jaccard similarity"), (right, overlap, "overlap")):
        handles = _histogram(axes, found, whole)
        axes.set_xlabel(title)
        axes.set_ylim(0, 1.06 * highest)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".5", ".75", "1"])
        axes.set_xlim(0, 1)
    left.set_ylabel(_SHARE)
    if len(jaccard) > 1:
        legend(figure, handles, list(jaccard))
    said = [
        f"{source}: {counted(jaccard[source].count, 'pair', 'pairs')}, mean Jaccard {_number(jaccard[source].mean)}, "
        f"mean overlap {_number(overlap[source].mean)}"
        for source in jaccard
    ]
    sources = ", ".join(jaccard)
    return Plate(
        "dai-figure-3",
        figure,
        f"Terms that texts of {reference} share with their rewrites ({sources})",
        "Left: Jaccard similarity of the two sets of terms. Right: overlap, the share of the original's terms that the "
        f"rewrite kept. {'; '.join(said)}.",
    )


def _cosines(one: Similarity, reference: str, name: str) -> Plate:
    found = {"twins": one.cosine, "unrelated pairs": one.baseline}
    found = {label: values for label, values in found.items() if values.count}
    every = np.concatenate([values.defined for values in found.values()])
    high = min(1.0, float(np.ceil(every.max() * _FINE) / _FINE))
    low = min(float(np.floor(every.min() * _FINE)) / _FINE, high - 1 / _FINE)
    edges = np.linspace(low, high, round((high - low) * _FINE) + 1)
    figure = blank(COLUMN, 2.0)
    axes = figure.subplots()
    handles = _histogram(axes, found, edges)
    axes.set_xlim(edges[0], edges[-1])
    axes.set_xlabel("cosine similarity")
    axes.set_ylabel(_SHARE)
    legend(figure, handles, list(found))
    said = [f"{label}: {values.count:,}, mean {_number(values.mean)}" for label, values in found.items()]
    return Plate(
        name,
        figure,
        f"Cosine similarity of texts of {reference} with their own rewrites by {one.source} and with those of others",
        f"Vectors of {one.model} ({one.text}). {'; '.join(said)}.",
    )


def _histogram(axes: Any, found: Mapping[str, Distribution], edges: Any) -> list[Any]:
    """Draw the first distribution filled, others dashed above it, a second one hatched; return what a legend shows."""
    handles = []
    for number, values in enumerate(found.values()):
        heights, first = _heights(values, edges), number == 0
        held = np.flatnonzero(heights)
        shown = slice(int(held[0]), int(held[-1]) + 1) if len(held) else slice(0, 1)
        handles.append(
            axes.stairs(
                heights[shown], edges[shown.start : shown.stop + 1], fill=True, facecolor=TINT if first else "none",
                edgecolor=colour(number), hatch=HATCH if number == 1 == len(found) - 1 else None,
                linestyle="-" if first else dash(number), linewidth=0.9, zorder=2 + number,
            )
        )  # fmt: skip
    axes.set_ylim(bottom=0)
    return handles


def _heights(values: Distribution, edges: Any) -> Any:
    return 100 * np.histogram(values.defined, edges)[0] / max(values.count, 1)


def _map(drawn: Map, one: Similarity, reference: str, name: str) -> Plate:
    half = drawn.pairs
    points = np.column_stack([drawn.x, drawn.y])
    wide, high = np.ptp(points, axis=0)
    figure = blank(COLUMN, 0.25 + COLUMN * float(np.clip(high / wide if wide else 1.0, 0.4, 1.4)))
    axes = figure.subplots()
    links = np.stack([points[:half], points[half:], np.full((half, 2), np.nan)], axis=1).reshape(-1, 2)
    axes.plot(*links.T, color=DIM, linewidth=0.35, zorder=1)
    few = half < 100
    human = axes.scatter(
        *points[:half].T, s=20 if few else 11, marker="o", facecolors="none", edgecolors=COLOURS[0],
        linewidths=0.7, zorder=2,
    )  # fmt: skip
    other = axes.scatter(
        *points[half:].T, s=9 if few else 4, marker="D", facecolors=COLOURS[1], edgecolors="none", zorder=3
    )
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.02)
    axes.set_axis_off()
    legend(figure, [human, other], [reference, one.source])
    shown = "all pairs" if half == drawn.of else f"{half:,} of {drawn.of:,} pairs, drawn by chance"
    return Plate(
        name,
        figure,
        f"A map of the texts of {reference} and {one.source}",
        f"t-SNE of the vectors of {one.model} ({one.text}); {shown}. Near points are texts of like meaning; a line "
        "joins twins; the axes mean nothing.",
    )


def _number(value: float) -> str:
    return f"{value:.2f}".replace("-", "−") if value == value else "undefined"
