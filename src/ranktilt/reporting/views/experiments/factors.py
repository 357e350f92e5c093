"""Effects of factors: one table, one forest plot, the source before and after, and edits that many make."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ranktilt.experiments.twins.result import (
    PRIMARY,
    UNITS,
    AdoptionEffect,
    FactorEffect,
    FactorEffects,
    SourceEffect,
)
from ranktilt.reporting.document import (
    Block,
    Cell,
    Column,
    ColumnOf,
    Document,
    Figure,
    Section,
    Sentence,
    Table,
    named,
    tabulated,
    worded,
)
from ranktilt.reporting.figures.charts import Mark, forest
from ranktilt.reporting.headline import headline
from ranktilt.reporting.numbers import count, decimal, estimate, number, p_value, percent, signed
from ranktilt.reporting.provenance import provenance, titled
from ranktilt.reporting.verdicts import ONE_AT_A_TIME

_QUESTIONS = {
    "together": "{} together",
    "alone": "source, before the others are held",
    "others held": "source, the others held",
    "others as is": "source, where all others are as is",
}


def view(found: FactorEffects) -> Document:
    """Return what is said of effects of factors."""
    blocks: list[Block] = [
        _effects(found),
        _forest(found),
        *_sources(found),
        *_adoptions(found),
        _factors(found),
    ]
    lead = (
        "What does each factor do to a document's rank, and how does one change what another does?",
    )
    return Document(
        kind=titled("Causes on", found.spec),
        headline=headline(found),
        sections=(
            Section("effects", "Effects of factors", lead, tuple(blocks)),
            provenance(found.spec, found.notes),
        ),
        sentences=tuple(
            Sentence(f"{sentence}.", emphasis="strong") for sentence in found.sentences
        ),
        legend=tuple(_legend(found)),
        notes=found.notes,
    )


def _effects(found: FactorEffects) -> Table:
    """Every effect, a row each, with the estimands beside each other."""
    rows = {(row.ranker, row.effect, row.estimand): row for row in found.rows}
    columns: list[ColumnOf] = [(named("effect"), lambda row: row.effect)]
    for place, estimand in enumerate(found.estimands):
        unit = UNITS[estimand]
        head = Column(
            f"{unit.name}, {unit.unit}", hint=unit.about, spare=max(4 - place, 0) if place else 0
        )
        columns.append((head, partial(_cell, rows, estimand)))
        if estimand == PRIMARY:
            columns.append(
                (Column("corrected p", spare=6), lambda row: number(row.p_corrected, p_value))
            )
            columns.append(
                (Column("detectable", spare=5), lambda row: number(row.detectable, decimal))
            )
    return tabulated(
        "Effects, high less low",
        found.of(PRIMARY),
        columns,
        group=lambda row: (row.ranker,),
        groups=("ranker",),
    )


def _cell(rows: dict[tuple[str, str, str], FactorEffect], estimand: str, of: FactorEffect) -> Cell:
    row = rows.get((of.ranker, of.effect, estimand))
    if row is None:
        return Cell("–")
    show = partial(signed, digits=UNITS[estimand].digits)
    return estimate(row, show, "*" * row.shown, emphasis="strong" if row.shown else "")


def _forest(found: FactorEffects) -> Figure:
    marks = {
        ranker: [
            Mark(row.effect, row.value, row.low, row.high, detectable=row.detectable)
            for row in found.of(PRIMARY, ranker)
        ]
        for ranker in found.rankers
    }
    says = "Ranks that a version moves up, high less low, with the 95 % interval; right of 0 the factor lifts a text."
    return Figure("What each factor does to the rank", says, forest(marks, x="ranks"))


def _sources(found: FactorEffects) -> Iterator[Table]:
    """The source before and after the other factors are held."""
    if not found.sources:
        return
    held = {(one.ranker, one.question, one.estimand): one for one in found.sources}
    columns: list[ColumnOf] = [(named("effect"), _question)]
    for estimand in found.estimands:
        unit = UNITS[estimand]

        def cell(one: SourceEffect, estimand: str = estimand, digits: int = unit.digits) -> Cell:
            other = held.get((one.ranker, one.question, estimand))
            return Cell("–") if other is None else estimate(other, partial(signed, digits=digits))

        columns.append((f"{unit.name}, {unit.unit}", cell))
    first = [one for one in found.sources if one.estimand == PRIMARY]
    note = "Together: all at once high, less the original; two-factor interactions cancel out."
    yield tabulated(
        "Text by a model, before and after the other factors are held",
        first,
        columns,
        note=note,
        group=lambda one: (one.ranker,),
        groups=("ranker",),
    )


def _question(one: SourceEffect) -> str:
    return _QUESTIONS[one.question].format(", ".join(one.factors))


def _adoptions(found: FactorEffects) -> Iterator[Table]:
    """What an edit does as ever more documents have it."""
    if not found.adoptions:
        return
    others = {(one.ranker, one.factor, one.share): one for one in found.adoptions if not one.edited}

    def without(one: AdoptionEffect) -> Cell:
        return estimate(others[one.ranker, one.factor, one.share], signed)

    columns: list[ColumnOf] = [
        (named("edit"), lambda one: one.factor),
        ("others that edit, %", lambda one: number(one.share, percent)),
        ("exposure with the edit", lambda one: estimate(one, signed)),
        ("exposure without it", without),
    ]
    note = "Points of 100 / log2(1 + rank), 0 where not retrieved, against the unedited document where nobody edits."
    edited = [one for one in found.adoptions if one.edited]
    yield tabulated(
        "Does an edit pay, as ever more documents have it?",
        edited,
        columns,
        note=note,
        group=lambda one: (one.ranker,),
        groups=("ranker",),
    )


def _factors(found: FactorEffects) -> Table:
    columns: list[ColumnOf] = [
        (named("factor"), lambda one: one.name),
        (worded("low"), lambda one: one.low),
        (worded("high"), lambda one: one.high),
        (worded("effects told"), lambda one: "yes" if one.analysed else "no: its check failed"),
    ]
    return tabulated("Factors", found.factors, columns, only="page")


def _legend(found: FactorEffects) -> Iterator[str]:
    """Say what the numbers are."""
    sizes = {}
    for row in found.of(PRIMARY):
        size = (count(row.versions), count(row.origins), count(row.queries))
        sizes[row.ranker] = "{} versions of {} documents under {} queries".format(*size)
    alike = len(set(sizes.values())) == 1
    for ranker, text in list(sizes.items())[: 1 if alike else None]:
        yield f"{text}." if alike else f"{ranker}: {text}."
    yield (
        "An effect is the mean of the versions in which a factor is high less that of the others, above 0 where it "
        "lifts a text; a × b is half of what a's effect gains where b is high. Ranks are those among all other "
        "documents, each in one of its versions, drawn at random; what is not retrieved stands below all that is."
    )
    yield (
        "* corrected p < .05 (Holm, over all rankers and effects of an estimand). Intervals (95 %) and p: t by errors "
        f"clustered by query and document. Detectable: with 80 % power. {ONE_AT_A_TIME}"
    )
