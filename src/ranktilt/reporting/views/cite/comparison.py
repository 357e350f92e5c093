"""The document of a comparison of two answer engines: whose tilt is larger, how alike they cite.

Each *question* compares two groups of pages in either engine: by the ratio of their citation rates
(the *scale* ``log ratio``), or by a share in percent (``share``). A *change* is the new engine
against the old one: a ratio of two ratios, or a difference of two shares.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import isfinite, log2
from operator import attrgetter

from ranktilt.citing.comparison.result import (
    CitationChange,
    CitationComparison,
    CitationOverlap,
)
from ranktilt.reporting.document import (
    Cell,
    Column,
    ColumnSpec,
    Document,
    PageBlocks,
    Section,
    Sentence,
    Table,
    make_table,
    name_column,
    text_column,
)
from ranktilt.reporting.headline import headline
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
    decimal,
    estimate_cell,
    number_cell,
    number_cells,
    p_value,
    signed,
    with_commas,
)
from ranktilt.reporting.provenance import provenance
from ranktilt.reporting.sentences.citing.cite import QUESTION_WORDS, units_word
from ranktilt.reporting.sentences.citing.comparison import (
    comparison_findings,
    comparison_meaning,
    comparison_steps,
    overlap_sentences,
)
from ranktilt.reporting.sentences.grammar import ratio_words
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.reporting.tones import Tone

_NAN = float("nan")
"""Value of a mark that is not drawn."""


def view(comparison: CitationComparison) -> Document:
    """Return the document of a comparison of two engines."""
    notes = note_sentences(comparison.notes)
    overlap = tuple(overlap_sentences(comparison))
    sections = (
        Section("result", "Every number", blocks=(_change_table(comparison),)),
        Section(
            "overlap", "How alike they cite", lead=overlap, blocks=(_overlap_table(comparison),)
        ),
        provenance(comparison.spec, notes),
    )
    sentences = [
        Sentence(finding.sentence, emphasis="strong") for finding in comparison_findings(comparison)
    ]
    first = comparison.primary[0]
    next_steps, legend = tuple(comparison_steps(comparison)), tuple(_legend(comparison))
    return Document(
        kind=f"{comparison.new} and {comparison.old} on the same questions",
        headline=headline(comparison),
        sections=sections,
        sentences=tuple(sentences),
        meaning=comparison_meaning(comparison),
        first_figure=PageBlocks(make=partial(_first_figure, comparison)),
        next_steps=next_steps,
        legend=legend,
        notes=notes,
        sides=(first.a, first.b),
        names=(comparison.new, comparison.old),
    )


def _change_table(comparison: CitationComparison) -> Table:
    """Return the table with a row for each question, below a heading for each of several pairs."""
    columns: list[ColumnSpec] = [
        (name_column("question"), _question_words),
        (Column(comparison.new), partial(_engine_cell, field="new")),
        (Column(comparison.old), partial(_engine_cell, field="old")),
        (Column("times, or points"), _change_cell),
        (Column("corrected p", drop_order=2), number_cells("p_corrected", p_value)),
        (Column("queries", drop_order=3), number_cells("questions", with_commas)),
    ]
    caption = f"Ratio of rates, or share in %: {comparison.new} against {comparison.old}"
    if len(comparison.primary) == 1:
        return make_table(caption, comparison.changes, columns)
    changes = sorted(comparison.changes, key=attrgetter("a", "b"))
    return make_table(caption, changes, columns, group_of=_pair_heading, group_titles=("pair",))


def _question_words(change: CitationChange) -> str:
    """Return the words for a change's question."""
    return QUESTION_WORDS[change.question]


def _pair_heading(change: CitationChange) -> tuple[str]:
    """Return the heading above the rows of a pair of groups."""
    return (f"{change.a} against {change.b}",)


def _engine_cell(change: CitationChange, field: str) -> Cell:
    """Return the cell of one engine's ratio, or of its share in percent."""
    value = getattr(change, field)
    return number_cell(value, ratio_words if change.scale == "log ratio" else decimal)


def _change_cell(change: CitationChange) -> Cell:
    """Return the cell of a change with its interval: how many times, or points."""
    if change.scale == "log ratio":
        return estimate_cell(change, ratio_words, neutral=1.0)
    return estimate_cell(change, signed, neutral=0.0)


_OVERLAP_COLUMNS: tuple[ColumnSpec, ...] = (
    (name_column("of"), attrgetter("of")),
    (text_column("measure"), attrgetter("measure")),
    (Column("both engines"), partial(estimate_cell, show=partial(decimal, digits=2))),
    (Column("queries", drop_order=1), number_cells("queries", with_commas)),
)


def _overlap_table(comparison: CitationComparison) -> Table:
    """Return the table of how many citations the answers of both engines have in common.

    Where a query was asked several times, it also compares the answers of each engine.
    """
    columns: list[ColumnSpec] = list(_OVERLAP_COLUMNS)
    for engine, field in ((comparison.new, "within_new"), (comparison.old, "within_old")):
        if any(isfinite(getattr(overlap, field)) for overlap in comparison.overlaps):
            hint = "two answers of one engine to one query"
            column = Column(f"{engine} with itself", hint=hint)
            columns.append((column, partial(_self_overlap_cell, field=field)))
    return make_table("Citations in common, 0 to 1", comparison.overlaps, columns, collapsed=True)


def _self_overlap_cell(overlap: CitationOverlap, field: str) -> Cell:
    """Return the cell of how alike two answers of one engine to one query are."""
    return number_cell(getattr(overlap, field), partial(decimal, digits=2))


def _first_figure(comparison: CitationComparison) -> Iterator[IntervalChart]:
    """Draw the change of every pair on the primary question, in doublings or in points."""
    defined = [change for change in comparison.primary if isfinite(change.value)]
    changes = defined[:MOST_ROWS]
    if not changes:
        return
    first = changes[0]
    unit = "doublings of the ratio" if first.scale == "log ratio" else "points"
    drawn = drawn_words(len(changes), len(defined))
    yield interval_chart(
        f"How {comparison.new} differs from {comparison.old}, in {unit}",
        f"At 0 both engines treat the two sides alike. Line: 95 % interval.{drawn}",
        [_change_row(change) for change in changes],
        scale_titles=(unit,),
        sides=(f"◀ toward {first.b}", f"toward {first.a} ▶") if len(changes) == 1 else ("", ""),
    )


def _change_row(change: CitationChange) -> IntervalRow:
    """Return the row of a change.

    With too few pages to speak of others, its interval is over further queries about the same
    pages.
    """
    low, high = change.low, change.high
    if isfinite(change.these_low):
        low, high = change.these_low, change.these_high
    show = ratio_words if change.scale == "log ratio" else signed
    mark = IntervalMark(
        value=_position(change, change.value),
        low=_position(change, low),
        high=_position(change, high),
    )
    tone: Tone = "unsure"
    if change.kind == "differs":
        tone = "first" if change.leans == "a" else "second"
    reading = IntervalReading(
        mark=mark,
        text=f"{show(change.value)} [{show(low)}, {show(high)}]",
        tone=tone,
    )
    return IntervalRow(label=f"{change.a} | {change.b}", readings=(reading,))


def _position(change: CitationChange, value: float) -> float:
    """Return a value in points, or for a ratio in doublings: its logarithm to base 2."""
    if change.scale == "share":
        return value
    return log2(value) if isfinite(value) and value > 0 else _NAN


def _legend(comparison: CitationComparison) -> Iterator[str]:
    """Yield sentences on differences and on their tests."""
    yield (
        f"Differences are {comparison.new} against {comparison.old}, over the "
        f"{comparison.queries:,} queries that both answered: of two ratios the first over the "
        "second, of two shares the difference of their distances from neutral."
    )
    units = units_word(comparison.unit)
    yield (
        "p is the larger of two tests, as in an audit of citations: labels exchanged between "
        f"{units}, the same for both engines, and a t test of the difference over "
        f"questions and {units}. Intervals are one at a time; p is corrected "
        f"({comparison.correction.title()})."
    )
