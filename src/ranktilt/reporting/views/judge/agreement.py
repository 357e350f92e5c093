"""Agreement of judges: which one you can trust, and how far each agrees with humans."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter

from ranktilt.judging.records import Agreement, Estimate, JudgeComparison, JudgeStanding, Weakness
from ranktilt.judging.result import JudgeAudit
from ranktilt.reporting.document import (
    Block,
    Cell,
    Column,
    ColumnSpec,
    Row,
    Section,
    Table,
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
from ranktilt.reporting.numbers import (
    decimal,
    estimate_cell,
    estimate_cells,
    fixed,
    number_cell,
    number_cells,
    p_value,
    signed,
    with_commas,
)
from ranktilt.reporting.sentences.judging.standings import (
    Contest,
    coefficient_words,
    contest,
    main_contest,
    standing_words,
    statistic_name,
)
from ranktilt.reporting.tones import Tone
from ranktilt.reporting.views.judge.doses import dose_blocks

_COEFFICIENTS: tuple[tuple[str, str], ...] = (
    ("exact", "same grade"),
    ("kappa", "κ"),
    ("binary_kappa", "binary κ"),
    ("weighted_kappa", "weighted κ"),
    ("alpha", "α"),
)
"""Coefficients of agreement, with the headings of their columns."""
_MOST_DRAWN = 12
"""Rows of the first screen's figure."""
_MOST_PRINTED = 3
"""Judges whose tables of grades are printed as text; a page folds them."""


def trust_section(audit: JudgeAudit) -> Iterator[Section]:
    """Show which of several judges agrees best with humans, and who cannot be distinguished."""
    judges = main_contest(audit)
    if judges is None:
        return
    tables = (_standing_table(audit), _comparison_table(audit))
    # The first figure draws the standings.
    blocks = tuple(replace(table, collapsed=True) for table in tables)
    yield Section("trust", "Which judge can you trust?", blocks=blocks)


def first_figure_chart(audit: JudgeAudit) -> Iterator[IntervalChart]:
    """Draw the agreement of each judge with humans, the best first; one has coefficients."""
    judges = main_contest(audit)
    if judges is not None:
        yield _standing_chart(judges)
    elif audit.agreements:
        yield _coefficient_chart(_best_first(audit))


def _best_first(audit: JudgeAudit) -> list[Agreement]:
    """Return the agreement of each judge over all pairs, the highest κ first."""
    standings = audit.standings_by("kappa", "")
    rank_of = {standing.judge: rank for rank, standing in enumerate(standings)}
    return sorted(audit.overall, key=lambda row: rank_of[row.judge])


def _standing_chart(judges: Contest) -> IntervalChart:
    """Return the chart of the judges' agreement."""
    worse = {standing.judge for standing in judges.worse}
    standings = (judges.best, *judges.indistinct, *judges.worse)
    ordered = sorted(standings, key=lambda standing: -standing.value)[:_MOST_DRAWN]
    rows = []
    for standing in ordered:
        tone: Tone = "unsure" if standing.judge in worse else "good"
        reading = IntervalReading(
            mark=IntervalMark(value=standing.value, low=standing.low, high=standing.high),
            text=standing_words(standing),
            tone=tone if judges.is_tested else "",
        )
        rows.append(IntervalRow(label=standing.judge, readings=(reading,)))
    name = statistic_name(judges.best)
    says = "Black: agreement by chance. Line: 95 % interval of each judge by itself."
    if judges.is_tested:
        says += " Green: cannot be distinguished from the best, on the same queries."
    if len(ordered) < len(standings):
        says += f" Drawn: the best {len(ordered)} of {len(standings)} judges."
    return interval_chart(
        f"Agreement of each judge with humans: {name}",
        says,
        rows,
        scale_titles=[f"{name}; 1 is full agreement"],
    )


def _standing_table(audit: JudgeAudit) -> Table:
    """Return the table of the judges' agreement."""
    with_best = _differences_from_best(audit)

    def difference(standing: JudgeStanding) -> Cell:
        comparison = with_best.get(_key(standing))
        if comparison is None:
            return Cell("")
        below = Estimate(-comparison.difference, -comparison.high, -comparison.low)
        return estimate_cell(below, partial(signed, digits=2), "*" if comparison.is_shown else "")

    def corrected_p(standing: JudgeStanding) -> Cell:
        comparison = with_best.get(_key(standing))
        return Cell("") if comparison is None else number_cell(comparison.p_corrected, p_value)

    columns: list[ColumnSpec] = [
        (name_column("judge"), attrgetter("judge")),
        ("agreement", lambda standing: estimate_cell(standing, fixed)),
        (text_column("letters"), attrgetter("letters")),
        (Column("minus the best", drop_order=2), difference),
        (Column("corrected p", drop_order=1), corrected_p),
    ]
    return make_table(
        "Judges, the best first",
        audit.standings,
        columns,
        group_of=lambda standing: (statistic_name(standing),),
        group_titles=("by",),
        note="Judges that share a letter cannot be distinguished.",
    )


def _key(standing: JudgeStanding) -> tuple[str, str, str]:
    """Return what identifies a standing."""
    return standing.statistic, standing.measure, standing.judge


def _differences_from_best(audit: JudgeAudit) -> dict[tuple[str, str, str], JudgeComparison]:
    """Return the comparison of each judge with the best, by statistic, measure and judge."""
    comparisons = dict[tuple[str, str, str], JudgeComparison]()
    for statistic, measure in dict.fromkeys(
        (row.statistic, row.measure) for row in audit.standings
    ):
        judges = contest(audit, statistic, measure)
        for row in audit.comparisons if judges is not None else ():
            is_same = (row.statistic, row.measure) == (statistic, measure)
            if is_same and judges is not None and row.judge_a == judges.best.judge:
                comparisons[statistic, measure, row.judge_b] = row
    return comparisons


def _comparison_table(audit: JudgeAudit) -> Table:
    """Return the table of differences between judges."""
    columns: list[ColumnSpec] = [
        (name_column("judge"), attrgetter("judge_a")),
        (text_column("minus"), attrgetter("judge_b")),
        ("difference", _comparison_cell),
        ("p", number_cells("p", p_value)),
        ("corrected p", number_cells("p_corrected", p_value)),
        (Column("queries", drop_order=1), number_cells("queries", with_commas)),
    ]
    return make_table(
        "Every two judges",
        audit.comparisons,
        columns,
        group_of=lambda row: (row.measure or "κ",),
        group_titles=("by",),
        collapsed=True,
        audience="page",
    )


def _comparison_cell(row: JudgeComparison) -> Cell:
    """Print a difference, with a star where it is shown."""
    difference = Estimate(row.difference, row.low, row.high)
    return estimate_cell(difference, partial(signed, digits=2), "*" if row.is_shown else "")


def agreement_section(audit: JudgeAudit) -> Iterator[Section]:
    """Show how far each judge agrees with humans, and on which pairs it does not."""
    if not audit.agreements:
        return
    overall = _best_first(audit)
    columns: list[ColumnSpec] = [(name_column("judge"), attrgetter("judge")), *_coefficients()]
    # Of several judges the first table has κ already.
    is_folded = main_contest(audit) is not None
    blocks: list[Block] = [
        make_table("Agreement with human grades", overall, columns, collapsed=is_folded)
    ]
    strata = [row for row in audit.agreements if row.stratum != "all"]
    if strata:
        blocks.append(
            make_table(
                "Agreement by what documents have in common",
                strata,
                [(name_column("pairs"), attrgetter("stratum")), *_coefficients()],
                group_of=lambda row: (row.judge,),
                group_titles=("judge",),
                collapsed=True,
            )
        )
    if audit.weaknesses:
        blocks.append(_weaknesses(audit))
    blocks += dose_blocks(audit)
    blocks += [_confusion(audit), _query_table(audit)]
    yield Section("agreement", "How far does a judge agree with humans?", blocks=tuple(blocks))


def _coefficient_chart(agreements: Sequence[Agreement]) -> IntervalChart:
    """Draw the coefficients of a judge, or of judges that cannot be compared."""
    rows = []
    for agreement in agreements:
        front = f"{agreement.judge}: " if len(agreements) > 1 else ""
        for name, title in _COEFFICIENTS[1:]:
            value, low, high = getattr(agreement, name)
            reading = IntervalReading(
                mark=IntervalMark(value=value, low=low, high=high),
                text=coefficient_words(value, low, high),
            )
            rows.append(IntervalRow(label=front + title, readings=(reading,)))
    return interval_chart(
        "Agreement with human grades",
        "Black: agreement by chance; 1 is full agreement. Line: 95 % interval.",
        rows[:_MOST_DRAWN],
        scale_titles=["agreement"],
    )


def _query_table(audit: JudgeAudit) -> Table:
    """Return the table of agreement by query."""
    columns: list[ColumnSpec] = [
        (name_column("query"), attrgetter("query")),
        ("pairs", number_cells("pairs", with_commas)),
        ("same grade, %", number_cells("exact", decimal, scale=100)),
        ("weighted κ", number_cells("weighted_kappa", fixed)),
        ("judge − human", number_cells("gap", partial(signed, digits=2))),
    ]
    return make_table(
        "Agreement by query",
        audit.by_query,
        columns,
        group_of=lambda row: (row.judge,),
        group_titles=("judge",),
        collapsed=True,
        audience="page",
    )


def _weaknesses(audit: JudgeAudit) -> Table:
    """Return the table of how edits change grades."""
    columns: list[ColumnSpec] = [
        (name_column("edit"), attrgetter("edit.probe")),
        ("grade", number_cells("edit.original", fixed)),
        ("raised by", _raised_cell),
        ("raised, %", number_cells("edit.raised", decimal, scale=100)),
        (Column("pairs", drop_order=1), number_cells("edit.pairs", with_commas)),
        (Column("left out", drop_order=2), number_cells("edit.left_out", with_commas)),
    ]
    caption = "What may fool a judge: edits of passages with human grade 0"
    return make_table(
        caption,
        audit.weaknesses,
        columns,
        group_of=lambda row: (row.judge,),
        group_titles=("judge",),
    )


def _raised_cell(weakness: Weakness) -> Cell:
    """Print by how much an edit raises the grade."""
    edit = weakness.edit
    gap = Estimate(edit.gap, edit.low, edit.high)
    return estimate_cell(gap, partial(signed, digits=2))


def _coefficients() -> list[ColumnSpec]:
    """Return a column for each coefficient."""

    def cell_of(name: str) -> Callable[[Agreement], Cell]:
        return lambda row: estimate_cell(getattr(row, name), fixed)

    columns: list[ColumnSpec] = [
        (Column(title, drop_order=2 if name in ("exact", "binary_kappa") else 0), cell_of(name))
        for name, title in _COEFFICIENTS
    ]
    gap: ColumnSpec = (
        Column("judge − human", drop_order=1),
        estimate_cells("gap", partial(signed, digits=2)),
    )
    return [*columns, gap, (Column("pairs", drop_order=3), number_cells("pairs", with_commas))]


def _confusion(audit: JudgeAudit) -> Table:
    """Count the pairs of each human grade and each grade of a judge."""
    grades = range(audit.spec["top_grade"] + 1)
    rows = []
    for judge in audit.judges:
        cells = {
            (row.human, row.grade): row.pairs for row in audit.confusions if row.judge == judge
        }
        for human in grades:
            numbers = (
                Cell(with_commas(cells[human, grade]), cells[human, grade]) for grade in grades
            )
            rows.append(Row((Cell(str(human)), *numbers), (judge,)))
    columns = (name_column("human grade"), *(Column(f"judge {grade}") for grade in grades))
    return Table(
        "Pairs by human grade and the judge's",
        columns,
        tuple(rows),
        group_titles=("judge",),
        collapsed=True,
        audience="page" if len(audit.judges) > _MOST_PRINTED else "",
    )
