"""Repeat a failed check of the collection as a warning of the audit.

A *source* is whoever wrote a document. ``ranktilt check`` compares the texts of sources, and calls
the comparison of two sources *void* if a fault, such as cut-off texts, is so frequent that it could
explain what an audit finds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ranktilt.auditing.result import Audit
from ranktilt.data.collection import Collection
from ranktilt.data.faults.check_limits import LIMITS, CheckLimits
from ranktilt.data.faults.faults import find_faults
from ranktilt.data.notes.texts import CheckFailed, VoidingFault


def with_failed_check(collection: Collection, audit: Audit, limits: CheckLimits = LIMITS) -> Audit:
    """Add a warning to an audit if a check calls the compared sources void.

    Audits of groups from a label file are returned as they are, because a check compares sources;
    so are those of documents without texts, and of collections that were not read from a folder,
    which the command needs. `limits` say how frequent each fault may be.
    """
    folder, labels = (collection.spec.get(key) for key in ("path", "labels"))
    has_texts = bool((collection.docs["text"] != "").any())
    if audit.spec["by"] != "source" or folder is None or labels or not has_texts:
        return audit
    faults = tuple(_voiding_faults(collection, audit, limits))
    if not faults:
        return audit
    return replace(audit, notes=(*audit.notes, CheckFailed(folder=str(folder), faults=faults)))


def _voiding_faults(
    collection: Collection, audit: Audit, limits: CheckLimits
) -> Iterator[VoidingFault]:
    """Yield faults beyond their limits in the pairs of sources that the audit compares."""
    all_sources = set(collection.sources)
    pairs = [pair for pair in audit.pairs if all_sources.issuperset(pair)]
    for reference in dict.fromkeys(a for a, _ in pairs):
        sources = tuple(b for a, b in pairs if a == reference)
        rows = find_faults(collection, reference, sources, limits=limits, voiding_only=True)
        for row in rows:
            if row.verdict == "void":
                yield VoidingFault(
                    name=row.name, source=row.source, value=row.shown_value, limit=row.limit
                )
