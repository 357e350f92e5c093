"""The result of `explain`: the results of its probes, and how they were made.

A *probe* is a question about texts. A *gap* is how much higher a ranker scores one of two *twins*,
documents of the same origin by different sources (authors).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from ranktilt.data.artifact import Coded, Result
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.probes import GapAttributed
from ranktilt.explaining.base import ProbeResult


@dataclass(frozen=True, kw_only=True, eq=False)
class Explanation(
    Result,
    format="ranktilt-explanation",
    version=1,
    noun="an explanation",
    command="ranktilt explain",
):
    """The result of `explain`; immutable.

    Parameters
    ----------
    spec : mapping
        How the explanation was made: collection, ranker, versions.
    reference : str
        The source that the others are compared with.
    sources : tuple of str
        The other sources.
    results : tuple of ProbeResult
        A result for each probe, in the order of the call.
    notes : tuple of Note
        What was left out, and why.
    """

    spec: Mapping[str, Any]
    reference: str
    sources: tuple[str, ...]
    results: tuple[ProbeResult, ...]
    notes: tuple[Coded[Note], ...] = ()

    @property
    def attributed(self) -> tuple[GapAttributed, ...]:
        """Findings on the gaps of runs that were attributed to properties of texts, by source."""
        tables = chain.from_iterable(result.tables for result in self.results)
        findings = chain.from_iterable(table.findings for table in tables)
        return tuple(finding for finding in findings if isinstance(finding, GapAttributed))

    @property
    def runs(self) -> tuple[str, ...]:
        """Names of the runs whose gaps are attributed, in the order in which they were given."""
        return tuple(dict.fromkeys(gap.run for gap in self.attributed))
