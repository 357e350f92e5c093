"""Compare two rankings of each query: whether the new ranker tilts more than the old one.

Both are of one audit, or of two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
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
from ranktilt.presenter import presenter
from ranktilt.statistics.bootstrap import FEWEST_ROWS, RESAMPLES, interval
from ranktilt.statistics.correction import CORRECTIONS
from ranktilt.statistics.two_way import Dyads, TwoWayVariance

ChangeKind = Literal["differs", "identical", "inconclusive"]


@dataclass(frozen=True, kw_only=True)
class ChangeVerdict:
    """The verdict on one pair of runs, on the primary measure or another question about groups."""

    run: str
    old_run: str
    kind: ChangeKind
    side: str | None
    """The group that the new run favours more, where a difference of a tilt is shown."""
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
    def is_shown(self) -> bool:
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
        effects = [
            effect_row(change, 0.0)
            for change in (*self.tilts, *self.effectiveness, *self.estimates)
        ]
        return {"effects": effects}


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
    """Compare two audits or pairwise audits, or one run of an audit with its others.

    Only queries that both hold count. Every difference is new − old: in points, or in the unit of
    an estimand such as ExposureRatio. Where each side has one run, these are compared whatever
    their names, otherwise runs of one name. Measures, estimands and pairs of groups that only one
    audit holds are left out and noted.

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
        Percent of all queries that only one of the two may hold: they are left out and noted; more
        are refused.

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
    matched = match(new, old, baseline_run=baseline_run, max_left_out=max_left_out)
    tilts = contrast_changes(change_tasks(matched, matched.pairs), resamples=resamples, seed=seed)
    effectiveness = mean_changes(
        change_tasks(matched, [(ALL, ALL)]), resamples=resamples, seed=seed
    )
    estimates = contrast_changes(estimand_tasks(matched), resamples=resamples, seed=seed)
    changes = [*tilts, *effectiveness, *estimates]
    rows = corrected([with_less_variation(change, new, old) for change in changes], correction)
    tilts_end, effectiveness_end = len(tilts), len(tilts) + len(effectiveness)
    tilt_rows, estimate_rows = rows[:tilts_end], rows[effectiveness_end:]
    effectiveness_rows = rows[tilts_end:effectiveness_end]
    spec = {
        **_spec(new, old, rows, correction=correction, resamples=resamples, seed=seed),
        "by": new.spec["by"],
        "baseline_run": baseline_run,
        "primary": _primary(new, matched.measures),
        "queries_left_out": matched.queries_left_out,
    }
    notes = (
        *_warnings(new.notes, old.notes),
        *matched.left_out,
        *matched.notes,
        *change_notes((*tilt_rows, *estimate_rows), effectiveness_rows, resamples),
    )
    return Comparison(
        spec=spec,
        runs=matched.runs,
        measures=matched.measures,
        pairs=matched.pairs,
        tilts=tilt_rows,
        effectiveness=effectiveness_rows,
        notes=notes,
        estimates=estimate_rows,
    )


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
    spec = {
        **_spec(new, old, rows, correction=correction, resamples=resamples, seed=seed),
        **{name: new.spec[name] for name in ("path", "by", "count_rule") if name in new.spec},
        "protected": new.protected,
        "unprotected": new.unprotected,
        "baseline_run": None,
        "queries_left_out": matched.queries_left_out,
    }
    has_same_pairs = new.spec.get("asked") == old.spec.get("asked")
    notes = (
        *_warnings(new.notes, old.notes),
        *matched.notes,
        *([] if has_same_pairs else [OtherPairsDrawn()]),
        *change_notes(rows, (), resamples),
    )
    return Comparison(
        spec=spec,
        runs=(RunPair(new=new.model, old=old.model),),
        measures=(),
        pairs=(),
        tilts=(),
        effectiveness=(),
        notes=notes,
        estimates=rows,
    )


@dataclass(frozen=True, kw_only=True)
class ChoiceMatch:
    """The choices of two models side by side."""

    tasks: tuple[ChangeTask, ...]
    """Comparisons, one for each kind of pairs that both have."""
    notes: tuple[Note, ...]
    """What only one of them holds."""
    queries_left_out: int
    """Queries that only one of them holds, of the kind with the most."""


def match_choices(new: PairwiseAudit, old: PairwiseAudit, *, max_left_out: float) -> ChoiceMatch:
    """Put the choices of two models side by side, kind by kind of pairs.

    Of each kind only the queries that both hold count.
    """
    _refuse_other_choices(new, old)
    tasks, notes, left_out = list[ChangeTask](), list[Note](), 0
    for kind in KINDS:
        new_rows = [row for row in new.by_query if row.kind == kind]
        old_rows = [row for row in old.by_query if row.kind == kind]
        if new_rows and old_rows:
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
            new_common = [new_rows[row] for row in at_new]
            old_common = [old_rows[row] for row in at_old]
            tasks.append(_choice_task(new, old, new_rows=new_common, old_rows=old_common))
        elif new_rows or old_rows:
            notes.append(PairKindLeftOut(pairs=kind, side="new" if new_rows else "old"))
    if not tasks:
        raise _no_common_kind(notes)
    return ChoiceMatch(tasks=tuple(tasks), notes=tuple(notes), queries_left_out=left_out)


def _no_common_kind(notes: Sequence[Note]) -> UserError:
    if not notes:
        return UserError(
            "the pairwise audits hold no choices per query; make both again (ranktilt pairwise)"
        )
    reasons = "; ".join(note.sentence for note in notes)
    return UserError(f"the pairwise audits have no kind of pairs in common: {reasons}")


def _refuse_other_choices(new: PairwiseAudit, old: PairwiseAudit) -> None:
    """Refuse pairwise audits of other groups, or that count otherwise."""
    new_groups, old_groups = (
        f"{audit.protected} and {audit.unprotected} by {audit.spec['by']}" for audit in (new, old)
    )
    if new_groups != old_groups:
        raise UserError(
            f"the pairwise audits compare other groups: {new_groups} (new), {old_groups} (old)"
        )
    new_rule, old_rule = new.spec["count_rule"], old.spec["count_rule"]
    if new_rule != old_rule:
        raise UserError(
            f"the pairwise audits count choices differently: {new_rule!r} (new), {old_rule!r} "
            "(old); make both with the same --count-rule"
        )


def _choice_task(
    new: PairwiseAudit,
    old: PairwiseAudit,
    *,
    new_rows: Sequence[QueryChoices],
    old_rows: Sequence[QueryChoices],
) -> ChangeTask:
    """Compare what two models chose of one kind of pairs, in the same queries."""
    kind = new_rows[0].kind
    estimand = replace(Preference, pairs=kind)
    new_sample = _sample(new, new_rows, estimand)
    old_sample = _sample(old, old_rows, estimand)
    task = contrast_task(new_sample, old_sample)
    if not (new.by_pair and old.by_pair):
        return task
    queries = [row.query for row in new_rows]
    variance = _choice_variance((new, old), (new_sample, old_sample), kind, queries)
    return replace(task, known_variance=variance)


def _choice_variance(
    audits: Sequence[PairwiseAudit], samples: Sequence[Sample], kind: str, queries: Sequence[str]
) -> TwoWayVariance:
    """Return the variance of a difference of preferences over queries and documents."""
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
    audit: PairwiseAudit, rows: Sequence[QueryChoices], estimand: PreferenceOfPairs
) -> Sample:
    """Make the sample of what one model chose of one kind of pairs, in the order of `rows`."""
    protected = np.array([row.protected for row in rows], dtype=np.float64)
    unprotected = np.array([row.unprotected for row in rows], dtype=np.float64)
    return Sample(
        run=audit.model,
        estimand=estimand,
        a=audit.protected,
        b=audit.unprotected,
        numerator=(protected - unprotected) / 2,
        denominator=protected + unprotected,
    )


def choice_changes(tasks: list[ChangeTask], *, resamples: int, seed: int) -> list[Change]:
    """Compare the preferences, both models resampled together.

    The details of each change are the intervals of both models' preferences.
    """
    changes = []
    for task, change in zip(
        tasks, contrast_changes(tasks, resamples=resamples, seed=seed), strict=True
    ):
        (means,) = resampled([task.columns], resamples=resamples, seed=seed)
        new, old = (interval(values) for values in task.estimand.combine(means[:2], means[2:]))
        details = {
            "new_low": new.low,
            "new_high": new.high,
            "old_low": old.low,
            "old_high": old.high,
        }
        changes.append(replace(change, details=details))
    return changes


def _primary(new: Audit, measures: Sequence[str]) -> str | None:
    """Return the measure that verdicts are on: the new audit's, where both hold it."""
    if new.measures and repr(new.primary_measure) in measures:
        return repr(new.primary_measure)
    usual = usual_primary([estimand(measure) for measure in measures])
    return None if usual is None else repr(usual)


def _spec(
    new: Audit | PairwiseAudit, old: Audit | PairwiseAudit, rows: Sequence[Change], **options: Any
) -> dict[str, Any]:
    return {
        **options,
        "family_size": sum(not np.isnan(row.p) for row in rows),
        "new": _origin(new),
        "old": _origin(old),
    }


def _origin(audit: Audit | PairwiseAudit) -> dict[str, Any]:
    """Return the file of an audit, the command behind it, its version and its collection."""
    names = ("command", "ranktilt", "collection")
    origin = {name: audit.spec[name] for name in names if name in audit.spec}
    return {"file": audit.loaded_from, **origin} if audit.loaded_from else origin


def _warnings(new: Sequence[Note], old: Sequence[Note]) -> tuple[Note, ...]:
    """List the warnings of both results once, and then those of one result alone."""
    both = [note for note in new if note in old]
    warnings = list(warnings_of(both))
    for side, notes in (("new", new), ("old", old)):
        warnings += [note.within("side", side) for note in warnings_of(notes) if note not in both]
    return tuple(warnings)


def change_notes(
    contrasts: Sequence[Change], means: Sequence[Change], resamples: int
) -> Iterator[Note]:
    """Note what a comparison leaves out or has few data for, and where its tilts have a median."""
    yield from _undefined(contrasts)
    fewest = min((change.queries for change in (*contrasts, *means)), default=FEW_QUERIES)
    if fewest < FEW_QUERIES:
        yield FewQueriesCompared(queries=fewest)
    dropped = [change.dropped for change in contrasts if change.queries >= FEWEST_ROWS]
    if any(dropped):
        yield ChangeResamplesDropped(dropped=max(dropped), resamples=resamples)
    uneven = dict.fromkeys(
        GroupPair(a=change.a, b=change.b)
        for change in contrasts
        if not change.twins and change.estimand.sided
    )
    if uneven:
        yield TiltsFromMedians(pairs=tuple(uneven))


def _undefined(contrasts: Sequence[Change]) -> Iterator[Note]:
    """Note in how many queries each question is not defined under both runs.

    Of a pair of groups only the largest number is noted.
    """
    most: dict[tuple[GroupPair | None, str], Change] = {}
    for change in sorted(contrasts, key=attrgetter("excluded")):
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
