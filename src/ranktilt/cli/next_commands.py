"""What commands suggest to do next: each suggestion runs as printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ranktilt.collection import Collection


def groups_to_audit(collection: Collection) -> list[str] | None:
    """Return the words that ``ranktilt audit`` needs to group a collection; None where it has nothing to measure.

    A collection of one source, or of none, is measured as a whole, for which it needs judgments.
    """
    if len(collection.sources) > 1:
        return []
    return ["--by", "none"] if collection.qrels.height else None
