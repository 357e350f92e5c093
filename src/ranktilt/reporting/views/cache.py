"""The cache folder as blocks of a document: what it holds for each model or analyzer.

Embeddings, indexes and the like take long to compute, so rankers keep them in this folder, and use
them again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

from ranktilt.data.inventory import CacheEntry
from ranktilt.reporting.document import Block, Lines, Sentence, make_table, name_column, text_column
from ranktilt.reporting.numbers import DASH, ago, number_cells, size


@dataclass(frozen=True, kw_only=True)
class CacheInventory:
    """A cache folder and its entries, all or some."""

    folder: Path
    """Folder of the cache."""
    entries: Sequence[CacheEntry]
    """Entries that are listed."""

    @property
    def records(self) -> list[dict[str, Any]]:
        """Return the entries as JSON."""
        return [
            {
                "kind": cached.kind,
                "model": cached.model or None,
                "bytes": cached.size,
                "paid": cached.paid,
                "last_use": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(cached.last_use)),
                "folder": str(cached.folder),
            }
            for cached in self.entries
        ]


def cache_blocks(cache: CacheInventory) -> list[Block]:
    """Return the table of a cache's entries, below its folder and total size."""
    total = sum(cached.size for cached in cache.entries)
    caption = f"Cache, {cache.folder}: {size(total)}"
    if not cache.entries:
        empty_line = Sentence("")
        return [Lines(lines=(empty_line, Sentence(caption), Sentence("nothing is kept")))]
    return [make_table(caption, cache.entries, _COLUMNS)]


_COLUMNS = (
    (name_column("what"), attrgetter("kind")),
    (text_column("model"), lambda cached: cached.model or DASH),
    ("size", number_cells("size", size)),
    ("last use", lambda cached: ago(cached.last_use)),
)
"""Columns of the table of entries."""
