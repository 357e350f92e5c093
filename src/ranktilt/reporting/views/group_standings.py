"""A table of several groups, the most favoured first, with letters that tell who differs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain
from operator import attrgetter

from ranktilt.auditing.answer.group_standings import GroupStanding, group_displays
from ranktilt.auditing.result import Audit
from ranktilt.measures.base import Estimand
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
from ranktilt.reporting.numbers import count, number_of
from ranktilt.reporting.sentences.group_standings import display_sentence


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
            hint="mean of its answers against each other group, less what is neutral",
        ),
        partial(_lead, audit.primary),
    )
    columns: list[ColumnOf] = [
        (name_column("group"), attrgetter("group")),
        lead,
        (text_column("letters"), attrgetter("letters")),
        (Column("favoured over", spare=2), number_of("over", count)),
        (Column("others favoured over it", spare=1), number_of("under", count)),
    ]
    table = tabulated(
        "Groups, the most favoured first",
        chain.from_iterable(display.standings for display in displays),
        columns,
        group=lambda row: (row.run,),
        groups=("ranker",),
        note="Groups that share a letter cannot be distinguished.",
    )
    yield Section("groups", "Which groups stand apart", (), (table,))


def _lead(primary: Estimand, standing: GroupStanding) -> Cell:
    return Cell(primary.amount(standing.lead), standing.lead)
