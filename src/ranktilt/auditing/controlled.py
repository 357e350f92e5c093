"""One control of one run: Relative Δ under it, and by how much it moved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ranktilt.auditing.effects import Effect

RAW = "raw"
"""Name of the row that no control is applied to."""


class Move(NamedTuple):
    """Relative Δ under a control minus the raw one, in points."""

    value: float
    low: float
    high: float
    """95 % paired bootstrap interval."""
    queries: int

    @property
    def shown(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Move:
        """Make it from its fields; null stands for NaN."""
        value, low, high = (np.nan if row[k] is None else float(row[k]) for k in ("value", "low", "high"))
        return cls(value, low, high, int(row["queries"]))


@dataclass(frozen=True)
class Controlled:
    """What one run says under one control about one pair of groups."""

    run: str
    control: str
    a: str
    b: str
    meaning: str
    """What the control takes away."""
    changed: str
    """How many texts it changed, or why it was not applied."""
    tilts: tuple[Effect, ...]
    """One a measure; none where the control was not applied."""
    moves: tuple[Move, ...]
    """One a measure."""

    def row(self) -> dict[str, Any]:
        """Return the fields by name."""
        names = ("run", "control", "a", "b", "meaning", "changed")
        tilts = {"tilts": [t.table_row() for t in self.tilts], "moves": [m._asdict() for m in self.moves]}
        return {**{name: getattr(self, name) for name in names}, **tilts}

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Controlled:
        """Make it from what `row` gives; null stands for NaN."""
        moves = tuple(map(Move.of_row, row["moves"]))
        return cls(**{**row, "tilts": tuple(map(Effect.of_row, row["tilts"])), "moves": moves})
