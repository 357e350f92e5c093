"""An audit of three or more groups: table and chart of how each ranker treats each group.

A group's *standing* is the mean tilt between it and each other group. Its *letters* form a compact
letter display: two groups that share a letter cannot be distinguished. The tilt is an *answer* to
the audit's *primary question*, the measure (*estimand*) that its verdicts rest on. Tilts within a
*margin* of neutral, the value that favours nobody, count as level. An answer with its interval is
an *effect*.
"""

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
    ColumnSpec,
    Section,
    Sentence,
    make_table,
    name_column,
    text_column,
)
from ranktilt.reporting.interval_chart import (
    IntervalChart,
    IntervalMark,
    IntervalReading,
    IntervalRow,
    interval_chart,
)
from ranktilt.reporting.numbers import number_cells, with_commas
from ranktilt.reporting.sentences.comparison.group_standings import display_sentence
from ranktilt.reporting.tones import Tone
from ranktilt.reporting.views.readings import scale_title

_MOST_GROUPS = {1: 10, 2: 6}
"""Most groups that a first screen has room for, by the number of rankers in its chart."""
_MOST_RANKERS = max(_MOST_GROUPS)
"""Most rankers that the chart has room for."""


def standing_sentences(audit: Audit) -> tuple[Sentence, ...]:
    """Return a sentence for each ranker that sums up its verdicts on all pairs of groups."""
    return tuple(
        Sentence(display_sentence(display), emphasis="strong") for display in group_displays(audit)
    )


def standing_section(audit: Audit) -> Iterator[Section]:
    """Yield a section with the standings of all groups; nothing for fewer than three groups."""
    displays = group_displays(audit)
    if not displays or audit.primary is None:
        return
    lead: ColumnSpec = (
        Column(
            f"against the others, {audit.primary.title}",
            hint="mean of its answers against each other group, minus the neutral value",
        ),
        partial(_lead_cell, audit.primary),
    )
    columns: list[ColumnSpec] = [
        (name_column("group"), attrgetter("group")),
        lead,
        (text_column("letters"), attrgetter("letters")),
        (Column("favoured over", drop_order=2), number_cells("over", with_commas)),
        (Column("others favoured over it", drop_order=1), number_cells("under", with_commas)),
    ]
    table = make_table(
        "Groups, the most favoured first",
        chain.from_iterable(display.standings for display in displays),
        columns,
        group_of=lambda standing: (standing.run,),
        group_titles=("ranker",),
        note="Groups that share a letter cannot be distinguished.",
    )
    yield Section("groups", "Which groups stand apart", blocks=(table,))


def standing_chart(audit: Audit, displays: Sequence[GroupDisplay]) -> IntervalChart:
    """Draw the standing of each group under each ranker, with a scale for each ranker.

    Of many rankers only the first are drawn; of many groups only the most and the least favoured
    by the first ranker.
    """
    drawn_displays = displays[:_MOST_RANKERS]
    groups = [standing.group for standing in drawn_displays[0].standings]
    most_groups = _MOST_GROUPS[len(drawn_displays)]
    if len(groups) > most_groups:
        half = most_groups // 2
        groups = [*groups[:half], *groups[-half:]]
    rows = []
    for group in groups:
        standings = [_standing_of(display, group) for display in drawn_displays]
        readings = tuple(_standing_reading(audit, standing) for standing in standings)
        rows.append(IntervalRow(label=group, readings=readings))
    sides = ("◀ others favoured", "favoured ▶")
    return interval_chart(
        f"Each group against the others: {scale_title(_primary_effect(audit))}",
        _chart_description(
            audit, displays, drawn_rankers=len(drawn_displays), drawn_groups=len(groups)
        ),
        rows,
        scale_titles=[display.run for display in drawn_displays],
        sides=sides,
        second_sides=sides,
        last_rows_on_phone=2,
    )


def _standing_of(display: GroupDisplay, group: str) -> GroupStanding:
    """Return the standing of a group under a display's ranker."""
    return next(standing for standing in display.standings if standing.group == group)


def _primary_effect(audit: Audit) -> Effect:
    """Return the first effect on the primary question: all of them share its unit and margin."""
    effects = (*audit.tilts, *audit.card)
    # An effect holds the name of its measure, which is the measure's repr.
    return next(effect for effect in effects if effect.measure == repr(audit.primary))


def _standing_reading(audit: Audit, standing: GroupStanding) -> IntervalReading:
    """Return the mark of a group on a ranker's scale, with its numbers and letters as text."""
    estimand = _primary_effect(audit).estimand
    scale = estimand.scale
    margin = scale * half_width(estimand, audit.margin)
    mark = IntervalMark(
        value=scale * standing.lead, low=scale * standing.low, high=scale * standing.high
    )
    low, high = (estimand.amount(end, sign=True) for end in (standing.low, standing.high))
    interval = f" [{low}, {high}]" if mark.has_interval else ""
    return IntervalReading(
        mark=mark,
        text=f"{estimand.amount(standing.lead, sign=True)}{interval} {standing.letters}",
        tone=_standing_tone(standing),
        band=(-margin, margin) if margin > 0 else None,
    )


def _standing_tone(standing: GroupStanding) -> Tone:
    """Return the tone of a group: ``first`` where it is favoured, ``second`` where others are.

    The verdicts on single pairs and the interval of the mean must agree on it; where they do not,
    and the interval excludes 0, the group has no tone.
    """
    if standing.over > standing.under and standing.low > 0:
        return "first"
    if standing.under > standing.over and standing.high < 0:
        return "second"
    return "unsure" if standing.low <= 0 <= standing.high else ""


def _chart_description(
    audit: Audit, displays: Sequence[GroupDisplay], *, drawn_rankers: int, drawn_groups: int
) -> str:
    """Say how the chart is read, and which rankers and groups it leaves out."""
    # The interval of a mean of answers is the mean of their intervals, which is rather too wide.
    description = "Line: interval, at least 95 %. "
    if half_width(_primary_effect(audit).estimand, audit.margin) > 0:
        description += f"Shaded: {margin_words(audit.margin)} around neutral. "
    description += "Groups that share a letter cannot be distinguished."
    group_count = len(displays[0].standings)
    if drawn_groups < group_count:
        drawn_words = f"the {drawn_groups // 2} most and least favoured of {group_count} groups"
        description += f" Drawn: {drawn_words}."
    if drawn_rankers < len(displays):
        description += f" Drawn: {drawn_rankers} of {len(displays)} rankers."
    return description


def _lead_cell(primary: Estimand, standing: GroupStanding) -> Cell:
    """Return the cell of a group's lead: its mean answer against the others, minus neutral."""
    return Cell(primary.amount(standing.lead), standing.lead)
