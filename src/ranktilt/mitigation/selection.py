"""Choose each method's strength on the queries to select by.

A *candidate* is a method of correction at one strength, and the *baseline* is the ranker without
any correction. A *tilt* is how far a ranker favours one group over another; it is level if it is
within a margin. Values are compared without intervals or tests, because the chosen candidates are
tested on other queries.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ranktilt.auditing.card import Card
from ranktilt.auditing.measure import measure
from ranktilt.auditing.null_distributions.base import Shuffles
from ranktilt.auditing.null_distributions.judged_documents import ShuffledRun, null_deltas
from ranktilt.auditing.prepare import AuditInputs
from ranktilt.data.collection import Collection
from ranktilt.measures.base import Estimand, Measure
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.measures.ranking import Floats
from ranktilt.mitigation.audited_candidates import BenchOptions, CandidateRuns, prepare_candidates
from ranktilt.mitigation.bench_result import Candidate
from ranktilt.mitigation.movement import shares_replaced


@dataclass(frozen=True, kw_only=True)
class CandidateValues:
    """Tilt and cost of a candidate on the queries to select by, without intervals."""

    candidate: Candidate
    """The candidate."""
    distance: float
    """Distance of the tilt from the neutral value, in percent; infinite if undefined."""
    loss: float
    """Cost of the candidate, in points; infinite if undefined.

    The cost is the largest loss of effectiveness. Without judgments, it is the percentage of the
    baseline's first ten documents that the candidate replaces.
    """


def choose_strengths(
    values: Sequence[CandidateValues], margin: float, budget: float
) -> tuple[str, ...]:
    """Return the name of each method's weakest candidate within half the margin and the budget.

    If a method has none, its candidate nearest to level is returned: among those within the budget
    if there are any, else among all. Only half the margin is allowed, because the tilt will differ
    on the test queries, where its whole interval must be within the margin.

    `values` are in rising order of strength.
    """
    selected_names = []
    for method in dict.fromkeys(value.candidate.method for value in values):
        method_values = [value for value in values if value.candidate.method == method]
        affordable = [value for value in method_values if value.loss <= budget] or method_values
        nearly_level = [value for value in affordable if value.distance <= margin / 2]
        nearest = min(affordable, key=lambda value: value.distance)
        weakest = nearly_level[0] if nearly_level else nearest
        selected_names.append(weakest.candidate.name)
    return tuple(selected_names)


def candidate_values(
    collection: Collection,
    runs: CandidateRuns,
    question: Estimand,
    *,
    reference: Collection | None,
    reference_runs: CandidateRuns,
    options: BenchOptions,
) -> list[CandidateValues]:
    """Return how far each candidate is from level, and what it costs; the baseline's come first.

    Parameters
    ----------
    collection : Collection
        The collection with the queries to select by.
    runs : mapping of Candidate to Run
        Runs of these queries over all documents, the baseline's first.
    question : Estimand
        The primary question, which decides what is level.
    reference : Collection or None
        The reference's documents alone; None if they were not ranked alone.
    reference_runs : mapping of Candidate to Run
        Runs over these documents.
    options : BenchOptions
        How candidates are compared.
    """
    questions = [question]
    if collection.has_judgments:
        questions = list(dict.fromkeys([question, options.effectiveness]))
    inputs = prepare_candidates(collection, runs, questions, options)
    values = measure(inputs).values
    distances = _distances(inputs, values, question)
    if collection.has_judgments:
        losses = _losses(inputs, values, options.effectiveness)
    else:
        losses = shares_replaced(list(runs.values()))
    if reference is not None and reference_runs:
        alone = prepare_candidates(
            reference, reference_runs, [options.effectiveness], options, is_grouped=False
        )
        losses_alone = _losses(alone, measure(alone).values, options.effectiveness)
        losses = [max(pair) for pair in zip(losses, losses_alone, strict=True)]
    return [
        CandidateValues(candidate=candidate, distance=distance, loss=loss)
        for candidate, distance, loss in zip(runs, distances, losses, strict=True)
    ]


def _distances(inputs: AuditInputs, values: Floats, question: Estimand) -> list[float]:
    """Return how far each run's tilt is from its neutral value, in percent.

    The tilt is that between the first pair of groups. Its *lead* is the tilt minus the neutral
    value, so it is negative if the second group is favoured. The distance is infinite if the tilt
    is undefined.
    """
    # `point` is the size of one percent in the unit of the question: .01 for a share.
    if isinstance(question, Measure):
        leads = _contrast_leads(inputs, values, question)
        point = RelativeDelta(of=question).point
    else:
        leads = _card_leads(inputs)
        point = question.point
    return [math.inf if math.isnan(lead) else abs(lead) / point for lead in leads]


def _contrast_leads(inputs: AuditInputs, values: Floats, measured: Measure) -> list[float]:
    """Return each run's Relative Δ minus its neutral value.

    Between twins, 0 is neutral. Other groups may have unequal numbers of relevant documents, which
    move Relative Δ by themselves. So for these, the neutral value is the median of Relative Δ under
    labels that are shuffled within queries, as in an audit.
    """
    contrast, pair = RelativeDelta(of=measured), inputs.pairs[0]
    a, b = pair.numbers
    leads = []
    for run_values in values[:, inputs.measures.index(measured)]:
        # Row 0 has the values of all documents, and row g + 1 those of group g.
        leads.append(contrast.value(run_values[a + 1], run_values[b + 1]) - contrast.neutral)
    if pair.are_twins:
        return leads
    breaks_ties = inputs.options.ties != "expected"
    tasks = [
        ShuffledRun(judged_run=run.untied() if breaks_ties else run, groups=pair.numbers)
        for run in inputs.judged_runs
    ]
    nulls = null_deltas(tasks, [measured], _shuffles(inputs))
    return [lead - _median(null[0]) for lead, null in zip(leads, nulls, strict=True)]


def _shuffles(inputs: AuditInputs) -> Shuffles:
    """Return how labels are shuffled, with the seed of the audit."""
    return Shuffles(judgments=inputs.judgments, seed=inputs.options.inference.seed)


def _median(draws: Floats) -> float:
    """Return the median of the defined draws; NaN without any."""
    defined = draws[~np.isnan(draws)]
    return float(np.median(defined)) if len(defined) else math.nan


def _card_leads(inputs: AuditInputs) -> list[float]:
    """Return each run's value of a question about groups minus its neutral value.

    The *card* is the set of questions that are not about relevance, such as ``Share@10`` and
    ``HeadToHead``. NaN for a run without an answer.
    """
    pair = inputs.pairs[0]
    card = Card(
        groups=inputs.groups,
        twins={pair.names: pair.twins},
        questions=inputs.questions[:1],
        inference=inputs.options.inference,
        shuffles=_shuffles(inputs),
        shows_random_band=inputs.options.by != "source",
        origins=inputs.origins,
    )
    samples = list(card.answer_groups(inputs.judged_runs))
    for run_index, judged_run in enumerate(inputs.judged_runs):
        if len(pair.twins.rows):
            lists = {pair.names: pair.twins.lists(judged_run, inputs.options.missing)}
            samples += card.answer_twins(run_index, judged_run, lists)
    leads = {key.run_index: sample.value - sample.neutral for key, sample in samples}
    return [leads.get(index, math.nan) for index in range(len(inputs.judged_runs))]


def _losses(inputs: AuditInputs, values: Floats, measured: Measure) -> list[float]:
    """Return the effectiveness that each run loses compared with the first one, in points.

    A gain is negative. Only queries with a value in both runs count; the loss is infinite if there
    are none, so that such a candidate is never within a budget.
    """
    # One row for each run, over all documents.
    values_by_run = values[:, inputs.measures.index(measured), 0]
    losses = []
    for run_values in values_by_run:
        query_losses = values_by_run[0] - run_values
        query_losses = query_losses[~np.isnan(query_losses)]
        losses.append(100 * float(np.mean(query_losses)) if len(query_losses) else math.inf)
    return losses
