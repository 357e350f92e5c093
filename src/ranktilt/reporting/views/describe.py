"""A description: a row a source, and the queries."""

from __future__ import annotations

from ranktilt.errors import counted
from ranktilt.probes.description import Description
from ranktilt.probes.text_probes import CollectionStatistics
from ranktilt.reporting.document import (
    Cell,
    Column,
    Document,
    Sentence,
    Table,
    named,
    printed,
    tabulated,
)
from ranktilt.reporting.numbers import count, fixed, number
from ranktilt.reporting.provenance import titled

_SOURCES = (
    (named("source"), lambda row: NO_SOURCE if row.source is None else row.source),
    ("documents", lambda row: number(row.documents, count)),
    ("words", lambda row: number(row.words, fixed)),
    (
        Column("quartiles", spare=1),
        lambda row: Cell("  ".join(f"{value:.0f}" for value in row.quartiles)),
    ),
    (
        Column("queries", hint="with a relevant document of the source"),
        lambda row: number(row.queries, count),
    ),
    (
        Column("relevant each", hint="relevant documents a query"),
        lambda row: number(row.relevant, fixed),
    ),
    ("judged", lambda row: number(row.judged, count)),
    ("twins", lambda row: number(row.twins, count)),
    ("empty", lambda row: number(row.empty, count)),
    ("duplicates", lambda row: number(row.duplicates, count)),
)
NO_SOURCE = "(no source)"
_QUERIES = (
    (named("queries"), lambda row: row.which),
    ("number", lambda row: number(row.queries, count)),
    ("words a query", lambda row: number(row.words, fixed)),
)
LEGEND = (
    "Words: mean and quartiles of whitespace words of a text without its title; an empty one counts with 0. Queries: "
    "with a relevant document of the source; relevant each: their mean number. Judged: named by a judgment, of "
    "whatever grade. Twins: of the same origin as a document of another source. Duplicates: with the text of an "
    "earlier document of the source."
)


def statistics_tables(statistics: CollectionStatistics) -> tuple[Table, Table]:
    """Lay out what each source holds, and the queries."""
    sources = tabulated("Documents by source", statistics.sources, _SOURCES)
    return sources, tabulated("Queries", statistics.queries, _QUERIES)


def view(described: Description) -> Document:
    """Return what is said of a description."""
    rows = described.statistics.sources
    split = f" Judgments: {described.statistics.split}." if described.statistics.split else ""
    documents = counted(sum(row.documents for row in rows), "document", "documents")
    sourceless = sum(row.documents for row in rows if row.source is None)
    source_count = sum(row.source is not None for row in rows)
    if not source_count:
        headline = f"{documents} without a source.{split}"
    else:
        others = f", {sourceless:,} without a source" if sourceless else ""
        headline = f"{documents} of {counted(source_count, 'source', 'sources')}{others}.{split}"
    return Document(
        kind=titled("Description of", described.spec),
        headline=headline,
        sentences=(Sentence(headline),),
        legend=(LEGEND,),
        sections=printed(list(statistics_tables(described.statistics))),
        notes=described.notes,
    )
