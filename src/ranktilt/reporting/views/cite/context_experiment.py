"""The document of an experiment with contexts: what decides which of two documents a model cites.

A *context* is the list of documents in a prompt. The experiment compares pairs of documents that
differ in one thing: *version* (who wrote the text), *label* (the author that the prompt shows), or
*position* in the prompt. Its *effect* is the share of answers that cite the first, among those that
cite only one of the two; 50 % is neutral.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import isfinite

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
    position_sentences,
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
    """Yield the verdict on each primary question, and then the effect of the position."""
    for finding in effect_findings(experiment):
        yield Sentence(finding.sentence, finding.tone, "strong")
    for text in position_sentences(experiment):
        yield Sentence(text)


def _effect_table(experiment: ContextExperiment) -> Table:
    """Return the table with a row for each question and pair of versions, labels or positions."""
    columns: list[ColumnSpec] = [
        (name_column("question"), _question_words),
        (text_column("labels", drop_order=1), _label_words),
        (text_column("first, second"), _pair_words),
        (Column("cited alone, %", hint="share of the first where only one is cited"), _share_cell),
        (Column("corrected p", drop_order=4), number_cells("p_corrected", p_value)),
        (Column("only first | second", drop_order=3), _only_counts),
        (Column("both | neither", drop_order=2), _tie_counts),
        (Column("rates, %", hint="how often each is cited", drop_order=2), _rates_cell),
        (Column("queries", drop_order=5), number_cells("queries", with_commas)),
    ]
    caption = "Where only one of two is cited: the first one's share, with 95 % intervals"
    return make_table(caption, experiment.effects, columns)


def _question_words(effect: ContextEffect) -> str:
    """Return the words for an effect's question."""
    return QUESTION_WORDS[effect.question]


def _label_words(effect: ContextEffect) -> str:
    """Return the words for the labels that prompts showed."""
    return LABEL_WORDS[effect.labels]


def _pair_words(effect: ContextEffect) -> str:
    """Name the first and the second of the two that an effect compares."""
    return f"{effect.a}, {effect.b}"


def _share_cell(effect: ContextEffect) -> Cell:
    """Return the cell of the share of the first document, in percent with its interval."""
    return estimate_cell(effect, decimal, neutral=EVEN)


def _only_counts(effect: ContextEffect) -> str:
    """Print the number of answers that cite only the first document, and only the second."""
    return f"{effect.only_a:,} | {effect.only_b:,}"


def _tie_counts(effect: ContextEffect) -> str:
    """Print the number of answers that cite both documents, and neither of them."""
    return f"{effect.both:,} | {effect.neither:,}"


def _rates_cell(effect: ContextEffect) -> Cell:
    """Return the cell of how often each document is cited, in percent; sorted by the first."""
    return Cell(f"{decimal(effect.rate_a)} | {decimal(effect.rate_b)}", effect.rate_a)


def _position_table(experiment: ContextExperiment) -> Table:
    """Return the table of citation rates by position in the prompt."""
    columns: list[ColumnSpec] = [
        (name_column("position"), lambda rate: str(rate.position)),
        (Column("cited, %"), partial(estimate_cell, show=percent)),
        (Column("answers"), number_cells("answers", with_commas)),
    ]
    title = "How often the document at a position of the prompt is cited"
    return make_table(title, experiment.positions, columns, collapsed=True)


def _first_figure(experiment: ContextExperiment) -> Iterator[IntervalChart]:
    """Draw the share of the first document on each question, with 50 % as neutral."""
    rows = [
        _effect_row(experiment, effect) for effect in experiment.effects if isfinite(effect.value)
    ]
    if rows:
        yield interval_chart(
            "Where only one of two is cited, how often it is the first",
            "At 50 % nothing is favoured; the band is what counts as level.",
            rows,
            scale_titles=("share of the first, %",),
        )


_ROW_LABELS = {"version": "version", "label": "shown label", "position": "position"}
"""Label of a row of the figure, by its question."""


def _effect_row(experiment: ContextExperiment, effect: ContextEffect) -> IntervalRow:
    """Return the row of a question, with the margin around 50 % as its band."""
    margin = experiment.margin
    reading = IntervalReading(
        mark=IntervalMark(value=effect.value, low=effect.low, high=effect.high),
        text=f"{decimal(effect.value)} % [{decimal(effect.low)}, {decimal(effect.high)}]",
        tone=effect_tone(experiment, effect),
        neutral=EVEN,
        band=(EVEN - margin, EVEN + margin),
    )
    note = f"{effect.a} against {effect.b}"
    if effect.question == "version" and effect.labels != "none":
        note = f"{note}, {effect.labels} labels"
    return IntervalRow(label=_ROW_LABELS[effect.question], readings=(reading,), note=note)


def _legend(experiment: ContextExperiment) -> Iterator[str]:
    """Yield sentences on how prompts were made, and on how questions were tested."""
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
