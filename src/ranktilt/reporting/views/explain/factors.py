"""Effects of factors: a table, a forest plot, the source before and after, and edits."""

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
from ranktilt.reporting.sentences.verdicts import ONE_AT_A_TIME

_QUESTIONS = {
    "together": "{} together",
    "alone": "source, other factors not fixed",
    "others held": "source, other factors held fixed",
    "others as is": "source, where all others are as is",
}
"""Words for a question about the source."""

_AMONG_RANKS = (
    "Ranks are among all other documents, each in a random one of its versions; versions not "
    "retrieved rank below all others."
)
_FROM_ANSWERS = (
    "Cited: percent of the answers that cite a version of those that read it; cited first: before "
    "all others. Versions are compared within a document and query, or within a query where it is "
    "asked once."
)
"""What the outcomes are."""


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
    """Answer what each change does, then whether it is the source, and whether an edit pays."""
    effect_blocks: tuple[Block, ...] = (
        _effects(effects),
        PageBlocks(make=partial(_forest, effects)),
    )
    outcome = "a citation" if effects.of_citations else "a rank"
    question = f"What does each change do to {outcome}, and how do changes interact?"
    yield Section("effects", question, blocks=effect_blocks, short_title="Effects")
    sources = tuple(_sources(effects))
    if sources:
        question = "Is it who wrote a text, or what comes with it?"
        yield Section("source", question, blocks=sources, short_title="Source")
    adoptions = tuple(_adoptions(effects))
    if adoptions:
        question = "Does an edit still pay as more documents make it?"
        yield Section("adoption", question, blocks=adoptions, short_title="Adoption")
    yield Section(
        "factors", "What was changed?", blocks=(_factors(effects),), short_title="Factors"
    )
    yield provenance(effects.spec, note_sentences(effects.notes))


def _effects(effects: FactorEffects) -> Table:
    """Lay out a row for each effect, with a column for each estimand."""
    rows = {(row.ranker, row.effect, row.estimand): row for row in effects.rows}
    columns: list[ColumnSpec] = [(name_column("effect"), attrgetter("effect"))]
    for number_of_estimand, estimand in enumerate(effects.estimands):
        unit = UNITS[estimand]
        drop_order = max(4 - number_of_estimand, 0) if number_of_estimand else 0
        head = Column(f"{unit.name}, {unit.unit}", hint=unit.meaning, drop_order=drop_order)
        columns.append((head, partial(_cell, rows, estimand)))
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
    """Return the effects on the first estimand, of each ranker the largest first."""
    rows = list[FactorEffect]()
    for ranker in effects.rankers:
        rows += by_size(effects.of(effects.primary, ranker))
    return rows


def _cell(rows: dict[tuple[str, str, str], FactorEffect], estimand: str, of: FactorEffect) -> Cell:
    """Print an effect on one estimand; a dash where there is none."""
    row = rows.get((of.ranker, of.effect, estimand))
    if row is None:
        return Cell("–")
    show = partial(signed, digits=UNITS[estimand].digits)
    return estimate_cell(row, show, "*" * row.is_shown, emphasis="strong" if row.is_shown else "")


def _first_figure(effects: FactorEffects) -> Iterator[IntervalChart]:
    """Draw what each treatment does to a text, the largest effects of all rankers."""
    mains = by_size(row for row in effects.of(effects.primary) if not row.interaction)
    if not mains:
        return
    factors = {factor.name: factor for factor in effects.factors}
    unit = UNITS[effects.primary].unit
    rows = []
    for row in mains[:MOST_ROWS]:
        reading = IntervalReading(
            mark=IntervalMark(value=row.value, low=row.low, high=row.high),
            text=f"{signed(row.value)} {unit} {interval(row.low, row.high)}",
            tone="" if row.is_shown else "unsure",
        )
        note = row.ranker if len(effects.rankers) > 1 else ""
        label = treatment(factors[row.effect])
        rows.append(IntervalRow(label=label, readings=(reading,), note=note))
    drawn = (
        f" Drawn: {len(rows)} of {len(mains)} effects, the largest." if mains[MOST_ROWS:] else ""
    )
    title, sides = "What each change does to the rank of a text", ("◀ costs ranks", "lifts it ▶")
    unchanged = "no change of rank"
    if effects.of_citations:
        title, sides = (
            "How often a text is cited with each change",
            ("◀ less often", "more often ▶"),
        )
        unchanged = "cited as often as without the change"
    yield interval_chart(
        title,
        f"Black: {unchanged}. Line: 95 % interval. Grey: no effect is shown.{drawn}",
        rows,
        scale_titles=[unit],
        sides=sides,
    )


def _forest(effects: FactorEffects) -> Iterator[Figure]:
    """Yield the figure of all effects."""
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
    title = "What each factor does to the rank"
    says = (
        "Ranks that a version moves up, high minus low, with the 95 % interval; right of 0, the "
        "factor lifts a text."
    )
    if effects.of_citations:
        title = "What each factor does to citations"
        says = (
            "Percent of the answers that cite a version, high minus low, with the 95 % interval; "
            "right of 0, the factor makes answers cite a text more often."
        )
    drawing = forest(marks, x=UNITS[effects.primary].unit)
    yield Figure(title, says, drawing, collapsed=True)


def _sources(effects: FactorEffects) -> Iterator[Table]:
    """Lay out the effect of the source, alone and with the other factors equal."""
    if not effects.sources:
        return
    sources = {(row.ranker, row.question, row.estimand): row for row in effects.sources}
    columns: list[ColumnSpec] = [(name_column("effect"), _question)]
    for estimand in effects.estimands:
        unit = UNITS[estimand]
        cell = partial(_source_cell, sources, estimand)
        columns.append((f"{unit.name}, {unit.unit}", cell))
    yield make_table(
        "Text by a model, before and after other factors are held fixed",
        [row for row in effects.sources if row.estimand == effects.primary],
        columns,
        note="Together: all high at once, minus the original; two-factor interactions cancel out.",
        group_of=lambda row: (row.ranker,),
        group_titles=("ranker",),
        collapsed=True,
    )


def _source_cell(
    sources: dict[tuple[str, Question, str], SourceEffect], estimand: str, row: SourceEffect
) -> Cell:
    """Print an effect of the source on one estimand."""
    effect = sources.get((row.ranker, row.question, estimand))
    if effect is None:
        return Cell("–")
    return estimate_cell(effect, partial(signed, digits=UNITS[estimand].digits))


def _question(row: SourceEffect) -> str:
    """Return the words for a row's question."""
    return _QUESTIONS[row.question].format(", ".join(row.factors))


def _adoptions(effects: FactorEffects) -> Iterator[Table]:
    """Lay out the effect of an edit as ever more documents have it."""
    if not effects.adoptions:
        return
    without = {
        (row.ranker, row.factor, row.share): row for row in effects.adoptions if not row.edited
    }

    def without_edit(row: AdoptionEffect) -> Cell:
        return estimate_cell(without[row.ranker, row.factor, row.share], signed)

    columns: list[ColumnSpec] = [
        (name_column("edit"), attrgetter("factor")),
        ("others that edit, %", number_cells("share", percent)),
        ("exposure with the edit", lambda row: estimate_cell(row, signed)),
        ("exposure without it", without_edit),
    ]
    note = (
        "Points of 100 / log2(1 + rank), 0 if not retrieved, compared with the unedited document "
        "when nobody edits."
    )
    yield make_table(
        "Does an edit still pay as more documents make it?",
        [row for row in effects.adoptions if row.edited],
        columns,
        note=note,
        group_of=lambda row: (row.ranker,),
        group_titles=("ranker",),
        collapsed=True,
    )


def _factors(effects: FactorEffects) -> Table:
    """Return the table of factors."""
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
    """Say what the numbers are."""
    sizes = {}
    for row in effects.of(effects.primary):
        size = (with_commas(row.versions), with_commas(row.origins), with_commas(row.queries))
        sizes[row.ranker] = "{} versions of {} documents under {} queries".format(*size)
    alike = len(set(sizes.values())) == 1
    for ranker, text in list(sizes.items())[: 1 if alike else None]:
        yield f"{text}." if alike else f"{ranker}: {text}."
    yield (
        "An effect is the mean of the versions where a factor is high minus the mean of the "
        "others; above 0, it lifts a text. a × b is half of what a's effect gains when b is high. "
        f"{_FROM_ANSWERS if effects.of_citations else _AMONG_RANKS}"
    )
    family = "effects" if effects.of_citations else "rankers and effects"
    yield (
        f"* corrected p < .05 (Holm, over all {family} of an estimand). Intervals (95 "
        "%) and p: t, with errors clustered by query and document. Detectable: with 80 % power. "
        f"{ONE_AT_A_TIME}"
    )
