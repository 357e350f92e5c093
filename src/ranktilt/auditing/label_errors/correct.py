"""Correct answers for the errors of labels, and widen intervals by the error of the rates.

A label says which group a document belongs to, and may be wrong. ``M[l, g]`` is the rate at which
documents of group g get label l, and J is the determinant of M: 1 if labels are right, 0 if they
say nothing. For two groups, J = 1 − false positive rate − false negative rate.

Instead of 1 for the group of its label, a document of label l counts column l of M⁻¹: a number for
each group. Sums of these numbers are right on average. So is every answer that is a difference of
sums over documents, and documents stay the units of its error. Rates may differ between parts of
the documents; a *cell* is all documents of one part and one label.

An *entry* is one document in the list of one query. A *sample* holds the values per query behind an
answer, and a *repeat* is one of several rankings by the same ranker. The *neutral value* of an
answer favours neither group; it is the median of the answers that random labels would give, their
*null distribution*.

`ranktilt.statistics.label_errors` has the matrices and the intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from ranktilt.auditing.effects import Effect, ObservedAnswer
from ranktilt.auditing.judged_run import JudgedRun
from ranktilt.auditing.judgments import Judgments
from ranktilt.auditing.label_errors.model import LabelModel
from ranktilt.auditing.null_distributions.base import LabelEffects, NullDistribution, Shuffles
from ranktilt.auditing.null_distributions.lists import shuffled_in_lists
from ranktilt.auditing.null_distributions.pages import TopRanks, page_labels, share_bands
from ranktilt.auditing.prepare import AuditInputs
from ranktilt.auditing.repeats.average import SampleKey, average_repeats, sample_key
from ranktilt.auditing.significance import Sample, correct_p_values, effects
from ranktilt.measures.base import Estimand, GroupEstimand
from ranktilt.measures.ranking import Floats, Ints, probability_within, share_of_query
from ranktilt.statistics.label_errors import FIELLER_BELOW, Gap, fieller, gap_with_rate_error
from ranktilt.statistics.two_way import Clusters, sums

LIST_SHARES = ("even_a", "even_b")
"""Names of details of Share@k: the share of each list that either group holds.

If the ranker favoured nobody, a group would have the same share of the first ranks.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class CorrectedAnswer:
    """An answer that is corrected for label errors, before its interval is computed."""

    sample: Sample
    """Corrected values per query."""
    error_parts: Floats
    """What the uncertainty of each rate adds to the value; the squares sum to its variance."""
    scale: LabelScale | None = None
    """How the answer follows from the observed one; None if not all documents have one J."""


@dataclass(frozen=True, kw_only=True)
class LabelScale:
    """How a corrected answer about two groups follows from the observed one: stretched and moved.

    This holds if all documents have the same rates. Let a document with the first label count u,
    and one with the second label −v, instead of 1 and −1. If x and y are the sums over both labels,
    the observed answer is x − y, and the corrected one is

        u·x − v·y = (u + v)/2 · (x − y) + (u − v)/2 · (x + y)

    x + y is the same whatever the labels are: a constant of the question.
    """

    stretch: float
    """(u + v)/2, which is 1/J."""
    move: float
    """(u − v)/2 · (x + y): 0 if both kinds of errors are equally frequent, because then u = v."""

    def corrected(self, value: float) -> float:
        """Return the corrected value of an observed one."""
        return self.stretch * value + self.move

    def corrected_effect(self, observed: Effect) -> Effect:
        """Correct an effect and its interval, as if the rates were known exactly."""
        return replace(
            observed,
            value=self.corrected(observed.value),
            low=self.corrected(observed.low),
            high=self.corrected(observed.high),
            error=self.stretch * observed.error,
            null_low=self.corrected(observed.null_low),
            null_high=self.corrected(observed.null_high),
            null_median=self.corrected(observed.null_median),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelSums:
    """An answer as the difference of two groups' sums over the entries of lists."""

    query: Ints
    """Number of each entry's query."""
    cell: Ints
    """Number of each entry's cell, its part and label; −1 without a label."""
    coefficient: Floats
    """What each entry adds to its query's answer if it is of the first group.

    An entry of the second group takes as much away.
    """
    is_counted: Floats
    """1 for each query that counts, 0 for the others."""
    values: Floats
    """What a document of each cell counts on average: 1 in the first group, −1 in the second."""

    def per_query(self, drawn_cell: Ints | None = None) -> Floats:
        """Return the corrected answer of each query.

        `drawn_cell` replaces `cell`, to compute the answer under random labels.
        """
        cell = self.cell if drawn_cell is None else drawn_cell
        counts = np.where(cell >= 0, self.values[cell], 0.0)
        return sums(self.query, counts * self.coefficient, len(self.is_counted)) * self.is_counted

    def cell_means(self) -> Floats:
        """Return the sum of the coefficients of each cell's entries, as a mean over queries."""
        coefficients = self.coefficient * self.is_counted[self.query]
        is_labelled = self.cell >= 0
        totals = sums(self.cell[is_labelled], coefficients[is_labelled], len(self.values))
        return totals / max(float(self.is_counted.sum()), 1.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class JudgedSample:
    """A sample by the labels as they are, and the ranking that it is of."""

    sample: Sample
    """Observed values per query."""
    judged_run: JudgedRun
    """The ranking; for a run with repeats, that of one repeat."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CorrectedAnswers:
    """All answers of a card, corrected for label errors."""

    effects: tuple[Effect, ...]
    """The answers; `Effect.observed` is the answer by the labels as they are."""
    samples: tuple[Sample, ...]
    """Corrected values per query behind the answers."""
    repeat_samples: tuple[Sample, ...]
    """Corrected values per query in each repeat of a run, before they are averaged."""


def correct_labels(
    inputs: AuditInputs,
    model: LabelModel,
    judged_samples: Sequence[JudgedSample],
    shuffles: Shuffles,
) -> CorrectedAnswers:
    """Return answers corrected for label errors, each with the answer by the labels as they are.

    Every repeat is corrected by itself. The correction is linear, so the mean of the corrected
    repeats is the corrected mean. The uncertainty of the rates raises some p, so that all are
    corrected for several tests anew.
    """
    options = inputs.options.inference
    repeats_by_answer: dict[SampleKey, list[CorrectedAnswer]] = {}
    for judged in judged_samples:
        answer = _corrected_answer(inputs, model, judged.judged_run, judged.sample, shuffles)
        repeats_by_answer.setdefault(sample_key(judged.sample), []).append(answer)
    answers = [_average(repeats) for repeats in repeats_by_answer.values()]
    samples = tuple(answer.sample for answer in answers)
    observed_samples = average_repeats([judged.sample for judged in judged_samples])
    observed_effects = effects(observed_samples, options, primary=inputs.primary)
    # Effects as if the rates were known exactly.
    exact_effects = effects(samples, options, primary=inputs.primary)
    rows = []
    for answer, effect, observed_effect in zip(
        answers, exact_effects, observed_effects, strict=True
    ):
        observed_answer = ObservedAnswer(
            value=observed_effect.value,
            low=observed_effect.low,
            high=observed_effect.high,
            neutral=observed_effect.neutral,
        )
        if answer.scale is not None:
            scaled = answer.scale.corrected_effect(observed_effect)
            effect = replace(scaled, details=effect.details)
        rows.append(widened_effect(effect, observed_answer, answer.error_parts, model))
    repeats = chain.from_iterable(repeats_by_answer.values())
    return CorrectedAnswers(
        effects=correct_p_values(rows, options.correction, inputs.primary),
        samples=samples,
        repeat_samples=tuple(repeat.sample for repeat in repeats),
    )


def _average(repeats: Sequence[CorrectedAnswer]) -> CorrectedAnswer:
    """Average the corrected answers of the repeats of one run."""
    if len(repeats) == 1:
        return repeats[0]
    (sample,) = average_repeats([answer.sample for answer in repeats])
    scales = [answer.scale for answer in repeats if answer.scale is not None]
    scale = None
    if scales:
        # All repeats have one J, so they are stretched alike.
        move = float(np.mean([repeat_scale.move for repeat_scale in scales]))
        scale = LabelScale(stretch=scales[0].stretch, move=move)
    return CorrectedAnswer(
        sample=sample,
        error_parts=np.mean([answer.error_parts for answer in repeats], axis=0),
        scale=scale,
    )


def _corrected_answer(
    inputs: AuditInputs,
    model: LabelModel,
    judged_run: JudgedRun,
    sample: Sample,
    shuffles: Shuffles,
) -> CorrectedAnswer:
    """Correct the answer of one ranking; `sample` is by the labels as they are."""
    estimand = _group_estimand(sample)
    if estimand.is_difference_of_sums:
        return _page_answer(inputs, model, judged_run, sample, shuffles)
    weights = _pair_weights(model, sample)
    cell = judged_run.group_codes(model.cells)
    coefficient = estimand.label_coefficients(judged_run.ranking, cell >= 0)
    if coefficient is None:
        raise TypeError(f"{estimand!r} is not linear in labels")
    label_sums = LabelSums(
        query=judged_run.ranking.query,
        cell=cell,
        coefficient=coefficient,
        is_counted=sample.mask.astype(np.float64),
        values=model.cell_values(weights),
    )
    labels = _listed_labels(judged_run, sample, label_sums, inputs.origins)
    corrected_sample = replace(
        sample,
        numerator=label_sums.per_query(),
        is_bounded=False,
        details={**sample.details, **_list_shares(model, judged_run, sample, label_sums)},
    )
    if model.is_plain:
        return _scaled_answer(
            model,
            sample,
            corrected_sample=corrected_sample,
            label_sums=label_sums,
            labels=labels,
        )
    draws = _list_draws(judged_run, label_sums, shuffles)
    return CorrectedAnswer(
        sample=corrected_sample.with_random_labels(draws, labels),
        # Under random labels, a cell's share of the first ranks is on average its share of the
        # list: the coefficients of its entries sum to 0, and nothing is subtracted here.
        error_parts=model.error_parts(weights, label_sums.cell_means()),
    )


def _scaled_answer(
    model: LabelModel,
    observed: Sample,
    *,
    corrected_sample: Sample,
    label_sums: LabelSums,
    labels: LabelEffects,
) -> CorrectedAnswer:
    """Return the corrected answer about two groups, if all documents have one J.

    Its null distribution is the observed one, stretched and moved as the answer is.
    """
    weights, cell_means = _pair_weights(model, observed), label_sums.cell_means()
    # The sum of all labelled entries' coefficients, which no label changes.
    total = float(cell_means.sum())
    neutral = 0.0 if observed.null is None else observed.null.median
    # Both groups' sums under random labels: they add up to the total, and differ by the neutral
    # value.
    neutral_means = (cell_means.sum() + neutral * weights) / 2
    # u and −v of `LabelScale`: documents of the first group count more than 0, the others less.
    value_first, value_second = sorted(label_sums.values.tolist(), reverse=True)
    scale = LabelScale(
        stretch=(value_first - value_second) / 2, move=(value_first + value_second) / 2 * total
    )
    null = observed.null
    if null is not None:
        null = NullDistribution(
            low=scale.corrected(null.low),
            high=scale.corrected(null.high),
            p=null.p,
            median=scale.corrected(null.median),
        )
    return CorrectedAnswer(
        sample=replace(corrected_sample, null=null, clusters=labels.clusters),
        error_parts=model.error_parts(weights, cell_means - neutral_means),
        scale=scale,
    )


def _pair_weights(model: LabelModel, sample: Sample) -> Floats:
    """Return 1 for the first group of a sample, −1 for the second, 0 for all others."""
    weights = np.zeros(len(model.groups.names))
    weights[model.groups.names.index(sample.a)] = 1.0
    weights[model.groups.names.index(sample.b)] = -1.0
    return weights


# ---- shares of lists ----------------------------------------------------------------------------


def _listed_labels(
    judged_run: JudgedRun, sample: Sample, label_sums: LabelSums, origins: Ints
) -> LabelEffects:
    """List what each label adds beyond the mean label of its query.

    `origins` has the number of each document's origin, by row.
    """
    entries = np.flatnonzero((label_sums.cell >= 0) & (label_sums.is_counted[label_sums.query] > 0))
    query = label_sums.query[entries]
    counts = label_sums.values[label_sums.cell[entries]]
    query_count = len(label_sums.is_counted)
    sizes = np.maximum(np.bincount(query, minlength=query_count), 1)
    mean = sums(query, counts, query_count) / sizes
    return LabelEffects(
        clusters=Clusters(
            query=query,
            origin=origins[judged_run.row[entries]],
            total=(counts - mean[query]) * label_sums.coefficient[entries],
            weight=_first_shares(judged_run, sample.estimand, label_sums)[entries],
        ),
        draw_number=entries,
    )


def _first_shares(judged_run: JudgedRun, estimand: Estimand, label_sums: LabelSums) -> Floats:
    """Return each labelled entry's share of its query's first ranks."""
    is_labelled = (label_sums.cell >= 0).astype(np.float64)
    first = probability_within(judged_run.ranking, estimand.cutoff)
    return share_of_query(judged_run.ranking, first * is_labelled)


def _list_shares(
    model: LabelModel, judged_run: JudgedRun, sample: Sample, label_sums: LabelSums
) -> dict[str, float]:
    """Return both groups' corrected shares of the lists; empty if the sample has no such shares."""
    if not set(LIST_SHARES) <= set(sample.details):
        return {}
    is_labelled = label_sums.cell >= 0
    # Each labelled entry has the same share of its list, whatever its rank.
    share_of_list = share_of_query(judged_run.ranking, is_labelled.astype(np.float64))
    list_sums = replace(label_sums, coefficient=np.nan_to_num(share_of_list))
    cell_means = list_sums.cell_means()
    shares = {}
    for name, group in zip(LIST_SHARES, (sample.a, sample.b), strict=True):
        weights = np.zeros(len(model.groups.names))
        weights[model.groups.names.index(group)] = 1.0
        shares[name] = float(model.cell_values(weights) @ cell_means)
    return shares


def _list_draws(judged_run: JudgedRun, label_sums: LabelSums, shuffles: Shuffles) -> Floats:
    """Return the corrected answer with the labels of each list in random order."""
    count = max(float(label_sums.is_counted.sum()), 1.0)
    draws = np.full(shuffles.count, np.nan)
    shuffled = shuffled_in_lists(judged_run, label_sums.cell, shuffles.seed)
    # `shuffled` yields without end; the range says how often.
    for draw, drawn_cell in zip(range(shuffles.count), shuffled, strict=False):
        draws[draw] = label_sums.per_query(drawn_cell).sum() / count
    return draws


# ---- shares of the page -------------------------------------------------------------------------


def _page_answer(
    inputs: AuditInputs,
    model: LabelModel,
    judged_run: JudgedRun,
    sample: Sample,
    shuffles: Shuffles,
) -> CorrectedAnswer:
    """Correct a difference of two groups' sums over the first ranks, such as ΔNDSR."""
    cells, weights = model.cells, _pair_weights(model, sample)
    values = model.cell_values(weights)
    page = TopRanks.from_run(judged_run, _group_estimand(sample), len(cells.code))
    label_sums = LabelSums(
        query=page.ranking.query,
        cell=np.where(page.row >= 0, cells.code[page.row], -1),
        coefficient=page.share,
        is_counted=page.known.astype(np.float64),
        values=values,
    )
    # What each document of the collection counts; 0 without a label.
    counts = np.where(cells.code >= 0, values[cells.code], 0.0)
    labels = page_labels(judged_run, page, counts, model.groups, origins=inputs.origins)
    share_difference = float(counts.sum()) / max(len(counts), 1)
    corrected_sample = replace(
        sample,
        numerator=label_sums.per_query(),
        is_bounded=False,
        details={**sample.details, "shares": share_difference},
    )
    if model.is_plain:
        return _scaled_answer(
            model,
            sample,
            corrected_sample=corrected_sample,
            label_sums=label_sums,
            labels=labels,
        )
    judgments = Judgments.from_collection(inputs.collection, cells)
    cell_shuffles = Shuffles(judgments=judgments, seed=shuffles.seed, count=shuffles.count)
    # What each cell holds of the first ranks under random labels, of shape (n_cells, shuffles).
    (cell_shares,) = share_bands([page], cells, cell_shuffles)
    return CorrectedAnswer(
        sample=corrected_sample.with_random_labels(values @ cell_shares, labels),
        error_parts=model.error_parts(weights, label_sums.cell_means() - cell_shares.mean(axis=1)),
    )


def _group_estimand(sample: Sample) -> GroupEstimand:
    """Return the question of a sample; raise `TypeError` if it is not about groups."""
    if not isinstance(sample.estimand, GroupEstimand):
        raise TypeError(f"{sample.estimand!r} is no question about groups")
    return sample.estimand


# ---- effects ------------------------------------------------------------------------------------


def widened_effect(
    effect: Effect, observed: ObservedAnswer, error_parts: Floats, model: LabelModel
) -> Effect:
    """Widen an effect's interval by the error of the rates, and add the observed answer to it.

    `error_parts` are what the uncertainty of each rate adds to the value.
    """
    neutral = effect.neutral
    gap = Gap(
        value=effect.value - neutral,
        low=effect.low - neutral,
        high=effect.high - neutral,
        error=effect.error,
        p=effect.p,
    )
    strength = model.confusions[0].strength  # J in standard errors
    if model.is_plain and strength < FIELLER_BELOW:
        gap = fieller(gap, 1 / strength)
    else:
        gap = gap_with_rate_error(gap, float(np.linalg.norm(error_parts)))
    parts = tuple(error_parts.tolist()) if error_parts.any() else ()
    return replace(
        effect,
        low=neutral + gap.low,
        high=neutral + gap.high,
        error=gap.error,
        p=gap.p,
        observed=replace(observed, error_parts=parts),
    )
