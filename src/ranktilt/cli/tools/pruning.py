"""What ``ranktilt tools doctor --prune`` removes from the cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ranktilt.cli.notes import note
from ranktilt.errors import UserError, counted

if TYPE_CHECKING:
    from ranktilt.data.inventory import CacheEntry


def prune_cache(model: str | None, *, everything: bool) -> None:
    """Remove what is chosen from the cache, and what interrupted processes left."""
    from ranktilt.data.inventory import cache_contents, entries_of_model, remove
    from ranktilt.reporting.numbers import size

    entries = cache_contents()
    chosen = entries if everything else []
    if model is not None:
        chosen = entries_of_model(entries, model)
    paid = [] if model else [answers for answers in chosen if answers.paid]
    removed = [cache_entry for cache_entry in chosen if cache_entry not in paid]
    freed = size(remove(removed))
    note(f"removed {counted(len(removed), 'entry', 'entries')}: {freed} free again")
    if paid:
        names = ", ".join(sorted({answers.model for answers in paid}))
        note(
            "what servers answered is kept; ranktilt tools doctor MODEL --prune removes it: "
            f"{names}"
        )
    if entries and not chosen:
        note("entries are kept; MODEL or --all removes them")


def entries_of(entries: Sequence[CacheEntry], model: str) -> list[CacheEntry]:
    """Return what the cache keeps of a model; nothing where it keeps nothing."""
    from ranktilt.data.inventory import entries_of_model

    try:
        return entries_of_model(entries, model)
    except UserError:
        return []
