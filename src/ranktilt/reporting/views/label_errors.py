"""The table of label errors that would explain findings away."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from ranktilt.auditing.label_errors.sensitivity import LabelSensitivity
from ranktilt.reporting.document import Cell, Column, ColumnOf, Table, name_column, tabulated
from ranktilt.reporting.numbers import decimal

SENSITIVITY_LEAD = (
    "Label errors that do not depend on rank only pull an answer toward neutral. Errors that are "
    "more frequent in the first ranks than in the list can make a finding. The table shows how "
    "much more often labels would have to be wrong there to explain each finding."
)
_ONE_KIND = "Only one group is mistaken for the other."
_BOTH_KINDS = "One group is mistaken more often, and the other as much less often."


def sensitivity_table(sensitivities: Sequence[LabelSensitivity]) -> Table:
    """Lay out a row for each finding on Share@k."""
    columns: list[ColumnOf] = [
        (name_column("ranker"), attrgetter("run")),
        (Column("favours"), lambda row: Cell(row.a)),
        (Column("over"), lambda row: Cell(row.b)),
        (Column("first ranks"), lambda row: Cell(str(row.cutoff), row.cutoff)),
        (
            Column("one kind of error, points", hint=_ONE_KIND),
            lambda row: _points(row.one_kind),
        ),
        (
            Column("both kinds, points", hint=_BOTH_KINDS),
            lambda row: _points(row.both_kinds),
        ),
    ]
    return tabulated(
        "Label errors that would explain a finding", sensitivities, columns, folded=True
    )


def _points(difference: float) -> Cell:
    """Print a difference of error rates; no rate can differ by more than 100 points."""
    if difference > 1:
        return Cell("none would", difference)
    return Cell(f"{decimal(100 * difference)}", difference)
