"""What the cache holds: entries that rankers use again."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranktilt.io.inventory import CacheEntry
from ranktilt.reporting.document import Block, Document, Lines, Sentence, named, printed, tabulated, worded
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
                "what": one.what,
                "model": one.model or None,
                "bytes": one.size,
                "paid": one.paid,
                "last_use": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(one.used)),
                "folder": str(one.folder),
            }
            for one in self.entries
        ]

    def to_json(self) -> bytes:
        content = {"folder": str(self.folder), "entries": self.records}
        return f"{json.dumps(content, indent=1, ensure_ascii=False)}\n".encode()


def view(found: CacheInventory) -> Document:
    """Return what is said of the cache."""
    headline = f"{found.folder}: {size(sum(one.size for one in found.entries))}"
    blocks: list[Block] = [Lines((Sentence(headline),))]
    blocks.append(
        tabulated("Entries", found.entries, _COLUMNS) if found.entries else Lines((Sentence("nothing is kept"),))
    )
    return Document(kind="What the cache keeps", headline=headline, sections=printed(blocks))


_COLUMNS = (
    (named("what"), lambda one: one.what),
    (worded("model"), lambda one: one.model or DASH),
    ("size", lambda one: number(one.size, size)),
    ("last use", lambda one: ago(one.used)),
)
