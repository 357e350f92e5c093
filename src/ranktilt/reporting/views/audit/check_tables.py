"""Tables that question an audit's answers: other tests of p, repeats, and errors of labels.

An *answer* is the value of a measure (an *effect*) for one ranker and two groups of documents.

- *Checks* are p-values of the same answers by other tests. No verdict rests on them.
- *Repeats* are rankings of the same queries by one engine. The variance of each answer is split
  into parts (queries, documents, error rates of labels, repeats), and a second table has the
  standard error that other numbers of repeats would give.
- A label says which group a document belongs to, and its *error rate* is the share of a group's
  documents whose label names the other group. A table says how wrong labels would have to be to
  explain each finding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from math import inf
from operator import attrgetter

from ranktilt.auditing.label_errors.sensitivity import LabelSensitivity
from ranktilt.auditing.repeats.components import REPEAT_COUNTS, RepeatComponents
from ranktilt.auditing.result import Audit
from ranktilt.errors import counted
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.reporting.document import (
    Cell,
    Column,
    ColumnSpec,
    Row,
    Table,
    make_table,
    name_column,
    text_column,
)
from ranktilt.reporting.numbers import decimal, number_cell, number_cells, p_value, with_commas

REPEATS_LEAD = (
    "Repeats are averaged within each query; they never count as more queries. The tables split "
    "the variance of each answer: what other queries, other documents and other repeats would "
    "change. More repeats take away the last part alone. Ranked lists on this page are those of "
    "the first repeat."
)
"""Lead of the section on repeats."""
SENSITIVITY_LEAD = (
    "Label errors that do not depend on rank only pull an answer toward neutral. Errors that are "
    "more frequent in the first ranks than in the list can make a finding. The table shows how "
    "much more often labels would have to be wrong there to explain each finding."
)
"""Lead of the section on errors of labels."""
_TEST_MEANINGS = {
    "sign flips": "sign flips exchange the sides of queries",
    "exchanged labels": "exchanged labels exchange those of documents, alike in all queries",
    "shuffled labels": "shuffled labels are dealt to the documents at random",
}
"""Explanation of each test of the table of checks, by its name."""
# Hints of columns: texts that a page shows when the title is pointed at.
_NEEDED = "Least number of repeats with which the present value would be decided."
_RATES = "What other documents in the checked sample would change."
_RANGE = "Smallest and largest answer of one repeat."
_ONE_KIND = "Only one group is mistaken for the other."
_BOTH_KINDS = "One group is mistaken more often, and the other as much less often."


def check_table(audit: Audit) -> Table | None:
    """Return the table of each answer's p and those of other tests; None where none was made."""
    # The card repeats the primary Relative Δ, which is among the tilts.
    card = [effect for effect in audit.card if not isinstance(effect.estimand, RelativeDelta)]
    effects = [effect for effect in (*audit.tilts, *card) if effect.checks]
    if not effects:
        return None
    tests = list(dict.fromkeys(chain.from_iterable(effect.checks for effect in effects)))
    rows = []
    for effect in effects:
        checks = (number_cell(effect.checks.get(test, float("nan")), p_value) for test in tests)
        groups = f"{effect.a} | {effect.b}"
        cells = (Cell(effect.name), Cell(groups), number_cell(effect.p, p_value), *checks)
        rows.append(Row(cells, (effect.run,)))
    columns = (
        name_column("question"),
        name_column("groups"),
        Column("p"),
        *map(Column, tests),
    )
    return Table(
        "Checks of p",
        columns,
        tuple(rows),
        note=_check_note(tests),
        group_titles=("run",),
        collapsed=True,
        audience="page",
    )


def _check_note(tests: Sequence[str]) -> str:
    """Say how p was computed, and what each of the other tests does."""
    meanings = "; ".join(meaning for test, meaning in _TEST_MEANINGS.items() if test in tests)
    return (
        "p is the level at which the interval first excludes the neutral value, before "
        f"correction. Checks assume less, detect less and decide nothing: {meanings}."
    )


def _amount(row: RepeatComponents, value: float, *, sign: bool) -> str:
    """Print a number in the unit of the row's question."""
    if row.is_effectiveness:  # already in percent
        return decimal(value)
    return row.estimand.amount(value, sign=sign)


def _range_cell(row: RepeatComponents) -> Cell:
    """Return the cell of the smallest and the largest answer of a single repeat."""
    lowest, highest = min(row.values), max(row.values)
    sign = row.estimand.signed
    return Cell(f"{_amount(row, lowest, sign=sign)} to {_amount(row, highest, sign=sign)}", lowest)


def _error_cells(repeats: float) -> Callable[[RepeatComponents], Cell]:
    """Return the function that makes the cells of the standard error with a number of repeats."""

    def error_cell(row: RepeatComponents) -> Cell:
        error = row.error_limit  # that of infinitely many repeats
        for error_at in row.errors:
            if error_at.repeats == repeats:
                error = error_at.error
        return Cell(_amount(row, error, sign=False), error)

    return error_cell


def _needed_cell(row: RepeatComponents) -> Cell:
    """Return the cell of how many repeats decide an answer; a dash where there is no verdict.

    An answer that no number of repeats decides needs more queries.
    """
    if not row.has_verdict:
        return Cell("–", inf)
    if row.least_repeats is None:
        return Cell("more queries", inf)
    return Cell(with_commas(row.least_repeats), row.least_repeats)


def _group_names(row: RepeatComponents) -> str:
    """Name the groups that are compared; empty for effectiveness."""
    return "" if row.is_effectiveness else f"{row.a} | {row.b}"


_ANSWER_COLUMNS: tuple[ColumnSpec, ...] = (
    (name_column("ranker"), attrgetter("run")),
    (text_column("question"), attrgetter("question")),
    (text_column("groups"), _group_names),
)
_RATE_COLUMN: ColumnSpec = (
    Column("error rates, %", hint=_RATES),
    number_cells("label_share", decimal, scale=100),
)
_SHARE_COLUMNS: tuple[ColumnSpec, ...] = (
    (Column("one repeat", hint=_RANGE), _range_cell),
    (Column("queries, %"), number_cells("query_share", decimal, scale=100)),
    (Column("documents, %"), number_cells("document_share", decimal, scale=100)),
    _RATE_COLUMN,
    (Column("repeats, %"), number_cells("repeat_share", decimal, scale=100)),
    (Column("repeats needed", hint=_NEEDED), _needed_cell),
)
_ERROR_COLUMNS: tuple[ColumnSpec, ...] = (
    *(
        (Column(counted(repeats, "repeat", "repeats")), _error_cells(repeats))
        for repeats in REPEAT_COUNTS
    ),
    (Column("endlessly many"), _error_cells(inf)),
)


def repeat_tables(components: Sequence[RepeatComponents]) -> tuple[Table, Table]:
    """Return the table of the parts of each variance, and that of errors by number of repeats.

    The column of error rates is left out where labels were not checked for errors.
    """
    has_rates = any(row.label_share > 0 for row in components)
    columns = [column for column in _SHARE_COLUMNS if has_rates or column is not _RATE_COLUMN]
    shares = make_table(
        "What makes answers uncertain, in % of the variance",
        components,
        (*_ANSWER_COLUMNS, *columns),
        collapsed=True,
    )
    errors = make_table(
        "Standard error with other numbers of repeats",
        components,
        (*_ANSWER_COLUMNS, *_ERROR_COLUMNS),
        collapsed=True,
    )
    return shares, errors


def _rate_difference_cell(difference: float) -> Cell:
    """Return the cell of a difference of error rates, in points.

    Rates cannot differ by more than 100 points, so above that no error explains the finding.
    """
    if difference > 1:
        return Cell("none would", difference)
    return Cell(decimal(100 * difference), difference)


def _one_kind_cell(row: LabelSensitivity) -> Cell:
    """Return the cell of the difference that explains a finding if one group is mistaken."""
    return _rate_difference_cell(row.one_kind)


def _both_kinds_cell(row: LabelSensitivity) -> Cell:
    """Return the cell of the difference that explains a finding if both groups are mistaken."""
    return _rate_difference_cell(row.both_kinds)


_SENSITIVITY_COLUMNS: tuple[ColumnSpec, ...] = (
    (name_column("ranker"), attrgetter("run")),
    (text_column("favours"), attrgetter("a")),
    (text_column("over"), attrgetter("b")),
    (Column("first ranks"), number_cells("cutoff", with_commas)),
    (Column("one kind of error, points", hint=_ONE_KIND), _one_kind_cell),
    (Column("both kinds, points", hint=_BOTH_KINDS), _both_kinds_cell),
)


def sensitivity_table(sensitivities: Sequence[LabelSensitivity]) -> Table:
    """Return the table with a row for each finding on Share@k, a group's share of k first ranks."""
    title = "Label errors that would explain a finding"
    return make_table(title, sensitivities, _SENSITIVITY_COLUMNS, collapsed=True)
