"""Match the choices of two models: the same kinds of pairs, for the same queries.

A pairwise audit lets a model choose between two documents, one *protected* and one *unprotected*.
The *kind* of a pair says whether both are relevant to the query, or neither. A model's *preference*
is the share of its choices that take the protected document. The *lead* of a pair is half its
choices of the protected document minus half those of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from ranktilt.auditing.comparison.changes import (
    ChangeTask,
    contrast_changes,
    contrast_task,
    resampled,
)
from ranktilt.auditing.comparison.common_queries import CommonQueries, common_queries
from ranktilt.auditing.effects import Change
from ranktilt.auditing.pairwise.pairs import KINDS, Kind
from ranktilt.auditing.pairwise.result import PairwiseAudit, QueryChoices
from ranktilt.auditing.significance import Sample
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.comparisons import PairKindLeftOut
from ranktilt.errors import UserError
from ranktilt.measures.preference import Preference, PreferenceOfPairs
from ranktilt.statistics.bootstrap import interval
from ranktilt.statistics.two_way import Dyads, TwoWayVariance


@dataclass(frozen=True, kw_only=True)
class ChoiceMatch:
    """The choices of two models, matched."""

    tasks: tuple[ChangeTask, ...]
    """Values per query of both models, for each kind of pairs that both were asked about."""
    notes: tuple[Note, ...]
    """Notes on what only one of the two audits holds."""
    queries_left_out: int
    """Number of queries that only one audit holds, for the kind of pairs with most of them."""


def match_choices(new: PairwiseAudit, old: PairwiseAudit, *, max_left_out: float) -> ChoiceMatch:
    """Match the choices of two models for each kind of pairs.

    Only queries that both audits hold for this kind count; at most `max_left_out` percent of all
    may be in one of them only.
    """
    _refuse_other_choices(new, old)
    tasks: list[ChangeTask] = []
    notes: list[Note] = []
    left_out = 0
    for kind in KINDS:
        new_rows, old_rows = _choices_of_kind(new, kind), _choices_of_kind(old, kind)
        if not new_rows and not old_rows:
            continue
        if not new_rows or not old_rows:
            notes.append(PairKindLeftOut(pairs=kind, side="new" if new_rows else "old"))
            continue
        common = _common_queries(new_rows, old_rows, max_left_out)
        if common.left_out:
            notes.append(common.note("pairwise audit", pairs=kind))
        left_out = max(left_out, common.left_out)
        tasks.append(_choice_task(new, old, common, kind))
    if not tasks:
        raise _no_common_kind(notes)
    return ChoiceMatch(tasks=tuple(tasks), notes=tuple(notes), queries_left_out=left_out)


def _choices_of_kind(audit: PairwiseAudit, kind: Kind) -> list[QueryChoices]:
    """Return the choices between pairs of one kind, query by query."""
    return [row for row in audit.by_query if row.kind == kind]


def _common_queries(
    new_rows: Sequence[QueryChoices], old_rows: Sequence[QueryChoices], max_left_out: float
) -> CommonQueries:
    """Return the queries that both models were asked about."""
    return common_queries(
        [row.query for row in new_rows],
        [row.query for row in old_rows],
        max_left_out=max_left_out,
        noun="pairwise audit",
        hint="ask both about the same queries (--queries)",
    )


def _no_common_kind(notes: Sequence[Note]) -> UserError:
    """Return the error that two audits have no kind of pairs in common; `notes` say why."""
    if not notes:
        return UserError(
            "the pairwise audits have no choices per query; run both again (ranktilt pairwise)"
        )
    reasons = "; ".join(note.sentence for note in notes)
    return UserError(f"the pairwise audits have no kind of pairs in common: {reasons}")


def _refuse_other_choices(new: PairwiseAudit, old: PairwiseAudit) -> None:
    """Refuse pairwise audits of different groups, or with different rules of counting."""
    new_groups, old_groups = (
        f"{audit.protected} and {audit.unprotected} by {audit.spec['by']}" for audit in (new, old)
    )
    if new_groups != old_groups:
        raise UserError(
            f"the pairwise audits compare different groups: {new_groups} (new), {old_groups} (old)"
        )
    new_rule, old_rule = new.spec["count_rule"], old.spec["count_rule"]
    if new_rule != old_rule:
        raise UserError(
            f"the pairwise audits count choices differently: {new_rule!r} (new), {old_rule!r} "
            "(old); use the same --count-rule for both"
        )


def _choice_task(
    new: PairwiseAudit, old: PairwiseAudit, common: CommonQueries, kind: Kind
) -> ChangeTask:
    """Return the task that compares two models' choices between pairs of one kind."""
    new_choices, old_choices = _choices_of_kind(new, kind), _choices_of_kind(old, kind)
    new_indexes, old_indexes = common.rows
    new_rows = [new_choices[index] for index in new_indexes]
    old_rows = [old_choices[index] for index in old_indexes]
    estimand = replace(Preference, pairs=kind)
    new_sample, old_sample = (
        _choice_sample(new, new_rows, estimand),
        _choice_sample(old, old_rows, estimand),
    )
    task = contrast_task(new_sample, old_sample)
    if not (new.by_pair and old.by_pair):
        return task  # without single pairs, only queries make the difference uncertain
    queries = [row.query for row in new_rows]
    variance = _choice_variance((new, old), (new_sample, old_sample), kind, queries)
    return replace(task, known_variance=variance)


def _choice_variance(
    audits: Sequence[PairwiseAudit], samples: Sequence[Sample], kind: str, queries: Sequence[str]
) -> TwoWayVariance:
    """Return the variance of a difference of preferences over other queries and documents.

    `audits` and `samples` are the new one and the old one; `queries` are the ids of the rows of
    both samples.
    """
    frames = []
    is_counted = np.logical_and(*(sample.mask for sample in samples))
    numbers = pl.DataFrame({"query": queries, "number": np.arange(len(queries))})
    numbers = numbers.filter(pl.Series(is_counted, dtype=pl.Boolean))
    # What a pair adds to new − old: its residual, with the sign of the audit.
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


def _choice_sample(
    audit: PairwiseAudit, rows: Sequence[QueryChoices], estimand: PreferenceOfPairs
) -> Sample:
    """Return the sample of one model's choices between pairs of one kind, in the order of `rows`.

    Its value is half of (protected − unprotected) / all choices: the preference minus one half.
    """
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
    """Compare the preferences of two models, which are resampled together.

    The details of each change are the intervals of both models' preferences, minus one half.
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
