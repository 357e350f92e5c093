"""Two audits over the same queries: what they have in common, and whether the new ranker tilts more than the old."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.effects import ALPHA, FEW_QUERIES, Change, Effect
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.inference import ChangeTask, Columns, corrected, mean_changes, tilt_changes
from ranktilt.auditing.options import check_resamples, files_of_runs
from ranktilt.auditing.result import Audit
from ranktilt.auditing.verdict import across, bounds, probability
from ranktilt.errors import UserError, counted, unknown
from ranktilt.io.artifact import Result
from ranktilt.measures.base import measure as to_measure
from ranktilt.measures.base import signed
from ranktilt.statistics.bootstrap import RESAMPLES, in_all
from ranktilt.statistics.correction import CORRECTIONS

Floats = npt.NDArray[np.float64]
_NAMED = 3
_MOST = 400.0
"""Points between the largest and the smallest Relative Δ."""


class RunPair(NamedTuple):
    """A run of the new audit and its partner in the old one."""

    new: str
    old: str


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


@dataclass(frozen=True, eq=False)
class Match:
    """Two audits side by side; made by `match`."""

    new: Audit
    old: Audit
    runs: tuple[RunPair, ...]
    measures: tuple[str, ...]
    """In the new audit's order: the first is the primary one."""
    pairs: tuple[Pair, ...]
    """Named as in the new audit."""
    rows: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
    """Where the new and the old audit hold each query, in an order that does not depend on which is the new one."""
    left_out: tuple[str, ...]
    """Notes on what only one audit holds."""
    notes: tuple[str, ...]
    """Notes on what else differs between the audits."""

    def values(self, runs: RunPair, measure: str, group: str) -> tuple[Floats, Floats]:
        """Per-query values of one group under the new and the old run, over the same queries."""
        new, old = (
            _values(audit, run, measure, group)[rows]
            for audit, run, rows in zip((self.new, self.old), runs, self.rows, strict=True)
        )
        return new, old

    def distinct(self, runs: RunPair) -> npt.NDArray[np.int64] | None:
        """Number of the query that each query repeats under both runs; None where none does."""
        numbers = [audit.distinct(run) for audit, run in zip((self.new, self.old), runs, strict=True)]
        return in_all([None if one is None else one[rows] for one, rows in zip(numbers, self.rows, strict=True)])

    def tilts(self, runs: RunPair, measure: str, pair: Pair) -> tuple[Effect, Effect]:
        """Relative Δ of both runs as their audits hold it, seen from the same side."""
        return _tilt(self.new, runs.new, measure, pair), _tilt(self.old, runs.old, measure, pair)


def match(new: Audit, old: Audit, *, alone: bool | None = None) -> Match:
    """Put two audits over the same queries side by side.

    Runs are partners whatever they are called where they are `alone`, by default one on each side; otherwise runs of
    one name are. Only measures and pairs of groups (whichever way round) that both hold are kept; `UserError` where
    queries, column, ties or the rule for missing queries differ, or nothing is in common.
    """
    for side, audit in (("new", new), ("old", old)):
        if not audit.measures:
            raise UserError(f"the {side} audit has no measure: without judgments there is no Relative Δ to compare")
    _refuse_other_settings(new, old)
    rows = _same_queries(new.queries, old.queries)
    alone = len(new.runs) == len(old.runs) == 1 if alone is None else alone
    runs = [RunPair(*p) for p in (zip(new.runs, old.runs, strict=True) if alone else _namesakes(new, old))]
    ours, theirs = ([repr(m) for m in audit.measures] for audit in (new, old))
    measures = [m for m in ours if m in theirs]
    sides, others = new.tilted_pairs, old.tilted_pairs
    pairs = [p for p in sides if p in others or p[::-1] in others]
    _refuse_nothing(runs, "run", new.runs, old.runs)
    _refuse_nothing(measures, "measure", ours, theirs)
    if sides or others:
        _refuse_nothing(pairs, "pair of groups", map(_pair, sides), map(_pair, others))
    every = [_pair(q) for p in pairs for q in (p, p[::-1])]
    left_out = (
        *_left_out("run", "runs", new.runs, old.runs, kept=[name for p in runs for name in p]),
        *_left_out("measure", "measures", ours, theirs, kept=measures),
        *_left_out("pair of groups", "pairs of groups", map(_pair, sides), map(_pair, others), kept=every),
    )
    renamed = [f"{pair.new} is compared with {pair.old}" for pair in runs if pair.new != pair.old]
    notes = (*renamed, *_other_inputs(new, old), *_rounded(new, old))
    return Match(new, old, tuple(runs), tuple(measures), tuple(pairs), rows, left_out, notes)


def names(texts: Iterable[str]) -> str:
    """List names, the first few of many."""
    every = list(texts)
    shown = ", ".join(repr(t) for t in every[:_NAMED])
    return shown + (", …" if len(every) > _NAMED else "")


def _namesakes(new: Audit, old: Audit) -> list[Pair]:
    return [(run, run) for run in new.runs if run in old.runs]


def _pair(pair: Pair) -> str:
    return f"{pair[0]},{pair[1]}"


def _values(audit: Audit, run: str, measure: str, group: str) -> Floats:
    at = [repr(m) for m in audit.measures].index(measure)
    row: Floats = audit.values[audit.runs.index(run), at, audit.groups.index(group)]
    return row


def _tilt(audit: Audit, run: str, measure: str, pair: Pair) -> Effect:
    found = next(t for t in audit.tilts if (t.run, t.measure) == (run, measure) and {t.a, t.b} == set(pair))
    return found if (found.a, found.b) == pair else found.swapped()


def _refuse_other_settings(new: Audit, old: Audit) -> None:
    for name, usual, what in (
        ("by", "none", "group by different columns"),
        ("ties", "expected", "treat ties differently"),
        ("missing", "zero", "treat missing queries differently"),
    ):
        one, two = (usual if (value := audit.spec.get(name)) is None else value for audit in (new, old))
        if one != two:
            raise UserError(f"the audits {what}: {one!r} (new) and {two!r} (old); make both with the same --{name}")


def _same_queries(new: Sequence[str], old: Sequence[str]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    ours, theirs = set(new), set(old)
    if ours != theirs:
        only = ((new, theirs, "new"), (old, ours, "old"))
        parts = [
            f"{counted(len(found), 'query', 'queries')} only in the {side} one ({names(found)})"
            for given, others, side in only
            if (found := [q for q in given if q not in others])
        ]
        raise UserError(f"the audits are over other queries: {', '.join(parts)}; make both with the same judgments")
    if tuple(new) == tuple(old):
        return np.arange(len(new)), np.arange(len(old))
    one, two = (np.array(sorted(range(len(side)), key=side.__getitem__), dtype=np.int64) for side in (new, old))
    return one, two


def _refuse_nothing(found: Sequence[Any], noun: str, new: Iterable[str], old: Iterable[str]) -> None:
    if not found:
        ours, theirs = (", ".join(side) or "none" for side in (new, old))
        raise UserError(f"the audits have no {noun} in common: the new one has {ours}; the old one has {theirs}")


def _left_out(one: str, many: str, new: Iterable[str], old: Iterable[str], *, kept: Iterable[str]) -> Iterator[str]:
    known = set(kept)
    for side, given in (("new", new), ("old", old)):
        lone = [name for name in given if name not in known]
        if lone:
            yield f"left out: {counted(len(lone), one, many)} only in the {side} audit ({names(lone)})"


def _other_inputs(new: Audit, old: Audit) -> list[str]:
    """Say that the collection's files differ, where both audits know theirs."""
    ours, theirs = _inputs(new), _inputs(old)
    changed = [name for name, digest in ours.items() if digest not in theirs.values()]
    gone = [name for name, digest in theirs.items() if digest not in ours.values() and name not in changed]
    if not ours or not theirs or not (changed or gone):
        return []
    return [
        f"warning: the audits were made from different files ({names(changed + gone)}); a difference may come from the "
        "data and not from the ranker"
    ]


def _inputs(audit: Audit) -> dict[str, str]:
    """Hashes of the collection's files, by name; files of runs are meant to differ."""
    of_runs = set(files_of_runs(audit.spec.get("runs", ())))
    found = [entry for entry in audit.spec.get("inputs", ()) if str(entry.get("path")) not in of_runs]
    return {"/".join(PurePath(str(e.get("path"))).parts[-2:]): str(e.get("sha256")) for e in found}


def _rounded(new: Audit, old: Audit) -> list[str]:
    sides = [side for side, audit in (("new", new), ("old", old)) if audit.spec.get("rounding", "none") != "none"]
    if not sides:
        return []
    which = "both audits round" if len(sides) == 2 else f"the {sides[0]} audit rounds"
    return [f"{which} means before Relative Δ; here it is computed from unrounded means"]


def change_tasks(match: Match, pairs: Iterable[Pair]) -> list[ChangeTask]:
    """Every run pair, pair of groups and measure to compare; of the pair (`ALL`, `ALL`) the effectiveness."""
    return [_task(match, runs, m, pair) for runs in match.runs for pair in pairs for m in match.measures]


def _task(match: Match, runs: RunPair, measure: str, pair: Pair) -> ChangeTask:
    values = [column for group in dict.fromkeys(pair) for column in match.values(runs, measure, group)]
    columns = Columns(np.array(values), match.distinct(runs))
    if pair == (ALL, ALL):
        return ChangeTask(*runs, to_measure(measure), *pair, columns)
    new, old = match.tilts(runs, measure, pair)
    return ChangeTask(*runs, new.estimand, *pair, columns, (new.level, old.level), new.twins and old.twins)
