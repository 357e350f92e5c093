"""An experiment with contexts: what decides which of two is cited, and how much."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import isfinite
from operator import attrgetter

from ranktilt.citing.experiment.paired import EVEN
from ranktilt.citing.experiment.result import ContextEffect, ContextExperiment
from ranktilt.reporting.document import (
    Cell,
    Column,
    ColumnSpec,
    Document,
    PageBlocks,
    Section,
    Sentence,
    Table,
    make_table,
    name_column,
    text_column,
)
from ranktilt.reporting.headline import headline
from ranktilt.reporting.interval_chart import (
    IntervalChart,
    IntervalMark,
    IntervalReading,
    IntervalRow,
    interval_chart,
)
from ranktilt.reporting.numbers import (
    decimal,
    estimate_cell,
    number_cell,
    number_cells,
    p_value,
    percent,
    with_commas,
)
from ranktilt.reporting.provenance import provenance
from ranktilt.reporting.sentences.citing.context_experiment import (
    LABEL_WORDS,
    QUESTION_WORDS,
    effect_findings,
    effect_tone,
    experiment_meaning,
    experiment_steps,
    position_sentence,
)
from ranktilt.reporting.sentences.notes import note_sentences


def view(experiment: ContextExperiment) -> Document:
    """Return the document of an experiment with contexts."""
    notes = note_sentences(experiment.notes)
    a, b = experiment.groups
    sections = (
        Section("decides", "What decides which is cited", blocks=(_effect_table(experiment),)),
        Section("positions", "By position", blocks=(_position_table(experiment),)),
        provenance(experiment.spec, notes),
    )
    return Document(
        kind=f"What decides the citations of {experiment.model}",
        headline=headline(experiment),
        sections=sections,
        sentences=tuple(_sentences(experiment)),
        meaning=experiment_meaning(experiment),
        first_figure=PageBlocks(make=partial(_first_figure, experiment)),
        next_steps=tuple(experiment_steps(experiment)),
        legend=tuple(_legend(experiment)),
        notes=notes,
        sides=(a, b),
        names=experiment.groups,
    )


def _sentences(experiment: ContextExperiment) -> Iterator[Sentence]:
    """Say the verdict on each primary question, then what the position does."""
    for finding in effect_findings(experiment):
        yield Sentence(finding.sentence, finding.tone, "strong")
    for text in position_sentence(experiment):
        yield Sentence(text)


def _effect_table(experiment: ContextExperiment) -> Table:
    columns: list[ColumnSpec] = [
        (name_column("question"), _question),
        (text_column("labels", drop_order=1), _labels),
        (text_column("first, second"), _pair),
        (Column("cited alone, %", hint="share of the first where only one is cited"), _share),
        (Column("corrected p", drop_order=4), number_cells("p_corrected", p_value)),
        (Column("only first | second", drop_order=3), _alone),
        (Column("both | neither", drop_order=2), _alike),
        (Column("rates, %", hint="how often each is cited", drop_order=2), _rates),
        (Column("queries", drop_order=5), number_cells("queries", with_commas)),
    ]
    caption = "Where only one of two is cited: the first one's share, with 95 % intervals"
    return make_table(caption, experiment.effects, columns)


def _question(effect: ContextEffect) -> str:
    return QUESTION_WORDS[effect.question]


def _labels(effect: ContextEffect) -> str:
    return LABEL_WORDS[effect.labels]


def _pair(effect: ContextEffect) -> str:
    return f"{effect.a}, {effect.b}"


def _share(effect: ContextEffect) -> Cell:
    return estimate_cell(effect, decimal)


def _alone(effect: ContextEffect) -> str:
    """Print in how many answers only the first is cited, and only the second."""
    return f"{effect.only_a:,} | {effect.only_b:,}"


def _alike(effect: ContextEffect) -> str:
    """Print in how many answers both are cited, and neither is."""
    return f"{effect.both:,} | {effect.neither:,}"


def _rates(effect: ContextEffect) -> Cell:
    """Print how often each of the two is cited, in %."""
    text = f"{decimal(effect.rate_a)} | {decimal(effect.rate_b)}"
    return number_cell(effect.rate_a, lambda _rate: text)


def _position_table(experiment: ContextExperiment) -> Table:
    columns: list[ColumnSpec] = [
        (name_column("position"), _position),
        (Column("cited, %"), partial(estimate_cell, show=percent)),
        (Column("answers"), number_cells("answers", with_commas)),
    ]
    title = "How often the document at a position of the prompt is cited"
    return make_table(title, experiment.positions, columns, collapsed=True)


def _position(rate: object) -> str:
    return str(attrgetter("position")(rate))


def _first_figure(experiment: ContextExperiment) -> Iterator[IntervalChart]:
    """Draw the share of each question around 50 %."""
    rows = [_row(experiment, effect) for effect in experiment.effects if isfinite(effect.value)]
    if rows:
        yield interval_chart(
            "Where only one of two is cited, how often it is the first",
            "At 50 % nothing is favoured; the band is what counts as level.",
            rows,
            scale_titles=("share of the first, %",),
        )


def _row(experiment: ContextExperiment, effect: ContextEffect) -> IntervalRow:
    margin = experiment.margin
    reading = IntervalReading(
        mark=IntervalMark(value=effect.value, low=effect.low, high=effect.high),
        text=f"{decimal(effect.value)} % [{decimal(effect.low)}, {decimal(effect.high)}]",
        tone=effect_tone(experiment, effect),
        neutral=EVEN,
        band=(EVEN - margin, EVEN + margin),
    )
    label = {"version": "version", "label": "shown label", "position": "position"}
    note = f"{effect.a} against {effect.b}"
    if effect.question == "version" and effect.labels != "none":
        note = f"{note}, {effect.labels} labels"
    return IntervalRow(label=label[effect.question], readings=(reading,), note=note)


def _legend(experiment: ContextExperiment) -> Iterator[str]:
    if experiment.has_twins:
        yield (
            "Both versions of each document stand in one prompt, and in another with their "
            "positions exchanged; only queries answered in both orders count, each alike."
        )
    if {"true", "swapped"} <= set(experiment.shown_labels):
        yield (
            "Label: the same text in the same position, shown with its own author and with the "
            "other side's."
        )
    family = "version and label together, then all other questions"
    yield (
        "Answers that cite both or neither say nothing about a preference (McNemar). p is by "
        "inverting the interval, whose error goes by query and by document, and corrected "
        f"({experiment.correction.title()}): {family}. Intervals are one at a time."
    )
