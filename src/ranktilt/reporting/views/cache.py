"""What the cache holds: entries that rankers use again."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranktilt.io.inventory import CacheEntry
from ranktilt.reporting.document import Block, Cell, Column, Document, Points, Row, Table, printed
from ranktilt.reporting.numbers import DASH, ago, count, size


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
                "settings": one.settings,
                "entries": one.entries,
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
    blocks: list[Block] = [Points((headline,), only="")]
    blocks.append(_table(found.entries) if found.entries else Points(("nothing is kept",), only=""))
    return Document(
        title="Cache",
        kind="What the cache keeps",
        headline=headline,
        sections=printed(blocks),
    )


def _table(entries: Sequence[CacheEntry]) -> Table:
    columns = (
        Column("what", number=False, header=True),
        Column("model", number=False),
        Column("settings", number=False),
        *map(Column, ("entries", "size", "last use")),
    )
    rows = tuple(
        Row(
            (
                Cell(one.what), Cell(one.model or DASH), Cell(one.settings or DASH),
                Cell(count(one.entries), one.entries), Cell(size(one.size), one.size), Cell(ago(one.used)),
            )
        )
        for one in entries
    )  # fmt: skip
    return Table("Entries", columns, rows)
