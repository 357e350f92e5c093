"""A comparison of two engines: whose tilt is larger, and how alike they cite."""

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
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.reporting.sentences.ratios import ratio_words
from ranktilt.reporting.tones import Tone

_NAN = float("nan")


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
    steps, legend = tuple(comparison_steps(comparison)), tuple(_legend(comparison))
    return Document(
        kind=f"{comparison.new} and {comparison.old} on the same questions",
        headline=headline(comparison),
        sections=sections,
        sentences=tuple(sentences),
        meaning=comparison_meaning(comparison),
        first_figure=PageBlocks(make=partial(_first_figure, comparison)),
        next_steps=steps,
        legend=legend,
        notes=notes,
        sides=(first.a, first.b),
        names=(comparison.new, comparison.old),
    )


def _change_table(comparison: CitationComparison) -> Table:
    columns: list[ColumnSpec] = [
        (name_column("question"), _question),
        (Column(comparison.new), partial(_side, side="new")),
        (Column(comparison.old), partial(_side, side="old")),
        (Column("times, or points"), _difference),
        (Column("corrected p", drop_order=2), number_cells("p_corrected", p_value)),
        (Column("queries", drop_order=3), number_cells("questions", with_commas)),
    ]
    caption = f"Ratio of rates, or share in %: {comparison.new} against {comparison.old}"
    if len(comparison.primary) == 1:
        return make_table(caption, comparison.changes, columns)
    changes = sorted(comparison.changes, key=_pair)
    return make_table(caption, changes, columns, group_of=_pair_title, group_titles=("pair",))


def _question(change: CitationChange) -> str:
    return QUESTION_WORDS[change.question]


def _pair(change: CitationChange) -> tuple[str, str]:
    return change.a, change.b


def _pair_title(change: CitationChange) -> tuple[str]:
    return (f"{change.a} against {change.b}",)


def _side(change: CitationChange, side: str) -> Cell:
    value = getattr(change, side)
    return number_cell(value, ratio_words if change.scale == "log ratio" else decimal)


def _difference(change: CitationChange) -> Cell:
    return estimate_cell(change, ratio_words if change.scale == "log ratio" else signed)


_OVERLAP_COLUMNS: tuple[ColumnSpec, ...] = (
    (name_column("of"), attrgetter("of")),
    (text_column("measure"), attrgetter("measure")),
    (Column("both engines"), partial(estimate_cell, show=partial(decimal, digits=2))),
    (Column("queries", drop_order=1), number_cells("queries", with_commas)),
)


def _overlap_table(comparison: CitationComparison) -> Table:
    columns: list[ColumnSpec] = list(_OVERLAP_COLUMNS)
    for name, side in ((comparison.new, "within_new"), (comparison.old, "within_old")):
        if any(isfinite(getattr(overlap, side)) for overlap in comparison.overlaps):
            head = Column(f"{name} with itself", hint="two answers of one engine to one query")
            columns.append((head, partial(_within, side=side)))
    return make_table("Citations in common, 0 to 1", comparison.overlaps, columns, collapsed=True)


def _within(overlap: CitationOverlap, side: str) -> Cell:
    """Print how alike two answers of one engine to one query are."""
    return number_cell(getattr(overlap, side), partial(decimal, digits=2))


def _first_figure(comparison: CitationComparison) -> Iterator[IntervalChart]:
    """Draw the difference of every pair on the primary question, in doublings or in points."""
    changes = [change for change in comparison.primary if isfinite(change.value)][:MOST_ROWS]
    if not changes:
        return
    is_ratio = changes[0].scale == "log ratio"
    scale = "doublings of the ratio" if is_ratio else "points"
    first = changes[0]
    yield interval_chart(
        f"How {comparison.new} differs from {comparison.old}, in {scale}",
        "At 0 both engines treat the two sides alike. Line: 95 % interval.",
        [_row(change) for change in changes],
        scale_titles=(scale,),
        sides=(f"◀ toward {first.b}", f"toward {first.a} ▶") if len(changes) == 1 else ("", ""),
    )


def _row(change: CitationChange) -> IntervalRow:
    """Draw a difference; over further queries to the same units where these are few."""
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
    """Return where a value stands on its scale: points, or powers of 2 for a ratio."""
    if change.scale == "share":
        return value
    return log2(value) if isfinite(value) and value > 0 else _NAN


def _legend(comparison: CitationComparison) -> Iterator[str]:
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
