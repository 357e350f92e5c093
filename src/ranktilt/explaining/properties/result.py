"""Gaps between groups, and the parts of them that go with properties: data only.

A *list* is a query's ranking; an *entry* is a document in a list. An *outcome* says how high an
entry is in its list. A *gap* is the mean difference between two groups in an outcome, within lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from ranktilt.auditing.effects import ALPHA
from ranktilt.data.artifact import Result

FEWEST = 10
"""Smallest effective number of queries or documents for which a gap is tested."""

Outcome = Literal["score", "rank", "first ranks", "cited"]
"""An outcome: score in standard deviations of the list's scores, rank, whether an entry is among
the first k, or whether a page is cited (the last two in percent)."""
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
"""All outcomes; reports show the first of them that a run has."""

Reason = Literal["no number", "mostly unknown", "one value", "follows"]
"""Why a property is left out.

- ``no number``: the column has no numbers.
- ``mostly unknown``: more than half of the documents have no value.
- ``one value``: the property does not vary within lists.
- ``follows``: the group and the properties before it determine the property exactly.
"""


@dataclass(frozen=True, kw_only=True)
class GapProperty:
    """A property of documents."""

    name: str
    """Name of the property."""
    unit: str
    """Unit of the values, such as ``words``; empty for a column."""
    kind: Literal["column", "text", "list"]
    """Where the values come from: a column, the texts, or the list that holds the document."""


@dataclass(frozen=True, kw_only=True)
class LeftOutProperty:
    """A property that is not in the regressions of any run, or of one run, and why."""

    name: str
    """Name of the property."""
    reason: Reason
    """Why the property is left out."""
    run: str = ""
    """The run that leaves it out; empty if all runs do."""


@dataclass(frozen=True, kw_only=True)
class ListCoverage:
    """How many documents the lists of a run hold, of all that they could hold."""

    run: str
    """Name of the run."""
    queries: int
    """Number of lists."""
    listed: int
    """Number of entries with a group in all lists together."""
    documents: int
    """Number of documents that each list could hold: all that have a group."""

    @property
    def is_complete(self) -> bool:
        """Whether every list holds every document."""
        return self.listed >= self.queries * self.documents


@dataclass(frozen=True, kw_only=True)
class GapPart:
    """How much of a gap goes with one property."""

    property_name: str
    """Name of the property."""
    value: float
    """The part of the gap, in the outcome's unit.

    It is Γ·β of Gelbach's decomposition: `difference` times `coefficient` divided by `spread`.
    Above 0 if the property moves the gap in favour of the first group.
    """
    low: float
    """Lower end of the 95 % interval."""
    high: float
    """Upper end of the 95 % interval."""
    error: float
    """Standard error."""
    p: float
    """Smallest level at which the interval excludes 0; NaN if there is too little data to test."""
    p_corrected: float
    """`p`, corrected for the tests of all runs, pairs and properties of one outcome."""
    difference: float
    """Γ: mean of the first group minus that of the second within lists, in the property's unit."""
    difference_low: float
    """Lower end of the 95 % interval of `difference`."""
    difference_high: float
    """Upper end of the 95 % interval of `difference`."""
    coefficient: float
    """β times `spread`: change of the outcome with one standard deviation of the property.

    The group and the other properties are held constant.
    """
    coefficient_low: float
    """Lower end of the 95 % interval of `coefficient`."""
    coefficient_high: float
    """Upper end of the 95 % interval of `coefficient`."""
    spread: float
    """Standard deviation of the property within lists."""
    inflation: float
    """Variance inflation factor: 1 for a property that correlates neither with the group nor with
    other properties."""

    @property
    def is_shown(self) -> bool:
        """Whether the part is shown to differ from 0: its corrected p is below .05."""
        return self.p_corrected < ALPHA

    def derived(self) -> dict[str, Any]:
        """Return what a file holds besides the fields."""
        return {"is_shown": self.is_shown}


@dataclass(frozen=True, kw_only=True)
class ExplainedGap:
    """The gap between two groups in one run, and the properties that it goes with."""

    run: str
    """Name of the run."""
    outcome: Outcome
    """The outcome in which the groups differ; its unit is that of the gap."""
    group_a: str
    """The first group."""
    group_b: str
    """The second group."""
    value: float
    """The gap within lists; above 0 if the first group ranks higher."""
    low: float
    """Lower end of the 95 % interval."""
    high: float
    """Upper end of the 95 % interval."""
    error: float
    """Standard error."""
    p: float
    """Smallest level at which the interval excludes 0; NaN if there is too little data to test."""
    p_corrected: float
    """`p`, corrected for the tests of all runs and pairs of one outcome."""
    detectable: float
    """Smallest gap that would be shown with 80 % power."""
    remaining: float
    """The gap between documents with equal properties."""
    remaining_low: float
    """Lower end of the 95 % interval of `remaining`."""
    remaining_high: float
    """Upper end of the 95 % interval of `remaining`."""
    explained: float
    """The sum of all parts: `value` minus `remaining`."""
    explained_low: float
    """Lower end of the 95 % interval of `explained`."""
    explained_high: float
    """Upper end of the 95 % interval of `explained`."""
    parts: tuple[GapPart, ...]
    """A part for each property, in the order in which the properties were given."""
    queries: int
    """Number of lists that hold both groups."""
    documents: int
    """Number of different documents of both groups; twins, which have the same origin, count
    once."""
    entries: int
    """Number of entries of both groups over all lists, with a value of every property."""
    dropped: int
    """Number of entries without a value of some property, which are left out."""
    effective_n: float
    """Effective number of queries or of documents, whichever is smaller.

    It is the number of equally weighted queries (or documents) that would be as informative.
    """

    @property
    def has_enough(self) -> bool:
        """Whether there are enough queries and documents to say anything about a side."""
        return self.effective_n >= FEWEST

    @property
    def is_shown(self) -> bool:
        """Whether there is a gap: corrected p < .05, with enough queries and documents."""
        return self.has_enough and self.p_corrected < ALPHA

    @property
    def clearness(self) -> float:
        """Size of the gap in standard errors, by which gaps of different units are sorted."""
        return abs(self.value / self.error) if self.error > 0 else 0.0

    @property
    def shown_parts(self) -> tuple[GapPart, ...]:
        """The parts that are shown to differ from 0, the largest first."""
        if not self.has_enough:
            return ()
        parts = [part for part in self.parts if part.is_shown]
        return tuple(sorted(parts, key=lambda part: -abs(part.value)))

    def share(self, part: GapPart) -> float:
        """Return a part divided by the gap; NaN if no gap is shown."""
        return part.value / self.value if self.is_shown else np.nan

    def derived(self) -> dict[str, Any]:
        """Return values that a file holds besides the fields."""
        return {"is_shown": self.is_shown}


@dataclass(frozen=True, eq=False, kw_only=True)
class ExplainedGaps(
    Result,
    format="ranktilt-explained-gaps",
    version=1,
    noun="an explanation of gaps",
    command="ranktilt explain",
):
    """The result of `explain_gaps`; immutable.

    Parameters
    ----------
    spec : mapping
        How the explanation was made: collection, runs, versions.
    by : str
        The column that groups the documents.
    cutoff : int
        Number of ranks that count as the first ones, in the outcome ``first ranks``.
    properties : tuple of GapProperty
        The measured properties, in the order of the parts.
    gaps : tuple of ExplainedGap
        A gap for each run, outcome and pair of groups.
    left_out : tuple of LeftOutProperty
        Properties without a part, and why.
    coverage : tuple of ListCoverage
        How many documents the lists of each run hold.
    has_twins : bool
        Whether some documents are twins across groups, so that a stronger comparison is possible.
    has_texts : bool
        Whether features of texts could be measured.
    """

    spec: Mapping[str, Any]
    by: str
    cutoff: int
    properties: tuple[GapProperty, ...]
    gaps: tuple[ExplainedGap, ...]
    left_out: tuple[LeftOutProperty, ...] = ()
    coverage: tuple[ListCoverage, ...] = ()
    has_twins: bool = False
    has_texts: bool = False

    @property
    def runs(self) -> tuple[str, ...]:
        """Names of the runs, in the order in which they were given."""
        return tuple(dict.fromkeys(gap.run for gap in self.gaps))

    @property
    def primary(self) -> tuple[ExplainedGap, ...]:
        """One gap for each run and pair: in scores, or in ranks if the run has no scores."""
        firsts: dict[tuple[str, str, str], ExplainedGap] = {}
        for outcome in OUTCOMES:
            for gap in self.of_outcome(outcome):
                firsts.setdefault((gap.run, gap.group_a, gap.group_b), gap)
        return tuple(firsts.values())

    def of_outcome(self, outcome: Outcome) -> tuple[ExplainedGap, ...]:
        """Return the gaps in one outcome."""
        return tuple(gap for gap in self.gaps if gap.outcome == outcome)
