"""The section of an audit on groups of queries, such as topics: a table, tests and a figure.

A *question* is a measure that compares a *pair* of groups of documents, such as human and LLM
texts. Its answer for one ranker is an *effect*, with an interval; *neutral* is the value that
favours neither group. Every group of queries is audited alone. A row compares the group with the
*rest*: all other queries that belong to some group. The tests ask whether the groups of queries
differ at all on one question.
"""

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
from ranktilt.measures.printing import ends_apart
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
    drawn_words,
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

# Hints of columns.
_REST = "the group's distance from neutral, minus that of all other queries in a group"
_REST_P = "corrected for the number of groups"
_SHUFFLED = "the share of shuffled groups of queries that differ as much"
_WELCH = "Welch's test, with documents that queries share in its error"

_MOST_SCALES = 2
"""Most rankers that the figure shows, each with a scale."""

_TEST_COLUMNS: tuple[ColumnSpec, ...] = (
    (Column("p, shuffled groups", hint=_SHUFFLED), number_cells("shuffle_p", p_value)),
    (Column("p, Welch", hint=_WELCH), number_cells("welch_p", p_value)),
    (Column("corrected p"), number_cells("p_corrected", p_value)),
)


@dataclass(frozen=True, kw_only=True)
class _GroupRow:
    """A row of the table: an answer on one group of queries."""

    answer: GroupAnswer
    """The answer."""
    rest: RestDifference | None
    """Difference between the group and the rest; None where it was not computed."""
    heading: tuple[str, ...]
    """Heading above the row: ranker, pair of groups of documents, question."""


def query_group_sentences(audit: Audit) -> tuple[Sentence, ...]:
    """Say whether groups of queries differ, how much they vary, and how many queries they have."""
    breakdown = audit.by_query
    if breakdown is None:
        return ()
    has_several_pairs = len({(row.a, row.b) for row in breakdown.variances}) > 1
    lines = [
        Sentence(text, emphasis="strong")
        for text in breakdown_sentences(breakdown, repr(audit.primary))
    ]
    lines += [
        Sentence(variance_sentence(row, several_pairs=has_several_pairs))
        for row in breakdown.variances
    ]
    counts = group_count_sentences(breakdown.column, breakdown.groups, breakdown.without_group)
    return (*lines, *map(Sentence, counts))


def query_group_section(audit: Audit) -> Iterator[Section]:
    """Yield the section on groups of queries; nothing where queries were not grouped."""
    breakdown = audit.by_query
    if breakdown is None:
        return
    primary = repr(audit.primary)
    primary_answers = [answer for answer in breakdown.answers if answer.effect.measure == primary]
    other_answers = [answer for answer in breakdown.answers if answer.effect.measure != primary]
    title = f"By group of queries: {breakdown.column}"
    caption = f"{title}, the primary question"
    blocks: list[Block] = [
        PageBlocks(make=partial(_figure, audit, breakdown)),
        _answer_table(audit, breakdown, primary_answers, caption=caption),
    ]
    if other_answers:
        caption = f"{title}, every other question"
        table = _answer_table(audit, breakdown, other_answers, caption=caption)
        blocks.append(PageBlocks(make=lambda: [table]))
    blocks.append(PageBlocks(make=lambda: [difference_table(breakdown.differences)]))
    yield Section(
        "query-groups", title, blocks=tuple(blocks), collapsed=True, short_title="Groups of queries"
    )


def _answer_table(
    audit: Audit, breakdown: QueryBreakdown, answers: Sequence[GroupAnswer], *, caption: str
) -> Table:
    """Return the table of answers by group of queries, below ranker, pair and question."""
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
        ("answer", _answer_cell),
        (Column("corrected p", drop_order=2), number_cells("answer.effect.p_corrected", p_value)),
        (text_column("favours"), _favoured_side),
    ]
    if any(row.rest is not None for row in rows):
        columns += [
            (Column("against the rest", hint=_REST, drop_order=4), _rest_cell),
            (Column("p against the rest", hint=_REST_P, drop_order=3), _rest_p_cell),
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
    """Bring answers on the same ranker, pair and question together, without other changes."""
    order = dict[tuple[str, ...], int]()
    for answer in answers:
        order.setdefault(_question_key(answer), len(order))
    return sorted(answers, key=lambda answer: order[_question_key(answer)])


def _question_key(answer: GroupAnswer) -> tuple[str, ...]:
    """Return ranker, pair of groups and measure, which the answers below one heading share."""
    effect = answer.effect
    return effect.run, effect.a, effect.b, effect.measure


def _heading(audit: Audit, answer: GroupAnswer) -> str:
    """Name the ranker and question of an answer, and its pair of groups where there are several."""
    effect = answer.effect
    pair = f"{effect.a} | {effect.b}" if len(audit.pairs) > 1 else ""
    return ", ".join(filter(None, (effect.run, pair, effect.name)))


def _answer_cell(row: _GroupRow) -> Cell:
    """Return the cell of an answer with its interval, in the colour of the favoured side."""
    effect = row.answer.effect
    ends = None
    if effect.has_interval:
        ends = ends_apart((effect.low, effect.high), effect.neutral, effect.estimand.amount)
    tone = VERDICT_TONES[effect.favours] if effect.favours else ""
    return Cell(effect.estimand.answer(effect.value), effect.value, tone, ends=ends)


def _favoured_side(row: _GroupRow) -> str:
    """Name the side that an answer favours; a dash for none."""
    effect = row.answer.effect
    return effect.side(effect.favours) or DASH


def _rest_cell(row: _GroupRow) -> Cell:
    """Return the cell of the difference between a group and the rest; a dash without one."""
    if row.rest is None:
        return Cell(DASH)
    estimand = row.answer.effect.estimand
    return number_cell(row.rest.value, partial(estimand.amount, sign=True))


def _rest_p_cell(row: _GroupRow) -> Cell:
    """Return the cell of the corrected p of that difference; a dash without one."""
    return Cell(DASH) if row.rest is None else number_cell(row.rest.p_corrected, p_value)


def difference_table(
    differences: Sequence[GroupDifference], question_names: Mapping[str, str] = {}
) -> Table:
    """Return the table of tests of whether groups of queries differ, a row for each question.

    `question_names` are the names of questions by their notation; others are called by that.
    """
    has_several_pairs = len({(row.a, row.b) for row in differences}) > 1
    columns: list[ColumnSpec] = [
        (name_column("question"), lambda row: question_names.get(row.question, row.question)),
        (Column("groups compared"), lambda row: number_cell(len(row.groups), with_commas)),
        *_TEST_COLUMNS,
    ]
    return make_table(
        "Do the groups differ?",
        differences,
        columns,
        group_of=lambda row: (_test_heading(row, has_several_pairs=has_several_pairs),),
        group_titles=("ranker",),
        note="The larger p of both tests counts; it is corrected for the number of questions.",
    )


def _test_heading(row: GroupDifference, *, has_several_pairs: bool) -> str:
    """Name the ranker of a test, and its pair of groups where there are several or no ranker."""
    pair = f"{row.a} | {row.b}"
    if not row.run:
        return pair
    return f"{row.run}, {pair}" if has_several_pairs else row.run


def _figure(audit: Audit, breakdown: QueryBreakdown) -> Iterator[IntervalChart]:
    """Draw the answers to the primary question by group of queries, with a scale for each ranker.

    Of several pairs of groups of documents only the first is drawn, of many rankers the first two.
    """
    differences = [row for row in breakdown.differences if row.question == repr(audit.primary)]
    if not differences:
        return
    pair = differences[0].a, differences[0].b
    of_pair = [row for row in differences if (row.a, row.b) == pair]
    drawn = of_pair[:_MOST_SCALES]
    effects_of_rankers = [_effects_of(breakdown, row) for row in drawn]
    answered_groups = set(chain.from_iterable(effects_of_rankers))
    groups = [group for group in breakdown.groups if group.name in answered_groups]
    rows = [_chart_row(audit, group, effects_of_rankers) for group in groups[:MOST_ROWS]]
    if not rows:
        return
    first = next(chain.from_iterable(effects.values() for effects in effects_of_rankers))
    scale_titles = [row.run for row in drawn] if len(drawn) > 1 else [scale_title(first)]
    sides = (pair[1], pair[0]) if first.estimand.sided else ("", "")
    yield interval_chart(
        f"{scale_title(first)}, by group of queries",
        "Line: 95 % interval of each group alone. Shaded: the margin around neutral."
        f"{drawn_words(len(rows), len(groups), 'groups')}"
        f"{drawn_words(len(drawn), len(of_pair), 'rankers')}",
        rows,
        scale_titles=scale_titles,
        sides=sides,
        second_sides=sides,
    )


def _effects_of(breakdown: QueryBreakdown, difference: GroupDifference) -> dict[str, Effect]:
    """Return the answers that a test compares, by their group of queries."""
    answers = breakdown.answers_to(difference)
    return {answer.group: answer.effect for answer in answers}


def _chart_row(
    audit: Audit, group: QueryGroup, effects_of_rankers: Sequence[Mapping[str, Effect]]
) -> IntervalRow:
    """Return the row of a group of queries, with the answer of each ranker on its scale."""
    readings = [_reading(audit, effects.get(group.name)) for effects in effects_of_rankers]
    queries = counted(group.queries, "query", "queries")
    return IntervalRow(label=group.name, readings=tuple(readings), note=queries)


def _reading(audit: Audit, effect: Effect | None) -> IntervalReading | None:
    """Return an answer in the colour of the favoured side; None where the group has no answer."""
    if effect is None:
        return None
    tone = VERDICT_TONES[effect.favours] if effect.favours else ""
    return effect_reading(effect, audit.margin, tone)
