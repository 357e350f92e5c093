"""The table of label errors that would explain findings away."""

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
_ONE_KIND = "Only one group is mistaken for the other."
_BOTH_KINDS = "One group is mistaken more often, and the other as much less often."


def _points(difference: float) -> Cell:
    """Print a difference of error rates; no rate can differ by more than 100 points."""
    if difference > 1:
        return Cell("none would", difference)
    return Cell(decimal(100 * difference), difference)


def _one_kind(row: LabelSensitivity) -> Cell:
    """Print the difference that explains a finding if only one group is mistaken for the other."""
    return _points(row.one_kind)


def _both_kinds(row: LabelSensitivity) -> Cell:
    """Print the difference that explains a finding if both groups are mistaken for each other."""
    return _points(row.both_kinds)


_COLUMNS: tuple[ColumnSpec, ...] = (
    (name_column("ranker"), attrgetter("run")),
    (text_column("favours"), attrgetter("a")),
    (text_column("over"), attrgetter("b")),
    (Column("first ranks"), number_cells("cutoff", with_commas)),
    (Column("one kind of error, points", hint=_ONE_KIND), _one_kind),
    (Column("both kinds, points", hint=_BOTH_KINDS), _both_kinds),
)


def sensitivity_table(sensitivities: Sequence[LabelSensitivity]) -> Table:
    """Lay out a row for each finding on Share@k."""
    title = "Label errors that would explain a finding"
    return make_table(title, sensitivities, _COLUMNS, collapsed=True)
