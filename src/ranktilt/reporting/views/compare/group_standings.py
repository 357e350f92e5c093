"""A table of several groups, the most favoured first, with letters that tell who differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from operator import attrgetter

from ranktilt.auditing.answer.group_standings import GroupDisplay, GroupStanding, group_displays
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.result import Audit
from ranktilt.measures.base import Estimand
from ranktilt.measures.margin import half_width, margin_words
from ranktilt.reporting.document import (
    Cell,
    Column,
    ColumnOf,
    Section,
    Sentence,
    name_column,
    tabulated,
    text_column,
)
from ranktilt.reporting.interval_chart import (
    IntervalChart,
    IntervalMark,
    IntervalReading,
    IntervalRow,
    interval_chart,
)
from ranktilt.reporting.numbers import count, number_of
from ranktilt.reporting.sentences.comparison.group_standings import display_sentence
from ranktilt.reporting.tones import Tone
from ranktilt.reporting.views.readings import scale_title

_MOST_GROUPS = (10, 6)
"""Groups that a first screen has room for, by its number of rankers."""


def standing_sentences(audit: Audit) -> tuple[Sentence, ...]:
    """Return the sentences that sum up all pairs of groups of each run."""
    return tuple(
        Sentence(display_sentence(display), emphasis="strong") for display in group_displays(audit)
    )


def standing_section(audit: Audit) -> Iterator[Section]:
    """Show how each run treats several groups; nothing of two."""
    displays = group_displays(audit)
    if not displays or audit.primary is None:
        return
    lead: ColumnOf = (
        Column(
            f"against the others, {audit.primary.title}",
            hint="mean of its answers against each other group, minus the neutral value",
        ),
        partial(_lead, audit.primary),
    )
    columns: list[ColumnOf] = [
        (name_column("group"), attrgetter("group")),
        lead,
        (text_column("letters"), attrgetter("letters")),
        (Column("favoured over", drop_order=2), number_of("over", count)),
        (Column("others favoured over it", drop_order=1), number_of("under", count)),
    ]
    table = tabulated(
        "Groups, the most favoured first",
        chain.from_iterable(display.standings for display in displays),
        columns,
        group=lambda row: (row.run,),
        groups=("ranker",),
        note="Groups that share a letter cannot be distinguished.",
    )
    yield Section("groups", "Which groups stand apart", blocks=(table,))


def standing_chart(audit: Audit, displays: Sequence[GroupDisplay]) -> IntervalChart:
    """Draw each group against the others under the first rankers, of many groups the ends."""
    drawn = displays[: len(_MOST_GROUPS)]
    groups = [standing.group for standing in drawn[0].standings]
    most = _MOST_GROUPS[len(drawn) - 1]
    if len(groups) > most:
        groups = [*groups[: most // 2], *groups[-(most // 2) :]]
    rows = []
    for group in groups:
        standings = [_standing_of(display, group) for display in drawn]
        readings = tuple(_standing_reading(audit, standing) for standing in standings)
        rows.append(IntervalRow(label=group, readings=readings))
    scales = [display.run for display in drawn]
    sides = ("◀ others favoured", "favoured ▶")
    return interval_chart(
        f"Each group against the others: {scale_title(_answer(audit))}",
        _chart_says(audit, displays, drawn, len(groups)),
        rows,
        scales=scales,
        sides=sides,
        second_sides=sides,
        last_rows_on_phone=2,
    )


def _standing_of(display: GroupDisplay, group: str) -> GroupStanding:
    """Return the standing of a group."""
    return next(standing for standing in display.standings if standing.group == group)


def _answer(audit: Audit) -> Effect:
    """Return an answer to the primary question, of whichever pair."""
    effects = (*audit.tilts, *audit.card)
    return next(effect for effect in effects if effect.measure == repr(audit.primary))


def _standing_reading(audit: Audit, standing: GroupStanding) -> IntervalReading:
    """Return a group's mean answer against the others, with the letters that it has."""
    estimand = _answer(audit).estimand
    scale, half = estimand.scale, estimand.scale * half_width(estimand, audit.margin)
    mark = IntervalMark(
        value=scale * standing.lead, low=scale * standing.low, high=scale * standing.high
    )
    low, high = (estimand.amount(end, sign=True) for end in (standing.low, standing.high))
    ends = f" [{low}, {high}]" if mark.has_interval else ""
    return IntervalReading(
        mark=mark,
        text=f"{estimand.amount(standing.lead, sign=True)}{ends} {standing.letters}",
        tone=_standing_tone(standing),
        band=(-half, half) if half > 0 else None,
    )


def _standing_tone(standing: GroupStanding) -> Tone:
    """Return the tone of a group: favoured, or others over it, by verdicts and on the mean."""
    if standing.over > standing.under and standing.low > 0:
        return "first"
    if standing.under > standing.over and standing.high < 0:
        return "second"
    return "unsure" if standing.low <= 0 <= standing.high else ""


def _chart_says(
    audit: Audit, displays: Sequence[GroupDisplay], drawn: Sequence[GroupDisplay], groups: int
) -> str:
    """Say how the chart is read, and what it leaves out."""
    says = "Line: interval, at least 95 %. "
    if half_width(_answer(audit).estimand, audit.margin) > 0:
        says += f"Shaded: {margin_words(audit.margin)} around neutral. "
    says += "Groups that share a letter cannot be distinguished."
    total = len(displays[0].standings)
    if groups < total:
        says += f" Drawn: the {groups // 2} most and least favoured of {total} groups."
    if len(drawn) < len(displays):
        says += f" Drawn: {len(drawn)} of {len(displays)} rankers."
    return says


def _lead(primary: Estimand, standing: GroupStanding) -> Cell:
    """Print how far a group is ahead."""
    return Cell(primary.amount(standing.lead), standing.lead)
