"""Two rankings of each query, by two audits or by one: whether the new ranker tilts more than the old."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl

from ranktilt.auditing.answer.verdict import effect_row
from ranktilt.auditing.comparison.less_variation import with_less_variation
from ranktilt.auditing.comparison.match import (
    MAX_LEFT_OUT,
    RunPair,
    change_tasks,
    common_queries,
    estimand_tasks,
    match,
)
from ranktilt.auditing.effects import FEW_QUERIES, Change
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
from ranktilt.data.artifact import Coded, Result, names_files
from ranktilt.data.notes.base import GroupPair, Note, warnings_of
from ranktilt.data.notes.comparisons import (
    ChangeResamplesDropped,
    ChangeUndefined,
    FewQueriesCompared,
    OtherPairsDrawn,
    PairKindLeftOut,
    TiltsFromMedians,
)
from ranktilt.errors import UserError, unknown
from ranktilt.measures.base import estimand
from ranktilt.measures.preference import Preference, PreferenceOfPairs
from ranktilt.measures.ranking import Ints
from ranktilt.presenter import presenter
from ranktilt.statistics.bootstrap import FEWEST_ROWS, RESAMPLES, interval
from ranktilt.statistics.correction import CORRECTIONS
from ranktilt.statistics.two_way import Dyads, TwoWayVariance

_SIDES = ("protected", "unprotected")
ChangeKind = Literal["differs", "identical", "inconclusive"]


@dataclass(frozen=True, kw_only=True)
class ChangeVerdict:
    """The verdict on one pair of runs, on the primary measure or on another question about groups."""

    run: str
    old_run: str
    kind: ChangeKind
    side: str | None
    """The group that the new run lies further toward, where a difference of a tilt is shown."""
    changes: tuple[Change, ...]
    """The change that the verdict is on; all of them where the runs are identical."""
    is_of_several_pairs: bool
    """Whether there are other pairs of groups."""
    is_of_one_audit: bool
    """Whether both runs are of one audit."""
    leaves_out_queries: bool
    """Whether one of both results holds queries that the other lacks."""

    @property
    def primary(self) -> str:
        """Notation of the questions."""
        return ", ".join(dict.fromkeys(change.measure for change in self.changes))

    @property
    def shown(self) -> bool:
        """Whether a difference is shown: corrected p < .05 and the interval excludes 0."""
        return self.kind == "differs"

    @property
    def sentence(self) -> str:
        """The verdict in words, as reports have it."""
        return presenter().sentence(self)


@dataclass(frozen=True, eq=False)
class Comparison(
    Result, format="ranktilt-comparison", version=1, noun="a comparison", command="ranktilt compare"
):
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
    effectiveness: tuple[Change, ...]
    """Effectiveness of every run pair and measure."""
    notes: tuple[Coded[Note], ...]
    """What was left out, and where the comparison stands on little."""
    estimates: tuple[Change, ...] = ()
    """Other estimands of groups of every run pair, such as ExposureRatio, or preferences of two pairwise audits."""

    def verdicts(self) -> list[ChangeVerdict]:
        """Return verdicts for every run pair: on the tilt of each pair of groups, effectiveness, and estimands."""
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
                kind: ChangeKind = "differs" if change.shown else "inconclusive"
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
        return [c for c in self.estimates if (c.run, c.old_run) == runs]

    def _of(self, runs: RunPair, changes: Sequence[Change]) -> list[Change]:
        return [
            c for c in changes if (c.run, c.old_run, c.measure) == (*runs, self.spec["primary"])
        ]

    def derived(self) -> dict[str, Any]:
        effects = [
            effect_row(change, 0.0)
            for change in (*self.tilts, *self.effectiveness, *self.estimates)
        ]
        return {"next_steps": (), "effects": effects}


def _is_unchanged(change: Change) -> bool:
    # A change by a rounding error, or in a single resample, is one.
    return change.value == 0 and (change.error == 0 or not change.has_interval)


@names_files
def compare(
    new: Audit | PairwiseAudit,
    old: Audit | PairwiseAudit | None = None,
    *,
    baseline_run: str | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    correction: str = "holm",
    max_left_out: float = MAX_LEFT_OUT,
) -> Comparison:
    """Compare two audits or pairwise audits on the queries that both hold, or one run of an audit with its others.

    Every difference is new − old: in points, or in the unit of an estimand such as ExposureRatio.
    One run on each side are compared whatever they are called, otherwise runs of one name;
    measures, estimands and pairs of groups that only one audit holds are left out and noted.

    Parameters
    ----------
    new : Audit or PairwiseAudit
        The new audit, or the only one.
    old : Audit or PairwiseAudit, optional
        With the same column of groups and the same rule for ties; of pairwise audits with the same
        groups and the same rule for counting.
    baseline_run : str, optional
        In place of an old audit: the run of `new` that all its other runs are compared with, such
        as the one with a neutral prompt.
    resamples, seed : int, optional
        Bootstrap resamples; their random seed.
    correction : {"holm", "bonferroni"}, optional
        Over every p of the comparison: Relative Δ, effectiveness and estimands, all runs, measures
        and pairs.
    max_left_out : float, optional
        Percent of all queries that only one of both may hold: they are left out and noted; more are
        refused.

    Returns
    -------
    Comparison
        ``compare(old, new)`` negates every difference exactly.
    """
    if (old is None) == (baseline_run is None):
        raise UserError(
            "give either an old audit (OLD.json) or a run of the same audit (--baseline-run RUN)"
        )
    if correction not in CORRECTIONS:
        raise unknown("correction", correction, CORRECTIONS)
    check_resamples(resamples)
    if isinstance(new, PairwiseAudit) or isinstance(old, PairwiseAudit):
        return _compare_choices(
            new,
            old,
            resamples=resamples,
            seed=seed,
            correction=correction,
            max_left_out=max_left_out,
        )
    old = new if old is None else old
    found = match(new, old, baseline_run=baseline_run, max_left_out=max_left_out)
    tilted = contrast_changes(change_tasks(found, found.pairs), resamples=resamples, seed=seed)
    meant = mean_changes(change_tasks(found, [(ALL, ALL)]), resamples=resamples, seed=seed)
    asked = contrast_changes(estimand_tasks(found), resamples=resamples, seed=seed)
    changes = [with_less_variation(change, new, old) for change in (*tilted, *meant, *asked)]
    rows = corrected(changes, correction)
    one, two = len(tilted), len(tilted) + len(meant)
    tilts, means, estimates = rows[:one], rows[one:two], rows[two:]
    spec = _spec(new, old, rows, correction=correction, resamples=resamples, seed=seed)
    spec |= {
        "by": new.spec["by"],
        "baseline_run": baseline_run,
        "primary": _primary(new, found.measures),
    }
    spec |= {"queries_left_out": found.queries_left_out}
    warned = _warnings(new.notes, old.notes)
    notes = (
        *warned,
        *found.left_out,
        *found.notes,
        *change_notes((*tilts, *estimates), means, resamples),
    )
    return Comparison(spec, found.runs, found.measures, found.pairs, tilts, means, notes, estimates)


def _compare_choices(
    new: Audit | PairwiseAudit,
    old: Audit | PairwiseAudit | None,
    *,
    resamples: int,
    seed: int,
    correction: str,
    max_left_out: float,
) -> Comparison:
    """Compare what two models chose of the same queries' pairs, each kind by itself."""
    if not isinstance(new, PairwiseAudit) or not isinstance(old, PairwiseAudit):
        raise UserError("expected two audits, or two pairwise audits: NEW.json OLD.json")
    matched = match_choices(new, old, max_left_out=max_left_out)
    rows = corrected(
        choice_changes(list(matched.tasks), resamples=resamples, seed=seed), correction
    )
    spec = _spec(new, old, rows, correction=correction, resamples=resamples, seed=seed)
    spec |= {name: new.spec[name] for name in ("path", "by", "count_rule") if name in new.spec}
    spec |= {"protected": new.protected, "unprotected": new.unprotected, "baseline_run": None}
    spec |= {"queries_left_out": matched.queries_left_out}
    drawn = [] if new.spec.get("asked") == old.spec.get("asked") else [OtherPairsDrawn()]
    warned = _warnings(new.notes, old.notes)
    notes = (*warned, *matched.notes, *drawn, *change_notes(rows, (), resamples))
    return Comparison(spec, (RunPair(new.model, old.model),), (), (), (), (), notes, rows)


@dataclass(frozen=True, kw_only=True)
class ChoiceMatch:
    """The choices of two models side by side."""

    tasks: tuple[ChangeTask, ...]
    """One for each kind of pairs that both have."""
    notes: tuple[Note, ...]
    """What only one of them holds."""
    queries_left_out: int
    """Queries that only one of them holds, of the kind with the most."""


def match_choices(new: PairwiseAudit, old: PairwiseAudit, *, max_left_out: float) -> ChoiceMatch:
    """Put the choices of two models side by side, on the queries that both hold of each kind of pairs."""
    sides = [f"{one.protected} and {one.unprotected} by {one.spec['by']}" for one in (new, old)]
    if sides[0] != sides[1]:
        raise UserError(
            f"the pairwise audits compare other groups: {sides[0]} (new), {sides[1]} (old)"
        )
    rules = [one.spec["count_rule"] for one in (new, old)]
    if rules[0] != rules[1]:
        rule = f"{rules[0]!r} (new), {rules[1]!r} (old)"
        raise UserError(
            f"the pairwise audits count choices differently: {rule}; make both with the same --count-rule"
        )
    tasks, notes, left_out = list[ChangeTask](), list[Note](), 0
    for kind in KINDS:
        new_rows, old_rows = (
            [row for row in audit.by_query if row.kind == kind] for audit in (new, old)
        )
        if not new_rows or not old_rows:
            if new_rows or old_rows:
                notes.append(PairKindLeftOut(pairs=kind, side="new" if new_rows else "old"))
            continue
        common = common_queries(
            [row.query for row in new_rows],
            [row.query for row in old_rows],
            max_left_out=max_left_out,
            noun="pairwise audit",
            hint="ask both about the same (--queries)",
        )
        if common.left_out:
            notes.append(common.note("pairwise audit", pairs=kind))
        left_out = max(left_out, common.left_out)
        at_new, at_old = common.rows
        estimand = replace(Preference, pairs=kind)
        new_sample = _sample(new, new_rows, at_new, estimand)
        old_sample = _sample(old, old_rows, at_old, estimand)
        queries = [new_rows[row].query for row in at_new]
        task = contrast_task(new_sample, old_sample)
        if new.by_pair and old.by_pair:
            variance = _choice_variance((new, old), (new_sample, old_sample), kind, queries)
            task = replace(task, known_variance=variance)
        tasks.append(task)
    if not tasks and notes:
        reasons = "; ".join(note.sentence for note in notes)
        raise UserError(f"the pairwise audits have no kind of pairs in common: {reasons}")
    if not tasks:
        raise UserError(
            "the pairwise audits hold no choices per query; make both again (ranktilt pairwise)"
        )
    return ChoiceMatch(tasks=tuple(tasks), notes=tuple(notes), queries_left_out=left_out)


def _choice_variance(
    audits: Sequence[PairwiseAudit], samples: Sequence[Sample], kind: str, queries: Sequence[str]
) -> TwoWayVariance:
    """Return the variance of a difference of preferences, of other queries and other documents."""
    frames = []
    counts = np.logical_and(*(sample.mask for sample in samples))
    numbers = pl.DataFrame({"query": queries, "number": np.arange(len(queries))})
    numbers = numbers.filter(pl.Series(counts, dtype=pl.Boolean))
    for sign, audit in zip((1.0, -1.0), audits, strict=True):
        [table] = (table for table in audit.by_pair if table.kind == kind)
        frame = pl.DataFrame(
            {
                "query": table.queries,
                "first": table.protected_origins,
                "second": table.unprotected_origins,
                "lead": (table.protected - table.unprotected) / 2,
                "decided": table.protected + table.unprotected,
            }
        ).join(numbers, on="query", maintain_order="left")
        weight = float(frame["decided"].to_numpy().sum())
        value = float(frame["lead"].to_numpy().sum()) / weight if weight else np.nan
        residual = sign * (pl.col("lead") - value * pl.col("decided")) / weight
        frames.append(frame.with_columns(residual=residual, weight=pl.col("decided") / weight))
    pairs = pl.concat(frames)
    origins = pl.concat([pairs["first"], pairs["second"]]).rank("dense").to_numpy() - 1
    first, second = origins.astype(np.int64).reshape(2, -1)
    dyads = Dyads(pairs["number"].to_numpy().astype(np.int64), first, second)
    return dyads.variance(pairs["residual"].to_numpy(), pairs["weight"].to_numpy())


def _sample(
    audit: PairwiseAudit, rows: Sequence[QueryChoices], at: Ints, of: PreferenceOfPairs
) -> Sample:
    """What one model chose of one kind of pairs, in this order of the queries."""
    chosen, other = (
        np.array([getattr(row, side) for row in rows], dtype=np.float64)[at] for side in _SIDES
    )
    return Sample(
        audit.model, of, audit.protected, audit.unprotected, (chosen - other) / 2, chosen + other
    )


def choice_changes(tasks: list[ChangeTask], *, resamples: int, seed: int) -> list[Change]:
    """Compare the preferences, both models resampled together; beside each stand both models' own intervals."""
    found = []
    for task, change in zip(
        tasks, contrast_changes(tasks, resamples=resamples, seed=seed), strict=True
    ):
        (means,) = resampled([task.columns], resamples=resamples, seed=seed)
        ends = [interval(values) for values in task.estimand.combine(means[:2], means[2:])]
        names = ("new_low", "new_high", "old_low", "old_high")
        own = dict(zip(names, (end for one in ends for end in one[:2]), strict=True))
        found.append(replace(change, details=own))
    return found


def _primary(new: Audit, measures: Sequence[str]) -> str | None:
    """The measure that verdicts speak of: the new audit's, where both hold it."""
    usual = usual_primary(list(map(estimand, measures)))
    own = repr(new.primary_measure) if new.measures else ""
    return own if own in measures else None if usual is None else repr(usual)


def _spec(
    new: Audit | PairwiseAudit, old: Audit | PairwiseAudit, rows: Sequence[Change], **how: Any
) -> dict[str, Any]:
    made = [
        {k: one.spec[k] for k in ("command", "ranktilt", "collection") if k in one.spec}
        for one in (new, old)
    ]
    return {
        **how,
        "family_size": sum(row.p == row.p for row in rows),
        "new": made[0],
        "old": made[1],
    }


def _warnings(new: Sequence[Note], old: Sequence[Note]) -> tuple[Note, ...]:
    """What both results warn of, once, and then what one of them does."""
    both = [note for note in new if note in old]
    alone = [
        note.within("side", side)
        for side, notes in (("new", new), ("old", old))
        for note in warnings_of(notes)
        if note not in both
    ]
    return (*warnings_of(both), *alone)


def change_notes(
    contrasts: Sequence[Change], means: Sequence[Change], resamples: int
) -> Iterator[Note]:
    """Note what a comparison leaves out, where it stands on little, and what its tilts are measured from."""
    yield from _undefined(contrasts)
    fewest = min((c.queries for c in (*contrasts, *means)), default=FEW_QUERIES)
    if fewest < FEW_QUERIES:
        yield FewQueriesCompared(queries=fewest)
    dropped = max((c.dropped for c in contrasts if c.queries >= FEWEST_ROWS), default=0)
    if dropped:
        yield ChangeResamplesDropped(dropped=dropped, resamples=resamples)
    uneven = dict.fromkeys(
        GroupPair(a=c.a, b=c.b) for c in contrasts if not c.twins and c.estimand.sided
    )
    if uneven:
        yield TiltsFromMedians(pairs=tuple(uneven))


def _undefined(contrasts: Sequence[Change]) -> Iterator[Note]:
    """Note in how many queries each question is not defined under both runs: of a pair once, the most."""
    most: dict[tuple[GroupPair | None, str], Change] = {}
    for change in sorted(contrasts, key=lambda change: change.excluded):
        if not change.excluded:
            continue
        groups = GroupPair(a=change.a, b=change.b) if change.of_tilt else None
        most[groups, "" if change.of_tilt else change.name] = change
    for (groups, question), change in most.items():
        yield ChangeUndefined(
            groups=groups,
            question=question,
            excluded=change.excluded,
            queries=change.queries + change.excluded,
        )
