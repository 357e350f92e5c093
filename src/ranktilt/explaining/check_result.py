"""What a check of a collection holds: contents, faults, and how alike its sides are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ranktilt.auditing.effects import Equivalence
from ranktilt.auditing.instrument import InstrumentRow
from ranktilt.data.artifact import Coded, Result
from ranktilt.data.check_limits import LIMITS, CheckLimits
from ranktilt.data.contents import Contents
from ranktilt.data.faults import FaultRow, Verdict
from ranktilt.data.notes.base import Note
from ranktilt.explaining.base import EffectSize
from ranktilt.explaining.similarity import Similarity
from ranktilt.explaining.text_probes import Overlap


@dataclass(frozen=True, kw_only=True, eq=False)
class CheckResult(
    Result, format="ranktilt-check", version=1, noun="a check", command="ranktilt check"
):
    """The result of `check`; immutable.

    Parameters
    ----------
    spec : mapping
        How it was made: path, options, versions.
    reference : str
        The source that all others are compared with; empty where nothing is compared.
    sources : tuple of str
        All sources but the reference; the only one where there is one; empty where no document
        names a source.
    contents : Contents
        Documents, words, queries and judgments of every source.
    faults : tuple of FaultRow
        By source, and those on the whole collection last.
    limits : CheckLimits
        From where on a fault voids the comparison.
    features : tuple of EffectSize
        How the texts of each source differ from their twins, a property each.
    terms : tuple of Overlap
        What twins share in words, a source each that has twins.
    similarity : tuple of Similarity
        How near twins lie in an encoder's space, a source each; empty without an encoder or twins.
    effectiveness : tuple of Equivalence
        Each ranker on each side alone: by source, ranker and measure; empty without rankers, twins
        or judgments.
    instrument : tuple of InstrumentRow
        Audits with sources by a coin, ranker by ranker, where they were asked for.
    notes : tuple of Note
        What was left out, and why.
    """

    spec: Mapping[str, Any]
    reference: str
    sources: tuple[str, ...]
    contents: Contents
    faults: tuple[FaultRow, ...]
    limits: CheckLimits = LIMITS
    features: tuple[EffectSize, ...] = ()
    terms: tuple[Overlap, ...] = ()
    similarity: tuple[Similarity, ...] = ()
    effectiveness: tuple[Equivalence, ...] = ()
    instrument: tuple[InstrumentRow, ...] = ()
    notes: tuple[Coded[Note], ...] = ()

    @property
    def is_compared(self) -> bool:
        """Whether there are two sides at all."""
        return bool(self.reference)

    @property
    def is_void(self) -> bool:
        """Whether a fault voids the comparison, or audits name a side more often than chance."""
        return bool(self.of("void")) or not all(row.is_calibrated for row in self.instrument)

    @property
    def fair(self) -> bool:
        """Whether sides are compared, and nothing voids it."""
        return self.is_compared and not self.is_void

    def of(self, verdict: Verdict) -> tuple[FaultRow, ...]:
        """Return the faults with a verdict."""
        return tuple(row for row in self.faults if row.verdict == verdict)

    def derived(self) -> dict[str, Any]:
        """Return what a file holds besides the fields."""
        return {"fair": self.fair}
