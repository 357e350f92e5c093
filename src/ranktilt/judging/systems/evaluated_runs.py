"""The systems that are evaluated twice, by human grades and by a judge's, and the measures.

A *system* is a ranker whose run is evaluated. A *judge* is whoever gives the grades that are
compared with the human ones. A *tag* is the name of a system in the last column of its run file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ranktilt.data.runs.run import Run, named_apart, require_runs
from ranktilt.judging.systems.groups import run_tags
from ranktilt.measures.base import Measure, measure


@dataclass(frozen=True, kw_only=True, eq=False)
class EvaluatedRuns:
    """The runs of the systems to evaluate, and the measures."""

    runs: tuple[Run, ...]
    """Runs of the systems, each with its own name."""
    measures: tuple[Measure, ...]
    """Measures of relevance."""
    tag_of: Mapping[str, str]
    """Tag by name of run: the name of the system as its run file writes it; empty without one."""

    @classmethod
    def from_arguments(
        cls, runs: Run | Iterable[Run], measures: str | Measure | Sequence[str | Measure]
    ) -> EvaluatedRuns:
        """Take runs and measures as a user passes them; runs of one name get different names."""
        runs = require_runs(runs)
        tag_of_file = run_tags(runs)
        runs = named_apart(runs)
        if isinstance(measures, str | Measure):
            measures = [measures]
        return cls(
            runs=tuple(runs),
            measures=tuple(measure(name) for name in measures),
            tag_of={run.name: tag_of_file.get(run.spec.get("file", ""), "") for run in runs},
        )

    @property
    def names(self) -> list[str]:
        """The names of the runs."""
        return [run.name for run in self.runs]
