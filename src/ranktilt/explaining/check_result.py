"""Result of a check of a collection: its contents, its faults, and how similar its sides are.

The *sides* of a comparison are the documents of two sources (authors), one of them the *reference*.
A *fault* is a difference between the sides, such as cut-off texts, that could explain what an audit
finds; one beyond its limit makes the comparison *void*.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ranktilt.auditing.checks.equivalence import Equivalence
from ranktilt.auditing.checks.instrument import InstrumentRow
from ranktilt.data.artifact import Coded, Result
from ranktilt.data.faults.check_limits import LIMITS, CheckLimits
from ranktilt.data.faults.contents import Contents
from ranktilt.data.faults.faults import FaultRow, Verdict
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
        How the check was made: path, options, versions.
    reference : str
        The source (author) that all others are compared with; empty if nothing is compared.
    sources : tuple of str
        All sources except the reference. A single source is here, because it is compared with
        none. Empty if no document states a source.
    contents : Contents
        Documents, words, queries and judgments of every source.
    faults : tuple of FaultRow
        Counts of each kind of fault, source by source; those of the whole collection come last.
    limits : CheckLimits
        Limits beyond which a fault voids the comparison.
    features : tuple of EffectSize
        Differences between the texts of each source and their twins, documents of the same origin
        in the reference; one for each source and property.
    terms : tuple of Overlap
        Words that twins share, one for each source with twins.
    similarity : tuple of Similarity
        Similarity of twins in an encoder's vector space, one for each source with twins; empty
        without an encoder.
    effectiveness : tuple of Equivalence
        Effectiveness of each ranker on each side by itself, by source, ranker and measure; empty
        without rankers, twins or judgments.
    instrument : tuple of InstrumentRow
        Test of the audit itself, one for each ranker: how often it names a side if a coin decides
        the sources. Empty if the check was made without it.
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
    # `Coded`: a file has the kind of each note beside its fields, see `data/notes/`.
    notes: tuple[Coded[Note], ...] = ()

    @property
    def is_compared(self) -> bool:
        """Whether the collection has two sides to compare: a reference and another source."""
        return bool(self.reference)

    @property
    def is_void(self) -> bool:
        """Whether a fault voids the comparison, or an audit of coin tosses is not calibrated.

        An audit is calibrated if it names a side no more often than its level allows.
        """
        return bool(self.of("void")) or not all(row.is_calibrated for row in self.instrument)

    @property
    def fair(self) -> bool:
        """Whether two sides are compared, and nothing voids the comparison."""
        return self.is_compared and not self.is_void

    def of(self, verdict: Verdict) -> tuple[FaultRow, ...]:
        """Return the faults with this verdict."""
        return tuple(row for row in self.faults if row.verdict == verdict)

    def derived(self) -> dict[str, Any]:
        """Return values that a file holds besides the fields."""
        return {"fair": self.fair}
