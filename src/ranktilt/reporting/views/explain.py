"""An explanation: for each probe its question, numbers, effect sizes, and what they say."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from ranktilt.errors import join_words
from ranktilt.explaining.base import EffectSize, ProbeFigure, ProbeResult, ProbeTable
from ranktilt.explaining.explain import Explanation
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
from ranktilt.reporting.numbers import DASH, always_signed, short_decimal
from ranktilt.reporting.sentences.meaning import explanation_meaning
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.reporting.sentences.probes import findings_words
from ranktilt.reporting.views.text_features import effect_chart, effect_figure, effect_table

_SMALL = 0.1
_KEPT = 4
"""Columns that a narrow terminal keeps besides the first; the last ones go first."""


def view(found: Explanation) -> Document:
    """Return what is said of an explanation: what differs most, all differences by size, and each probe."""
    effects = by_size(found)
    first = headline(found)
    said = [first, *_others(effects)]
    for one in found.results:
        said += [findings_words(table.findings) for table in one.tables] or (
            [] if effects else [one.summary]
        )
    return Document(
        kind="Why",
        headline=first,
        sentences=tuple(
            Sentence(text, emphasis="" if place else "strong")
            for place, text in enumerate(dict.fromkeys(said))
            if text
        ),
        answer_first=True,
        meaning=explanation_meaning(found),
        hero=PageBlocks(make=partial(effect_chart, effects, found.reference)),
        names=(found.reference, *found.sources),
        sections=(
            *([_differences(found, effects)] if effects else []),
            *map(_section, found.results),
        ),
        legend=tuple(_legend(found)),
    )


def _others(effects: Sequence[EffectSize]) -> list[str]:
    """Say in which other properties a difference is shown, and in which none is."""
    shown = list(dict.fromkeys(e.what for e in effects if e.shown))
    rest = [what for what in dict.fromkeys(e.what for e in effects) if what not in shown]
    said = [f"Also different: {join_words(shown[1:])}."] if len(shown) > 1 else []
    return [*said, *([f"No difference is shown in {join_words(rest)}."] if shown and rest else [])]


def _differences(found: Explanation, effects: Sequence[EffectSize]) -> Section:
    """Every effect size: the properties by the largest one, their sources below each other."""
    places = {what: place for place, what in reversed(list(enumerate(e.what for e in effects)))}
    ordered = sorted(effects, key=lambda e: (places[e.what], found.sources.index(e.source)))
    blocks: list[Block] = [effect_table("Effect sizes", ordered, found.reference)]
    blocks.append(PageBlocks(make=partial(_effect_figures, ordered, found.reference)))
    question = "How far do texts differ from their twins, in standard deviations?"
    return Section("differences", "What differs", (question,), tuple(blocks), titled=True)


def _effect_figures(effects: Sequence[EffectSize], reference: str) -> Iterator[Figure]:
    figure = effect_figure(effects, reference)
    if figure is not None:
        yield figure


def _section(one: ProbeResult) -> Section:
    """A probe's numbers; its summary only where no table or effect size says the same."""
    told = bool(one.tables) or any(e.g == e.g for e in one.effects)
    said = [] if told else [Sentence(one.summary)]
    said += [
        Sentence(note, emphasis="quiet")
        for note in (*note_sentences(one.notes), one.citation)
        if note
    ]
    blocks: list[Block] = [*map(_table, one.tables), Lines(tuple(said))]
    if one.rows and not one.tables:
        decimals = {name: _digits([row[name] for row in one.rows]) for name in one.rows[0]}
        blocks.append(
            _table(
                ProbeTable(title="Numbers", rows=tuple(one.rows), decimals=decimals, findings=())
            )
        )
    blocks.append(PageBlocks(make=partial(_figures, one)))
    return Section(one.probe, one.probe, (one.question,), tuple(blocks), titled=True)


def _figures(result: ProbeResult) -> Iterator[Figure]:
    for figure in result.figures:
        yield _figure(figure, result.probe)


def _figure(one: ProbeFigure, probe: str) -> Figure:
    """Draw what a probe found."""
    kind = probe.partition(":")[0]
    layouts = {
        "perplexity": "dai-fig9",
        "spectrum": "dai-fig8" if len(one.series) > 1 else "dai-fig7",
    }
    if one.kind == "histogram":
        drawing = histogram(one.series, one.edges, x=one.axis, y="share, %")
    elif one.kind == "curve":
        drawing = curves(one.series, x=one.axis, y="ratio", levels=(1.0,))
    else:
        drawing = forest(
            {"": [Mark(name, row[0], row[1], row[2]) for name, row in one.series.items()]},
            x=one.axis,
            reached=one.edges,
        )
    layout = layouts.get(kind, "")
    return Figure(one.title, findings_words(one.findings), drawing, layout=layout, folded=True)


def _table(table: ProbeTable) -> Table:
    """Lay rows out; a number with its interval is one cell."""
    titles = list(table.rows[0])
    texts = [
        [_number(row[name], table.decimals.get(name, 2)) for name in titles] for row in table.rows
    ]
    columns = tuple(
        Column(
            title,
            number=not any(row[place].strip("–[")[:1].isalpha() for row in texts),
            header=not place,
            spare=max(len(titles) - place, 1) if place > _KEPT else 0,
        )
        for place, title in enumerate(titles)
    )
    values = [
        [value if isinstance(value, int | float) else None for value in row.values()]
        for row in table.rows
    ]
    rows = (Row(tuple(map(Cell, *both))) for both in zip(texts, values, strict=True))
    return Table(table.title, columns, tuple(rows), folded=True)


def _legend(found: Explanation) -> Iterator[str]:
    yield from note_sentences(found.notes)
    if any(one.effects for one in found.results):
        yield (
            "g: Hedges' g on twins, the mean difference in standard deviations; positive: more "
            "than in "
            f"{found.reference}. A difference between texts does not show that a ranker goes by it."
        )


def _digits(column: Sequence[Any]) -> int:
    """Decimals that suit all numbers of a column: none where they are whole, three or more where some are small."""
    sizes = [abs(v) for v in column if isinstance(v, int | float) and v and math.isfinite(v)]
    if all(size == round(size) for size in sizes):
        return 0
    return 2 if min(sizes) >= _SMALL else 3 if max(sizes) >= _SMALL else 4


def _number(value: Any, digits: int) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence):
        middle, *both = (always_signed(end, digits) for end in value)
        return f"{middle} [{', '.join(both)}]"
    return DASH if value is None else short_decimal(value, digits)
