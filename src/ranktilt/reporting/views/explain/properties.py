"""The document of explained gaps: which properties go with a gap between two groups.

A *gap* is the difference of two groups of documents within ranked lists. It is measured in one or
several *outcomes* (score, rank, being among the first ranks, being cited), of which the first is
primary. A *part* of a gap is what goes with one *property* of documents, such as their length; what
remains goes with none of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from math import nan
from operator import attrgetter

from ranktilt.explaining.properties.result import (
    OUTCOMES,
    ExplainedGap,
    ExplainedGaps,
    GapPart,
    GapProperty,
    Outcome,
)
from ranktilt.reporting.document import (
    Block,
    Cell,
    Column,
    ColumnSpec,
    Document,
    Figure,
    PageBlocks,
    Section,
    Sentence,
    Table,
    make_table,
    name_column,
    text_column,
)
from ranktilt.reporting.figures.charts import Mark, forest
from ranktilt.reporting.headline import headline
from ranktilt.reporting.interval_chart import IntervalChart
from ranktilt.reporting.numbers import (
    DASH,
    estimate_cell,
    number_cell,
    p_value,
    short_decimal,
    signed,
)
from ranktilt.reporting.provenance import provenance, titled
from ranktilt.reporting.sentences.explaining.next_steps import gaps_steps
from ranktilt.reporting.sentences.explaining.properties import (
    DIGITS,
    UNITS,
    basis_sentence,
    gap_cautions,
    gap_findings,
    gaps_meaning,
)
from ranktilt.reporting.sentences.verdicts import INTERVAL_CAUTION
from ranktilt.reporting.views.explain.gap_chart import ALL, REMAINS, GapMark, GapScale, gap_chart

_TITLES: dict[Outcome, str] = {
    "score": "score",
    "rank": "rank",
    "first ranks": "first {}",
    "cited": "cited",
}
"""Title of the column of each outcome; the braces stand for the number of ranks."""
_PROPERTY_SOURCES = {
    "column": "a column of numbers",
    "text": "the texts",
    "list": "the search results",
}
"""Words for where a property was read from."""
_HINTS: dict[Outcome, str] = {
    "score": "In standard deviations of the list's scores; + is for the group marked +.",
    "rank": "In ranks; + is for the group marked +.",
    "first ranks": "Chance to be among the first ranks, in percentage points.",
    "cited": "Citation rate within questions, in percentage points.",
}
"""Hint of the column of each outcome."""


@dataclass(frozen=True, kw_only=True)
class CellEstimate:
    """A value of the table with its interval."""

    value: float
    """The value."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""
    is_shown: bool
    """Whether it is shown not to be 0."""


@dataclass(frozen=True, kw_only=True)
class PartLine:
    """A line of the table: the gap, one of its parts, or what remains."""

    name: str
    """`ALL` for the gap, the name of a part's property, or `REMAINS`."""
    gaps: tuple[ExplainedGap, ...]
    """The gaps of one run and pair of groups in every outcome, the primary one first."""

    def part(self, gap: ExplainedGap) -> GapPart | None:
        """Return the part of a gap that the line is about; None for the gap and what remains."""
        return next((part for part in gap.parts if part.property_name == self.name), None)

    def estimate(self, outcome: Outcome) -> CellEstimate | None:
        """Return the line's value in one outcome; None where it has none."""
        gap = next((gap for gap in self.gaps if gap.outcome == outcome), None)
        if gap is None:
            return None
        if self.name == ALL:
            return CellEstimate(value=gap.value, low=gap.low, high=gap.high, is_shown=gap.is_shown)
        if self.name == REMAINS:
            return CellEstimate(
                value=gap.remaining, low=gap.remaining_low, high=gap.remaining_high, is_shown=False
            )
        part = self.part(gap)
        if part is None:
            return None
        is_shown = gap.has_enough and part.is_shown
        return CellEstimate(value=part.value, low=part.low, high=part.high, is_shown=is_shown)

    @property
    def primary_part(self) -> GapPart | None:
        """The part of the gap in the primary outcome; None for the gap and what remains."""
        return self.part(self.gaps[0])

    @property
    def p_corrected(self) -> float:
        """The corrected p in the primary outcome; NaN for what remains, which is not tested."""
        if self.name == ALL:
            return self.gaps[0].p_corrected
        part = self.primary_part
        return float("nan") if part is None else part.p_corrected

    @property
    def group(self) -> tuple[str, ...]:
        """The heading above the line."""
        gap = self.gaps[0]
        return (_sign_heading(gap),)


def _sign_heading(gap: ExplainedGap) -> str:
    """Name the run and the group that each sign favours: ``engine: + is for shop, − for forum``."""
    return f"{gap.run}: + is for {gap.group_a}, − for {gap.group_b}"


def view(gaps: ExplainedGaps) -> Document:
    """Return the document of gaps and the properties that go with them."""
    findings = gap_findings(gaps)
    cautions = tuple(gap_cautions(gaps))
    question = "Which properties go with the gap between groups, and what remains?"
    parts: tuple[Block, ...] = (_parts_table(gaps), PageBlocks(make=partial(_figures, gaps)))
    sentences = [Sentence(finding.sentence, emphasis="strong") for finding in findings]
    return Document(
        kind=titled("Explanation of", gaps.spec),
        headline=headline(gaps),
        answer_first=True,
        meaning=gaps_meaning(gaps),
        first_figure=PageBlocks(make=partial(_first_figure, gaps)),
        next_steps=gaps_steps(gaps),
        sentences=tuple(sentences),
        sections=(
            Section("parts", question, blocks=parts, short_title="Parts of the gap"),
            Section("properties", "What was examined?", blocks=(_property_table(gaps),)),
            provenance(gaps.spec),
        ),
        legend=tuple(_legend(gaps)),
        notes=cautions,
    )


def _first_figure(gaps: ExplainedGaps) -> Iterator[IntervalChart]:
    """Draw the gap of the headline, its parts by size, and what remains."""
    findings = gap_findings(gaps)
    if not findings:
        return
    gap = next((gap for gap in gaps.primary if gap.run == findings[0].run), None)
    if gap is None:
        return
    lines = [line for line in _lines(gaps) if line.gaps[0] is gap]
    marks = [_gap_mark(line, gap.outcome) for line in lines]
    yield gap_chart(
        GapScale(
            run=gap.run,
            higher_above_0=gap.group_a,
            higher_below_0=gap.group_b,
            unit=UNITS[gap.outcome],
            digits=DIGITS[gap.outcome],
        ),
        marks[0],
        marks[1:],
    )


def _gap_mark(line: PartLine, outcome: Outcome) -> GapMark:
    """Return the mark of a line's value in one outcome.

    What remains is not tested; in the chart it counts as shown where its interval excludes 0.
    """
    estimate = line.estimate(outcome)
    if estimate is None:
        return GapMark(label=line.name, value=nan, low=nan, high=nan, is_shown=False)
    excludes_0 = not estimate.low <= 0 <= estimate.high
    return GapMark(
        label=line.name,
        value=estimate.value,
        low=estimate.low,
        high=estimate.high,
        is_shown=estimate.is_shown or (line.name == REMAINS and excludes_0),
        note=_higher_group(line),
    )


def _higher_group(line: PartLine) -> str:
    """Say which group has more of a line's property; empty for the gap and what remains."""
    part = line.primary_part
    if part is None:
        return ""
    gap = line.gaps[0]
    return f"higher in {gap.group_a if part.difference > 0 else gap.group_b}"


def _lines(gaps: ExplainedGaps) -> Iterator[PartLine]:
    """Yield the lines of each run and pair of groups: gap, parts by size, and what remains."""
    for primary in gaps.primary:
        pair = (primary.run, primary.group_a, primary.group_b)
        all_gaps = chain.from_iterable(gaps.of_outcome(outcome) for outcome in OUTCOMES)
        gaps_of_pair = tuple(gap for gap in all_gaps if (gap.run, gap.group_a, gap.group_b) == pair)
        yield PartLine(name=ALL, gaps=gaps_of_pair)
        for part in _by_size(primary.parts):
            yield PartLine(name=part.property_name, gaps=gaps_of_pair)
        yield PartLine(name=REMAINS, gaps=gaps_of_pair)


def _by_size(parts: Sequence[GapPart]) -> list[GapPart]:
    """Return the parts of a gap, the largest of either sign first."""
    return sorted(parts, key=lambda part: -abs(part.value))


def _outcomes(gaps: ExplainedGaps) -> list[Outcome]:
    """Return the outcomes in which there are gaps, the primary one first; at most four."""
    outcomes = {gap.outcome for gap in gaps.gaps}
    return [outcome for outcome in OUTCOMES if outcome in outcomes]


def _parts_table(gaps: ExplainedGaps) -> Table:
    """Return the table of gaps and their parts, with a column for each outcome.

    After the primary outcome come its p and what the regression says of each property.
    """
    units = {gap_property.name: gap_property.unit for gap_property in gaps.properties}
    columns: list[ColumnSpec] = [(name_column("goes with"), attrgetter("name"))]
    for index, outcome in enumerate(_outcomes(gaps)):
        is_primary = index == 0
        # The primary outcome stays; of the others a narrow terminal leaves out the last first.
        drop_order = 0 if is_primary else len(OUTCOMES) - index
        column = _outcome_column(outcome, gaps.cutoff, drop_order)
        columns.append((column, partial(_estimate_cell, outcome)))
        if is_primary:
            columns += [
                (Column("corrected p", drop_order=6), _p_cell),
                (_difference_column(), partial(_difference_cell, units)),
                (_coefficient_column(), _coefficient_cell),
            ]
    return make_table(
        "What goes with the gap",
        list(_lines(gaps)),
        columns,
        group_of=lambda line: line.group,
        group_titles=("run and groups",),
        collapsed=True,
    )


def _outcome_column(outcome: Outcome, cutoff: int, drop_order: int) -> Column:
    """Return the column of an outcome, whose title has its unit."""
    title = f"{_TITLES[outcome].format(cutoff)}, {UNITS[outcome]}"
    return Column(title, hint=_HINTS[outcome], drop_order=drop_order)


def _difference_column() -> Column:
    """Return the column of how much more of a property the group marked + has."""
    return Column(
        "difference",
        hint="How much more of the property the group marked + has within lists, in its own unit.",
        drop_order=5,
    )


def _coefficient_column() -> Column:
    """Return the column of regression coefficients, for one standard deviation of a property."""
    return Column(
        "one sd goes with",
        hint="What one standard deviation of the property goes with, if other properties and the "
        "group are equal.",
        drop_order=4,
    )


def _estimate_cell(outcome: Outcome, line: PartLine) -> Cell:
    """Return the cell of a line's value in one outcome, strong and with a star where shown."""
    estimate = line.estimate(outcome)
    if estimate is None:
        return Cell(DASH)
    show = partial(signed, digits=DIGITS[outcome])
    if estimate.is_shown:
        return estimate_cell(estimate, show, "*", neutral=0.0, emphasis="strong")
    return estimate_cell(estimate, show, neutral=0.0)


def _p_cell(line: PartLine) -> Cell:
    """Return the cell of a line's corrected p in the primary outcome."""
    return number_cell(line.p_corrected, p_value)


def _difference_cell(units: dict[str, str], line: PartLine) -> Cell:
    """Return the cell of how much more of the property the group marked + has, in its unit."""
    part = line.primary_part
    if part is None:
        return Cell(DASH)
    sign = "+" if part.difference > 0 else ""
    unit = units.get(part.property_name, "")
    text = f"{sign}{short_decimal(part.difference)}"
    return Cell(f"{text} {unit}".strip(), part.difference)


def _coefficient_cell(line: PartLine) -> Cell:
    """Return the cell of the regression coefficient of the property, in the primary outcome."""
    part = line.primary_part
    if part is None:
        return Cell(DASH)
    digits = DIGITS[line.gaps[0].outcome]
    return Cell(signed(part.coefficient, digits), part.coefficient)


def _figures(gaps: ExplainedGaps) -> Iterator[Block]:
    """Yield a figure of the gaps in each run's primary outcome, one for each outcome.

    Runs may differ in it: those without scores have ranks alone.
    """
    for outcome in _outcomes(gaps):
        primary_gaps = [gap for gap in gaps.primary if gap.outcome == outcome]
        if primary_gaps:
            yield _figure(primary_gaps, outcome)


def _figure(primary_gaps: Sequence[ExplainedGap], outcome: Outcome) -> Figure:
    """Draw gaps, their parts and what remains, all in one outcome."""
    marks: dict[str, list[Mark]] = {}
    for gap in primary_gaps:
        rows = [Mark(label=ALL, value=gap.value, low=gap.low, high=gap.high)]
        for part in _by_size(gap.parts):
            rows.append(
                Mark(label=part.property_name, value=part.value, low=part.low, high=part.high)
            )
        rows.append(
            Mark(label=REMAINS, value=gap.remaining, low=gap.remaining_low, high=gap.remaining_high)
        )
        marks[_sign_heading(gap)] = rows
    description = (
        "The gap between groups within lists, the part that goes with each property, and what "
        "remains at equal properties, with 95 % intervals; parts and rest add up to the gap."
    )
    drawing = forest(marks, x=f"gap, {UNITS[outcome]}")
    return Figure("What the gap goes with", description, drawing, collapsed=True)


def _property_table(gaps: ExplainedGaps) -> Table:
    """Return the table of properties, with their units and where they were read from."""
    columns: list[ColumnSpec] = [
        (name_column("property"), attrgetter("name")),
        (text_column("unit"), lambda gap_property: gap_property.unit or DASH),
        (text_column("from"), _property_source),
    ]
    return make_table("Properties", gaps.properties, columns, audience="page", collapsed=True)


def _property_source(gap_property: GapProperty) -> str:
    """Say where a property was read from."""
    return _PROPERTY_SOURCES[gap_property.kind]


def _legend(gaps: ExplainedGaps) -> Iterator[str]:
    """Yield sentences on the number of lists and documents, on gaps and parts, and on tests."""
    if len(gaps.primary) == 1:
        yield f"{basis_sentence(gaps.primary[0])}."
    else:
        for gap in gaps.primary:
            yield f"{gap.run}, {gap.group_a} and {gap.group_b}: {basis_sentence(gap)}."
    yield (
        "Gap: the group marked + minus the other within lists, by regression with an effect per "
        "query. Part: how much more of a property the group marked + has, times what the property "
        "goes with if others are equal (Gelbach 2016). Parts and rest add up to the gap, in any "
        "order of properties; parts of different signs offset each other, so one can be larger "
        "than the gap."
    )
    yield (
        f"* corrected p < .05 ({_correction(gaps)}, over all gaps, and over all parts, of a "
        "column). Intervals (95 %) and p: of other queries and other documents. "
        f"{INTERVAL_CAUTION}"
    )


def _correction(gaps: ExplainedGaps) -> str:
    """Name the correction of p-values for several tests."""
    return str(gaps.spec.get("correction", "holm")).capitalize()
