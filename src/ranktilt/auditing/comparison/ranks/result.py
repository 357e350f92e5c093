"""The result of ranking runs: each run's interval of ranks, and the difference of every two.

Runs are ranked by their effectiveness (the mean of a measure), and by a tilt: how much they favour
a group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ranktilt.auditing.groups import ALL
from ranktilt.data.artifact import Coded, Result
from ranktilt.data.notes.base import Note
from ranktilt.measures.base import Estimand, Measure
from ranktilt.measures.contrast import RelativeDelta


@dataclass(frozen=True, kw_only=True)
class RankedRun:
    """One run's answer to one question, and the ranks that it can have among all runs."""

    run: str
    """Name of the run."""
    estimand: Coded[Estimand]
    """Question that is answered."""
    a: str
    """Name of the first group, which high values favour; ``all`` for effectiveness."""
    b: str
    """Name of the second group; ``all`` for effectiveness."""
    value: float
    """The answer over the queries that count for every run; effectiveness in percent."""
    low: float
    """Lower end of its 95 % interval."""
    high: float
    """Upper end of its 95 % interval."""
    neutral: float
    """Value that favours nobody. Runs are ordered by value − neutral."""
    best_rank: int
    """Highest rank that the run may have: 1 + the number of runs that are shown to be higher."""
    worst_rank: int
    """Lowest rank that the run may have: the number of runs − those that are shown to be lower."""
    letters: str
    """Letters such as ``ab``; runs that share a letter cannot be distinguished."""
    queries: int
    """Number of queries that count for every run."""

    @property
    def measure(self) -> str:
        """Notation of the measure that Relative Δ compares, else of the estimand itself."""
        if isinstance(self.estimand, RelativeDelta):
            return self.estimand.measure
        return repr(self.estimand)

    @property
    def is_effectiveness(self) -> bool:
        """Whether the answer is the run's effectiveness, and not a tilt."""
        return isinstance(self.estimand, Measure)

    @property
    def question(self) -> tuple[str, str, str]:
        """The question as a key: notation of the estimand, and both groups."""
        return repr(self.estimand), self.a, self.b

    def derived(self) -> dict[str, Any]:
        """Return what follows from the fields, for the file."""
        return {"measure": self.measure, "name": self.estimand.title}


@dataclass(frozen=True, kw_only=True)
class RunDifference:
    """How far two runs are apart on one question."""

    higher: str
    """Run with the higher value."""
    lower: str
    """Run with the lower value."""
    question: str
    """Notation of the estimand."""
    a: str
    """Name of the first group; ``all`` for effectiveness."""
    b: str
    """Name of the second group; ``all`` for effectiveness."""
    value: float
    """Value of the higher run − value of the lower one."""
    low: float
    """Lower end of its 95 % interval."""
    high: float
    """Upper end of its 95 % interval."""
    p: float
    """Chance of such a difference if there were none, by this test alone."""
    p_corrected: float
    """The p, corrected for the tests of all pairs of runs."""
    is_shown: bool
    """Whether the difference is shown: corrected p < .05, and an interval that excludes 0."""


@dataclass(frozen=True, kw_only=True)
class RunOrder:
    """All runs in the order of their answers to one question, the highest first."""

    ranks: tuple[RankedRun, ...]
    """The runs."""
    differences: tuple[RunDifference, ...]
    """The difference of every two runs."""

    @property
    def first(self) -> RankedRun:
        """The run with the highest value."""
        return self.ranks[0]

    @property
    def may_be_first(self) -> tuple[str, ...]:
        """Runs above which no other run is shown to be."""
        return tuple(rank.run for rank in self.ranks if rank.best_rank == 1)

    @property
    def may_be_last(self) -> tuple[str, ...]:
        """Runs below which no other run is shown to be."""
        return tuple(rank.run for rank in self.ranks if rank.worst_rank == len(self.ranks))

    @property
    def shown_pairs(self) -> int:
        """Number of pairs of runs whose difference is shown (`RunDifference.is_shown`)."""
        return sum(difference.is_shown for difference in self.differences)


@dataclass(frozen=True, kw_only=True, eq=False)
class RunRanks(
    Result,
    format="ranktilt-run-ranks",
    version=1,
    noun="ranks of runs",
    command="ranktilt compare",
):
    """The result of `compare` for three runs or more."""

    spec: Mapping[str, Any]
    """Options, the questions, and the commands behind the audits."""
    runs: tuple[str, ...]
    """Names of all runs."""
    ranks: tuple[RankedRun, ...]
    """Answer and interval of ranks of every run, first those on the primary question."""
    differences: tuple[RunDifference, ...]
    """Differences between every two runs on each question."""
    notes: tuple[Coded[Note], ...]
    """What was left out, and what rests on few queries."""

    def orders(self) -> tuple[RunOrder, ...]:
        """Return the order of the runs on each question; that on the primary one comes first."""
        questions = dict.fromkeys(rank.question for rank in self.ranks)
        return tuple(self._order(question) for question in questions)

    def _order(self, question: tuple[str, str, str]) -> RunOrder:
        """Return the order of the runs on one question."""
        return RunOrder(
            ranks=tuple(rank for rank in self.ranks if rank.question == question),
            differences=tuple(
                difference
                for difference in self.differences
                if (difference.question, difference.a, difference.b) == question
            ),
        )

    @property
    def has_tilts(self) -> bool:
        """Whether runs are ranked by a tilt too."""
        return any(rank.a != ALL for rank in self.ranks)
