"""The result of a comparison: changes of every run, and a verdict on each.

A *change* is an answer of the new run minus that of the old one. Answers are of three sorts, each a
table of its own: tilts (Relative Δ between two groups), effectiveness (the mean of a measure over
all documents), and estimates (all other questions about groups). The *primary question* is the one
that verdicts come first on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ranktilt.auditing.answer.verdict import effect_row
from ranktilt.auditing.comparison.match import RunPair
from ranktilt.auditing.effects import Change
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.options import usual_primary
from ranktilt.data.artifact import Coded, Result
from ranktilt.data.notes.base import Note
from ranktilt.presenter import presenter

ChangeKind = Literal["differs", "identical", "inconclusive"]
"""What a verdict says about two runs."""


@dataclass(frozen=True, kw_only=True)
class ChangeVerdict:
    """The verdict on one pair of runs, on the primary question or another one."""

    run: str
    """Name of the new run."""
    old_run: str
    """Name of the old run."""
    kind: ChangeKind
    """What the verdict says."""
    side: str | None
    """The group that the new run favours more, if a difference of tilts is shown."""
    changes: tuple[Change, ...]
    """The change that the verdict is on; all changes of the two runs if these are identical."""
    is_of_several_pairs: bool
    """Whether the comparison has other pairs of groups, too."""
    is_of_one_audit: bool
    """Whether both runs come from one audit."""
    leaves_out_queries: bool
    """Whether only one of the two results has some of the queries."""
    is_primary: bool
    """Whether the verdict is on the question that the comparison answers first."""

    @property
    def primary(self) -> str:
        """Notations of the questions that the verdict is on."""
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
    """The result of `compare` for two audits, or for a baseline run and the others."""

    spec: Mapping[str, Any]
    """Options, the number of tests corrected together, and the commands behind both audits."""
    runs: tuple[RunPair, ...]
    """Pairs of a new and an old run."""
    measures: tuple[str, ...]
    """Measures of both audits."""
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

    For two pairwise audits, these are the changes of the models' preferences.
    """

    @property
    def primary_measure(self) -> str | None:
        """Measure of which effectiveness and Relative Δ have verdicts; None without measures.

        It is the primary question if that is a measure, else the nDCG with the largest cutoff.
        """
        if self.spec.get("primary") in self.measures:
            return str(self.spec["primary"])
        usual = usual_primary([mean.estimand for mean in self.effectiveness])
        return None if usual is None else repr(usual)

    def verdicts(self) -> list[ChangeVerdict]:
        """Return the verdicts for every run pair, those on the primary question first.

        The other verdicts are on effectiveness, on Relative Δ if that is not the primary question,
        and on other estimands. Two runs without any difference have a single verdict.
        """
        verdicts = []
        for runs in self.runs:
            primary = self.primary_changes(runs)
            others = self._other_changes(runs, primary)
            changes = (*primary, *others)
            is_identical = all(map(_is_unchanged, changes))
            if is_identical and all(change.growth == 0 for change in changes if change.of_tilt):
                verdicts.append(self._verdict(runs, "identical", changes))
                continue
            pairs = {(change.a, change.b) for change in changes if change.a != ALL}
            for index, change in enumerate(changes):
                kind: ChangeKind = "differs" if change.is_shown else "inconclusive"
                verdict = self._verdict(
                    runs,
                    kind,
                    (change,),
                    is_of_several_pairs=change.a != ALL and len(pairs) > 1,
                    is_primary=index < len(primary),
                )
                verdicts.append(verdict)
        return verdicts

    def primary_changes(self, runs: RunPair) -> list[Change]:
        """Return the changes of one run's answers to the primary question, by pair of groups.

        Without groups, the primary question is effectiveness. Pairwise audits have no primary
        question: all their changes are returned.
        """
        if "primary" not in self.spec:
            return self.of_estimands(runs)
        for changes in (self.tilts, self.estimates, self.effectiveness):
            answers = _answers(changes, runs, self.spec["primary"])
            if answers:
                return answers
        return []

    def _other_changes(self, runs: RunPair, primary: Sequence[Change]) -> list[Change]:
        """Return the changes of one run, other than `primary`, that have a verdict."""
        changes = [
            *_answers(self.effectiveness, runs, self.primary_measure),
            *_answers(self.tilts, runs, self.primary_measure),
            *self.of_estimands(runs),
        ]
        return [change for change in changes if change not in primary]

    def _verdict(
        self,
        runs: RunPair,
        kind: ChangeKind,
        changes: tuple[Change, ...],
        *,
        is_of_several_pairs: bool = False,
        is_primary: bool = True,
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
            is_primary=is_primary,
        )

    def of_estimands(self, runs: RunPair) -> list[Change]:
        """Return the changes of one run's answers to other estimands about groups."""
        return [change for change in self.estimates if (change.run, change.old_run) == runs]

    def derived(self) -> dict[str, Any]:
        """Return the changes as rows of the file, with their verdicts."""
        no_margin = 0.0  # no change is called level
        effects = [
            effect_row(change, no_margin)
            for change in (*self.tilts, *self.effectiveness, *self.estimates)
        ]
        return {"effects": effects}


def _answers(changes: Sequence[Change], runs: RunPair, measure: str | None) -> list[Change]:
    """Return the changes of one run on one question."""
    return [
        change
        for change in changes
        if (change.run, change.old_run) == runs and change.measure == measure
    ]


def _is_unchanged(change: Change) -> bool:
    """Return whether a change is exactly 0, and 0 in every resample, if there are any."""
    return change.value == 0 and (change.error == 0 or not change.has_interval)
