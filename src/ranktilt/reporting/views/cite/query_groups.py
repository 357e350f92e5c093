"""The section of an audit of citations on groups of queries, such as topics.

Every group of queries is audited alone, and compared with the *rest*: all other queries that belong
to some group. Each *question* compares two groups of pages: by the ratio of their citation rates,
or by a share in percent (the *scale* ``share``). The answer for one group of queries is an
*effect*, with an interval. A *unit* is what labels are exchanged between in tests: a page, or a
domain whose pages share a group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import isfinite, isnan
from operator import attrgetter

from ranktilt.citing.effect import CitationEffect
from ranktilt.citing.result import CitationAudit, CitationBreakdown, CitationGroupAnswer
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
)
from ranktilt.reporting.interval_chart import (
    MOST_ROWS,
    IntervalChart,
    IntervalMark,
    IntervalReading,
    IntervalRow,
    drawn_words,
    interval_chart,
)
from ranktilt.reporting.numbers import (
    DASH,
    decimal,
    number_cell,
    number_cells,
    p_value,
    percent,
    with_commas,
)
from ranktilt.reporting.sentences.citing.cite import QUESTION_WORDS, units_word
from ranktilt.reporting.sentences.citing.query_groups import citation_breakdown_sentences
from ranktilt.reporting.sentences.grammar import ratio_words
from ranktilt.reporting.sentences.query_groups import (
    group_count_sentences,
    variance_sentence,
)
from ranktilt.reporting.views.audit.query_groups import difference_table

# Hints of columns.
_RATE = "rate or part, in %"
_REST_P = "against all other queries in a group; corrected for the number of groups"

_QUESTION_NAMES: dict[str, str] = dict(QUESTION_WORDS.items())
"""Names of questions in the table of tests."""


@dataclass(frozen=True, kw_only=True)
class _PrintedEstimate:
    """The value of an answer, and the interval that is printed with it."""

    value: float
    """The value."""
    low: float
    """Lower end of the interval; NaN where there is none."""
    high: float
    """Upper end of the interval; NaN where there is none."""


def cite_group_sentences(audit: CitationAudit) -> Iterator[Sentence]:
    """Say whether groups of queries differ, how much they vary, and how many queries they have."""
    breakdown = audit.by_query
    if breakdown is None:
        return
    primary = audit.primary[0].question
    for text in citation_breakdown_sentences(breakdown, primary):
        yield Sentence(f"{text}.", emphasis="strong")
    for row in breakdown.variances:
        noise = units_word(audit.unit.name)
        yield Sentence(f"{variance_sentence(row, several_pairs=False, noise=noise)}.")
    counts = group_count_sentences(breakdown.column, breakdown.groups, breakdown.without_group)
    for text in counts:
        yield Sentence(f"{text}.")


def cite_group_section(audit: CitationAudit) -> Iterator[Section]:
    """Yield the section on groups of queries; nothing where queries were not grouped."""
    breakdown = audit.by_query
    if breakdown is None:
        return
    title = f"By group of queries: {breakdown.column}"
    primary = audit.primary[0].question
    primary_answers = [answer for answer in breakdown.answers if answer.effect.question == primary]
    other_answers = [answer for answer in breakdown.answers if answer.effect.question != primary]
    blocks: list[Block] = [
        PageBlocks(make=partial(_figure, audit, breakdown)),
        _answer_table(breakdown, primary_answers, caption=f"{title}, the primary question"),
    ]
    if other_answers:
        caption = f"{title}, every other question"
        table = _answer_table(breakdown, other_answers, caption=caption)
        blocks.append(PageBlocks(make=lambda: [table]))
    blocks.append(
        PageBlocks(make=lambda: [difference_table(breakdown.differences, _QUESTION_NAMES)])
    )
    yield Section(
        "query-groups", title, blocks=tuple(blocks), collapsed=True, short_title="Groups of queries"
    )


def _answer_table(
    breakdown: CitationBreakdown, answers: list[CitationGroupAnswer], *, caption: str
) -> Table:
    """Return the table of answers by group of queries, below their question and pair of sides.

    The columns of the sides are named where all answers are about one pair.
    """
    pairs = {(answer.effect.a, answer.effect.b) for answer in answers}
    first, second = pairs.pop() if len(pairs) == 1 else ("first", "second")
    columns: list[ColumnSpec] = [
        (name_column("group of queries"), attrgetter("group")),
        (Column("queries"), number_cells("effect.questions", with_commas)),
        (Column(first, hint=_RATE, drop_order=2), partial(_side_cell, field="value_a")),
        (Column(second, hint=_RATE, drop_order=1), partial(_side_cell, field="value_b")),
        ("ratio, or part in %", _answer_cell),
        (
            Column("p against the rest", hint=_REST_P, drop_order=3),
            partial(_rest_p_cell, breakdown),
        ),
        (Column("citations", drop_order=4), _citation_counts),
    ]
    return make_table(
        caption,
        _ordered(answers),
        columns,
        group_of=_heading,
        group_titles=("answer to",),
        note=(
            "Each group is audited alone. Where too few units carry a side, intervals are for "
            "further queries about these units; below ten citations of a side they are made for so "
            "few."
        ),
    )


def _ordered(answers: list[CitationGroupAnswer]) -> list[CitationGroupAnswer]:
    """Bring answers to the same question about the same pair together, without other changes."""
    order = dict[tuple[str, str, str], int]()
    for answer in answers:
        order.setdefault(_question_key(answer), len(order))
    return sorted(answers, key=lambda answer: order[_question_key(answer)])


def _question_key(answer: CitationGroupAnswer) -> tuple[str, str, str]:
    """Return both sides and the question, which the answers below one heading share."""
    return answer.effect.a, answer.effect.b, answer.effect.question


def _heading(answer: CitationGroupAnswer) -> tuple[str]:
    """Return the heading above an answer's row: its question and its two sides."""
    effect = answer.effect
    return (f"{QUESTION_WORDS[effect.question]}, {effect.a} against {effect.b}",)


def _side_cell(answer: CitationGroupAnswer, field: str) -> Cell:
    """Return the cell of one side: its part, or its citation rate, in percent."""
    effect = answer.effect
    show = decimal if effect.scale == "share" else percent
    return number_cell(getattr(effect, field), show)


def _answer_cell(answer: CitationGroupAnswer) -> Cell:
    """Return the cell of an answer with its interval: a ratio, or a share in percent."""
    estimate = _printed_estimate(answer.effect)
    show = decimal if answer.effect.scale == "share" else ratio_words
    ends = None
    if not isnan(estimate.low):
        ends = ends_apart((estimate.low, estimate.high), answer.effect.neutral, show)
    return Cell(show(estimate.value), estimate.value, ends=ends)


def _printed_estimate(effect: CitationEffect) -> _PrintedEstimate:
    """Return an effect with its interval over queries and units.

    With too few units to speak of others, the interval is over further queries about these units;
    with few citations on a side, it is the score interval, which is made for so few.
    """
    low, high = effect.low, effect.high
    these = effect.these_units
    if these is not None:
        has_few_citations = not isnan(these.score_low)
        low = these.score_low if has_few_citations else these.low
        high = these.score_high if has_few_citations else these.high
    return _PrintedEstimate(value=effect.value, low=low, high=high)


def _rest_p_cell(breakdown: CitationBreakdown, answer: CitationGroupAnswer) -> Cell:
    """Return the cell of the corrected p of a group against the rest; a dash without one."""
    rest = breakdown.rest_of(answer)
    return Cell(DASH) if rest is None else number_cell(rest.p_corrected, p_value)


def _citation_counts(answer: CitationGroupAnswer) -> str:
    """Print the numbers of citations of either side."""
    return f"{answer.effect.citations_a:,} | {answer.effect.citations_b:,}"


def _figure(audit: CitationAudit, breakdown: CitationBreakdown) -> Iterator[IntervalChart]:
    """Draw the answers to the primary question about the first pair, by group of queries."""
    first = audit.primary[0]
    answers = [
        answer
        for answer in breakdown.answers
        if _question_key(answer) == (first.a, first.b, first.question)
        and isfinite(answer.effect.value)
    ]
    if not answers:
        return
    title = f"{QUESTION_WORDS[first.question]}, {first.a} against {first.b}, by group of queries"
    rows = [_chart_row(answer) for answer in answers[:MOST_ROWS]]
    yield interval_chart(
        title[:1].upper() + title[1:],
        f"Line: 95 % interval of each group alone.{drawn_words(len(rows), len(answers), 'groups')}",
        rows,
        scale_titles=("part, %" if first.scale == "share" else "times as often",),
    )


def _chart_row(answer: CitationGroupAnswer) -> IntervalRow:
    """Return the row of a group of queries: its answer with the interval."""
    effect, estimate = answer.effect, _printed_estimate(answer.effect)
    show = decimal if effect.scale == "share" else ratio_words
    value, low, high = map(show, (estimate.value, estimate.low, estimate.high))
    reading = IntervalReading(
        mark=IntervalMark(value=estimate.value, low=estimate.low, high=estimate.high),
        text=value if isnan(estimate.low) else f"{value} [{low}, {high}]",
        neutral=effect.neutral,
    )
    queries = counted(effect.questions, "query", "queries")
    return IntervalRow(label=answer.group, readings=(reading,), note=queries)
