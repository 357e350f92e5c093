"""Group documents by a property: a column of numbers, such as popularity, age or price.

A property has two *ends*, which take the place of groups: documents above its mean, and all others.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from ranktilt.auditing.groups import Groups, Pair
from ranktilt.data.collection import Collection
from ranktilt.data.labels.label_remarks import MOST_VALUES, parts_of_numbers
from ranktilt.data.notes.inputs import LabelNote, PropertyLabels
from ranktilt.data.text.label_values import as_numbers, known_labels

UNGROUPED_COLUMNS = ("id", "text", "title", "origin")
"""Columns that make no groups, because nearly every document has a different value."""


def property_sides(by: str) -> Pair:
    """Return the names of a property's two ends: documents above its mean, and all others."""
    return f"high-{by}", f"low-{by}"


def grouping_columns(collection: Collection) -> list[str]:
    """Return the columns that documents may be grouped by."""
    return [column for column in collection.docs.columns if column not in UNGROUPED_COLUMNS]


def is_property(collection: Collection, by: str | None) -> bool:
    """Return whether a column is a property: holds more than `MOST_VALUES` different numbers."""
    if by is None or by == "source":
        return False
    if by not in grouping_columns(collection) or collection.docs[by].dtype == pl.Binary:
        return False
    numbers = as_numbers(known_labels(collection.docs[by]))
    return numbers.dtype.is_numeric() and numbers.drop_nulls().n_unique() > MOST_VALUES


def property_groups(collection: Collection, by: str) -> Groups:
    """Return the two ends of a property as groups; `Groups.values` has the numbers."""
    column = known_labels(collection.docs[by])
    values = as_numbers(column).cast(pl.Float64).fill_null(np.nan).to_numpy()
    values = np.where(np.isfinite(values), values, np.nan)
    mean = float(np.nanmean(values))
    code = np.where(values > mean, 0, 1)
    code[np.isnan(values)] = -1
    remarks: tuple[LabelNote, ...] = ()
    parts = parts_of_numbers(column)
    if parts:
        remark = PropertyLabels(by=by, low=parts.low, high=parts.high, parted_at=parts.parted_at)
        remarks = (remark,)
    return Groups(by=by, names=property_sides(by), code=code, remarks=remarks, values=values)
