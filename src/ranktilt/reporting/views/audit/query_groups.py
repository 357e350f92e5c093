"""Answers by group of queries: a table, the tests of every question, and a figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from operator import attrgetter

from ranktilt.auditing.effects import Effect
from ranktilt.auditing.query_groups.result import (
    GroupAnswer,
    GroupDifference,
    QueryBreakdown,
    QueryGroup,
    RestDifference,
)
from ranktilt.auditing.result import Audit
from ranktilt.errors import counted
from ranktilt.reporting.document import (
    Block,
    Cell,
    Column,
    ColumnSpec,
    PageBlocks,
    Section,
    Sentence,
    Table,
    make_table,
    name_column,
    text_column,
)
from ranktilt.reporting.interval_chart import (
    MOST_ROWS,
    IntervalChart,
    IntervalReading,
    IntervalRow,
    interval_chart,
)
from ranktilt.reporting.numbers import DASH, number_cell, number_cells, p_value, with_commas
from ranktilt.reporting.sentences.query_groups import (
    breakdown_sentences,
    group_count_sentences,
    variance_sentence,
)
from ranktilt.reporting.tones import VERDICT_TONES
from ranktilt.reporting.views.readings import effect_reading, scale_title

_REST = "the group's distance from neutral, minus that of all other queries in a group"
_REST_P = "corrected for the number of groups"
_SHUFFLED = "the share of shuffled groups of queries that differ as much"
_WELCH = "Welch's test, with documents that queries share in its error"
_MOST_SCALES = 2
"""Rankers that the figure shows."""

_TEST_COLUMNS: tuple[ColumnSpec, ...] = (
    (Column("p, shuffled groups", hint=_SHUFFLED), number_cells("shuffle_p", p_value)),
    (Column("p, Welch", hint=_WELCH), number_cells("welch_p", p_value)),
    (Column("corrected p"), number_cells("p_corrected", p_value)),
)


@dataclass(frozen=True, kw_only=True)
class _GroupRow:
    """An answer on one group of queries, with what tells it from the others."""

    answer: GroupAnswer
    rest: RestDifference | None
    heading: tuple[str, ...]
    """Below what it is printed: ranker, pair of groups, question."""


def query_group_sentences(audit: Audit) -> tuple[Sentence, ...]:
    """Say whether groups of queries differ, and what else there is to know of them."""
    breakdown = audit.by_query
    if breakdown is None:
        return ()
    several = len({(row.a, row.b) for row in breakdown.variances}) > 1
    lines = [
        Sentence(text, emphasis="strong")
        for text in breakdown_sentences(breakdown, repr(audit.primary))
    ]
    lines += [Sentence(variance_sentence(row, several=several)) for row in breakdown.variances]
    counts = group_count_sentences(breakdown.column, breakdown.groups, breakdown.without_group)
    return (*lines, *map(Sentence, counts))


def query_group_section(audit: Audit) -> Iterator[Section]:
    """Show the answers by group of queries; nothing where there are none."""
    breakdown = audit.by_query
    if breakdown is None:
        return
    primary = repr(audit.primary)
    first = [answer for answer in breakdown.answers if answer.effect.measure == primary]
    others = [answer for answer in breakdown.answers if answer.effect.measure != primary]
    title = f"By group of queries: {breakdown.column}"
    blocks: list[Block] = [
        PageBlocks(make=partial(_figure, audit, breakdown)),
        _answer_table(audit, breakdown, first, caption=f"{title}, the primary question"),
    ]
    if others:
        table = _answer_table(audit, breakdown, others, caption=f"{title}, every other question")
        blocks.append(PageBlocks(make=lambda: [table]))
    blocks.append(PageBlocks(make=lambda: [difference_table(breakdown.differences)]))
    yield Section(
        "query-groups", title, blocks=tuple(blocks), collapsed=True, short_title="Groups of queries"
    )


def _answer_table(
    audit: Audit, breakdown: QueryBreakdown, answers: Sequence[GroupAnswer], *, caption: str
) -> Table:
    """Lay out answers by group, below their ranker, pair and question."""
    rows = [
        _GroupRow(
            answer=answer,
            rest=breakdown.rest_of(answer),
            heading=(_heading(audit, answer),),
        )
        for answer in _ordered(answers)
    ]
    columns: list[ColumnSpec] = [
        (name_column("group of queries"), attrgetter("answer.group")),
        (Column("queries"), number_cells("answer.effect.queries", with_commas)),
        ("answer", _value),
        (Column("corrected p", drop_order=2), number_cells("answer.effect.p_corrected", p_value)),
        (text_column("favours"), _favours),
    ]
    if any(row.rest is not None for row in rows):
        columns += [
            (Column("against the rest", hint=_REST, drop_order=4), _rest_value),
            (Column("p against the rest", hint=_REST_P, drop_order=3), _rest_p),
        ]
    return make_table(
        caption,
        rows,
        columns,
        group_of=attrgetter("heading"),
        group_titles=("answer to",),
        note=(
            "Each group is audited alone. p is corrected for all groups, rankers and pairs "
            f"({str(audit.spec['correction']).title()})."
        ),
    )


def _ordered(answers: Sequence[GroupAnswer]) -> list[GroupAnswer]:
    """Order answers by ranker, pair and question; groups keep their order in each."""
    order = dict[tuple[str, ...], int]()
    for answer in answers:
        order.setdefault(_question_of(answer), len(order))
    return sorted(answers, key=lambda answer: order[_question_of(answer)])


def _question_of(answer: GroupAnswer) -> tuple[str, ...]:
    effect = answer.effect
    return effect.run, effect.a, effect.b, effect.measure


def _heading(audit: Audit, answer: GroupAnswer) -> str:
    effect = answer.effect
    pair = f"{effect.a} | {effect.b}" if len(audit.pairs) > 1 else ""
    return ", ".join(filter(None, (effect.run, pair, effect.name)))


def _value(row: _GroupRow) -> Cell:
    """Print an answer with its interval, in the colour of the favoured side."""
    effect = row.answer.effect
    amount = effect.estimand.amount
    ends = (amount(effect.low), amount(effect.high)) if effect.has_interval else None
    tone = VERDICT_TONES[effect.favours] if effect.favours else ""
    return Cell(effect.estimand.answer(effect.value), effect.value, tone, ends=ends)


def _favours(row: _GroupRow) -> str:
    effect = row.answer.effect
    return effect.side(effect.favours) or DASH


def _rest_value(row: _GroupRow) -> Cell:
    if row.rest is None:
        return Cell(DASH)
    estimand = row.answer.effect.estimand
    return number_cell(row.rest.value, partial(estimand.amount, sign=True))


def _rest_p(row: _GroupRow) -> Cell:
    return Cell(DASH) if row.rest is None else number_cell(row.rest.p_corrected, p_value)


def difference_table(
    differences: Sequence[GroupDifference], names: Mapping[str, str] = {}
) -> Table:
    """Lay out the tests of whether groups of queries differ, a row a question.

    `names` has what questions are called, where that is not their notation.
    """
    pairs = {(row.a, row.b) for row in differences}
    columns: list[ColumnSpec] = [
        (name_column("question"), lambda row: names.get(row.question, row.question)),
        (Column("groups compared"), lambda row: number_cell(len(row.groups), with_commas)),
        *_TEST_COLUMNS,
    ]
    return make_table(
        "Do the groups differ?",
        differences,
        columns,
        group_of=lambda row: (_test_heading(row, several=len(pairs) > 1),),
        group_titles=("ranker",),
        note="The larger p of both tests counts; it is corrected for the number of questions.",
    )


def _test_heading(row: GroupDifference, *, several: bool) -> str:
    pair = f"{row.a} | {row.b}"
    if not row.run:
        return pair
    return f"{row.run}, {pair}" if several else row.run


def _figure(audit: Audit, breakdown: QueryBreakdown) -> Iterator[IntervalChart]:
    """Draw the answers to the primary question by group, of the first rankers and pair."""
    differences = [row for row in breakdown.differences if row.question == repr(audit.primary)]
    if not differences:
        return
    pair = differences[0].a, differences[0].b
    drawn = [row for row in differences if (row.a, row.b) == pair][:_MOST_SCALES]
    effects = [_effects_of(breakdown, row) for row in drawn]
    answered = set(chain.from_iterable(effects))
    groups = [group for group in breakdown.groups if group.name in answered]
    rows = [_chart_row(audit, group, effects) for group in groups[:MOST_ROWS]]
    if not rows:
        return
    first = next(iter(effects[0].values()), None) or next(iter(effects[-1].values()))
    titles = [row.run for row in drawn] if len(drawn) > 1 else [scale_title(first)]
    sides = (pair[1], pair[0]) if first.estimand.sided else ("", "")
    yield interval_chart(
        f"{scale_title(first)}, by group of queries",
        "Line: 95 % interval of each group alone. Shaded: the margin around neutral.",
        rows,
        scale_titles=titles,
        sides=sides,
        second_sides=sides,
    )


def _effects_of(breakdown: QueryBreakdown, difference: GroupDifference) -> dict[str, Effect]:
    """Return the answers that a test compares, by their group."""
    answers = breakdown.answers_to(difference)
    return {answer.group: answer.effect for answer in answers}


def _chart_row(
    audit: Audit, group: QueryGroup, effects: Sequence[Mapping[str, Effect]]
) -> IntervalRow:
    """Draw a group's answers, one a ranker."""
    readings = [_reading(audit, effects_of_run.get(group.name)) for effects_of_run in effects]
    queries = counted(group.queries, "query", "queries")
    return IntervalRow(label=group.name, readings=tuple(readings), note=queries)


def _reading(audit: Audit, effect: Effect | None) -> IntervalReading | None:
    if effect is None:
        return None
    tone = VERDICT_TONES[effect.favours] if effect.favours else ""
    return effect_reading(effect, audit.margin, tone)
