"""A description: a row a source, and the queries."""

from __future__ import annotations

from ranktilt.errors import counted
from ranktilt.probes.description import Description
from ranktilt.reporting.document import Cell, Column, Document, Sentence, named, printed, tabulated
from ranktilt.reporting.numbers import count, fixed, number
from ranktilt.reporting.views.provenance import folder


def view(described: Description) -> Document:
    """Return what is said of a description."""
    rows = tuple(zip(described.statistics.sources, described.counts, strict=True))
    documents, judged = sum(row.documents for row, _ in rows), described.statistics.queries
    split = f" ({described.statistics.split})" if described.statistics.split else ""
    asked = judged[-1].queries if judged[1:] else 0
    queries = f"{counted(judged[0].queries, 'query', 'queries')}, {asked:,} judged{split}"
    held = f"{counted(documents, 'document', 'documents')} of {counted(len(rows), 'source', 'sources')}"
    columns = (
        (named("source"), lambda row: row[0].source),
        ("documents", lambda row: number(row[0].documents, count)),
        ("words", lambda row: number(row[0].words, fixed)),
        (Column("quartiles", spare=1), lambda row: Cell("  ".join(f"{value:.0f}" for value in row[0].quartiles))),
        (Column("judged"), lambda row: number(row[1].judged, count)),
        (Column("relevant each", hint="relevant documents a query"), lambda row: number(row[0].relevant, fixed)),
        (Column("twins", hint=f"of {described.reference}"), lambda row: number(row[1].twins, count)),
        ("empty", lambda row: number(row[0].empty, count)),
        ("duplicates", lambda row: number(row[1].duplicates, count)),
    )
    return Document(
        title=f"Description of {folder(described.spec)}" if folder(described.spec) else "Description",
        kind="Description of a collection",
        headline=f"{held}; {queries}",
        sentences=(Sentence(f"{held}; {queries}"),),
        sections=printed([tabulated("Documents by source", rows, columns)]),
        legend=(
            "Words: mean and quartiles of whitespace words of a text, without its title. Twins: documents of the same "
            f"origin as one of {described.reference}. Duplicates: texts that an earlier document of the source has.",
        ),
    )
