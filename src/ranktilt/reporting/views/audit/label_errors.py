"""The table of how wrong the labels of groups would have to be to explain each finding.

A label says which group a document belongs to; an *error rate* is the share of a group's documents
whose label names the other group.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from ranktilt.auditing.label_errors.sensitivity import LabelSensitivity
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

SENSITIVITY_LEAD = (
    "Label errors that do not depend on rank only pull an answer toward neutral. Errors that are "
    "more frequent in the first ranks than in the list can make a finding. The table shows how "
    "much more often labels would have to be wrong there to explain each finding."
)
# Hints of columns.
_ONE_KIND = "Only one group is mistaken for the other."
_BOTH_KINDS = "One group is mistaken more often, and the other as much less often."


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


_COLUMNS: tuple[ColumnSpec, ...] = (
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
    return make_table(title, sensitivities, _COLUMNS, collapsed=True)
