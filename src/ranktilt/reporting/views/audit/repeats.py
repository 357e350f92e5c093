"""The tables of repeats: what makes each answer uncertain, and the error with other numbers."""

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
_NEEDED = "Least number of repeats with which the present value would be decided."
_RATES = "What other documents in the checked sample would change."
_RANGE = "Smallest and largest answer of one repeat."


def _amount(row: RepeatComponents, value: float, *, sign: bool) -> str:
    """Print a number in the unit of the row's question."""
    if row.is_effectiveness:  # already in percent
        return decimal(value)
    return row.estimand.amount(value, sign=sign)


def _values(row: RepeatComponents) -> Cell:
    """Print the smallest and the largest answer of a repeat."""
    lowest, highest = min(row.values), max(row.values)
    sign = row.estimand.signed
    return Cell(f"{_amount(row, lowest, sign=sign)} to {_amount(row, highest, sign=sign)}", lowest)


def _error_at(repeats: float) -> Callable[[RepeatComponents], Cell]:
    """Return the function that prints the error with a number of repeats."""

    def cell(row: RepeatComponents) -> Cell:
        error = row.error_limit
        for at_repeats in row.errors:
            if at_repeats.repeats == repeats:
                error = at_repeats.error
        return Cell(_amount(row, error, sign=False), error)

    return cell


def _needed(row: RepeatComponents) -> Cell:
    """Print how many repeats decide an answer; a dash where there is no verdict."""
    if not row.has_verdict:
        return Cell("–", inf)
    if row.least_repeats is None:
        return Cell("more queries", inf)
    return Cell(with_commas(row.least_repeats), row.least_repeats)


def _groups(row: RepeatComponents) -> str:
    """Name the groups that are compared; nothing for effectiveness."""
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
    (Column("one repeat", hint=_RANGE), _values),
    (Column("queries, %"), number_cells("query_share", decimal, scale=100)),
    (Column("documents, %"), number_cells("document_share", decimal, scale=100)),
    _RATE_COLUMN,
    (Column("repeats, %"), number_cells("repeat_share", decimal, scale=100)),
    (Column("repeats needed", hint=_NEEDED), _needed),
)
_ERROR_COLUMNS: tuple[ColumnSpec, ...] = tuple(
    (Column(counted(repeats, "repeat", "repeats")), _error_at(repeats)) for repeats in REPEAT_COUNTS
)
_LIMIT: tuple[ColumnSpec, ...] = ((Column("endlessly many"), _error_at(inf)),)


def repeat_tables(components: Sequence[RepeatComponents]) -> tuple[Table, Table]:
    """Lay out what makes each answer uncertain, and its error with other numbers of repeats."""
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
        (*_ANSWER_COLUMNS, *_ERROR_COLUMNS, *_LIMIT),
        collapsed=True,
    )
    return shares, errors
