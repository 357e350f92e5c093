"""Choose each method's strength by values alone, without intervals or tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.card import Card
from ranktilt.auditing.groups import Groups, are_twins, grouping, twin_rows
from ranktilt.auditing.judged_rankings import JudgedRun, Judgments, group_values
from ranktilt.auditing.notes import without_fitted
from ranktilt.auditing.null_distributions.base import Shuffles
from ranktilt.auditing.null_distributions.judged_documents import null_deltas
from ranktilt.auditing.null_distributions.twins import TwinPairs
from ranktilt.data.collection import Collection
from ranktilt.data.run import Run
from ranktilt.measures.base import Estimand, Measure
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.mitigation.base import document_groups
from ranktilt.mitigation.bench import BenchOptions, CandidateRuns
from ranktilt.mitigation.bench_result import Candidate

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class CandidateValues:
    """What a candidate does on the queries to select by, without intervals."""

    candidate: Candidate
    distance: float
    """How far its tilt is from level, in percent."""
    loss: float
    """The largest loss of effectiveness, in points."""


def choose_strengths(
    values: Sequence[CandidateValues], margin: float, budget: float
) -> tuple[str, ...]:
    """Return each method's smallest candidate within half of the margin and the budget.

    Where there is none, the nearest to level among those within the budget, or of all.
    """
    selected = []
    for method in dict.fromkeys(value.candidate.method for value in values):
        of_method = [value for value in values if value.candidate.method == method]
        affordable = [value for value in of_method if value.loss <= 100 * budget] or of_method
        near = [value for value in affordable if value.distance <= margin / 2]
        nearest = min(affordable, key=lambda value: value.distance)
        selected.append((near[0] if near else nearest).candidate.name)
    return tuple(selected)


def candidate_values(
    collection: Collection,
    runs: CandidateRuns,
    question: Estimand,
    *,
    reference: Collection | None,
    reference_runs: CandidateRuns,
    options: BenchOptions,
) -> list[CandidateValues]:
    """Return how far each candidate is from level, and what it costs; the baseline's come first."""
    distances = _distances(collection, list(runs.values()), question, options)
    losses = [0.0 for _ in runs]
    document_sets = [(collection, runs)] if collection.qrels.height else []
    if reference is not None and reference_runs:
        document_sets.append((reference, reference_runs))
    for documents, ranked in document_sets:
        lost = _losses(documents, list(ranked.values()), options.effectiveness, options.ties)
        losses = [max(loss, more) for loss, more in zip(losses, lost, strict=True)]
    return [
        CandidateValues(candidate=candidate, distance=distance, loss=loss)
        for candidate, distance, loss in zip(runs, distances, losses, strict=True)
    ]


def _distances(
    collection: Collection, runs: Sequence[Run], question: Estimand, options: BenchOptions
) -> list[float]:
    """Return how far each run is from level between the first pair of groups, in percent.

    Infinite where that is undefined.
    """
    collection, _ = without_fitted(collection, runs)
    groups = document_groups(collection, options.by, options.pairs[0])
    judgments = Judgments.of(collection, groups)
    judged_runs = [JudgedRun.of(run, collection, judgments) for run in runs]
    if isinstance(question, Measure):
        leads = _contrast_leads(collection, judged_runs, question, groups, options=options)
        point = RelativeDelta(of=question).point
    else:
        leads = _card_leads(collection, judged_runs, question, groups, options=options)
        point = question.point
    return [math.inf if math.isnan(lead) else abs(lead) / point for lead in leads]


def _contrast_leads(
    collection: Collection,
    judged_runs: Sequence[JudgedRun],
    measure: Measure,
    groups: Groups,
    *,
    options: BenchOptions,
) -> list[float]:
    """Return each run's Relative Δ less the one that favours nobody."""
    contrast = RelativeDelta(of=measure)
    a, b = (groups.names.index(name) for name in options.pairs[0])
    leads = []
    for judged_run in judged_runs:
        values = _measure_values(judged_run, measure, groups, options.ties)
        leads.append(contrast.value(values[a + 1], values[b + 1]) - contrast.level)
    judgments = judged_runs[0].judgments
    judged = judgments.frame().filter(pl.Series(judgments.group >= 0))
    if are_twins(collection, groups, options.pairs[0], judged):
        return leads
    # Between groups that are no twins, what random labels give favours nobody, as in an audit.
    untied = options.ties != "expected"
    tasks = [(run.untied() if untied else run, (a, b)) for run in judged_runs]
    nulls = null_deltas(tasks, [measure], Shuffles(judgments, options.seed))
    return [lead - _median(null[0]) for lead, null in zip(leads, nulls, strict=True)]


def _median(draws: Floats) -> float:
    defined = draws[~np.isnan(draws)]
    return float(np.median(defined)) if len(defined) else math.nan


def _card_leads(
    collection: Collection,
    judged_runs: Sequence[JudgedRun],
    question: Estimand,
    groups: Groups,
    *,
    options: BenchOptions,
) -> list[float]:
    """Return each run's answer to a question of the card less the one that favours nobody."""
    pair = options.pairs[0]
    judgments, origins = judged_runs[0].judgments, collection.origin_codes()
    rows = twin_rows(collection, groups, pair)
    twins = TwinPairs.from_rows(pair, rows, judgments, origins)
    card = Card(
        groups=groups,
        twins={pair: twins},
        questions=[question],
        how=options.inference,
        shuffles=Shuffles(judgments, options.seed),
        banded=options.by != "source",
        origins=origins,
    )
    samples = list(card.of_groups(judged_runs))
    for number, judged_run in enumerate(judged_runs):
        lists = {pair: twins.lists(judged_run, "zero")} if len(rows) else {}
        samples += card.of_twins(number, judged_run, lists)
    leads = {key.run: sample.value - sample.neutral for key, sample in samples}
    return [leads.get(number, math.nan) for number in range(len(judged_runs))]


def _losses(
    collection: Collection, runs: Sequence[Run], measure: Measure, ties: str
) -> list[float]:
    """Return what each run loses of the first one's effectiveness, in points.

    Only queries count that have a value under both; infinite where there are none.
    """
    collection, _ = without_fitted(collection, runs)
    groups = grouping(collection, None)
    judgments = Judgments.of(collection, groups)
    values = []
    for run in runs:
        judged_run = JudgedRun.of(run, collection, judgments)
        values.append(_measure_values(judged_run, measure, groups, ties)[0])
    losses = []
    for of_run in values:
        lost = (values[0] - of_run)[~np.isnan(values[0] - of_run)]
        losses.append(100 * float(np.mean(lost)) if len(lost) else math.inf)
    return losses


def _measure_values(judged_run: JudgedRun, measure: Measure, groups: Groups, ties: str) -> Floats:
    """Return the values of all documents and of each group, of shape (1 + groups, queries)."""
    values: Floats = group_values(judged_run, [measure], groups, ties)[0]
    values[:, judged_run.left_out("zero")] = np.nan
    return values
