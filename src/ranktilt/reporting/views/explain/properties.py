"""Gaps split among properties: a table of parts, their figure, and how they are read."""

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
from ranktilt.reporting.sentences.verdicts import ONE_AT_A_TIME
from ranktilt.reporting.views.explain.gap_chart import ALL, REMAINS, GapMark, GapScale, gap_chart

_TITLES: dict[Outcome, str] = {
    "score": "score",
    "rank": "rank",
    "first ranks": "first {}",
    "cited": "cited",
}
"""Heading of an outcome."""
_ORIGINS = {"column": "a column of numbers", "text": "the texts", "list": "the search results"}
"""Words for where a property comes from."""
_HINTS: dict[Outcome, str] = {
    "score": "In standard deviations of the list's scores; + is for the group marked +.",
    "rank": "In ranks; + is for the group marked +.",
    "first ranks": "Chance to be among the first ranks, in percentage points.",
    "cited": "Citation rate within questions, in percentage points.",
}
"""Explanation of an outcome."""


@dataclass(frozen=True, kw_only=True)
class CellEstimate:
    """A value of a cell, with its interval."""

    value: float
    """The value."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""
    is_shown: bool
    """Whether it surely is not 0."""


@dataclass(frozen=True, kw_only=True)
class PartLine:
    """A line of the table: the gap, one of its parts, or what remains."""

    name: str
    """What the line is of."""
    gaps: tuple[ExplainedGap, ...]
    """The same run and pair in every outcome, the primary one first."""

    def part(self, gap: ExplainedGap) -> GapPart | None:
        """Return the part of a gap that the line is of; None for the gap itself."""
        return next((part for part in gap.parts if part.property_name == self.name), None)

    def estimate(self, outcome: Outcome) -> CellEstimate | None:
        """Return what the line shows in one outcome."""
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
        """The same part of the first gap."""
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
    """Say whose sign is whose: ``engine: + is for shop, − for forum``."""
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
    """Draw the gap that leads, its parts by size, and what remains."""
    findings = gap_findings(gaps)
    gap = next((gap for gap in gaps.primary if findings and gap.run == findings[0].run), None)
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
    """Return a line's value in one outcome, as a chart draws it."""
    part = line.estimate(outcome)
    if part is None:
        return GapMark(label=line.name, value=nan, low=nan, high=nan, is_shown=False)
    return GapMark(
        label=line.name,
        value=part.value,
        low=part.low,
        high=part.high,
        is_shown=part.is_shown or (line.name == REMAINS and not part.low <= 0 <= part.high),
        note=_more_in(line),
    )


def _more_in(line: PartLine) -> str:
    """Say which group has more of a property; nothing of the gap and of what remains."""
    part = line.primary_part
    if part is None:
        return ""
    gap = line.gaps[0]
    return f"higher in {gap.group_a if part.difference > 0 else gap.group_b}"


def _lines(gaps: ExplainedGaps) -> Iterator[PartLine]:
    """Yield the gap of each run and pair, its parts by size, and what remains."""
    for primary in gaps.primary:
        pair = (primary.run, primary.group_a, primary.group_b)
        of_outcomes = chain.from_iterable(gaps.of_outcome(outcome) for outcome in OUTCOMES)
        same = tuple(gap for gap in of_outcomes if (gap.run, gap.group_a, gap.group_b) == pair)
        yield PartLine(name=ALL, gaps=same)
        for part in sorted(primary.parts, key=_size):
            yield PartLine(name=part.property_name, gaps=same)
        yield PartLine(name=REMAINS, gaps=same)


def _size(part: GapPart) -> float:
    """Return a number that sorts parts, the largest first."""
    return -abs(part.value)


def _outcomes(gaps: ExplainedGaps) -> list[Outcome]:
    """Return the outcomes that there are gaps in."""
    outcomes = {gap.outcome for gap in gaps.gaps}
    return [outcome for outcome in OUTCOMES if outcome in outcomes]


def _parts_table(gaps: ExplainedGaps) -> Table:
    """Return the table of gaps and their parts."""
    units = {about.name: about.unit for about in gaps.properties}
    columns: list[ColumnSpec] = [(name_column("goes with"), attrgetter("name"))]
    for index, outcome in enumerate(_outcomes(gaps)):
        title = f"{_title(outcome, gaps.cutoff)}, {UNITS[outcome]}"
        head = Column(title, hint=_HINTS[outcome], drop_order=0 if index == 0 else 4 - index)
        columns.append((head, partial(_estimate_cell, outcome)))
        if index == 0:
            columns.append((Column("corrected p", drop_order=6), _p_cell))
            columns.append((_difference_column(), partial(_difference_cell, units)))
            columns.append((_coefficient_column(), _coefficient_cell))
    return make_table(
        "What goes with the gap",
        list(_lines(gaps)),
        columns,
        group_of=lambda line: line.group,
        group_titles=("run and groups",),
        collapsed=True,
    )


def _title(outcome: Outcome, cutoff: int) -> str:
    """Return the heading of an outcome."""
    return _TITLES[outcome].format(cutoff)


def _difference_column() -> Column:
    """Return the column of how much more of a property the first group has."""
    return Column(
        "difference",
        hint="How much more of the property the group marked + has within lists, in its own unit.",
        drop_order=5,
    )


def _coefficient_column() -> Column:
    """Return the column of what a standard deviation of a property goes with."""
    return Column(
        "one sd goes with",
        hint="What one standard deviation of the property goes with, if other properties and the "
        "group are equal.",
        drop_order=4,
    )


def _estimate_cell(outcome: Outcome, line: PartLine) -> Cell:
    """Print a line's value in one outcome."""
    cell_estimate = line.estimate(outcome)
    if cell_estimate is None:
        return Cell(DASH)
    show = partial(signed, digits=DIGITS[outcome])
    if cell_estimate.is_shown:
        return estimate_cell(cell_estimate, show, "*", emphasis="strong")
    return estimate_cell(cell_estimate, show)


def _p_cell(line: PartLine) -> Cell:
    """Print a line's corrected p."""
    return number_cell(line.p_corrected, p_value)


def _difference_cell(units: dict[str, str], line: PartLine) -> Cell:
    """Print how much more of the property the first group has."""
    part = line.primary_part
    if part is None:
        return Cell(DASH)
    sign = "+" if part.difference > 0 else ""
    unit = units.get(part.property_name, "")
    text = f"{sign}{short_decimal(part.difference)}"
    return Cell(f"{text} {unit}".strip(), part.difference)


def _coefficient_cell(line: PartLine) -> Cell:
    """Print what a standard deviation of the property goes with."""
    part = line.primary_part
    if part is None:
        return Cell(DASH)
    digits = DIGITS[line.gaps[0].outcome]
    return Cell(signed(part.coefficient, digits), part.coefficient)


def _figures(gaps: ExplainedGaps) -> Iterator[Block]:
    """Draw the parts of every gap, those of one unit together."""
    for outcome in _outcomes(gaps):
        primary = [gap for gap in gaps.primary if gap.outcome == outcome]
        if primary:
            yield _figure(primary, outcome)


def _figure(primary: Sequence[ExplainedGap], outcome: Outcome) -> Figure:
    """Return the figure of gaps and their parts."""
    marks: dict[str, list[Mark]] = {}
    for gap in primary:
        rows = [Mark(label=ALL, value=gap.value, low=gap.low, high=gap.high)]
        for part in sorted(gap.parts, key=_size):
            rows.append(
                Mark(label=part.property_name, value=part.value, low=part.low, high=part.high)
            )
        rows.append(
            Mark(label=REMAINS, value=gap.remaining, low=gap.remaining_low, high=gap.remaining_high)
        )
        marks[_sign_heading(gap)] = rows
    says = (
        "The gap between groups within lists, the part that goes with each property, and what "
        "remains at equal properties, with 95 % intervals; parts and rest add up to the gap."
    )
    drawing = forest(marks, x=f"gap, {UNITS[outcome]}")
    return Figure("What the gap goes with", says, drawing, collapsed=True)


def _property_table(gaps: ExplainedGaps) -> Table:
    """Return the table of properties."""
    columns: list[ColumnSpec] = [
        (name_column("property"), attrgetter("name")),
        (text_column("unit"), lambda about: about.unit or DASH),
        (text_column("from"), _origin),
    ]
    return make_table("Properties", gaps.properties, columns, audience="page", collapsed=True)


def _origin(about: GapProperty) -> str:
    """Say where a property comes from."""
    return _ORIGINS[about.kind]


def _legend(gaps: ExplainedGaps) -> Iterator[str]:
    """Say what the numbers are."""
    sizes = {gap.run: basis_sentence(gap) for gap in gaps.primary}
    if len(gaps.primary) == 1:
        yield f"{next(iter(sizes.values()))}."
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
        f"{ONE_AT_A_TIME}"
    )


def _correction(gaps: ExplainedGaps) -> str:
    """Name the correction."""
    return str(gaps.spec.get("correction", "holm")).capitalize()
