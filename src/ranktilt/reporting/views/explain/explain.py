"""The document of an explanation: how texts of two sides differ, and what goes with a tilt.

A *probe* measures a property of texts, such as their perplexity, and says how each *source* differs
from its twins in the *reference* (a twin is the version of the same document). *Effect sizes* are
those differences in standard deviations (Hedges' g). An *attributed gap* is a difference in scores
between two sides that was split into parts by the properties that go with it.

*Theorem 4.1* (Dai et al., KDD 2024) concludes that rewrites are easier to predict for a language
model than their originals, from conditions on the model's distributions. All are differences in
nats per token.
"""

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
from ranktilt.reporting.interval_chart import (
    MOST_ROWS,
    IntervalChart,
    IntervalMark,
    IntervalReading,
    IntervalRow,
    interval_chart,
)
from ranktilt.reporting.numbers import DASH, always_signed, percent, short_decimal, signed
from ranktilt.reporting.provenance import provenance, titled
from ranktilt.reporting.sentences.explaining.next_steps import explanation_steps
from ranktilt.reporting.sentences.explaining.probes import (
    CONCLUSION,
    CONDITION_WORDS,
    EVERYWHERE,
    attributed_gaps,
    findings_words,
)
from ranktilt.reporting.sentences.meaning import explanation_meaning
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.reporting.tones import Tone
from ranktilt.reporting.views.check.text_features import effect_chart, effect_figure, effect_table
from ranktilt.reporting.views.explain.gap_chart import ALL, GapMark, GapScale, gap_chart

_CONDITION_TONES: dict[str, Tone] = {"yes": "good", "no": "bad", "undecided": "unsure"}
"""Tone by whether a condition of the theorem holds."""
_NATS_DIGITS = 3
"""Number of decimals of nats."""
_SMALL_NUMBER = 0.1
"""Size below which a number of a table needs more than two decimals."""
_ALWAYS_PRINTED = 4
"""Number of columns after the first that a narrow terminal never leaves out."""


def view(explanation: Explanation) -> Document:
    """Return the document of an explanation.

    It first says what goes with a gap, or what differs most. Then it lists all differences by their
    size, and after them what each probe measured.
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
            yield from _theorem_chart(result)
    yield from effect_chart(effects, explanation.reference)


def _theorem_chart(result: ProbeResult) -> Iterator[IntervalChart]:
    """Yield the chart of the conclusion and the conditions, the conclusion first.

    Of several sources the chart has the conclusion alone, for each of them.
    """
    rows = [row for row in result.rows if row["condition"] in CONDITION_WORDS]
    sources = list(dict.fromkeys(row["source"] for row in rows))
    if len(sources) > 1:
        yield _conclusion_chart(rows, len(sources))
        return
    rows.sort(key=lambda row: row["condition"] != CONCLUSION)
    yield interval_chart(
        "What theorem 4.1 concludes, and the conditions that it needs, in nats per token",
        "Line: 95 % interval. Right of 0, a condition holds; divergence must hold everywhere.",
        [_condition_row(row, CONDITION_WORDS[row["condition"]]) for row in rows],
        scale_titles=["nats per token"],
        sides=("◀ does not hold", "holds ▶"),
    )


def _conclusion_chart(rows: Sequence[Mapping[str, Any]], source_count: int) -> IntervalChart:
    """Draw how much easier each source's texts are to predict than their originals."""
    conclusions = [row for row in rows if row["condition"] == CONCLUSION]
    description = "Line: 95 % interval."
    if source_count > MOST_ROWS:
        description += f" Drawn: {MOST_ROWS} of {source_count} sources; the table has all."
    return interval_chart(
        "How much easier rewrites are to predict than originals, in nats per token",
        description,
        [_condition_row(row, row["source"]) for row in conclusions[:MOST_ROWS]],
        scale_titles=["nats per token"],
        sides=("◀ harder", "easier ▶"),
    )


def _condition_row(row: Mapping[str, Any], label: str) -> IntervalRow:
    """Return the row of a condition, with such a sign that the condition holds above 0.

    Divergence everywhere is a share of positions, so it has a text and no mark on the scale.
    """
    value, low, high = (float(row[field]) for field in ("value", "low", "high"))
    condition = str(row["condition"])
    if condition == CONCLUSION:  # rewrite − original, which the theorem says is below 0
        value, low, high = -value, -high, -low
    text = (
        f"{signed(value, _NATS_DIGITS)} [{signed(low, _NATS_DIGITS)}, {signed(high, _NATS_DIGITS)}]"
    )
    if condition == EVERYWHERE:
        text = f"at {percent(value)} % of positions"
        value = low = high = math.nan
    reading = IntervalReading(
        mark=IntervalMark(value=value, low=low, high=high),
        text=text,
        tone=_CONDITION_TONES[str(row["holds"])],
    )
    return IntervalRow(label=label, readings=(reading,))


def _attributed_chart(explanation: Explanation, attributed: GapAttributed) -> IntervalChart:
    """Draw a gap between twins and its parts.

    Of twins that a ranker retrieved, which were so chosen by their scores, only the gap is drawn.
    """
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
    """Return the parts of a gap by size, and what remains as the last; empty where there are none.

    They are the series of the figure that belongs to the table with this finding.
    """
    for result in explanation.results:
        for table, figure in zip(result.tables, result.figures, strict=False):
            if attributed in table.findings:
                marks = [_part_mark(name, numbers) for name, numbers in figure.series.items()]
                remains, *parts = marks
                return [*sorted(parts, key=lambda mark: -abs(mark.value)), remains]
    return []


def _part_mark(name: str, numbers: Sequence[float]) -> GapMark:
    """Return the mark of a part of a gap, from its value and both ends of its interval."""
    value, low, high = numbers
    is_shown = not low <= 0 <= high
    return GapMark(label=name, value=value, low=low, high=high, is_shown=is_shown)


def _sections(explanation: Explanation, effects: Sequence[EffectSize]) -> Iterator[Section]:
    """Yield the sections of probes with tables, then effect sizes, then those of other probes.

    A probe with tables, such as one that attributes a gap, answers the reader's question.
    """
    with_tables = [result for result in explanation.results if result.tables]
    yield from map(_probe_section, with_tables)
    if effects:
        yield _effect_section(explanation, effects)
    for result in explanation.results:
        if result not in with_tables:
            yield replace(_probe_section(result), collapsed=len(explanation.results) > 1)
    yield provenance(explanation.spec)


def _sentences(explanation: Explanation, effects: Sequence[EffectSize]) -> Iterator[Sentence]:
    """Yield the headline, all other differences, and the findings of each probe, none twice."""
    # The headline is a gap or, without one, the largest difference.
    count_in_headline = 0 if explanation.attributed else 1
    texts = [headline(explanation), *_other_differences(effects, count_in_headline)]
    for result in explanation.results:
        if result.tables:
            texts += [findings_words(table.findings) for table in result.tables]
        elif not effects:
            texts.append(result.summary)
    for index, text in enumerate(dict.fromkeys(texts)):
        if text:
            yield Sentence(text, emphasis="" if index else "strong")


def _other_differences(effects: Sequence[EffectSize], count_in_headline: int) -> Iterator[str]:
    """Say in which properties texts differ, in which no difference is shown, and which failed.

    The first properties that differ, as many as are in the headline, are left out.
    """
    different = list(dict.fromkeys(effect.quantity for effect in effects if effect.is_shown))
    defined = dict.fromkeys(effect.quantity for effect in effects if not math.isnan(effect.g))
    undefined = dict.fromkeys(
        effect.quantity for effect in effects if effect.quantity not in defined
    )
    undistinguished = [quantity for quantity in defined if quantity not in different]
    further = different[count_in_headline:]
    if further:
        lead = "Also different:" if count_in_headline else "The texts differ in"
        yield f"{lead} {join_words(further)}."
    if different and undistinguished:
        yield f"No difference is shown in {join_words(undistinguished)}."
    if undefined:
        yield f"Twins could not be compared in {join_words(list(undefined))}."


def _effect_section(explanation: Explanation, effects: Sequence[EffectSize]) -> Section:
    """Return the section on every effect size, ordered by property and then by source.

    `effects` are sorted by size, so a property stands where its largest effect is.
    """
    properties = list(dict.fromkeys(effect.quantity for effect in effects))
    ordered = sorted(
        effects,
        key=lambda effect: (
            properties.index(effect.quantity),
            explanation.sources.index(effect.source),
        ),
    )
    blocks: tuple[Block, ...] = (
        effect_table("Effect sizes", ordered, explanation.reference),
        PageBlocks(make=partial(_effect_figures, ordered, explanation.reference)),
    )
    question = "How far do texts differ from their twins, in standard deviations?"
    return Section("differences", "What differs", lead=(question,), blocks=blocks, titled=True)


def _effect_figures(effects: Sequence[EffectSize], reference: str) -> Iterator[Figure]:
    """Yield the figure of effect sizes; nothing where none is defined."""
    figure = effect_figure(effects, reference)
    if figure is not None:
        yield figure


def _probe_section(result: ProbeResult) -> Section:
    """Return the section of a probe: its numbers and remarks, below its question."""
    blocks: list[Block] = [_probe_table(table) for table in result.tables]
    remarks = tuple(_remarks(result))
    if remarks:
        are_notes = all(remark.emphasis == "quiet" for remark in remarks)
        blocks.append(Lines(lines=remarks, collapsed=are_notes))
    if result.rows and not result.tables:
        blocks.append(_probe_table(_table_of_rows(result)))
    blocks.append(PageBlocks(make=partial(_figures, result)))
    # The first question is the title; what follows it is the lead.
    question, question_mark, lead = result.question.partition("? ")
    return Section(
        name=result.probe,
        title=f"{question}{question_mark.strip()}",
        lead=(lead,) if lead else (),
        blocks=tuple(blocks),
        titled=True,
        short_title=result.probe,
    )


def _remarks(result: ProbeResult) -> Iterator[Sentence]:
    """Yield the summary, the notes, and the paper that the probe follows.

    There is no summary where a table or an effect size says the same.
    """
    has_effects = any(not math.isnan(effect.g) for effect in result.effects)
    if not result.tables and not has_effects:
        yield Sentence(result.summary)
    for note in (*note_sentences(result.notes), result.citation):
        if note:
            yield Sentence(note, emphasis="quiet")


def _table_of_rows(result: ProbeResult) -> ProbeTable:
    """Return the rows of a probe that has no tables as a single table."""
    decimals = {}
    for column in result.rows[0]:
        decimals[column] = _column_digits([row[column] for row in result.rows])
    return ProbeTable(title="Numbers", rows=tuple(result.rows), decimals=decimals, findings=())


def _figures(result: ProbeResult) -> Iterator[Figure]:
    """Yield the figures of a probe, without those whose values are all 0 or undefined."""
    for figure in result.figures:
        # Without a query no document has a share of query words, and there is nothing to draw.
        if any(np.any(np.nan_to_num(values)) for values in figure.series.values()):
            yield _probe_figure(figure, result.probe)


def _probe_figure(figure: ProbeFigure, probe: str) -> Figure:
    """Draw what a probe measured, as a histogram, curves, or values with intervals."""
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


def _probe_table(table: ProbeTable) -> Table:
    """Return a probe's table, with a number and its interval in one cell."""
    columns = [_probe_column(table, index) for index in range(len(table.rows[0]))]
    rows = tuple(Row(tuple(_row_cells(table, row))) for row in table.rows)
    return Table(table.title, tuple(columns), rows, collapsed=True)


def _probe_column(table: ProbeTable, index: int) -> Column:
    """Return the column at an index of a probe's table; the first one names the rows.

    A narrow terminal leaves out the last columns first.
    """
    titles = list(table.rows[0])
    title = titles[index]
    texts = [_cell_text(table, row, title) for row in table.rows]
    return Column(
        title=title,
        number=not any(_is_word(text) for text in texts),
        header=index == 0,
        drop_order=max(len(titles) - index, 1) if index > _ALWAYS_PRINTED else 0,
    )


def _is_word(text: str) -> bool:
    """Tell whether a cell's text begins with a letter, so that it is no number or interval."""
    return text.strip("–[")[:1].isalpha()


def _row_cells(table: ProbeTable, row: Mapping[str, Any]) -> Iterator[Cell]:
    """Yield the cells of a row of a probe's table."""
    for column, value in row.items():
        number = value if isinstance(value, int | float) else None
        yield Cell(_cell_text(table, row, column), number)


def _cell_text(table: ProbeTable, row: Mapping[str, Any], column: str) -> str:
    """Print a row's value in a column, with the decimals of the column."""
    return _value_text(row[column], table.decimals.get(column, 2))


def _legend(explanation: Explanation) -> Iterator[str]:
    """Yield the notes, and a sentence on effect sizes."""
    yield from note_sentences(explanation.notes)
    if any(result.effects for result in explanation.results):
        yield (
            "g: Hedges' g on twins, the mean difference in standard deviations; positive: more "
            f"than in {explanation.reference}. A difference between texts does not show that a "
            "ranker responds to it."
        )


def _column_digits(column: Sequence[Any]) -> int:
    """Return the number of decimals that suits all numbers of a column.

    0 for whole numbers, 2 for others, 3 where some are small, and 4 where all are.
    """
    numbers = [value for value in column if isinstance(value, int | float)]
    sizes = [abs(number) for number in numbers if number and math.isfinite(number)]
    if all(size == round(size) for size in sizes):
        return 0
    if min(sizes) >= _SMALL_NUMBER:
        return 2
    return 3 if max(sizes) >= _SMALL_NUMBER else 4


def _value_text(value: Any, digits: int) -> str:
    """Print a value of a probe's table: a text, a number, or a number with its interval."""
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence):
        estimate, low, high = (always_signed(number, digits) for number in value)
        return f"{estimate} [{low}, {high}]"
    return DASH if value is None else short_decimal(value, digits)
