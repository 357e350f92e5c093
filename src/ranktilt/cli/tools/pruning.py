"""Remove entries from the cache: ``ranktilt tools doctor --prune``.

An entry is *paid* if it holds answers of a server, which would cost money again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ranktilt.cli.notes import note
from ranktilt.errors import UserError, counted

if TYPE_CHECKING:
    from ranktilt.data.inventory import CacheEntry


def prune_cache(model: str | None, *, everything: bool) -> None:
    """Remove entries of a model, or all but those that were paid for, and say what was removed.

    Files that interrupted processes left half-written are removed in any case. With neither a model
    nor `everything`, nothing else is.
    """
    from ranktilt.data.inventory import cache_contents, entries_of_model, remove
    from ranktilt.reporting.numbers import size

    entries = cache_contents()
    candidates = entries if everything else []
    if model is not None:
        candidates = entries_of_model(entries, model)
    # Who names a model may remove its paid answers too.
    paid_entries = [] if model else [candidate for candidate in candidates if candidate.paid]
    removed = [candidate for candidate in candidates if candidate not in paid_entries]
    freed = size(remove(removed))
    note(f"removed {counted(len(removed), 'entry', 'entries')}, freed {freed}")
    if paid_entries:
        names = ", ".join(sorted({answers.model for answers in paid_entries}))
        note(
            "answers of servers are kept; ranktilt tools doctor MODEL --prune removes them: "
            f"{names}"
        )
    if entries and not candidates:
        note("entries are kept; MODEL or --all removes them")


def entries_of(entries: Sequence[CacheEntry], model: str) -> list[CacheEntry]:
    """Return the entries of a model; an empty list where the cache has none."""
    from ranktilt.data.inventory import entries_of_model

    try:
        return entries_of_model(entries, model)
    except UserError:
        return []
