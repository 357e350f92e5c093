"""Handle documents that do not name their source, that is, who wrote them.

RankTilt never assumes a source: the user names one, or a column that holds it.
"""

from __future__ import annotations

import shlex

import polars as pl

from ranktilt.data.collection import DOC_COLUMNS, Collection
from ranktilt.data.notes.inputs import ColumnValues, NoSource
from ranktilt.errors import counted

MOST_VALUES = 12
"""Most different values of a column that could name who wrote a document.

A column with more is rather a topic, a date or a name of its own for each document.
"""
ORIGINALS = "human"
"""Default source of the documents that a command writes versions of."""
_MOST_LISTED_VALUES = 3
"""Most values of a column that a note lists."""
_MOST_LISTED_COLUMNS = 3
"""Most columns that a note lists."""


def with_source(collection: Collection, name: str) -> Collection:
    """Give a source to all documents without one; the spec records it as ``named_source``."""
    count = collection.sourceless
    if not count:
        return collection
    docs = collection.docs.with_columns(pl.col("source").fill_null(name))
    spec = {**collection.spec, "named_source": {"source": name, "documents": count}}
    return Collection(docs, collection.queries, collection.qrels, spec)


def with_named_side(collection: Collection, name: str) -> Collection:
    """Give a source to all documents if none has a source; else return the collection as it is."""
    return collection if collection.sources else with_source(collection, name)


def with_stated_sources(collection: Collection) -> Collection:
    """Return the collection without its documents that have no source."""
    if not collection.sourceless:
        return collection
    docs = collection.docs.filter(pl.col("source").is_not_null())
    return Collection(docs, collection.queries, collection.qrels, collection.spec)


def no_source(collection: Collection, *, advice: str) -> str:
    """Say that nothing can be compared without a source, and how to name one.

    A column may name it; `advice` is another way.
    """
    # Without a column that could name the source, `advice` is the only way.
    connector = "; or " if columns_of_few_values(collection.docs) else ": "
    return f"nothing to compare: {no_source_words(source_hint(collection))}{connector}{advice}"


def source_hint(collection: Collection) -> NoSource:
    """Return a note that no document has a source, with the columns that could name it."""
    columns = columns_of_few_values(collection.docs)[:_MOST_LISTED_COLUMNS]
    return NoSource(
        documents=collection.docs.height,
        columns=tuple(_column_values(collection.docs[name]) for name in columns),
        folder=str(collection.spec.get("path", "DIR")),
    )


def no_source_words(note: NoSource) -> str:
    """Say that no document has a source, and which columns could name it."""
    documents = counted(note.documents, "document has", "documents have")
    if not note.columns:
        return f"the {documents} no source, and no column has few enough values to name it"
    described = " or ".join(f"{column.column!r} ({_values(column)})" for column in note.columns)
    ways = " or ".join(shlex.join(["--by", column.column]) for column in note.columns)
    command = f"ranktilt audit {shlex.quote(note.folder)} {ways}"
    return f"the {documents} no source; column {described} could name it: {command}"


def columns_of_few_values(docs: pl.DataFrame) -> list[str]:
    """List the columns that could name who wrote a document, those of the fewest values first."""
    counts = dict[str, int]()
    for column in docs.iter_columns():
        is_raw_json = column.dtype == pl.Binary
        if column.name in DOC_COLUMNS or column.name.startswith("factor:") or is_raw_json:
            continue
        value_count = column.drop_nulls().n_unique()
        # A column with as many values as documents is an id, an address or a date.
        if 2 <= value_count <= MOST_VALUES and value_count < docs.height:
            counts[column.name] = value_count
    return sorted(counts, key=counts.__getitem__)


def _column_values(column: pl.Series) -> ColumnValues:
    """Return the first values of a column."""
    values = column.drop_nulls().unique().sort().cast(pl.String).to_list()
    return ColumnValues(
        column=column.name,
        values=tuple(values[:_MOST_LISTED_VALUES]),
        has_more=len(values) > _MOST_LISTED_VALUES,
    )


def _values(column: ColumnValues) -> str:
    """List the values of a column, as a sentence has them."""
    return ", ".join(column.values) + (", …" if column.has_more else "")
