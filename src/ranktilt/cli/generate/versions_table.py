"""Versions that exist already: the table of ``--table``, with the values of ``--factor``.

A *version* of a document is a combination of factors, each with a low and a high *level*.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.generation.versions.make import DesignedVersions


def read_versions(
    table: Path, factors: Sequence[str], levels: Sequence[str], collection: Collection | None
) -> DesignedVersions:
    """Read the versions of a table.

    Parameters
    ----------
    table : Path
        A file with the columns origin, text, and one for each factor.
    factors : sequence of str
        Names of the factors' columns.
    levels : sequence of str
        Low and high value of a column, ``NAME=LOW,HIGH``; other columns hold the words ``low`` and
        ``high``.
    collection : Collection or None
        The collection that the versions belong to.
    """
    from ranktilt.generation.versions.table import versions_from_table

    return versions_from_table(table, factors, _read_levels(levels), collection=collection)


def _read_levels(levels: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Read the low and the high value of each factor's column."""
    low_high: dict[str, tuple[str, str]] = {}
    for text in levels:
        name, _, values = text.partition("=")
        low, _, high = values.partition(",")
        if not (name.strip() and low.strip() and high.strip()):
            raise UserError(
                "--factor expects a column with its low and its high value, such as gender=M,F; "
                f"got {text!r}"
            )
        low_high[name.strip()] = (low.strip(), high.strip())
    return low_high
