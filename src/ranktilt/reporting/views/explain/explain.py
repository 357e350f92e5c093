"""An explanation: the question, numbers, effect sizes and findings of each probe."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ranktilt.data.notes.probes import GapAttributed
from ranktilt.errors import join_words
from ranktilt.explaining.base import EffectSize, ProbeFigure, ProbeResult, ProbeTable
from ranktilt.explaining.explanation import Explanation
from ranktilt.reporting.document import (
    Block,
    Cell,
    Column,
    Document,
    Figure,
    Lines,
    PageBlocks,
    Row,
    Section,
    Sentence,
    Table,
)
from ranktilt.reporting.figures.charts import Mark, curves, forest, histogram
from ranktilt.reporting.headline import by_size, headline
from ranktilt.reporting.interval_chart import IntervalChart
from ranktilt.reporting.numbers import DASH, always_signed, short_decimal
from ranktilt.reporting.provenance import provenance, titled
from ranktilt.reporting.sentences.explaining.attribution import attributed_gaps
from ranktilt.reporting.sentences.explaining.next_steps import explanation_steps
from ranktilt.reporting.sentences.explaining.probes import findings_words
from ranktilt.reporting.sentences.meaning import explanation_meaning
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.reporting.views.check.text_features import effect_chart, effect_figure, effect_table
from ranktilt.reporting.views.explain.gap_chart import ALL, GapMark, GapScale, gap_chart
from ranktilt.reporting.views.explain.theorem_chart import theorem_chart

_SMALL_PART = 0.1
_ALWAYS_PRINTED = 4
"""Columns that a narrow terminal prints besides the first; the last columns go first."""


def view(explanation: Explanation) -> Document:
    """Return the document of an explanation.

    It says first what goes with a gap, or what differs most, then lists all differences by size,
    then each probe.
    """
    effects = by_size(explanation)
    subject = "Explanation of" if explanation.attributed else "Texts of"
    return Document(
        kind=titled(subject, explanation.spec),
        headline=headline(explanation),
        sentences=tuple(_sentences(explanation, effects)),
        answer_first=True,
        meaning=explanation_meaning(explanation),
        first_figure=PageBlocks(make=partial(_first_figure, explanation, effects)),
        next_steps=explanation_steps(explanation),
        names=(explanation.reference, *explanation.sources),
        sections=tuple(_sections(explanation, effects)),
        legend=tuple(_legend(explanation)),
    )


def _first_figure(
    explanation: Explanation, effects: Sequence[EffectSize]
) -> Iterator[IntervalChart]:
    """Draw the clearest gap and its parts, or else the largest differences."""
    if explanation.attributed:
        yield _attributed_chart(explanation, attributed_gaps(explanation)[0])
        return
    for result in explanation.results:
        if not effects and result.probe == "theorem":
            yield from theorem_chart(result)
    yield from effect_chart(effects, explanation.reference)


def _attributed_chart(explanation: Explanation, attributed: GapAttributed) -> IntervalChart:
    """Draw a gap between twins; its parts too, unless twins were chosen by their scores."""
    parts = list[GapMark]()
    if not attributed.is_of_retrieved:
        parts = _part_marks(explanation, attributed)
    gap = GapMark(
        label=ALL,
        value=attributed.gap,
        low=attributed.low,
        high=attributed.high,
        is_shown=attributed.is_shown,
    )
    scale = GapScale(
        run=attributed.run,
        higher_above_0=attributed.reference,
        higher_below_0=attributed.source,
        unit="sd",
        digits=3,
    )
    return gap_chart(scale, gap, parts)


def _part_marks(explanation: Explanation, attributed: GapAttributed) -> list[GapMark]:
    """Return the parts of a gap by size, and what remains."""
    for result in explanation.results:
        for table, figure in zip(result.tables, result.figures, strict=False):
            if attributed in table.findings:
                marks = [_part_mark(name, ends) for name, ends in figure.series.items()]
                remains, *parts = marks
                return [*sorted(parts, key=lambda mark: -abs(mark.value)), remains]
    return []


def _part_mark(name: str, ends: Sequence[float]) -> GapMark:
    """Return a part of a gap, as a chart draws it."""
    value, low, high = ends
    is_shown = not low <= 0 <= high
    return GapMark(label=name, value=value, low=low, high=high, is_shown=is_shown)


def _sections(explanation: Explanation, effects: Sequence[EffectSize]) -> Iterator[Section]:
    """Answer the reader's question first, then show what each probe measured."""
    answers = [result for result in explanation.results if result.tables]
    yield from map(_section, answers)
    if effects:
        yield _differences(explanation, effects)
    for result in explanation.results:
        if result not in answers:
            yield replace(_section(result), collapsed=len(explanation.results) > 1)
    yield provenance(explanation.spec)


def _sentences(explanation: Explanation, effects: Sequence[EffectSize]) -> Iterator[Sentence]:
    """Say the largest difference, the others, and the findings of each probe; nothing twice."""
    in_headline = 0 if explanation.attributed else 1
    texts = [headline(explanation), *_other_differences(effects, in_headline)]
    for result in explanation.results:
        if result.tables:
            texts += [findings_words(table.findings) for table in result.tables]
        elif not effects:
            texts.append(result.summary)
    for index, text in enumerate(dict.fromkeys(texts)):
        if text:
            yield Sentence(text, emphasis="" if index else "strong")


def _other_differences(effects: Sequence[EffectSize], in_headline: int) -> Iterator[str]:
    """Say in which properties a difference is shown, and in which none is or could be.

    The first ones, as many as are in the headline, are not said again.
    """
    different = list(dict.fromkeys(effect.quantity for effect in effects if effect.is_shown))
    known = dict.fromkeys(effect.quantity for effect in effects if not math.isnan(effect.g))
    unknown = dict.fromkeys(effect.quantity for effect in effects if effect.quantity not in known)
    alike = [name for name in known if name not in different]
    if different[in_headline:]:
        lead = "Also different:" if in_headline else "The texts differ in"
        yield f"{lead} {join_words(different[in_headline:])}."
    if different and alike:
        yield f"No difference is shown in {join_words(alike)}."
    if unknown:
        yield f"Twins could not be compared in {join_words(list(unknown))}."


def _differences(explanation: Explanation, effects: Sequence[EffectSize]) -> Section:
    """List every effect size: properties by their largest one, the sources of each together."""
    properties = list(dict.fromkeys(effect.quantity for effect in effects))
    ordered = sorted(
        effects,
        key=lambda e: (properties.index(e.quantity), explanation.sources.index(e.source)),
    )
    blocks: tuple[Block, ...] = (
        effect_table("Effect sizes", ordered, explanation.reference),
        PageBlocks(make=partial(_effect_figures, ordered, explanation.reference)),
    )
    question = "How far do texts differ from their twins, in standard deviations?"
    return Section("differences", "What differs", lead=(question,), blocks=blocks, titled=True)


def _effect_figures(effects: Sequence[EffectSize], reference: str) -> Iterator[Figure]:
    """Yield the figure of effect sizes, where there is one."""
    figure = effect_figure(effects, reference)
    if figure is not None:
        yield figure


def _section(result: ProbeResult) -> Section:
    """Return a probe's numbers and notes, below its question."""
    blocks: list[Block] = [_table(table) for table in result.tables]
    remarks = tuple(_remarks(result))
    if remarks:
        is_note = all(remark.emphasis == "quiet" for remark in remarks)
        blocks.append(Lines(lines=remarks, collapsed=is_note))
    if result.rows and not result.tables:
        blocks.append(_table(_table_of_rows(result)))
    blocks.append(PageBlocks(make=partial(_figures, result)))
    question, mark, lead = result.question.partition("? ")
    return Section(
        name=result.probe,
        title=f"{question}{mark.strip()}",
        lead=(lead,) if lead else (),
        blocks=tuple(blocks),
        titled=True,
        short_title=result.probe,
    )


def _remarks(result: ProbeResult) -> Iterator[Sentence]:
    """Say the summary, unless a table or an effect size says the same, then notes and paper."""
    has_effects = any(not math.isnan(effect.g) for effect in result.effects)
    if not result.tables and not has_effects:
        yield Sentence(result.summary)
    for note in (*note_sentences(result.notes), result.citation):
        if note:
            yield Sentence(note, emphasis="quiet")


def _table_of_rows(result: ProbeResult) -> ProbeTable:
    """Return the rows of a probe that lays out no table itself as one."""
    decimals = {}
    for name in result.rows[0]:
        decimals[name] = _digits([row[name] for row in result.rows])
    return ProbeTable(title="Numbers", rows=tuple(result.rows), decimals=decimals, findings=())


def _figures(result: ProbeResult) -> Iterator[Figure]:
    """Yield the figures of a probe."""
    for figure in result.figures:
        # Without a query no document has a share of query words, and there is nothing to draw.
        if any(np.any(np.nan_to_num(values)) for values in figure.series.values()):
            yield _figure(figure, result.probe)


def _figure(figure: ProbeFigure, probe: str) -> Figure:
    """Draw what a probe measured."""
    layouts = {
        "perplexity": "dai-fig9",
        "spectrum": "dai-fig8" if len(figure.series) > 1 else "dai-fig7",
    }
    if figure.kind == "histogram":
        drawing = histogram(figure.series, figure.edges, x=figure.axis, y="share, %")
    elif figure.kind == "curve":
        drawing = curves(figure.series, x=figure.axis, y="ratio", levels=(1.0,))
    else:
        marks = []
        for name, (value, low, high) in figure.series.items():
            marks.append(Mark(label=name, value=value, low=low, high=high))
        drawing = forest({"": marks}, x=figure.axis, also_covered=figure.edges)
    return Figure(
        title=figure.title,
        description=findings_words(figure.findings),
        drawing=drawing,
        layout=layouts.get(probe.partition(":")[0], ""),
        collapsed=True,
    )


def _table(table: ProbeTable) -> Table:
    """Lay rows out; a number with its interval is one cell."""
    columns = [_column(table, index) for index in range(len(table.rows[0]))]
    rows = tuple(Row(tuple(_cells(table, row))) for row in table.rows)
    return Table(table.title, tuple(columns), rows, collapsed=True)


def _column(table: ProbeTable, index: int) -> Column:
    """Return the head of a column; the first one names the rows, and later ones may be left out."""
    titles = list(table.rows[0])
    title = titles[index]
    texts = [_text(table, row, title) for row in table.rows]
    return Column(
        title=title,
        number=not any(_is_word(text) for text in texts),
        header=index == 0,
        drop_order=max(len(titles) - index, 1) if index > _ALWAYS_PRINTED else 0,
    )


def _is_word(text: str) -> bool:
    """Tell whether a cell holds words, not a number."""
    return text.strip("–[")[:1].isalpha()


def _cells(table: ProbeTable, row: Mapping[str, Any]) -> Iterator[Cell]:
    """Yield the cells of a row."""
    for name, value in row.items():
        yield Cell(_text(table, row, name), value if isinstance(value, int | float) else None)


def _text(table: ProbeTable, row: Mapping[str, Any], name: str) -> str:
    """Write a value in the decimals of its column."""
    return _number(row[name], table.decimals.get(name, 2))


def _legend(explanation: Explanation) -> Iterator[str]:
    """Yield notes, and what numbers mean."""
    yield from note_sentences(explanation.notes)
    if any(result.effects for result in explanation.results):
        yield (
            "g: Hedges' g on twins, the mean difference in standard deviations; positive: more "
            f"than in {explanation.reference}. A difference between texts does not show that a "
            "ranker responds to it."
        )


def _digits(column: Sequence[Any]) -> int:
    """Return the decimals that suit all numbers of a column.

    None where all are whole numbers, three or more where some are small.
    """
    sizes = [abs(v) for v in column if isinstance(v, int | float) and v and math.isfinite(v)]
    if all(size == round(size) for size in sizes):
        return 0
    if min(sizes) >= _SMALL_PART:
        return 2
    return 3 if max(sizes) >= _SMALL_PART else 4


def _number(value: Any, digits: int) -> str:
    """Write a value, with an interval where it has one."""
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence):
        middle, *ends = (always_signed(number, digits) for number in value)
        return f"{middle} [{', '.join(ends)}]"
    return DASH if value is None else short_decimal(value, digits)
