"""The rows of a regression: documents of two groups in a run's lists, and their properties.

A *list* is a query's ranking in a run; an *entry* is a document in a list. Each row of the
regression is an entry. The *side* of a row says which of the two groups its document is in. Two
documents of one origin are *twins*, and count as one document.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.groups import Groups, Pair
from ranktilt.data.collection import Collection
from ranktilt.explaining.properties.outcomes import RunEntries
from ranktilt.explaining.properties.result import LeftOutProperty, Outcome
from ranktilt.explaining.properties.values import MeasuredProperty, PropertyTable
from ranktilt.statistics.regression.fixed_effects import centred_within
from ranktilt.statistics.regression.gelbach import ListRows

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

MOST_UNKNOWN = 0.5
"""Maximum share of entries without a value of a property.

A regression needs all values of a row. So either the property is left out (if it lacks more values
than this), or the entries that lack its value.
"""
_LEAST_OWN_VARIANCE = 1e-8
"""Share of a property's variance within lists that must be left once the group and the properties
before it are accounted for; below it, they determine the property."""
_ROUNDING_VARIANCE = 1e-12
"""Variance within lists that rounding may cause, relative to the square of the largest value."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupedProperties:
    """A collection with its groups and the properties of its documents."""

    collection: Collection
    """The collection."""
    groups: Groups
    """Group of each document."""
    table: PropertyTable
    """Value of each property for each document."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PairRows:
    """The documents of two groups in a run's lists, with their properties."""

    entries: RunEntries
    """All entries of the run."""
    rows: Ints
    """Index in `entries` of each row: entries of either group, with a value of every property."""
    side: Floats
    """1 for a row of the first group, 0 for a row of the second."""
    properties: Floats
    """Values of the properties, shape (n_rows, n_properties)."""
    names: tuple[str, ...]
    """Names of the properties."""
    document: Ints
    """Number of each row's document; twins share one."""
    dropped: int
    """Number of entries without a value of some property."""
    left_out: tuple[LeftOutProperty, ...]
    """Properties that are left out, each with the reason."""

    @classmethod
    def from_entries(cls, entries: RunEntries, measured: GroupedProperties, pair: Pair) -> PairRows:
        """Choose the entries of both groups, and the properties whose parts can be computed."""
        first, second = (measured.groups.index(name) for name in pair)
        group = measured.groups.code[entries.document]
        pair_entries = np.flatnonzero((group == first) | (group == second))
        properties = measured.table.measured
        values = _property_values(properties, measured.collection, entries, pair_entries)
        names = [measurement.about.name for measurement in properties]
        left_out = []
        is_mostly_unknown = np.isnan(values).mean(axis=0) > MOST_UNKNOWN
        known_names = []
        for name, is_unknown in zip(names, is_mostly_unknown.tolist(), strict=True):
            if is_unknown:
                left_out.append(LeftOutProperty(name=name, reason="mostly unknown"))
            else:
                known_names.append(name)
        values = values[:, ~is_mostly_unknown]
        is_known = ~np.isnan(values).any(axis=1)
        rows, values = pair_entries[is_known], values[is_known]
        has_company = _are_in_company(entries.query[rows])
        rows, values = rows[has_company], values[has_company]
        side = (group[rows] == first).astype(np.float64)
        chosen, dependent = _independent_columns(side, values, entries.query[rows], known_names)
        return cls(
            entries=entries,
            rows=rows,
            side=side,
            properties=values[:, chosen],
            names=tuple(known_names[column] for column in chosen),
            document=measured.collection.origin_codes()[entries.document[rows]],
            dropped=int((~is_known).sum()),
            left_out=(*left_out, *dependent),
        )

    @property
    def query(self) -> Ints:
        """Number of each row's list."""
        return self.entries.query[self.rows]

    @cached_property
    def list_count(self) -> int:
        """Number of lists with documents of both groups."""
        if not len(self.side):
            return 0
        # Centred within lists, the side is 0 in a list that holds one group alone.
        side = centred_within(self.side[:, None], self.query)[:, 0]
        return len(np.unique(self.query[side != 0]))

    @property
    def document_count(self) -> int:
        """Number of different documents; twins count once."""
        return len(np.unique(self.document))

    def with_outcome(self, outcome: Outcome) -> ListRows:
        """Return the rows for `decompose` with the values of one outcome."""
        return ListRows(
            outcome=self.entries.outcomes[outcome][self.rows],
            side=self.side,
            properties=self.properties,
            query=self.query,
            document=self.document,
        )


def _property_values(
    measured: Sequence[MeasuredProperty], collection: Collection, entries: RunEntries, rows: Ints
) -> Floats:
    """Return the value of each property, shape (n_rows, n_properties)."""
    query_row, document = entries.query_row[rows], entries.document[rows]
    columns = []
    for measurement in measured:
        values = measurement.of_entries(collection, query_row, document)
        # A feature of texts may depend on the query; it is unknown if the collection lacks that.
        if measurement.probe is not None:
            values = np.where(query_row < 0, np.nan, values)
        columns.append(values)
    return np.stack(columns, axis=1)


def _are_in_company(query: Ints) -> Bools:
    """Tell which rows share their list with another row, because a single document has no gap."""
    count = np.bincount(query) if len(query) else np.empty(0, dtype=np.int64)
    has_company: Bools = count[query] > 1
    return has_company


def _independent_columns(
    side: Floats, values: Floats, query: Ints, names: Sequence[str]
) -> tuple[list[int], list[LeftOutProperty]]:
    """Choose the properties that vary within lists and do not follow from earlier ones.

    This is a Gram–Schmidt process. From each property, the projection on the side and on the
    properties chosen so far is subtracted. The property is chosen if more than rounding is left.
    Returns the columns of the chosen properties, and the other properties with the reason.
    """
    chosen: list[int] = []
    left_out: list[LeftOutProperty] = []
    if not len(side) or not names:  # no row, or every property is mostly unknown
        return chosen, left_out
    basis = _unit_length(centred_within(side[:, None], query))
    centred = centred_within(values, query)
    for column, name in enumerate(names):
        property_values = centred[:, column]
        variance = float(property_values @ property_values)
        largest = float(np.abs(values[:, column]).max())
        if variance <= _ROUNDING_VARIANCE * len(property_values) * largest**2:
            left_out.append(LeftOutProperty(name=name, reason="one value"))
            continue
        rest = property_values - basis @ (basis.T @ property_values)
        rest = rest - basis @ (basis.T @ rest)  # a second time, because of rounding errors
        if float(rest @ rest) <= _LEAST_OWN_VARIANCE * variance:
            left_out.append(LeftOutProperty(name=name, reason="follows"))
            continue
        basis = np.column_stack([basis, _unit_length(rest[:, None])])
        chosen.append(column)
    return chosen, left_out


def _unit_length(column: Floats) -> Floats:
    """Return a column divided by its length; a column of zeros stays as it is."""
    length = float(np.sqrt(np.square(column).sum()))
    unit: Floats = column / length if length > 0 else column
    return unit
