"""The sections of an audit's page with their figures, from the tilts to how it was computed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from math import isnan

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.result import Audit
from ranktilt.errors import counted
from ranktilt.reporting.document import (
    Block,
    Figure,
    PageBlocks,
    PageSections,
    Section,
)
from ranktilt.reporting.explorer.section import BUDGET, explorer
from ranktilt.reporting.figures.charts import Mark, ScatterPoint, forest, scatter
from ranktilt.reporting.figures.drawing import known_size
from ranktilt.reporting.interval_chart import MOST_ROWS as MOST_ROWS_OF_CHART
from ranktilt.reporting.numbers import decimal, interval, signed
from ranktilt.reporting.provenance import provenance
from ranktilt.reporting.reload import LoadedAudit
from ranktilt.reporting.sentences.effects import corrected_p
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.reporting.sentences.verdicts import sides_named
from ranktilt.reporting.tones import VERDICT_TONES
from ranktilt.reporting.views.audit_ranks import NOT_OPENED, ranks_section
from ranktilt.reporting.views.audit_tables import (
    card_table,
    conflict_sentences,
    confound_table,
    control_sentences,
    control_table,
    group_table,
)
from ranktilt.reporting.views.check_tables import check_table
from ranktilt.reporting.views.group_standings import standing_section

Floats = npt.NDArray[np.float64]
MOST_ROWS = 42
"""Intervals that one figure can hold and still be read."""
MOST_PAIRS = 4
"""Pairs of groups that are drawn."""
_UNSEEN = "a tilt as small as this is found less than four times in five"
_LARGEST_TILT = 200
"""Largest Relative Δ that there can be, in %."""
_BAND = " Hatched: what random labels give; their median is level, not 0."


def audit_sections(
    opened: LoadedAudit, *, budget: int = BUDGET
) -> tuple[Section | PageSections, ...]:
    """Lay out the results of an audit; text has the tables alone."""
    audit = opened.audit
    return (
        *standing_section(audit),
        PageSections(make=partial(_tilt, audit)),
        *_table(audit),
        PageSections(make=partial(_effectiveness, audit)),
        *_card(audit),
        PageSections(make=partial(_lists, opened, budget)),
        *_confounds(audit),
        *_controls(audit),
        *_checks(audit),
        PageSections(make=partial(_provenance, audit)),
    )


def _tilt(audit: Audit) -> Iterator[Section]:
    title = "How far each ranker tilts"
    if audit.tilted_pairs:
        pairs = drawn_pairs(audit)
        lead = tuple(_tilt_lead(audit, len(pairs)))
        figures = tuple(tilt_figure(audit, pair) for pair in pairs)
        if _is_on_first_screen(audit):
            figures = tuple(replace(figure, only="paper") for figure in figures)
        yield Section("tilt", title, lead, figures, short_title="Every measure")
        return
    figures = tuple(_card_figures(audit))
    if figures:
        lead = ("Nothing is judged, so the card's questions are asked instead.",)
        yield Section("tilt", title, lead, figures)


def _tilt_lead(audit: Audit, drawn_count: int) -> Iterator[str]:
    if all(tilt.twins for tilt in audit.tilts):
        yield (
            "An interval that holds 0 does not show a tilt; only a short one close to 0 shows "
            "that there is hardly any."
        )
    else:
        yield (
            "Groups that hold different documents are level where labels dealt out at random "
            "stand, not at 0."
        )
    if drawn_count < len(audit.tilted_pairs):
        yield (
            f"Drawn for the {drawn_count} of {len(audit.tilted_pairs)} pairs of groups that tilt "
            "most clearly."
        )


def _is_on_first_screen(audit: Audit) -> bool:
    """Tell whether the first screen of a page draws every tilt already."""
    has_one_question = [repr(audit.primary)] == [repr(measure) for measure in audit.measures]
    return has_one_question and len(audit.tilts) <= MOST_ROWS_OF_CHART


def _card_figures(audit: Audit) -> Iterator[Figure]:
    for pair in audit.pairs[:MOST_PAIRS]:
        if answers := _primary_answers(audit, pair):
            figure = card_figure(audit, pair, answers)
            is_drawn = len(audit.runs) * len(audit.pairs) <= MOST_ROWS_OF_CHART
            yield replace(figure, only="paper") if is_drawn else figure


def _table(audit: Audit) -> Iterator[Section]:
    if audit.measures:
        yield Section("table", "Every number", (), (group_table(audit),), short_title="Numbers")


def _effectiveness(audit: Audit) -> Iterator[Section]:
    if not audit.tilted_pairs:
        return
    lead = (
        "A ranker that tilts is not a poor one, and a level one is not a good one: both are to be "
        "looked at together."
    )
    figures = tuple(effectiveness_figure(audit, pair) for pair in drawn_pairs(audit))
    title = "Effectiveness beside tilt"
    yield Section("effectiveness", title, (lead,), figures, short_title="Effectiveness")


def _card(audit: Audit) -> Iterator[Section]:
    if not audit.card:
        return
    lead = (
        "“Does it favour one side?” can be asked in several ways, and the answers need not "
        "agree: a ranker can put one side's right answers higher and yet fill the page with the "
        "other's."
    )
    yield Section(
        "card",
        "Five questions, one run",
        (lead, *conflict_sentences(audit)),
        (card_table(audit),),
        short_title="Five questions",
    )


def _lists(opened: LoadedAudit, budget: int) -> Iterator[Section]:
    if opened.audit.pairs:
        yield ranks_section(opened)
    yield _queries(opened, budget)


def _queries(opened: LoadedAudit, budget: int) -> Section:
    query_explorer = explorer(opened, budget=budget) if budget else None
    if query_explorer is not None:
        lead = _queries_lead(opened.audit, has_texts=bool(query_explorer.texts))
        return Section("queries", "Queries", (lead, *opened.notes), (query_explorer,))
    if not budget:
        return Section(
            "queries",
            "Queries",
            ("Queries, ranked lists and texts are left out, as was asked for.",),
        )
    reasons = opened.notes or (NOT_OPENED,)
    lead = "Queries, ranked lists and texts are left out."
    return Section("queries", "Queries", (lead, *reasons))


def _queries_lead(audit: Audit, *, has_texts: bool) -> str:
    """Say what the explorer shows; nothing about texts where there are none."""
    if not audit.pairs:
        return "How well each query is answered, and what was found for it."
    if audit.tilts and not any(tilt.twins for tilt in audit.tilts):
        lead, texts = "Which queries make the difference", "what the texts say"
    else:
        lead, texts = "Which queries make the tilt", "what the two texts look like side by side"
    if not has_texts:
        return f"{lead}, and what was found for each."
    return f"{lead}, what was found for each, and {texts}."


def _confounds(audit: Audit) -> Iterator[Section]:
    if not audit.confounds:
        return
    lead = (
        "Who wrote a text is not all in which the sides differ. "
        "A ranker may respond to any of these."
    )
    yield Section("confounds", "What else differs", (lead,), (confound_table(audit.confounds),))


def _controls(audit: Audit) -> Iterator[Section]:
    if not audit.controls:
        return
    lead = (
        "The same audit once more with what else differs between twins taken away: "
        "does the tilt stay?"
    )
    changes = [f"{sentence}." for sentence in control_sentences(audit)] or [
        "No control changes a verdict on the primary measure."
    ]
    blocks: tuple[Block, ...] = (
        PageBlocks(make=partial(_control_figures, audit)),
        control_table(audit),
    )
    yield Section("controls", "Raw and controlled", (lead, *changes), blocks)


def _control_figures(audit: Audit) -> Iterator[Figure]:
    for pair in drawn_pairs(audit):
        yield control_figure(audit, pair)


def _checks(audit: Audit) -> Iterator[Section]:
    table = check_table(audit)
    if table is not None:
        yield Section("checks", "Other tests", (), (table,))


def _provenance(audit: Audit) -> Iterator[Section]:
    yield provenance(audit.spec, note_sentences(audit.notes))


def drawn_pairs(audit: Audit) -> tuple[Pair, ...]:
    """Choose the pairs of groups to draw: all of a few, else those that tilt most clearly."""
    pairs = audit.tilted_pairs
    if len(pairs) <= MOST_PAIRS:
        return pairs
    clearness = dict.fromkeys(pairs, -1.0)
    for tilt in audit.tilts:
        size = abs(tilt.value - tilt.neutral)
        if tilt.measure == repr(audit.primary_measure) and size > 0:
            pair = tilt.a, tilt.b
            distance = size / tilt.error if tilt.error else np.inf
            clearness[pair] = max(clearness[pair], distance if tilt.has_interval else 0.0)
    clearest = set(sorted(pairs, key=lambda pair: -clearness[pair])[:MOST_PAIRS])
    return tuple(pair for pair in pairs if pair in clearest)


def tilt_figure(audit: Audit, pair: Pair) -> Figure:
    """Draw Relative Δ of every ranker and measure between two groups."""
    has_room = len(audit.runs) * (len(audit.measures) + 1) <= MOST_ROWS
    drawn = audit.measures if has_room else [audit.primary_measure]
    measures = [repr(measure) for measure in drawn]
    name = f"Relative Δ of {measures[0]}" if len(measures) == 1 else "Relative Δ"
    marks = {}
    for run in audit.runs:
        tilts = [tilt for tilt in _tilts(audit, run, pair) if tilt.measure in measures]
        marks[run] = [tilt_mark(tilt, audit.margin_points) for tilt in tilts]
    return _intervals(audit, pair, name, marks, x="Relative Δ, %")


def control_figure(audit: Audit, pair: Pair) -> Figure:
    """Draw Relative Δ on the primary measure raw and under each control."""
    marks = defaultdict[str, list[Mark]](list)
    for controlled in audit.controls:
        if (controlled.a, controlled.b) == pair and controlled.tilts:
            tilt = controlled.tilts[audit.primary_index]
            mark = tilt_mark(tilt, audit.margin_points, controlled.control)
            marks[controlled.run].append(mark)
    name = f"Relative Δ of {audit.primary_measure!r}"
    return _intervals(audit, pair, f"{name}, raw and controlled", marks, x=f"{name}, %")


def _primary_answers(audit: Audit, pair: Pair) -> list[Effect]:
    """Return every run's answer to the primary question of the card; none where it has no sides."""
    return [
        effect
        for effect in audit.card
        if (effect.a, effect.b) == pair
        and effect.estimand == audit.primary
        and effect.estimand.sided
    ]


def card_figure(audit: Audit, pair: Pair, answers: Sequence[Effect]) -> Figure:
    """Draw what verdicts rest on where nothing is judged, such as twins head to head."""
    name, unit = answers[0].name, answers[0].estimand.suffix.strip() or "points"
    marks = {effect.run: [_answer_mark(effect)] for effect in answers}
    return _intervals(audit, pair, name, marks, x=f"{name}, {unit}", level=0.0)


def _intervals(
    audit: Audit,
    pair: Pair,
    title: str,
    marks: Mapping[str, Sequence[Mark]],
    *,
    x: str,
    level: float | None = None,
) -> Figure:
    """Draw values with their intervals, and say how to read them."""
    drawn = list(chain.from_iterable(marks.values()))
    has_bands = any(mark.band != (0.0, 0.0) for mark in drawn)
    has_grey = any(known_size(mark.detectable) and not mark.is_detected for mark in drawn)
    grey = f" Grey: {_UNSEEN}." if has_grey else ""
    margin = audit.margin_points if level is None else level
    middle, rest = "0", ""
    if has_bands:
        margin, middle, rest = 0.0, "the hatched band", _BAND
    shaded = f" Dotted: ±{margin:g} points, which count as level." if margin else ""
    says = (
        f"Right of {middle}: {pair[0]}; left: {pair[1]}. Line: 95 % interval.{grey}{shaded}{rest}"
    )
    drawing = forest(marks, x=x, sides=pair, margin=margin, names=sides_named(pair))
    return Figure(f"{title}, {pair[0]} against {pair[1]}", says, drawing)


def tilt_mark(tilt: Effect, level: float, label: str = "") -> Mark:
    """Turn a Relative Δ into a mark of a figure."""
    return Mark(
        label=label or tilt.measure,
        value=tilt.value,
        low=tilt.low,
        high=tilt.high,
        tone=VERDICT_TONES[tilt.verdict(level)],
        detectable=tilt.detectable,
        neutral=tilt.neutral,
        band=(0.0, 0.0) if tilt.twins else (tilt.null_low, tilt.null_high),
        hover=tuple(_tilt_hover(tilt, label)),
    )


def _tilt_hover(tilt: Effect, label: str) -> Iterator[str]:
    """Say a Relative Δ in lines: value, interval, test, and what could have been detected."""
    yield ", ".join(word for word in (tilt.run, label, tilt.measure) if word)
    if isnan(tilt.value):
        yield "Relative Δ undefined"
    else:
        ends = f" {interval(tilt.low, tilt.high)}" if tilt.has_interval else ""
        yield f"Relative Δ {signed(tilt.value)} %{ends}"
        queries = counted(tilt.queries, "query", "queries")
        yield ", ".join(word for word in (corrected_p(tilt), queries) if word)
        # Nothing where the queries do not spread at all, or where a tilt was detected.
        if known_size(tilt.detectable) and not tilt.favours:
            yield _detectable_words(tilt.detectable)
    if not tilt.twins:
        yield f"random labels {interval(tilt.null_low, tilt.null_high)}"


def _detectable_words(detectable: float) -> str:
    if detectable > _LARGEST_TILT:
        return "could not detect any tilt"
    return f"could detect {detectable:.0f} % or more"


def _answer_mark(effect: Effect) -> Mark:
    """Turn an answer of the card into a mark, in percent."""
    estimand = effect.estimand
    ends = ""
    if effect.has_interval:
        ends = f" [{estimand.amount(effect.low)}, {estimand.amount(effect.high)}]"
    answer = f"{effect.name} {estimand.answer(effect.value)}{ends}"
    lines = [line for line in (effect.run, answer, corrected_p(effect)) if line]
    band = (0.0, 0.0)
    if effect.banded:
        band = (100 * effect.null_low, 100 * effect.null_high)
    return Mark(
        label=effect.name,
        value=100 * effect.value,
        low=100 * effect.low,
        high=100 * effect.high,
        tone=VERDICT_TONES[effect.favours or "inconclusive"],
        detectable=100 * effect.detectable,
        neutral=100 * effect.neutral,
        band=band,
        hover=tuple(lines),
    )


def effectiveness_figure(audit: Audit, pair: Pair) -> Figure:
    """Draw Relative Δ against effectiveness, both on the primary measure."""
    name, (a, b) = repr(audit.primary_measure), pair
    means = audit.by_group().filter(group=ALL, measure=name)
    tilts = {run: _tilts(audit, run, pair)[audit.primary_index] for run in audit.runs}
    points = []
    for run, mean in means.select("run", 100 * pl.col("mean")).iter_rows():
        _, *lines = _tilt_hover(tilts[run], run)
        mark = Mark(
            label=run,
            value=tilts[run].value,
            low=tilts[run].low,
            high=tilts[run].high,
            tone=VERDICT_TONES[tilts[run].verdict(audit.margin_points)],
            hover=(run, f"{name} {decimal(mean)} %", *lines),
        )
        points.append(ScatterPoint(mark, mean))
    are_twins = all(tilt.twins for tilt in tilts.values())
    heights = (
        f"the higher, the more for {a}. Level is what random labels give (see the table), not 0."
    )
    if are_twins:
        heights = f"above 0 relevant {a} stands higher, below 0 {b}."
    undefined = [point.mark.label for point in points if isnan(point.x) or isnan(point.mark.value)]
    undrawn = ""
    if undefined:
        undrawn = f" Not drawn, because a value is undefined: {', '.join(undefined)}."
    return Figure(
        f"{name} over all documents, and how far it tilts between {a} and {b}",
        f"The farther right, the higher the mean; {heights} Lines: 95 % intervals.{undrawn}",
        scatter(
            points,
            x=f"{name} over all documents, %",
            y=f"Relative Δ of {name}, %",
            margin=audit.margin_points if are_twins else 0.0,
            names=sides_named(pair),
        ),
        folded=True,
    )


def _tilts(audit: Audit, run: str, pair: Pair) -> list[Effect]:
    return [tilt for tilt in audit.tilts if tilt.run == run and (tilt.a, tilt.b) == pair]
