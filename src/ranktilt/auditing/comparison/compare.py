"""Two rankings of each query, by two audits or by one: whether the new ranker tilts more than the old."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from ranktilt.auditing.answer.verdict import across, corrected_p, effect_row, too_few
from ranktilt.auditing.comparison.match import RunPair, change_tasks, estimand_tasks, match, same_queries
from ranktilt.auditing.effects import ALPHA, FEW_QUERIES, Change, too_narrow
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.options import check_resamples, usual_primary
from ranktilt.auditing.pairwise.pairs import KINDS
from ranktilt.auditing.pairwise.result import PairwiseAudit, QueryChoices
from ranktilt.auditing.result import Audit
from ranktilt.auditing.significance import (
    ChangeTask,
    Sample,
    contrast_changes,
    contrast_task,
    corrected,
    mean_changes,
    resampled,
)
from ranktilt.errors import UserError, counted, unknown
from ranktilt.io.artifact import Result
from ranktilt.measures.base import Measure, estimand
from ranktilt.measures.preference import Preference, PreferenceOfPairs
from ranktilt.measures.ranking import Ints
from ranktilt.statistics.bootstrap import FEWEST_ROWS, RESAMPLES, interval
from ranktilt.statistics.correction import CORRECTIONS

_SIDES = ("protected", "unprotected")


class ChangeVerdict(NamedTuple):
    """What a comparison says about one pair of runs, on the primary measure or on another question about groups."""

    run: str
    old_run: str
    kind: Literal["differs", "identical", "inconclusive"]
    side: str | None
    """The group that the new run lies further toward, where a difference of a tilt is shown."""
    sentence: str
    primary: str
    """What is compared."""
    margin: float | None = None
    """None: a difference is held against 0."""

    @property
    def shown(self) -> bool:
        """Whether a difference is shown: corrected p < .05 and the interval excludes 0."""
        return self.kind == "differs"


@dataclass(frozen=True, eq=False)
class Comparison(Result, format="ranktilt-comparison", version=1, noun="a comparison", command="ranktilt compare"):
    """What `compare` found; immutable."""

    spec: Mapping[str, Any]
    """How it was made: options, the number of tests in the family, and the commands behind both audits."""
    runs: tuple[RunPair, ...]
    """New run and old run, pair by pair."""
    measures: tuple[str, ...]
    """Measures of both audits; verdicts are given on the new one's primary measure."""
    pairs: tuple[Pair, ...]
    """Pairs of groups; empty where the audits have no groups."""
    tilts: tuple[Change, ...]
    """Relative Δ of every run pair, pair of groups and measure."""
    means: tuple[Change, ...] = field(metadata={"file": "effectiveness"})
    """Effectiveness of every run pair and measure."""
    notes: tuple[str, ...]
    """What was left out, and where the comparison stands on little."""
    estimates: tuple[Change, ...] = ()
    """Other estimands of groups of every run pair, such as ExposureRatio, or preferences of two pairwise audits."""

    def verdicts(self) -> list[ChangeVerdict]:
        """Return verdicts for every run pair: on the tilt of each pair of groups, effectiveness, and estimands."""
        found = []
        for runs in self.runs:
            primary = self._of(runs, self.tilts)
            said = [*primary, *self._of(runs, self.means), *self.of_estimands(runs)]
            # A change by a rounding error, or in a single resample, is one.
            is_identical = all(c.value == 0 and (c.error == 0 or not c.has_interval) for c in said)
            if is_identical and all(t.growth == 0 for t in primary):
                what = "the two audits" if self.spec["baseline_run"] is None else f"this run and {runs.old}"
                names = ", ".join(dict.fromkeys(c.measure for c in said))
                text = f"{runs.new}: {what} are identical on {names}"
                found.append(ChangeVerdict(*runs, "identical", None, text, names))
                continue
            for one in said:
                several = one.a != ALL and len({(c.a, c.b) for c in said if c.a != ALL}) > 1
                front = f"{one.a} | {one.b}: " if several else ""
                side = one.side(one.leans) if one.shown and one.a != one.b and one.estimand.sided else ""
                kind: Literal["differs", "inconclusive"] = "differs" if one.shown else "inconclusive"
                found.append(ChangeVerdict(*runs, kind, side or None, front + change_sentence(one), one.measure))
        return found

    def of_estimands(self, runs: RunPair) -> list[Change]:
        """Return how one run's answers about groups moved."""
        return [c for c in self.estimates if (c.run, c.old_run) == runs]

    def _of(self, runs: RunPair, changes: Sequence[Change]) -> list[Change]:
        return [c for c in changes if (c.run, c.old_run, c.measure) == (*runs, self.spec["primary"])]

    def derived(self) -> dict[str, Any]:
        effects = [effect_row(change, 0.0) for change in (*self.tilts, *self.means, *self.estimates)]
        return {"verdicts": self.verdicts(), "next_steps": (), "effects": effects}


def compare(
    new: Audit | PairwiseAudit,
    old: Audit | PairwiseAudit | None = None,
    *,
    baseline_run: str | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    correction: str = "holm",
) -> Comparison:
    """Compare two audits over the same queries, one run of an audit and all others of it, or two pairwise audits.

    Every difference is new − old: in points, or in the unit of an estimand such as ExposureRatio. One run on each side
    are compared whatever they are called, otherwise runs of one name; measures, estimands and pairs of groups that only
    one audit holds are left out and noted.

    Parameters
    ----------
    new : Audit or PairwiseAudit
        The new audit, or the only one.
    old : Audit or PairwiseAudit, optional
        Over the same queries, with the same column of groups and the same rule for ties; of pairwise audits with the
        same groups and the same rule for counting.
    baseline_run : str, optional
        In place of an old audit: the run of `new` that all its other runs are compared with, such as the one with a
        neutral prompt.
    resamples, seed : int, optional
        Bootstrap resamples and exchanges of the permutation tests; their random seed.
    correction : {"holm", "bonferroni"}, optional
        Over every p of the comparison: Relative Δ, effectiveness and estimands, all runs, measures and pairs.

    Returns
    -------
    Comparison
        ``compare(old, new)`` negates every difference exactly.
    """
    if (old is None) == (baseline_run is None):
        raise UserError("give either an old audit (OLD.json) or a run of the same audit (--baseline-run RUN)")
    if correction not in CORRECTIONS:
        raise unknown("correction", correction, CORRECTIONS)
    check_resamples(resamples)
    if isinstance(new, PairwiseAudit) or isinstance(old, PairwiseAudit):
        return _compare_choices(new, old, resamples=resamples, seed=seed, correction=correction)
    old = new if old is None else old
    found = match(new, old, baseline_run=baseline_run)
    tilted = contrast_changes(change_tasks(found, found.pairs), resamples=resamples, seed=seed)
    meant = mean_changes(change_tasks(found, [(ALL, ALL)]), resamples=resamples, seed=seed)
    asked = contrast_changes(estimand_tasks(found), resamples=resamples, seed=seed)
    rows = corrected([*tilted, *meant, *asked], correction)
    one, two = len(tilted), len(tilted) + len(meant)
    tilts, means, estimates = rows[:one], rows[one:two], rows[two:]
    spec = _spec(new, old, rows, correction=correction, resamples=resamples, seed=seed)
    spec |= {"by": new.spec["by"], "baseline_run": baseline_run, "primary": _primary(new, found.measures)}
    notes = (*found.left_out, *found.notes, *change_notes((*tilts, *estimates), means, resamples))
    return Comparison(spec, found.runs, found.measures, found.pairs, tilts, means, notes, estimates)


def _compare_choices(
    new: Audit | PairwiseAudit, old: Audit | PairwiseAudit | None, *, resamples: int, seed: int, correction: str
) -> Comparison:
    """Compare what two models chose of the same queries' pairs, each kind by itself."""
    if not isinstance(new, PairwiseAudit) or not isinstance(old, PairwiseAudit):
        raise UserError("expected two audits, or two pairwise audits: NEW.json OLD.json")
    tasks = match_choices(new, old)
    rows = corrected(choice_changes(tasks, resamples=resamples, seed=seed), correction)
    spec = _spec(new, old, rows, correction=correction, resamples=resamples, seed=seed)
    spec |= {name: new.spec[name] for name in ("path", "by", "count_rule") if name in new.spec}
    spec |= {"protected": new.protected, "unprotected": new.unprotected, "baseline_run": None}
    other = "the models chose between other pairs of the same queries; what the draw adds is part of the intervals"
    notes = (*([] if new.spec.get("asked") == old.spec.get("asked") else [other]), *change_notes(rows, (), resamples))
    return Comparison(spec, (RunPair(new.model, old.model),), (), (), (), (), notes, rows)


def match_choices(new: PairwiseAudit, old: PairwiseAudit) -> list[ChangeTask]:
    """Put the choices of two models side by side, query by query, for each kind of pairs that both have."""
    sides = [f"{one.protected} and {one.unprotected} by {one.spec['by']}" for one in (new, old)]
    if sides[0] != sides[1]:
        raise UserError(f"the pairwise audits compare other groups: {sides[0]} (new), {sides[1]} (old)")
    rules = [one.spec["count_rule"] for one in (new, old)]
    if rules[0] != rules[1]:
        rule = f"{rules[0]!r} (new), {rules[1]!r} (old)"
        raise UserError(f"the pairwise audits count choices differently: {rule}; make both with the same --count-rule")
    tasks = []
    for kind in KINDS:
        tables = [[row for row in one.by_query if row.kind == kind] for one in (new, old)]
        queries = [[row.query for row in rows] for rows in tables]
        at, before = same_queries(*queries, noun="pairwise audits", hint="ask both about the same (--queries)")
        if not len(at):
            continue
        of = replace(Preference, pairs=kind)
        one, two = (_sample(*each, of) for each in zip((new, old), tables, (at, before), strict=True))
        tasks.append(contrast_task(one, two))
    if not tasks:
        raise UserError("the pairwise audits hold no choices per query; make both again (ranktilt pairwise)")
    return tasks


def _sample(audit: PairwiseAudit, rows: Sequence[QueryChoices], at: Ints, of: PreferenceOfPairs) -> Sample:
    """What one model chose of one kind of pairs, in this order of the queries."""
    chosen, other = (np.array([getattr(row, side) for row in rows], dtype=np.float64)[at] for side in _SIDES)
    return Sample(audit.model, of, audit.protected, audit.unprotected, (chosen - other) / 2, chosen + other)


def choice_changes(tasks: list[ChangeTask], *, resamples: int, seed: int) -> list[Change]:
    """Compare the preferences, both models resampled together; beside each stand both models' own intervals."""
    found = []
    for task, change in zip(tasks, contrast_changes(tasks, resamples=resamples, seed=seed), strict=True):
        (means,) = resampled([task.columns], resamples=resamples, seed=seed)
        ends = [interval(values) for values in task.estimand.combine(means[:2], means[2:])]
        names = ("new_low", "new_high", "old_low", "old_high")
        own = dict(zip(names, (end for one in ends for end in one[:2]), strict=True))
        found.append(replace(change, parts=own))
    return found


def _primary(new: Audit, measures: Sequence[str]) -> str | None:
    """The measure that verdicts speak of: the new audit's, where both hold it."""
    usual = usual_primary(list(map(estimand, measures)))
    own = repr(new.primary_measure) if new.measures else ""
    return own if own in measures else None if usual is None else repr(usual)


def _spec(new: Audit | PairwiseAudit, old: Audit | PairwiseAudit, rows: Sequence[Change], **how: Any) -> dict[str, Any]:
    made = [{k: one.spec[k] for k in ("command", "ranktilt", "collection") if k in one.spec} for one in (new, old)]
    return {**how, "tests": sum(row.p == row.p for row in rows), "new": made[0], "old": made[1]}


def change_notes(contrasts: Sequence[Change], means: Sequence[Change], resamples: int) -> Iterator[str]:
    """Say what a comparison leaves out, where it stands on little, and what its tilts are measured from."""
    lacking = {
        f"not both {c.a} and {c.b} are" if c.of_tilt else f"{c.name} is not": c
        for c in sorted(contrasts, key=lambda c: c.excluded)
        if c.excluded
    }
    for what, change in lacking.items():
        total = counted(change.queries + change.excluded, "query", "queries")
        yield f"{change.excluded} of {total} excluded: {what} defined under both runs"
    fewest = min((c.queries for c in (*contrasts, *means)), default=FEW_QUERIES)
    if fewest < FEW_QUERIES:
        yield too_narrow(f"{counted(fewest, 'query is', 'queries are')} compared", fewest)
    dropped = max((c.dropped for c in contrasts if c.queries >= FEWEST_ROWS), default=0)
    if dropped:
        yield f"up to {dropped:,} of {resamples:,} resamples dropped: both groups were 0 under one of the runs"
    uneven = dict.fromkeys(f"{c.a} and {c.b}" for c in contrasts if not c.twins and c.estimand.sided)
    if uneven:
        yield (
            f"{', '.join(uneven)} are not twins: a tilt is the distance from the median of each run's random labels, "
            "taken as known"
        )


def change_sentence(change: Change) -> str:
    """Say what of a change is shown, with its interval and p; what both runs say by themselves stands in the table."""
    of, mean = change.estimand, isinstance(change.estimand, Measure)
    old = "its old run" if change.run == change.old_run else change.old_run
    what = "tilt" if change.of_tilt else "effectiveness" if mean else change.name
    on = f" on {change.measure}" if change.of_tilt or mean else ""
    if change.value != change.value:
        return f"{change.run}: no comparison with {old}: {what}{on} is undefined under one of both"
    numbers = _difference(change)
    if few := too_few(change):
        return f"{change.run}: no difference in {what}{on} from {old} can be shown: {few}; {numbers}"
    if not change.shown:
        return f"{change.run}: no difference in {what}{on} from {old} shown; {_could(change)}; {numbers}"
    if mean:
        return f"{change.run} is {'more' if change.value > 0 else 'less'} effective than {old}{on}: {numbers}"
    if not of.sided:
        return f"{change.run} has a {'higher' if change.value > 0 else 'lower'} {what} than {old}: {numbers}"
    grown = "; the tilt itself grew" if change.growth_low > 0 else ""
    shrunk = "; the tilt itself shrank" if change.growth_high < 0 else ""
    side = change.a if change.value > 0 else change.b
    return f"{change.run} lies further toward {side} than {old}{on or f' in {what}'}: {numbers}{grown}{shrunk}"


def _difference(change: Change) -> str:
    interval = f" [{', '.join(change.ends)}]" if change.has_interval else ""
    difference = f"difference {change.amount(change.value, sign=True)}{change.unit}{interval}"
    return ", ".join(filter(None, (difference, corrected_p(change))))


def _could(change: Change) -> str:
    queries = counted(change.queries, "query", "queries")
    if change.error == 0:
        return f"every resample of {queries} says the same"
    if change.p_corrected < ALPHA:
        return across(change.p_corrected, "0")
    low, high = change.estimand.bounds
    if change.detectable > (high - low) * (100 if isinstance(change.estimand, Measure) else 1):
        return f"{queries} could not detect any difference"
    these = "this query" if change.queries == 1 else f"these {queries}"
    size = change.amount(change.detectable, sign=False)
    return f"{these} could detect one of {size}{change.unit} or more"
