"""What the cache holds: entries that rankers use again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranktilt.data.inventory import CacheEntry
from ranktilt.reporting.document import Block, Lines, Sentence, named, tabulated, worded
from ranktilt.reporting.numbers import DASH, ago, number, size


@dataclass(frozen=True)
class CacheInventory:
    """The entries of a cache folder."""

    folder: Path
    entries: Sequence[CacheEntry]

    @property
    def records(self) -> list[dict[str, Any]]:
        return [
            {
                "kind": one.kind,
                "model": one.model or None,
                "bytes": one.size,
                "paid": one.paid,
                "last_use": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(one.last_use)),
                "folder": str(one.folder),
            }
            for one in self.entries
        ]


def cache_blocks(cache: CacheInventory) -> list[Block]:
    """Return what is shown of a cache: its folder and size, and a row for each entry."""
    total = sum(entry.size for entry in cache.entries)
    headline = f"Cache, {cache.folder}: {size(total)}"
    if not cache.entries:
        return [Lines((Sentence(""), Sentence(headline), Sentence("nothing is kept")))]
    return [tabulated(headline, cache.entries, _COLUMNS)]


_COLUMNS = (
    (named("what"), lambda one: one.kind),
    (worded("model"), lambda one: one.model or DASH),
    ("size", lambda one: number(one.size, size)),
    ("last use", lambda one: ago(one.last_use)),
)
