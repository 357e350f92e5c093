"""What a check of a collection found: a row a check, and the verdict on the whole."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ranktilt.datasets.check_limits import LIMITS, CheckLimits
from ranktilt.errors import counted
from ranktilt.io.artifact import Result

Verdict = Literal["ok", "warning", "void"]

MISSING, LENGTH, ONE_SIDED, DANGLING, REPEATED = (
    "pairs missing a side",
    "length ratio",
    "one-sided judgments",
    "dangling judgments",
    "repeated queries",
)
POOL = "pool"
"""Boolean column of the documents of a pooled collection: whether one was chosen to be rewritten."""
LENGTH_NOTICE = (0.9, 1.1)
"""Median length ratios outside of this are a warning."""


@dataclass(frozen=True)
class CheckRow:
    name: str
    source: str
    """The source that is held against the reference; empty for the collection as a whole."""
    meaning: str
    """Why it matters, in one line."""
    found: int
    """Documents, pairs or judgments with the fault; for the length ratio, pairs outside of the limits."""
    total: int
    value: float
    """Share in %, or the median length ratio; NaN where there is nothing to count."""
    verdict: Verdict
    limit: str = ""
    """The values that do not void the comparison, in words; empty where none does."""
    reference: float = math.nan
    """The share in the reference, where it has one of its own."""
    note: str = ""
    examples: tuple[str, ...] = ()
    """Ids of the first documents with the fault; for judgments, query and document."""


@dataclass(frozen=True, eq=False)
class CheckResult(Result, format="ranktilt-check", version=1, noun="a check", command="ranktilt check"):
    """The result of `check`: its rows by source, and those on the whole collection last."""

    rows: tuple[CheckRow, ...]
    reference: str
    """The source that the others are held against."""
    sources: tuple[str, ...]
    limits: CheckLimits = LIMITS
    spec: Mapping[str, Any] = field(default_factory=dict)

    def of(self, verdict: Verdict) -> tuple[CheckRow, ...]:
        """Return the rows with a verdict."""
        return tuple(row for row in self.rows if row.verdict == verdict)

    @property
    def fair(self) -> bool:
        """Whether no row voids the comparison."""
        return not self.of("void")

    @property
    def sentence(self) -> str:
        """The verdict on the whole, in one sentence."""
        faults, warnings = self.of("void"), self.of("warning")
        if faults:
            return f"Void because of {'; '.join(self._named(row, amounts=True) for row in faults)}."
        text = f"A fair comparison of {' and '.join(self.sources)} with {self.reference}: nothing found that voids it"
        names = ", ".join(self._named(row) for row in warnings)
        return f"{text}; {counted(len(warnings), 'warning', 'warnings')}: {names}." if warnings else f"{text}."

    def _named(self, row: CheckRow, *, amounts: bool = False) -> str:
        where = f" of {row.source}" if row.source and len(self.sources) > 1 else ""
        amount = f"median {shown(row)}" if row.name == LENGTH else f"{row.found:,} of {row.total:,}, {shown(row)}"
        return f"{row.name}{where}" + (f" ({amount}; limit {row.limit})" if amounts else "")

    def derived(self) -> dict[str, Any]:
        return {"fair": self.fair, "sentence": self.sentence}


def shown(row: CheckRow) -> str:
    """Print a row's value with its unit, a dash where it is undefined."""
    if math.isnan(row.value):
        return "–"
    return f"{row.value:.2f}" if row.name == LENGTH else percent(row.value)


def percent(share: float) -> str:
    """Print a share in %; what is not nothing never reads 0, and what is not all never 100."""
    if math.isnan(share):
        return ""
    text = f"{share:.1f}"
    if text == "0.0" and share:
        text = "< 0.1"
    if text == "100.0" and share < 100:
        text = "> 99.9"
    return f"{text} %"
