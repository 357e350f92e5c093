"""Sections of an audit of judges on agreement: which judge to trust, how far each agrees.

A *judge* is a model that grades how well a document answers a query, in place of humans. Agreement
with human grades is measured by coefficients, such as Cohen's κ. A *standing* is a judge's
agreement among all judges, with letters: two that share one cannot be distinguished. A *contest* is
the comparison of all judges on one statistic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
"""Coefficients of agreement: fields of `Agreement`, with the titles of their columns."""
_MOST_DRAWN = 12
"""Most rows of the first screen's figure."""
_MOST_PRINTED = 3
"""Most judges whose tables of grades are printed in text; a page always has them, collapsed."""


def trust_section(audit: JudgeAudit) -> Iterator[Section]:
    """Yield the section on which judge agrees best with humans; nothing for a single judge."""
    judges = main_contest(audit)
    if judges is None:
        return
    tables = (_standing_table(audit), _comparison_table(audit))
    # The first figure draws the standings, so the tables are collapsed.
    blocks = tuple(replace(table, collapsed=True) for table in tables)
    yield Section("trust", "Which judge can you trust?", blocks=blocks)


def first_figure_chart(audit: JudgeAudit) -> Iterator[IntervalChart]:
    """Draw the agreement of each judge with humans, the best first.

    For a single judge, or judges that cannot be compared, draw all coefficients.
    """
    judges = main_contest(audit)
    if judges is not None:
        yield _standing_chart(judges)
    elif audit.agreements:
        yield _coefficient_chart(_best_first(audit))


def _best_first(audit: JudgeAudit) -> list[Agreement]:
    """Return the agreement of each judge over all graded pairs, the highest κ first."""
    standings = audit.standings_by("kappa", "")
    rank_of = {standing.judge: rank for rank, standing in enumerate(standings)}
    return sorted(audit.overall, key=lambda row: rank_of[row.judge])


def _standing_chart(judges: Contest) -> IntervalChart:
    """Draw the agreement of each judge; colours tell judges that are worse than the best.

    There are no colours if the judges were not tested against each other.
    """
    worse = {standing.judge for standing in judges.worse}
    standings = (judges.best, *judges.indistinct, *judges.worse)
    drawn = sorted(standings, key=lambda standing: -standing.value)[:_MOST_DRAWN]
    rows = []
    for standing in drawn:
        tone: Tone = "unsure" if standing.judge in worse else "good"
        reading = IntervalReading(
            mark=IntervalMark(value=standing.value, low=standing.low, high=standing.high),
            text=standing_words(standing),
            tone=tone if judges.is_tested else "",
        )
        rows.append(IntervalRow(label=standing.judge, readings=(reading,)))
    statistic = statistic_name(judges.best)
    description = "Black: agreement by chance. Line: 95 % interval of each judge by itself."
    if judges.is_tested:
        description += " Green: cannot be distinguished from the best, on the same queries."
    if len(drawn) < len(standings):
        description += f" Drawn: the best {len(drawn)} of {len(standings)} judges."
    return interval_chart(
        f"Agreement of each judge with humans: {statistic}",
        description,
        rows,
        scale_titles=[f"{statistic}; 1 is full agreement"],
    )


def _standing_table(audit: JudgeAudit) -> Table:
    """Return the table of the judges' agreement, with the difference of each from the best."""
    comparisons = _comparisons_with_best(audit)

    def difference_cell(standing: JudgeStanding) -> Cell:
        comparison = comparisons.get(_standing_key(standing))
        if comparison is None:  # the best itself
            return Cell("")
        # The comparison is best − judge; the column is judge − best.
        difference = Estimate(-comparison.difference, -comparison.high, -comparison.low)
        star = "*" if comparison.is_shown else ""
        return estimate_cell(difference, partial(signed, digits=2), star, neutral=0.0)

    def p_cell(standing: JudgeStanding) -> Cell:
        comparison = comparisons.get(_standing_key(standing))
        return Cell("") if comparison is None else number_cell(comparison.p_corrected, p_value)

    columns: list[ColumnSpec] = [
        (name_column("judge"), attrgetter("judge")),
        ("agreement", lambda standing: estimate_cell(standing, fixed)),
        (text_column("letters"), attrgetter("letters")),
        (Column("minus the best", drop_order=2), difference_cell),
        (Column("corrected p", drop_order=1), p_cell),
    ]
    return make_table(
        "Judges, the best first",
        audit.standings,
        columns,
        group_of=lambda standing: (statistic_name(standing),),
        group_titles=("by",),
        note="Judges that share a letter cannot be distinguished.",
    )


def _standing_key(standing: JudgeStanding) -> tuple[str, str, str]:
    """Return statistic, measure and judge, which no two standings share."""
    return standing.statistic, standing.measure, standing.judge


def _comparisons_with_best(audit: JudgeAudit) -> dict[tuple[str, str, str], JudgeComparison]:
    """Return the comparison of each judge with the best, by statistic, measure and judge."""
    comparisons = dict[tuple[str, str, str], JudgeComparison]()
    statistics = dict.fromkeys((row.statistic, row.measure) for row in audit.standings)
    for statistic, measure in statistics:
        judges = contest(audit, statistic, measure)
        if judges is None:
            continue
        for row in audit.comparisons:
            is_same = (row.statistic, row.measure) == (statistic, measure)
            if is_same and row.judge_a == judges.best.judge:
                comparisons[statistic, measure, row.judge_b] = row
    return comparisons


def _comparison_table(audit: JudgeAudit) -> Table:
    """Return the table of the differences between every two judges."""
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
    """Return the cell of the difference of two judges, with a star if corrected p is below .05."""
    difference = Estimate(row.difference, row.low, row.high)
    star = "*" if row.is_shown else ""
    return estimate_cell(difference, partial(signed, digits=2), star, neutral=0.0)


def agreement_section(audit: JudgeAudit) -> Iterator[Section]:
    """Yield the section on how far each judge agrees with humans, and on which pairs it does not.

    A pair is a query and a document that both graded; nothing where grades are not known.
    """
    if not audit.agreements:
        return
    overall_columns: list[ColumnSpec] = [
        (name_column("judge"), attrgetter("judge")),
        *_coefficient_columns(),
    ]
    overall_table = make_table(
        "Agreement with human grades",
        _best_first(audit),
        overall_columns,
        # Of several judges the section on trust has a table with κ already.
        collapsed=main_contest(audit) is not None,
    )
    blocks: list[Block] = [overall_table]
    strata = [row for row in audit.agreements if row.stratum != "all"]
    if strata:
        stratum_table = make_table(
            "Agreement by what documents have in common",
            strata,
            [(name_column("pairs"), attrgetter("stratum")), *_coefficient_columns()],
            group_of=lambda row: (row.judge,),
            group_titles=("judge",),
            collapsed=True,
        )
        blocks.append(stratum_table)
    if audit.weaknesses:
        blocks.append(_weakness_table(audit))
    blocks += dose_blocks(audit)
    blocks += [_confusion_table(audit), _query_table(audit)]
    yield Section("agreement", "How far does a judge agree with humans?", blocks=tuple(blocks))


def _coefficient_chart(agreements: Sequence[Agreement]) -> IntervalChart:
    """Draw every coefficient of each judge but the share of equal grades, which chance inflates."""
    rows = []
    for agreement in agreements:
        judge = f"{agreement.judge}: " if len(agreements) > 1 else ""
        for field, title in _COEFFICIENTS:
            if field == "exact":
                continue
            value, low, high = getattr(agreement, field)
            reading = IntervalReading(
                mark=IntervalMark(value=value, low=low, high=high),
                text=coefficient_words(value, low, high),
            )
            rows.append(IntervalRow(label=judge + title, readings=(reading,)))
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


def _weakness_table(audit: JudgeAudit) -> Table:
    """Return the table of how edits of a passage, such as repeated words, raise its grade."""
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
    """Return the cell of the mean difference that an edit makes to the grade."""
    edit = weakness.edit
    gap = Estimate(edit.gap, edit.low, edit.high)
    return estimate_cell(gap, partial(signed, digits=2), neutral=0.0)


def _coefficient_columns() -> list[ColumnSpec]:
    """Return a column for each coefficient, for the mean difference of grades, and for pairs."""
    columns: list[ColumnSpec] = []
    for field, title in _COEFFICIENTS:
        drop_order = 2 if field in ("exact", "binary_kappa") else 0
        columns.append((Column(title, drop_order=drop_order), estimate_cells(field, fixed)))
    gap: ColumnSpec = (
        Column("judge − human", drop_order=1),
        estimate_cells("gap", partial(signed, digits=2)),
    )
    return [*columns, gap, (Column("pairs", drop_order=3), number_cells("pairs", with_commas))]


def _confusion_table(audit: JudgeAudit) -> Table:
    """Return the confusion matrix of each judge: how many pairs have which two grades."""
    grades = range(audit.spec["top_grade"] + 1)
    rows = []
    for judge in audit.judges:
        pair_counts = {
            (row.human, row.grade): row.pairs for row in audit.confusions if row.judge == judge
        }
        for human in grades:
            counts = (number_cell(pair_counts[human, grade], with_commas) for grade in grades)
            rows.append(Row((Cell(str(human)), *counts), (judge,)))
    columns = (name_column("human grade"), *(Column(f"judge {grade}") for grade in grades))
    return Table(
        "Pairs by human grade and the judge's",
        columns,
        tuple(rows),
        group_titles=("judge",),
        collapsed=True,
        audience="page" if len(audit.judges) > _MOST_PRINTED else "",
    )
