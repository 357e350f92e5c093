"""The document of a factorial experiment on texts: what each change does to ranks or citations.

A *factor* is a change of a text, such as a shorter one, with a level ``low`` (usually the original)
and ``high``; a *version* is a text with a level of each factor. The *estimands* are the outcomes
that are compared, such as the rank of a version. An *effect* is the mean outcome at high minus that
at low. An *interaction* is what two factors do together beyond the sum of both. The *source* is the
factor of who wrote the text. *Adoption* is the share of other documents with the same edit.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from operator import attrgetter

from ranktilt.explaining.factors.result import (
    UNITS,
    AdoptionEffect,
    FactorEffect,
    FactorEffects,
    Question,
    SourceEffect,
)
from ranktilt.reporting.document import (
    Block,
    Cell,
    Column,
    ColumnSpec,
    Document,
    Figure,
    PageBlocks,
    Section,
    Sentence,
    Table,
    make_table,
    name_column,
    text_column,
)
from ranktilt.reporting.figures.charts import Mark, forest
from ranktilt.reporting.headline import headline
from ranktilt.reporting.interval_chart import (
    MOST_ROWS,
    IntervalChart,
    IntervalMark,
    IntervalReading,
    IntervalRow,
    interval_chart,
)
from ranktilt.reporting.numbers import (
    decimal,
    estimate_cell,
    interval,
    number_cells,
    p_value,
    percent,
    signed,
    with_commas,
)
from ranktilt.reporting.provenance import provenance, titled
from ranktilt.reporting.sentences.explaining.factors import (
    by_size,
    factor_sentences,
    meaning_sentence,
)
from ranktilt.reporting.sentences.explaining.next_steps import factors_steps
from ranktilt.reporting.sentences.explaining.treatments import treatment
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.reporting.sentences.verdicts import INTERVAL_CAUTION

_QUESTIONS = {
    "together": "{} together",
    "alone": "source, other factors not fixed",
    "others held": "source, other factors held fixed",
    "others as is": "source, where all others are as is",
}
"""Title of the row of each question about the source."""

# How outcomes are counted, for the legends of ranks and of citations.
_RANK_LEGEND = (
    "Ranks are among all other documents, each in a random one of its versions; versions not "
    "retrieved rank below all others."
)
_CITATION_LEGEND = (
    "Cited: percent of the answers that cite a version of those that read it; cited first: before "
    "all others. Versions are compared within a document and query, or within a query where it is "
    "asked once."
)


def view(effects: FactorEffects) -> Document:
    """Return the document of effects of factors."""
    sentences = [Sentence(f"{text}.", emphasis="strong") for text in factor_sentences(effects)]
    return Document(
        kind=titled("Causes on", effects.spec),
        headline=headline(effects),
        sections=tuple(_sections(effects)),
        sentences=tuple(sentences),
        meaning=meaning_sentence(effects),
        first_figure=PageBlocks(make=partial(_first_figure, effects)),
        next_steps=factors_steps(effects),
        legend=tuple(_legend(effects)),
        notes=note_sentences(effects.notes),
    )


def _sections(effects: FactorEffects) -> Iterator[Section]:
    """Yield the sections on effects, on the source, on adoption, on factors, and on inputs."""
    effect_blocks: tuple[Block, ...] = (
        _effect_table(effects),
        PageBlocks(make=partial(_effect_figure, effects)),
    )
    outcome = "a citation" if effects.of_citations else "a rank"
    question = f"What does each change do to {outcome}, and how do changes interact?"
    yield Section("effects", question, blocks=effect_blocks, short_title="Effects")
    if effects.sources:
        question = "Is it who wrote a text, or what comes with it?"
        yield Section("source", question, blocks=(_source_table(effects),), short_title="Source")
    if effects.adoptions:
        question = "Does an edit still pay as more documents make it?"
        yield Section(
            "adoption", question, blocks=(_adoption_table(effects),), short_title="Adoption"
        )
    yield Section(
        "factors", "What was changed?", blocks=(_factor_table(effects),), short_title="Factors"
    )
    yield provenance(effects.spec, note_sentences(effects.notes))


def _effect_table(effects: FactorEffects) -> Table:
    """Return the table with a row for each effect and a column for each estimand."""
    effect_of = {(row.ranker, row.effect, row.estimand): row for row in effects.rows}
    columns: list[ColumnSpec] = [(name_column("effect"), attrgetter("effect"))]
    for index, estimand in enumerate(effects.estimands):
        unit = UNITS[estimand]
        # The first estimand stays; of the others a narrow terminal leaves out the last first.
        drop_order = max(4 - index, 0) if index else 0
        column = Column(f"{unit.name}, {unit.unit}", hint=unit.meaning, drop_order=drop_order)
        columns.append((column, partial(_effect_cell, effect_of, estimand)))
        if estimand == effects.primary:
            columns.append(
                (Column("corrected p", drop_order=6), number_cells("p_corrected", p_value))
            )
            columns.append(
                (Column("detectable", drop_order=5), number_cells("detectable", decimal))
            )
    return make_table(
        "Effects, high minus low",
        _sorted_rows(effects),
        columns,
        group_of=lambda row: (row.ranker,),
        group_titles=("engine" if effects.of_citations else "ranker",),
        collapsed=True,
    )


def _sorted_rows(effects: FactorEffects) -> list[FactorEffect]:
    """Return the effects on the primary estimand, those of each ranker by size."""
    rows = list[FactorEffect]()
    for ranker in effects.rankers:
        rows += by_size(effects.of(effects.primary, ranker))
    return rows


def _effect_cell(
    effect_of: dict[tuple[str, str, str], FactorEffect], estimand: str, row: FactorEffect
) -> Cell:
    """Return the cell of a row's effect on one estimand; a dash where there is none.

    `effect_of` has the effects by ranker, name and estimand; `row` is that on the primary estimand.
    """
    effect = effect_of.get((row.ranker, row.effect, estimand))
    if effect is None:
        return Cell("–")
    show = partial(signed, digits=UNITS[estimand].digits)
    if effect.is_shown:
        return estimate_cell(effect, show, "*", neutral=0.0, emphasis="strong")
    return estimate_cell(effect, show, neutral=0.0)


def _first_figure(effects: FactorEffects) -> Iterator[IntervalChart]:
    """Draw what each factor does to a text, the largest effects of all rankers.

    Interactions of two factors are not drawn.
    """
    main_effects = by_size(row for row in effects.of(effects.primary) if not row.interaction)
    if not main_effects:
        return
    factors = {factor.name: factor for factor in effects.factors}
    unit = UNITS[effects.primary].unit
    rows = []
    for effect in main_effects[:MOST_ROWS]:
        reading = IntervalReading(
            mark=IntervalMark(value=effect.value, low=effect.low, high=effect.high),
            text=f"{signed(effect.value)} {unit} {interval(effect.low, effect.high)}",
            tone="" if effect.is_shown else "unsure",
        )
        note = effect.ranker if len(effects.rankers) > 1 else ""
        label = treatment(factors[effect.effect])
        rows.append(IntervalRow(label=label, readings=(reading,), note=note))
    drawn = ""
    if len(rows) < len(main_effects):
        drawn = f" Drawn: {len(rows)} of {len(main_effects)} effects, the largest."
    if effects.of_citations:
        title = "How often a text is cited with each change"
        sides = ("◀ less often", "more often ▶")
        unchanged = "cited as often as without the change"
    else:
        title = "What each change does to the rank of a text"
        sides = ("◀ costs ranks", "lifts it ▶")
        unchanged = "no change of rank"
    yield interval_chart(
        title,
        f"Black: {unchanged}. Line: 95 % interval. Grey: no effect is shown.{drawn}",
        rows,
        scale_titles=[unit],
        sides=sides,
    )


def _effect_figure(effects: FactorEffects) -> Iterator[Figure]:
    """Yield the figure of all effects on the primary estimand, those of each ranker by size."""
    marks = {}
    for ranker in effects.rankers:
        rows = by_size(effects.of(effects.primary, ranker))
        marks[ranker] = [
            Mark(
                label=row.effect,
                value=row.value,
                low=row.low,
                high=row.high,
                detectable=row.detectable,
            )
            for row in rows
        ]
    if effects.of_citations:
        title = "What each factor does to citations"
        description = (
            "Percent of the answers that cite a version, high minus low, with the 95 % interval; "
            "right of 0, the factor makes answers cite a text more often."
        )
    else:
        title = "What each factor does to the rank"
        description = (
            "Ranks that a version moves up, high minus low, with the 95 % interval; right of 0, "
            "the factor lifts a text."
        )
    drawing = forest(marks, x=UNITS[effects.primary].unit)
    yield Figure(title, description, drawing, collapsed=True)


def _source_table(effects: FactorEffects) -> Table:
    """Return the table of the effect of the source, alone and with the other factors held equal."""
    effect_of = {(row.ranker, row.question, row.estimand): row for row in effects.sources}
    columns: list[ColumnSpec] = [(name_column("effect"), _question_words)]
    for estimand in effects.estimands:
        unit = UNITS[estimand]
        make_cell = partial(_source_cell, effect_of, estimand)
        columns.append((f"{unit.name}, {unit.unit}", make_cell))
    return make_table(
        "Text by a model, before and after other factors are held fixed",
        [row for row in effects.sources if row.estimand == effects.primary],
        columns,
        note="Together: all high at once, minus the original; two-factor interactions cancel out.",
        group_of=lambda row: (row.ranker,),
        group_titles=("ranker",),
        collapsed=True,
    )


def _source_cell(
    effect_of: dict[tuple[str, Question, str], SourceEffect], estimand: str, row: SourceEffect
) -> Cell:
    """Return the cell of an effect of the source on one estimand; a dash where there is none."""
    effect = effect_of.get((row.ranker, row.question, estimand))
    if effect is None:
        return Cell("–")
    return estimate_cell(effect, partial(signed, digits=UNITS[estimand].digits), neutral=0.0)


def _question_words(row: SourceEffect) -> str:
    """Return the title of a row: which question about the source it answers."""
    return _QUESTIONS[row.question].format(", ".join(row.factors))


def _adoption_table(effects: FactorEffects) -> Table:
    """Return the table of exposure with an edit and without it, as more documents make the edit."""
    unedited = {
        (row.ranker, row.factor, row.share): row for row in effects.adoptions if not row.edited
    }

    def unedited_cell(row: AdoptionEffect) -> Cell:
        return estimate_cell(unedited[row.ranker, row.factor, row.share], signed)

    columns: list[ColumnSpec] = [
        (name_column("edit"), attrgetter("factor")),
        ("others that edit, %", number_cells("share", percent)),
        ("exposure with the edit", lambda row: estimate_cell(row, signed)),
        ("exposure without it", unedited_cell),
    ]
    note = (
        "Points of 100 / log2(1 + rank), 0 if not retrieved, compared with the unedited document "
        "when nobody edits."
    )
    return make_table(
        "Does an edit still pay as more documents make it?",
        [row for row in effects.adoptions if row.edited],
        columns,
        note=note,
        group_of=lambda row: (row.ranker,),
        group_titles=("ranker",),
        collapsed=True,
    )


def _factor_table(effects: FactorEffects) -> Table:
    """Return the table of factors, with what their two levels are."""
    columns: list[ColumnSpec] = [
        (name_column("factor"), attrgetter("name")),
        (text_column("low"), attrgetter("low")),
        (text_column("high"), attrgetter("high")),
        (
            text_column("effect reported"),
            lambda row: "yes" if row.analysed else "no: its check failed",
        ),
    ]
    return make_table("Factors", effects.factors, columns, audience="page", collapsed=True)


def _legend(effects: FactorEffects) -> Iterator[str]:
    """Yield sentences on the size of the experiment, on effects, and on their tests."""
    sizes = {}
    for row in effects.of(effects.primary):
        sizes[row.ranker] = (
            f"{with_commas(row.versions)} versions of {with_commas(row.origins)} documents under "
            f"{with_commas(row.queries)} queries"
        )
    if len(set(sizes.values())) == 1:
        yield f"{next(iter(sizes.values()))}."
    else:
        yield from (f"{ranker}: {size}." for ranker, size in sizes.items())
    yield (
        "An effect is the mean of the versions where a factor is high minus the mean of the "
        "others; above 0, it lifts a text. a × b is half of what a's effect gains when b is high. "
        f"{_CITATION_LEGEND if effects.of_citations else _RANK_LEGEND}"
    )
    family = "effects" if effects.of_citations else "rankers and effects"
    yield (
        f"* corrected p < .05 (Holm, over all {family} of an estimand). Intervals (95 "
        "%) and p: t, with errors clustered by query and document. Detectable: with 80 % power. "
        f"{INTERVAL_CAUTION}"
    )
