"""The figures of a paper from audits, validations and studies, as SVG or PDF through matplotlib."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from ranktilt.auditing.comparison.compare import Comparison
from ranktilt.auditing.pairwise.result import PairwiseAudit
from ranktilt.auditing.result import Audit
from ranktilt.auditing.study import Study
from ranktilt.errors import UserError, counted, unknown
from ranktilt.experiments.tradeoff_result import Bench
from ranktilt.experiments.training_result import TrainingStudy
from ranktilt.measures.printing import signed
from ranktilt.probes.base import ProbeFigure, ProbeResult
from ranktilt.probes.distribution import Distribution
from ranktilt.probes.explain import Explanation
from ranktilt.probes.similarity import Map, Similarity
from ranktilt.probes.validation import Validation
from ranktilt.reporting.papers import style
from ranktilt.reporting.papers.figures_audit import audit_figures
from ranktilt.reporting.papers.figures_bench import bench_figures
from ranktilt.reporting.papers.figures_choices import choice_figures
from ranktilt.reporting.papers.layouts import LAYOUTS
from ranktilt.reporting.papers.results import Result as Bare
from ranktilt.reporting.papers.results import tables_of
from ranktilt.reporting.papers.style import COLOURS, COLUMN, DIM, INCH, PAGE, SMALL, PaperFigure
from ranktilt.reporting.reload import LoadedAudit
from ranktilt.reporting.views.provenance import folder

Result = LoadedAudit | Bare

_DODGE = 0.014
_ABREAST = 3
_BINS = 25
_FINE = 40
"""Bars of a cosine a unit."""
_SHARE = "share of pairs, %"


def paper_figures(
    results: Sequence[Result], *, format: Literal["svg", "pdf"] = "svg", layout: str = ""
) -> dict[str, bytes]:
    """Draw every figure of a paper whose data the results hold.

    From a validation Figures 3 to 5 of its first paper (terms, map, similarity) and, of several sources, 14; from an
    explanation Figures 7 to 9 (spectrum, perplexity), from a bench Figures 10 and 11, from a comparison of two pairwise
    audits their choices before and after, from a study Relative Δ by temperature, from an audit Relative Δ of rankers ×
    measures, effectiveness beside tilt and, where its collection and runs are there, who stands at which rank.
    `layout`, such as ``dai-fig7``, draws that figure alone.
    """
    if format not in style.FORMATS:
        raise unknown("format of a figure", format, style.FORMATS)
    found: dict[str, bytes] = {}
    with style.paper_style():
        for front, result in zip(_fronts(results), results, strict=True):
            for drawn in drawn_figures(result, layout):
                found[_free(f"{front}{drawn.name}", format, found)] = style.file_of(drawn, format)
    if not found:
        raise UserError(_nothing(results, layout))
    return found


def drawn_figures(result: Result, layout: str = "") -> Iterator[PaperFigure]:
    """Draw what a result holds; call it within `paper_style`."""
    if isinstance(result, Explanation):
        return _explanation_figures(result, layout)
    if isinstance(result, Comparison):
        return choice_figures(result) if layout in ("", "wang-fig4") else iter(())
    if isinstance(result, Bench):
        return bench_figures(result, [layout] if layout else tables_of(result))
    if isinstance(result, Validation):
        return _validation_figures(result, layout)
    if layout or isinstance(result, PairwiseAudit | TrainingStudy):
        return iter(())
    if isinstance(result, Study):
        return _study_figures(result)
    return audit_figures(result if isinstance(result, LoadedAudit) else LoadedAudit(result))


def _bare(result: Result) -> Bare:
    return result.audit if isinstance(result, LoadedAudit) else result


def _fronts(results: Sequence[Result]) -> list[str]:
    """What the file names of each result begin with: nothing where it is the only one of its kind."""
    kinds = [type(_bare(result)) for result in results]
    names = [style.slug(name) if (name := folder(_bare(result).spec)) else "" for result in results]
    fronts = []
    for place, (kind, name) in enumerate(zip(kinds, names, strict=True)):
        alone = kinds.count(kind) == 1
        clear = bool(name) and list(zip(kinds, names, strict=True)).count((kind, name)) == 1
        fronts.append("" if alone else f"{name}-" if clear else f"{kinds[: place + 1].count(kind)}-")
    return fronts


def _free(name: str, format: str, taken: Mapping[str, bytes]) -> str:
    file, number = f"{name}.{format}", 2
    while file in taken:
        file, number = f"{name}-{number}.{format}", number + 1
    return file


def _nothing(results: Sequence[Result], layout: str) -> str:
    if layout:
        one = LAYOUTS[layout]
        return f"{layout} shows {one.shows}; the results given hold none: {one.command} makes one"
    if not results:
        return "nothing to draw: no result was given"
    needs = {
        Audit: "an audit needs two groups with a defined Relative Δ, or its collection and runs",
        Validation: "a validation needs twins",
        Study: "a study needs a source whose temperature is known",
        Explanation: "an explanation needs a spectrum or perplexities",
        PairwiseAudit: "a pairwise audit has a table (wang-3), and two of them a figure (ranktilt compare)",
        Comparison: "a comparison needs two pairwise audits",
        Bench: "a bench needs a defined Relative Δ",
        TrainingStudy: "a training study has tables (askari-1 to askari-5), and figures on its page",
    }
    kinds = dict.fromkeys(type(_bare(result)) for result in results)
    return f"nothing to draw: {'; '.join(needs[kind] for kind in kinds)}"


def _study_figures(study: Study) -> Iterator[PaperFigure]:
    """Relative Δ by the temperature of the rewrites, a figure for each series of sources."""
    drawn = [series for series in study.series if _temperatures(study, series)]
    for series in drawn:
        yield _by_temperature(study, series, f"temperature-{style.slug(series)}" if len(drawn) > 1 else "temperature")


def _temperatures(study: Study, series: str) -> list[float]:
    """Temperatures of a series with anything to draw."""
    points = [point for run in study.runs for m in study.measures for point in study.points(run, m, series)]
    return sorted({source.temperature for source, tilt in points if np.isfinite(tilt.value)})


def _by_temperature(study: Study, series: str, name: str) -> PaperFigure:
    """A panel a measure, a line a ranker."""
    many = len(study.measures)
    columns = min(many, _ABREAST)
    rows = -(-many // columns)
    wide = COLUMN if many == 1 else PAGE
    figure = style.blank(wide, 0.5 + (1.95 if many == 1 else 1.6) * rows + 0.14 * len(study.runs) / columns)
    panels, handles = style.panels(figure, rows, columns, many, "temperature of the rewrites"), list[Any]()
    for place, (axes, measure) in enumerate(zip(panels, study.measures, strict=True)):
        handles = _temperature_panel(axes, study, series, measure)
        if many > 1:
            axes.set_title(style.label(measure))
        if place % columns == 0:
            one = f" {style.label(measure)}" if many == 1 else ""
            favours = style.favours(study.reference, series, 1.55 * INCH)
            axes.set_ylabel(f"Relative Δ{one}, %\n{favours}", fontsize=SMALL)
    style.legend(figure, handles, list(study.runs))
    band = f" Shaded: ±{study.level:g} points, which count as level." if study.level else ""
    return PaperFigure(
        name,
        figure,
        f"Relative Δ by temperature, {study.reference} against {series}",
        f"Above 0 a ranker puts {study.reference} text higher, below 0 the rewrites. Bars: 95 % intervals over "
        f"queries.{band} {study.primary}: {_tilts_by_temperature(study, series)}.",
    )


def _tilts_by_temperature(study: Study, series: str) -> str:
    lines = []
    for run in study.runs:
        tilts = [
            f"{signed(tilt.value) if np.isfinite(tilt.value) else 'undefined'} at {source.temperature:g}"
            for source, tilt in study.points(run, study.primary, series)
        ]
        lines.append(f"{run} {', '.join(tilts)}")
    return "; ".join(lines)


def _temperature_panel(axes: Any, study: Study, series: str, measure: str) -> list[Any]:
    style.level_band(axes, 0, study.level)
    ticks = _temperatures(study, series)
    span = ticks[-1] - ticks[0] or 1.0
    middle, handles = (len(study.runs) - 1) / 2, []
    for number, run in enumerate(study.runs):
        points = [(source, tilt) for source, tilt in study.points(run, measure, series) if np.isfinite(tilt.value)]
        tilts = [tilt for _, tilt in points]
        values = [tilt.value for tilt in tilts]
        handles.append(
            axes.errorbar(
                [source.temperature + _DODGE * span * (number - middle) for source, _ in points], values,
                yerr=style.error_bars(values, [t.low for t in tilts], [t.high for t in tilts]),
                color=style.colour(number), marker=style.mark(number), linestyle=style.dash(number), elinewidth=0.8,
                capsize=1.5, zorder=2 + number,
            )
        )  # fmt: skip
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xlim(ticks[0] - 0.09 * span, ticks[-1] + 0.09 * span)
    return handles


def _explanation_figures(found: Explanation, layout: str) -> Iterator[PaperFigure]:
    """Spectrum and perplexity as the paper prints them (Dai et al., KDD 2024, Fig. 7 to 9)."""
    wanted = [layout] if layout else tables_of(found)
    for result in found.results:
        kind, _, model = result.probe.partition(":")
        for drawn in result.figures:
            several = len(drawn.series) > 1
            if kind == "spectrum" and ("dai-fig7" in wanted or ("dai-fig8" in wanted and several)):
                yield _curves(drawn, wanted[0].replace("fig", "figure-"), result.summary)
            elif kind == "perplexity" and "dai-fig9" in wanted:
                end = f"-{style.slug(model)}" if model else ""
                draw = _boxes if len(drawn.series) > 2 else _bars
                yield draw(drawn, f"dai-figure-9{end}", result)


def _curves(drawn: ProbeFigure, name: str, summary: str) -> PaperFigure:
    """Draw a ratio over its index, with 1 as a line."""
    figure = style.blank(COLUMN, 2.0)
    axes, handles = figure.subplots(), list[Any]()
    axes.axhline(1, color=DIM, linewidth=0.6)
    for number, heights in enumerate(drawn.series.values()):
        line = {"color": style.colour(number), "linestyle": style.dash(number), "marker": ""}
        handles += axes.plot(np.arange(1, len(heights) + 1), heights, **line)
    axes.set_xlabel(drawn.axis)
    axes.set_ylabel("relative singular value", fontsize=SMALL)
    style.legend(figure, handles, list(drawn.series))
    return PaperFigure(name, figure, drawn.title, summary)


def _bars(drawn: ProbeFigure, name: str, result: ProbeResult) -> PaperFigure:
    """Draw shares in bins, one source above the other."""
    figure = style.blank(COLUMN, 2.0)
    axes, handles = figure.subplots(), list[Any]()
    for number, heights in enumerate(drawn.series.values()):
        handles.append(axes.stairs(heights, drawn.edges, color=style.colour(number), linestyle=style.dash(number)))
    axes.set_xlabel(drawn.axis)
    axes.set_ylabel("share of documents, %", fontsize=SMALL)
    style.legend(figure, handles, list(drawn.series))
    return PaperFigure(name, figure, drawn.title, result.summary)


def _boxes(drawn: ProbeFigure, name: str, result: ProbeResult) -> PaperFigure:
    """Draw quartiles and mean of each source, the first on top."""
    rows = [row for row in result.rows if row["values"]]
    figure = style.blank(COLUMN, 0.6 + 0.22 * len(rows))
    axes = figure.subplots()
    boxes = [
        {"label": style.label(row["source"]), "med": row["median"], "mean": row["mean"],
         **dict.fromkeys(("q1", "whislo"), row["25 %"]), **dict.fromkeys(("q3", "whishi"), row["75 %"])}
        for row in rows
    ]  # fmt: skip
    mean = {"marker": "D", "markersize": 3, "markerfacecolor": style.colour(1), "markeredgecolor": style.colour(1)}
    median = {"color": style.colour(0)}
    axes.bxp(
        boxes,
        medianprops=median,
        orientation="horizontal",
        showfliers=False,
        showcaps=False,
        showmeans=True,
        meanprops=mean,
    )
    axes.invert_yaxis()
    axes.set_xlabel(drawn.axis)
    says = f"Boxes: half of the documents, with the median; diamonds: means. {result.summary}"
    return PaperFigure(name, figure, drawn.title, says)


def _validation_figures(validation: Validation, layout: str) -> Iterator[PaperFigure]:
    """Terms, map and similarity as the paper prints them (Dai et al., Fig. 3 to 5, and 14 of all sources)."""
    near = [one for one in validation.similarities if one.cosine.count]
    if layout:
        yield from [_overlaid(near, validation.reference)] if near and layout == "dai-fig14" else []
        return
    terms = [one for one in validation.overlaps if one.jaccard.count]
    if terms:
        jaccard, overlap = ({one.source: getattr(one, name) for one in terms} for name in ("jaccard", "overlap"))
        yield _terms(jaccard, overlap, validation.reference)
    for one in near:
        end = f"-{style.slug(one.source)}" if len(near) > 1 else ""
        if one.map is not None:
            yield _map(one.map, one, validation.reference, f"dai-figure-4{end}")
        yield _cosines(one, validation.reference, f"dai-figure-5{end}")
    if len(near) > 1:
        yield _overlaid(near, validation.reference)


def _terms(jaccard: Mapping[str, Distribution], overlap: Mapping[str, Distribution], reference: str) -> PaperFigure:
    figure = style.blank(COLUMN, 1.75 if len(jaccard) == 1 else 2.1)
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
        style.legend(figure, handles, list(jaccard))
    means = [
        f"{source}: {counted(jaccard[source].count, 'pair', 'pairs')}, mean Jaccard {_number(jaccard[source].mean)}, "
        f"mean overlap {_number(overlap[source].mean)}"
        for source in jaccard
    ]
    return PaperFigure(
        "dai-figure-3",
        figure,
        f"Terms that texts of {reference} share with their rewrites ({', '.join(jaccard)})",
        "Left: Jaccard similarity of the two sets of terms. Right: overlap, the share of the original's terms that the "
        f"rewrite kept. {'; '.join(means)}.",
    )


def _overlaid(near: Sequence[Similarity], reference: str) -> PaperFigure:
    """Twins of every source in one figure."""
    means = [f"{one.source}: {one.cosine.count:,}, mean {_number(one.cosine.mean)}" for one in near]
    return PaperFigure(
        "dai-figure-14",
        _cosine_histogram({one.source: one.cosine for one in near}),
        f"Cosine similarity of texts of {reference} with their rewrites, by source",
        f"Vectors of {near[0].model} ({near[0].text}). Pairs: {'; '.join(means)}.",
    )


def _cosine_histogram(found: Mapping[str, Distribution]) -> Any:
    every = np.concatenate([values.defined for values in found.values()])
    high = min(1.0, float(np.ceil(every.max() * _FINE) / _FINE))
    low = min(float(np.floor(every.min() * _FINE)) / _FINE, high - 1 / _FINE)
    edges = np.linspace(low, high, round((high - low) * _FINE) + 1)
    figure = style.blank(COLUMN, 2.0)
    axes = figure.subplots()
    handles = _histogram(axes, found, edges)
    axes.set_xlim(edges[0], edges[-1])
    axes.set_xlabel("cosine similarity")
    axes.set_ylabel(_SHARE)
    style.legend(figure, handles, list(found))
    return figure


def _cosines(one: Similarity, reference: str, name: str) -> PaperFigure:
    found = {"twins": one.cosine, "unrelated pairs": one.baseline}
    found = {label: values for label, values in found.items() if values.count}
    means = [f"{label}: {values.count:,}, mean {_number(values.mean)}" for label, values in found.items()]
    return PaperFigure(
        name,
        _cosine_histogram(found),
        f"Cosine similarity of texts of {reference} with their own rewrites by {one.source} and with those of others",
        f"Vectors of {one.model} ({one.text}). {'; '.join(means)}.",
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
                heights[shown], edges[shown.start : shown.stop + 1], fill=True,
                facecolor=style.TINT if first else "none", edgecolor=style.colour(number),
                hatch=style.HATCH if number == 1 == len(found) - 1 else None,
                linestyle="-" if first else style.dash(number), linewidth=0.9, zorder=2 + number,
            )
        )  # fmt: skip
    axes.set_ylim(bottom=0)
    return handles


def _heights(values: Distribution, edges: Any) -> Any:
    return 100 * np.histogram(values.defined, edges)[0] / max(values.count, 1)


def _map(drawn: Map, one: Similarity, reference: str, name: str) -> PaperFigure:
    half = drawn.pairs
    points = np.column_stack([drawn.x, drawn.y])
    wide, high = np.ptp(points, axis=0)
    figure = style.blank(COLUMN, 0.25 + COLUMN * float(np.clip(high / wide if wide else 1.0, 0.4, 1.4)))
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
    style.legend(figure, [human, other], [reference, one.source])
    shown = "all pairs" if half == drawn.of else f"{half:,} of {drawn.of:,} pairs, drawn by chance"
    return PaperFigure(
        name,
        figure,
        f"A map of the texts of {reference} and {one.source}",
        f"t-SNE of the vectors of {one.model} ({one.text}); {shown}. Near points are texts of like meaning; a line "
        "joins twins; the axes mean nothing.",
    )


def _number(value: float) -> str:
    return f"{value:.2f}".replace("-", "−") if value == value else "undefined"
