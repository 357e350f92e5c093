"""The tables of repeats, where the same engine ranked each query several times.

The first splits the variance of each answer into parts: queries, documents, error rates of labels,
and repeats. The second has the standard error that other numbers of repeats would give.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from operator import attrgetter

from ranktilt.auditing.repeats.components import REPEAT_COUNTS, RepeatComponents
from ranktilt.errors import counted
from ranktilt.reporting.document import (
    Cell,
    Column,
    ColumnSpec,
    Table,
    make_table,
    name_column,
    text_column,
)
from ranktilt.reporting.numbers import decimal, number_cells, with_commas

REPEATS_LEAD = (
    "Repeats are averaged within each query; they never count as more queries. The tables split "
    "the variance of each answer: what other queries, other documents and other repeats would "
    "change. More repeats take away the last part alone. Ranked lists on this page are those of "
    "the first repeat."
)
# Hints of columns.
_NEEDED = "Least number of repeats with which the present value would be decided."
_RATES = "What other documents in the checked sample would change."
_RANGE = "Smallest and largest answer of one repeat."


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


def _groups(row: RepeatComponents) -> str:
    """Name the groups that are compared; empty for effectiveness."""
    return "" if row.is_effectiveness else f"{row.a} | {row.b}"


_ANSWER_COLUMNS: tuple[ColumnSpec, ...] = (
    (name_column("ranker"), attrgetter("run")),
    (text_column("question"), attrgetter("question")),
    (text_column("groups"), _groups),
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
