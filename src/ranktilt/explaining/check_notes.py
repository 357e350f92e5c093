"""Notes for readers of a check: how labels are written, and which parts are left out.

A *source* is the author of documents, the *reference* the source that others are compared with, and
*twins* are documents of the same origin by different sources.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from ranktilt.auditing.effects import FEW_QUERIES, Equivalence
from ranktilt.data.collection import Collection
from ranktilt.data.labels.label_remarks import label_remarks
from ranktilt.data.labels.stated_sources import source_hint
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.groups import DocumentsUnlabelled
from ranktilt.data.notes.inputs import TextsNotExamined
from ranktilt.data.notes.texts import (
    EffectivenessNotTested,
    EffectivenessOfPairs,
    FewQueriesTested,
    Part,
    PartLeftOut,
    QueriesOfOneSideExcluded,
    SourceWithoutOrigins,
)


def source_notes(collection: Collection, reference: str) -> Iterator[Note]:
    """Yield notes on how labels are written, and on documents that are not compared."""
    yield from label_remarks("source", collection.docs["source"])
    if not collection.sources:
        yield source_hint(collection)
        yield TextsNotExamined()
    elif collection.sourceless:
        yield DocumentsUnlabelled(by="source", documents=collection.sourceless)
    for source in collection.sources if reference else ():
        if source != reference and not collection.pairs(reference, source).height:
            yield SourceWithoutOrigins(source=source, reference=reference)


def omission_notes(
    asked_parts: Mapping[Part, bool], *, is_sided: bool, has_twins: bool, is_judged: bool
) -> Iterator[Note]:
    """Yield a note on each part of a check that was asked for and left out, with the reason.

    Parameters
    ----------
    asked_parts : mapping of str to bool
        Whether each part was asked for.
    is_sided : bool
        Whether there are two sources to compare.
    has_twins : bool
        Whether any source has twins of the reference.
    is_judged : bool
        Whether any document is judged relevant.
    """
    reason: Literal["no twins", "one side"] = "no twins" if is_sided else "one side"
    for part, is_asked in asked_parts.items():
        is_possible = is_sided if part == "instrument" else has_twins
        if is_asked and not is_possible:
            yield PartLeftOut(part=part, reason=reason)
        elif is_asked and part == "effectiveness" and not is_judged:
            yield PartLeftOut(part=part, reason="nothing relevant")


def effectiveness_notes(rows: Sequence[Equivalence], reference: str) -> Iterator[Note]:
    """Yield notes on documents and queries that the comparison of effectiveness leaves out."""
    # All rows of a source leave out the same documents.
    for row in {row.source: row for row in rows if row.left_out}.values():
        yield EffectivenessOfPairs(
            source=row.source, reference=reference, pairs=row.pairs, left_out=row.left_out
        )
    most_excluded = max(rows, key=lambda row: row.excluded, default=None)
    if most_excluded is not None and most_excluded.excluded:
        yield QueriesOfOneSideExcluded(
            excluded=most_excluded.excluded,
            queries=most_excluded.queries + most_excluded.excluded,
            are_alike=len({row.excluded for row in rows}) == 1,
        )
    fewest = min((row.queries for row in rows), default=FEW_QUERIES)
    if not fewest:
        yield EffectivenessNotTested()
    elif fewest < FEW_QUERIES:
        yield FewQueriesTested(queries=fewest)
