"""The texts that probes compare: documents by source, or by the groups of another column."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from ranktilt.auditing.grouping.labels import grouping
from ranktilt.data.collection import Collection
from ranktilt.data.labels.label_remarks import warn_of_labels
from ranktilt.data.labels.stated_sources import with_stated_sources
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.groups import DocumentsUnlabelled
from ranktilt.data.notes.texts import SourceWithoutTwins, TwinsIdentical
from ranktilt.explaining.base import other_sources, twin_rows


def compared_texts(collection: Collection, by: str) -> Collection:
    """Return the documents that have a group in the column `by`, with this group as their source.

    Probes compare sources (authors). To compare other groups, these take the place of the sources.
    """
    if by != "source":
        return _with_groups_as_sources(collection, by)
    return with_stated_sources(collection) if collection.sources else collection


def _with_groups_as_sources(collection: Collection, by: str) -> Collection:
    """Put the groups of another column in the place of the sources.

    Documents without a group are left out.
    """
    groups = grouping(collection, by)
    warn_of_labels(groups.remarks)
    docs = collection.docs.with_columns(
        source=pl.Series([groups.names[code] for code in groups.code])
    )
    return Collection(
        docs.filter(groups.code >= 0), collection.queries, collection.qrels, collection.spec
    )


def twin_notes(collection: Collection, reference: str) -> Iterator[Note]:
    """Yield notes on sources without twins, and on twins with the same text.

    Twins are documents of the same origin by the reference and by another source.
    """
    texts = collection.docs["text"]
    for name in other_sources(collection, reference):
        reference_rows, source_rows = twin_rows(collection, reference, name)
        if not len(reference_rows):
            yield SourceWithoutTwins(source=name, reference=reference)
        identical = int((texts.gather(reference_rows) == texts.gather(source_rows)).sum())
        if identical:
            yield TwinsIdentical(source=name, reference=reference, twins=identical)


def unlabelled_notes(collection: Collection, by: str) -> Iterator[Note]:
    """Yield a note if some documents are not compared because they have no source."""
    if by == "source" and collection.sourceless:
        yield DocumentsUnlabelled(by="source", documents=collection.sourceless)
