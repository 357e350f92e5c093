"""The result of a comparison: changes of every run, and a verdict on each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ranktilt.auditing.answer.verdict import effect_row
from ranktilt.auditing.comparison.match import RunPair
from ranktilt.auditing.effects import Change
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.data.artifact import Coded, Result
from ranktilt.data.notes.base import Note
from ranktilt.presenter import presenter

ChangeKind = Literal["differs", "identical", "inconclusive"]
"""What a verdict says about two runs."""


@dataclass(frozen=True, kw_only=True)
class ChangeVerdict:
    """The verdict on one pair of runs, on the primary measure or another question about groups."""

    run: str
    """Name of the new run."""
    old_run: str
    """Name of the old run."""
    kind: ChangeKind
    """What the verdict says."""
    side: str | None
    """The group that the new run favours more, if a difference of tilts is shown."""
    changes: tuple[Change, ...]
    """The change that the verdict is on; all of them where the runs are identical."""
    is_of_several_pairs: bool
    """Whether there are other pairs of groups."""
    is_of_one_audit: bool
    """Whether both runs come from one audit."""
    leaves_out_queries: bool
    """Whether only one of the two results has some of the queries."""

    @property
    def primary(self) -> str:
        """Notation of the questions."""
        return ", ".join(dict.fromkeys(change.measure for change in self.changes))

    @property
    def is_shown(self) -> bool:
        """Whether a difference is shown: corrected p < .05 and the interval excludes 0."""
        return self.kind == "differs"

    @property
    def sentence(self) -> str:
        """The verdict in words, as reports have it."""
        return presenter().sentence(self)


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison(
    Result, format="ranktilt-comparison", version=1, noun="a comparison", command="ranktilt compare"
):
    """The result of `compare`; immutable."""

    spec: Mapping[str, Any]
    """Options, the number of tests in the family, and the commands behind both audits."""
    runs: tuple[RunPair, ...]
    """New run and old run, pair by pair."""
    measures: tuple[str, ...]
    """Measures of both audits; verdicts are given on the new one's primary measure."""
    pairs: tuple[Pair, ...]
    """Pairs of groups; empty where the audits have no groups."""
    tilts: tuple[Change, ...]
    """Relative Δ of every run pair, pair of groups and measure."""
    effectiveness: tuple[Change, ...]
    """Effectiveness of every run pair and measure."""
    notes: tuple[Coded[Note], ...]
    """What was left out, and where the comparison rests on few data."""
    estimates: tuple[Change, ...] = ()
    """Changes of other estimands of groups, such as ExposureRatio, for every run pair.

    Of two pairwise audits, the changes of their preferences.
    """

    def verdicts(self) -> list[ChangeVerdict]:
        """Return the verdicts for every run pair.

        They are on the tilt of each pair of groups, on effectiveness, and on other estimands.
        """
        verdicts = []
        for runs in self.runs:
            primary = self._of(runs, self.tilts)
            changes = (
                *primary,
                *self._of(runs, self.effectiveness),
                *self.of_estimands(runs),
            )
            is_identical = all(map(_is_unchanged, changes))
            if is_identical and all(tilt.growth == 0 for tilt in primary):
                verdicts.append(self._verdict(runs, "identical", changes))
                continue
            pairs = {(change.a, change.b) for change in changes if change.a != ALL}
            for change in changes:
                kind: ChangeKind = "differs" if change.is_shown else "inconclusive"
                is_of_several = change.a != ALL and len(pairs) > 1
                verdicts.append(
                    self._verdict(runs, kind, (change,), is_of_several_pairs=is_of_several)
                )
        return verdicts

    def _verdict(
        self,
        runs: RunPair,
        kind: ChangeKind,
        changes: tuple[Change, ...],
        *,
        is_of_several_pairs: bool = False,
    ) -> ChangeVerdict:
        """Return the verdict on some changes of a pair of runs."""
        first = changes[0]
        is_sided = first.a != first.b and first.estimand.sided
        return ChangeVerdict(
            run=runs.new,
            old_run=runs.old,
            kind=kind,
            side=first.side(first.leans) or None if kind == "differs" and is_sided else None,
            changes=changes,
            is_of_several_pairs=is_of_several_pairs,
            is_of_one_audit=self.spec["baseline_run"] is not None,
            leaves_out_queries=bool(self.spec.get("queries_left_out")),
        )

    def of_estimands(self, runs: RunPair) -> list[Change]:
        """Return how one run's answers about groups moved."""
        return [change for change in self.estimates if (change.run, change.old_run) == runs]

    def _of(self, runs: RunPair, changes: Sequence[Change]) -> list[Change]:
        """Return the changes of one run on the primary measure."""
        if not changes:  # pairwise audits have no measures, and so no primary one
            return []
        primary = self.spec["primary"]
        return [
            change
            for change in changes
            if (change.run, change.old_run) == runs and change.measure == primary
        ]

    def derived(self) -> dict[str, Any]:
        """Return the changes as they are listed in files."""
        effects = [
            effect_row(change, 0.0)
            for change in (*self.tilts, *self.effectiveness, *self.estimates)
        ]
        return {"effects": effects}


def _is_unchanged(change: Change) -> bool:
    # A change by a rounding error, or in a single resample, is one.
    """Return whether a change is exactly 0; a rounding error, or one resample, is a change."""
    return change.value == 0 and (change.error == 0 or not change.has_interval)
