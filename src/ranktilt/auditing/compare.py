"""Two audits over the same queries: whether the new ranker tilts more than the old one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ranktilt.auditing.changes import RunPair, change_tasks, match
from ranktilt.auditing.effects import ALPHA, FEW_QUERIES, Change
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.inference import corrected, mean_changes, tilt_changes
from ranktilt.auditing.options import check_resamples
from ranktilt.auditing.result import Audit
from ranktilt.auditing.verdict import across, bounds, probability
from ranktilt.errors import counted, unknown
from ranktilt.io.artifact import Result
from ranktilt.measures.base import signed
from ranktilt.statistics.bootstrap import RESAMPLES
from ranktilt.statistics.correction import CORRECTIONS

_MOST = 400.0
"""Points between the largest and the smallest Relative Δ."""


class ChangeVerdict(NamedTuple):
    """What a comparison says about one pair of runs, on the primary measure."""

    run: str
    old_run: str
    shown: bool
    """Whether a difference is shown: corrected p < .05 and the interval excludes 0."""
    sentence: str


@dataclass(frozen=True, eq=False)
class Comparison(Result, format="ranktilt-comparison", version=1, noun="a comparison", command="ranktilt compare"):
    """What `compare` found; immutable.

    Parameters
    ----------
    spec : mapping
        How it was made: options, the number of tests in the family, and the commands behind both audits.
    runs : tuple of RunPair
        New run and old run, pair by pair.
    measures : tuple of str
        Measures of both audits; the first is the primary one, on which verdicts are given.
    pairs : tuple of (str, str)
        Pairs of groups; empty where the audits have no groups.
    tilts : tuple of Change
        Relative Δ of every run pair, pair of groups and measure.
    means : tuple of Change
        Effectiveness of every run pair and measure.
    notes : tuple of str
        What was left out, and where the comparison stands on little.
    """

    spec: Mapping[str, Any]
    runs: tuple[RunPair, ...]
    measures: tuple[str, ...]
    pairs: tuple[Pair, ...]
    tilts: tuple[Change, ...]
    means: tuple[Change, ...] = field(metadata={"file": "effectiveness"})
    notes: tuple[str, ...]

    def verdicts(self) -> list[ChangeVerdict]:
        """Return a verdict for every run pair: on the tilt of each pair of groups, then on effectiveness."""
        found = []
        for runs in self.runs:
            if self._identical(runs):
                sentence = f"{runs.new}: the two audits are identical on {self.measures[0]}"
                found.append(ChangeVerdict(*runs, False, sentence))
                continue
            for tilt in self.tilts:
                if (tilt.run, tilt.old_run, tilt.measure) == (*runs, self.measures[0]):
                    front = f"{tilt.a} | {tilt.b}: " if len(self.pairs) > 1 else ""
                    found.append(ChangeVerdict(*runs, tilt.shown, front + tilt_sentence(tilt)))
            for mean in self.means:
                if (mean.run, mean.old_run, mean.measure) == (*runs, self.measures[0]):
                    found.append(ChangeVerdict(*runs, mean.shown, mean_sentence(mean)))
        return found

    def _identical(self, runs: RunPair) -> bool:
        """Whether nothing differs on the primary measure, in any resample."""
        primary = (*runs, self.measures[0])
        tilts = [t for t in self.tilts if (t.run, t.old_run, t.measure) == primary]
        means = [m for m in self.means if (m.run, m.old_run, m.measure) == primary]
        changed = any(not c.value == c.error == 0 for c in (*tilts, *means))
        return not changed and all(t.growth == 0 for t in tilts)

    @classmethod
    def upgrade(cls, content: dict[str, Any]) -> dict[str, Any]:
        """Give the rows of older versions today's fields."""
        return {**content, **{name: [*map(Change.upgraded, content[name])] for name in ("tilts", "effectiveness")}}

    def derived(self) -> dict[str, Any]:
        """The verdicts, for those who read the file."""
        return {"verdicts": self.verdicts()}


def compare(
    new: Audit, old: Audit, *, resamples: int = RESAMPLES, seed: int = 0, correction: str = "holm"
) -> Comparison:
    """Compare two audits over the same queries, query by query.

    Every difference is new − old, in points. One run on each side are compared whatever they are called, otherwise
    runs of one name; measures and pairs of groups that only one audit holds are left out and noted.

    Parameters
    ----------
    new, old : Audit
        Over the same queries, with the same column of groups and the same rule for ties.
    resamples : int, optional
        Bootstrap resamples and exchanges of the permutation tests.
    seed : int, optional
        Of both.
    correction : {"holm", "bonferroni"}, optional
        Over every p of the comparison: Relative Δ and effectiveness, all runs, measures and pairs.

    Returns
    -------
    Comparison
        ``compare(old, new)`` negates every difference exactly.

    Raises
    ------
    UserError
        If queries, column, ties or the rule for missing queries differ, nothing is in common, or an option is unknown.
    """
    if correction not in CORRECTIONS:
        raise unknown("correction", correction, CORRECTIONS)
    check_resamples(resamples)
    found = match(new, old)
    moved = tilt_changes(change_tasks(found, found.pairs), resamples=resamples, seed=seed)
    means = mean_changes(change_tasks(found, [(ALL, ALL)]), resamples=resamples, seed=seed)
    rows = corrected([*moved, *means], correction)
    tilts = rows[: len(moved)]
    tests = sum(row.p == row.p for row in rows)
    spec = {
        "by": new.spec.get("by"),
        "correction": correction,
        "resamples": resamples,
        "seed": seed,
        "tests": tests,
        "new": _origin(new),
        "old": _origin(old),
    }
    notes = (*found.left_out, *found.notes, *change_notes(tilts, rows[len(moved) :], resamples))
    return Comparison(spec, found.runs, found.measures, found.pairs, tilts, rows[len(moved) :], notes)


def _origin(audit: Audit) -> dict[str, Any]:
    return {key: audit.spec[key] for key in ("command", "ranktilt", "collection") if key in audit.spec}


def change_notes(tilts: Sequence[Change], means: Sequence[Change], resamples: int) -> Iterator[str]:
    """Say what a comparison leaves out, where it stands on little, and what its tilts are measured from."""
    excluded = {(t.a, t.b): t for t in sorted(tilts, key=lambda t: t.excluded) if t.excluded}
    for (a, b), tilt in excluded.items():
        total = counted(tilt.queries + tilt.excluded, "query", "queries")
        yield f"{tilt.excluded} of {total} excluded: not both {a} and {b} are defined in both audits"
    fewest = min((c.queries for c in (*tilts, *means)), default=FEW_QUERIES)
    if fewest < FEW_QUERIES:
        yield (
            f"warning: only {counted(fewest, 'query is', 'queries are')} compared; intervals from fewer than "
            f"{FEW_QUERIES} are too narrow to rely on"
        )
    dropped = max((t.dropped for t in tilts), default=0)
    if dropped:
        yield f"up to {dropped:,} of {resamples:,} resamples dropped: both groups were 0 in one of the audits"
    uneven = dict.fromkeys(f"{t.a} and {t.b}" for t in tilts if not t.twins)
    if uneven:
        yield (
            f"{', '.join(uneven)} are not twins: a tilt is the distance from the middle of each run's random band, "
            "taken as known"
        )


def tilt_sentence(change: Change) -> str:
    """Say in words how a run's tilt moved, and whether it grew or shrank."""
    old = _than(change)
    numbers = (
        f"Relative Δ {signed(change.new)} % against {signed(change.old)} % on {change.measure}, "
        f"difference {signed(change.value)} points {bounds(change.low, change.high)}, "
        f"corrected p {probability(change.p_corrected)}"
    )
    if change.queries == 0:
        return f"{change.run}: nothing to compare: no query has a value for both {change.a} and {change.b}"
    if change.value != change.value:
        side = "the new run" if change.new != change.new else "the old run"
        return f"{change.run}: no comparison with {old}: {change.measure} of {side} is 0 for {change.a} and {change.b}"
    if change.shown:
        side = change.a if change.value > 0 else change.b
        front = f"{change.run} lies {abs(change.value):.1f} points further toward {side} than {old}"
        return f"{front}: {numbers}; {growth_words(change)}"
    return f"{change.run}: no difference in tilt from {old} shown; {_could(change, change.detectable)}; {numbers}"


def growth_words(change: Change) -> str:
    """Say whether the tilt itself grew or shrank, whichever way it points, or that this is open."""
    ends = bounds(change.growth_low, change.growth_high)
    if change.growth_low <= 0 <= change.growth_high:
        return f"whether {_tilt_itself(change)} grew or shrank is open: {signed(change.growth)} points {ends}"
    word = "grew" if change.growth_low > 0 else "shrank"
    return f"{_tilt_itself(change)} {word} by {abs(change.growth):.1f} points, change {ends}"


def _tilt_itself(change: Change) -> str:
    return "the tilt itself" if change.twins else "its distance from the random band's middle"


def mean_sentence(change: Change) -> str:
    """Say in words how a run's effectiveness moved."""
    old = _than(change)
    if change.queries == 0:
        return f"{change.run}: nothing to compare: no query has a value of {change.measure} in both audits"
    numbers = (
        f"{change.measure} {change.new:.1f} % against {change.old:.1f} %, difference {signed(change.value)} points "
        f"{bounds(change.low, change.high)}, corrected p {probability(change.p_corrected)}"
    )
    if change.shown:
        word = "more" if change.value > 0 else "less"
        return f"{change.run} is {word} effective than {old}: {numbers}"
    return (
        f"{change.run}: no difference in effectiveness from {old} shown; {_could(change, change.detectable)}; {numbers}"
    )


def _than(change: Change) -> str:
    return "its old run" if change.run == change.old_run else change.old_run


def _could(change: Change, detectable: float) -> str:
    queries = counted(change.queries, "query", "queries")
    if change.error == 0:
        return f"every resample of {queries} says the same"
    if change.p_corrected < ALPHA:
        return across(change.p_corrected, "0")
    if detectable > (_MOST if change.of_tilt else 100):
        return f"{queries} could not detect any difference"
    these = "this query" if change.queries == 1 else f"these {queries}"
    return f"{these} could detect one of {detectable:.1f} points or more"
