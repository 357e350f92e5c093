"""Citations by group of queries: a table and a figure of the primary question, and the tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import isfinite, isnan
from operator import attrgetter

from ranktilt.citing.effect import CitationEffect
from ranktilt.citing.query_breakdown import CitationBreakdown, CitationGroupAnswer
from ranktilt.citing.result import CitationAudit
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
)
from ranktilt.reporting.interval_chart import (
    MOST_ROWS,
    IntervalChart,
    IntervalMark,
    IntervalReading,
    IntervalRow,
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
from ranktilt.reporting.sentences.query_groups import (
    group_count_sentences,
    variance_sentence,
)
from ranktilt.reporting.sentences.ratios import ratio_words
from ranktilt.reporting.views.audit.query_groups import difference_table

_RATE = "rate or part, in %"
_REST_P = "against all other queries in a group; corrected for the number of groups"


@dataclass(frozen=True, kw_only=True)
class _Ends:
    """An answer with the interval that is printed."""

    value: float
    low: float
    high: float


def cite_group_sentences(audit: CitationAudit) -> Iterator[Sentence]:
    """Say whether groups of queries differ, and what else there is to know of them."""
    breakdown = audit.by_query
    if breakdown is None:
        return
    primary = audit.primary[0].question
    for text in citation_breakdown_sentences(breakdown, primary):
        yield Sentence(f"{text}.", emphasis="strong")
    for row in breakdown.variances:
        noise = units_word(audit.unit.name)
        yield Sentence(f"{variance_sentence(row, several=False, noise=noise)}.")
    counts = group_count_sentences(breakdown.column, breakdown.groups, breakdown.without_group)
    for text in counts:
        yield Sentence(f"{text}.")


def cite_group_section(audit: CitationAudit) -> Iterator[Section]:
    """Show the answers by group of queries; nothing where there are none."""
    breakdown = audit.by_query
    if breakdown is None:
        return
    title = f"By group of queries: {breakdown.column}"
    primary = audit.primary[0].question
    others = [answer for answer in breakdown.answers if answer.effect.question != primary]
    first = [answer for answer in breakdown.answers if answer.effect.question == primary]
    blocks: list[Block] = [
        PageBlocks(make=partial(_figure, audit, breakdown)),
        _table(breakdown, first, caption=f"{title}, the primary question"),
    ]
    if others:
        table = _table(breakdown, others, caption=f"{title}, every other question")
        blocks.append(PageBlocks(make=lambda: [table]))
    blocks.append(PageBlocks(make=lambda: [difference_table(breakdown.differences, _NAMES)]))
    yield Section(
        "query-groups", title, blocks=tuple(blocks), collapsed=True, short_title="Groups of queries"
    )


_NAMES: dict[str, str] = dict(QUESTION_WORDS.items())


def _table(
    breakdown: CitationBreakdown, answers: list[CitationGroupAnswer], *, caption: str
) -> Table:
    pairs = {(answer.effect.a, answer.effect.b) for answer in answers}
    first, second = pairs.pop() if len(pairs) == 1 else ("first", "second")
    columns: list[ColumnSpec] = [
        (name_column("group of queries"), attrgetter("group")),
        (Column("queries"), number_cells("effect.questions", with_commas)),
        (Column(first, hint=_RATE, drop_order=2), partial(_side, side="value_a")),
        (Column(second, hint=_RATE, drop_order=1), partial(_side, side="value_b")),
        ("ratio, or part in %", _value),
        (Column("p against the rest", hint=_REST_P, drop_order=3), partial(_rest_p, breakdown)),
        (Column("citations", drop_order=4), _citations),
    ]
    order = {_question_of(answer): index for index, answer in enumerate(reversed(answers))}
    return make_table(
        caption,
        sorted(answers, key=lambda answer: -order[_question_of(answer)]),
        columns,
        group_of=_heading,
        group_titles=("answer to",),
        note=(
            "Each group is audited alone. Where too few units carry a side, intervals are for "
            "further queries about these units; below ten citations of a side they are made for so "
            "few."
        ),
    )


def _question_of(answer: CitationGroupAnswer) -> tuple[str, str, str]:
    return answer.effect.a, answer.effect.b, answer.effect.question


def _heading(answer: CitationGroupAnswer) -> tuple[str]:
    effect = answer.effect
    return (f"{QUESTION_WORDS[effect.question]}, {effect.a} against {effect.b}",)


def _side(answer: CitationGroupAnswer, side: str) -> Cell:
    effect = answer.effect
    show = decimal if effect.scale == "share" else percent
    return number_cell(getattr(effect, side), show)


def _value(answer: CitationGroupAnswer) -> Cell:
    ends = _ends(answer.effect)
    show = decimal if answer.effect.scale == "share" else ratio_words
    printed = None if isnan(ends.low) else (show(ends.low), show(ends.high))
    return Cell(show(ends.value), ends.value, ends=printed)


def _ends(effect: CitationEffect) -> _Ends:
    """Return the interval over questions and units, or over questions where units are few."""
    low, high = effect.low, effect.high
    these = effect.these_units
    if these is not None:
        is_rare = not isnan(these.score_low)
        low = these.score_low if is_rare else these.low
        high = these.score_high if is_rare else these.high
    return _Ends(value=effect.value, low=low, high=high)


def _rest_p(breakdown: CitationBreakdown, answer: CitationGroupAnswer) -> Cell:
    rest = breakdown.rest_of(answer)
    return Cell(DASH) if rest is None else number_cell(rest.p_corrected, p_value)


def _citations(answer: CitationGroupAnswer) -> str:
    return f"{answer.effect.citations_a:,} | {answer.effect.citations_b:,}"


def _figure(audit: CitationAudit, breakdown: CitationBreakdown) -> Iterator[IntervalChart]:
    """Draw the answers to the primary question by group, of the first pair."""
    first = audit.primary[0]
    answers = [
        answer
        for answer in breakdown.answers
        if _question_of(answer) == (first.a, first.b, first.question)
        and isfinite(answer.effect.value)
    ]
    if not answers:
        return
    title = f"{QUESTION_WORDS[first.question]}, {first.a} against {first.b}, by group of queries"
    yield interval_chart(
        title[:1].upper() + title[1:],
        "Line: 95 % interval of each group alone.",
        [_row(answer) for answer in answers[:MOST_ROWS]],
        scale_titles=("part, %" if first.scale == "share" else "times as often",),
    )


def _row(answer: CitationGroupAnswer) -> IntervalRow:
    effect, ends = answer.effect, _ends(answer.effect)
    show = decimal if effect.scale == "share" else ratio_words
    value, low, high = map(show, (ends.value, ends.low, ends.high))
    reading = IntervalReading(
        mark=IntervalMark(value=ends.value, low=ends.low, high=ends.high),
        text=value if isnan(ends.low) else f"{value} [{low}, {high}]",
        neutral=effect.neutral,
    )
    queries = counted(effect.questions, "query", "queries")
    return IntervalRow(label=answer.group, readings=(reading,), note=queries)
