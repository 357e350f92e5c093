"""Columns of a table of results that a program has in memory, such as PyTerrier's."""

from __future__ import annotations

from collections.abc import Sequence

from ranktilt.data.formats.tables.column_names import RUN_COLUMNS, find_columns, require_distinct

_FIELDS = {"query": "query_id", "document": "doc_id", "score": "score", "rank": "rank"}
"""Names of a run's columns by what they hold."""


def result_columns(names: Sequence[str]) -> dict[str, str]:
    """Return the names of a table's columns by ``query_id``, ``doc_id``, ``score`` and ``rank``.

    `names` are all columns of the table; `UserError` if two of them name the same thing.
    """
    columns = find_columns(names, RUN_COLUMNS)
    require_distinct(names, columns)
    return {field: columns[noun] for noun, field in _FIELDS.items() if noun in columns}
