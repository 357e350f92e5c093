"""Correct answers for the errors of labels, and widen intervals by the error of the rates.

A document counts for each group what its label says on average: with rates M, a document of label l
counts column l of M⁻¹ (for two groups (1 − fpr)/J and −fnr/J, or the reverse). Every difference of
sums of labels is then right on average, and documents stay the units of its error. See
`ranktilt.statistics.label_errors`.
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
from ranktilt.auditing.repeats.average import AnswerKey, answer_key, average_repeats
from ranktilt.auditing.significance import Sample, corrected, effects
from ranktilt.measures.base import Estimand, GroupEstimand
from ranktilt.measures.ranking import Floats, Ints, probability_within, share_of_query
from ranktilt.statistics.label_errors import FIELLER_BELOW, Gap, fieller, gap_with_rate_error
from ranktilt.statistics.two_way import Clusters, sums

EVEN = ("even_a", "even_b")
"""Details of Share@k: both groups' shares of the lists."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CorrectedAnswer:
    """A sample from labels that count what their rates say."""

    sample: Sample
    error_parts: Floats
    """What the uncertainty of each rate adds to the value; see `Confusion.error_parts`."""
    scale: LabelScale | None = None
    """What one J makes of the observed answer; None where rates differ between documents."""


@dataclass(frozen=True, kw_only=True)
class LabelScale:
    """How an answer of two groups with one J follows from the observed one."""

    stretch: float
    """1/J."""
    move: float
    """What is added after stretching, where one kind of error is more frequent."""

    def of(self, value: float) -> float:
        """Return the corrected value of an observed one."""
        return self.stretch * value + self.move

    def effect(self, observed: Effect) -> Effect:
        """Move and stretch an effect with its interval, as if the rates were known."""
        value, low, high = self.of(observed.value), self.of(observed.low), self.of(observed.high)
        return replace(
            observed,
            value=value,
            low=low,
            high=high,
            error=self.stretch * observed.error,
            null_low=self.of(observed.null_low),
            null_high=self.of(observed.null_high),
            null_median=self.of(observed.null_median),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelSums:
    """An answer as sums over the entries of lists, whose labels can be counted in other ways."""

    query: Ints
    cell: Ints
    """Part and label of each entry; −1 without a label. See `LabelModel.cells`."""
    coefficient: Floats
    """What an entry of the first group adds to its query, and one of the second takes away."""
    is_counted: Floats
    """1 for each query that counts, 0 for the others."""
    values: Floats
    """What a document of each cell counts: 1 for the first group, −1 for the second, corrected."""

    def per_query(self, cell: Ints | None = None) -> Floats:
        """Return the corrected total of each query, of the entries' own labels or drawn ones."""
        cell = self.cell if cell is None else cell
        counts = np.where(cell >= 0, self.values[cell], 0.0)
        return sums(self.query, counts * self.coefficient, len(self.is_counted)) * self.is_counted

    def cell_means(self) -> Floats:
        """Return the mean over queries of what the entries of each cell hold."""
        shares = self.coefficient * self.is_counted[self.query]
        is_labelled = self.cell >= 0
        totals = sums(self.cell[is_labelled], shares[is_labelled], len(self.values))
        return totals / max(float(self.is_counted.sum()), 1.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class JudgedSample:
    """A sample of the labels as they are, and the ranking that it is of."""

    sample: Sample
    judged_run: JudgedRun
    """One ranking: of a run with repeats, one of these."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CorrectedAnswers:
    """All answers of a card, corrected for label errors."""

    effects: tuple[Effect, ...]
    """The answers, each with the one as observed."""
    samples: tuple[Sample, ...]
    """Corrected values per query behind the answers."""
    repeat_samples: tuple[Sample, ...]
    """The same in each repeat, before they are averaged."""


def correct_labels(
    inputs: AuditInputs,
    model: LabelModel,
    judged_samples: Sequence[JudgedSample],
    shuffles: Shuffles,
) -> CorrectedAnswers:
    """Return answers corrected for label errors, each with the answer as observed.

    Every ranking is corrected alone. What a document counts depends on its label alone, so the mean
    of corrected repeats is the corrected mean of the repeats. The corrected p are corrected for
    several tests anew, because the error of rates widens some of them.
    """
    options = inputs.options.inference
    answers_of: dict[AnswerKey, list[CorrectedAnswer]] = {}
    for judged in judged_samples:
        answer = _corrected_answer(inputs, model, judged.judged_run, judged.sample, shuffles)
        answers_of.setdefault(answer_key(judged.sample), []).append(answer)
    answers = [_average(repeats) for repeats in answers_of.values()]
    samples = tuple(answer.sample for answer in answers)
    as_they_are = average_repeats([judged.sample for judged in judged_samples])
    observed = effects(as_they_are, options, primary=inputs.primary)
    exact = effects(samples, options, primary=inputs.primary)
    rows = []
    for answer, effect, observed_effect in zip(answers, exact, observed, strict=True):
        as_labelled = ObservedAnswer(
            value=observed_effect.value,
            low=observed_effect.low,
            high=observed_effect.high,
            neutral=observed_effect.neutral,
        )
        if answer.scale is not None:
            scaled = answer.scale.effect(observed_effect)
            effect = replace(scaled, details=effect.details)
        rows.append(widened_effect(effect, as_labelled, answer.error_parts, model))
    return CorrectedAnswers(
        effects=corrected(rows, options.correction, inputs.primary),
        samples=samples,
        repeat_samples=tuple(answer.sample for answer in chain.from_iterable(answers_of.values())),
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
    estimand = sample.estimand
    if not isinstance(estimand, GroupEstimand):
        raise TypeError(f"{estimand!r} is no question about groups")
    weights = _pair_weights(model, sample)
    if type(estimand).weights is not GroupEstimand.weights:
        return _page_answer(inputs, model, judged_run, sample, shuffles)
    cells = model.cells
    cell = judged_run.group_codes(cells)
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
        parts={**sample.parts, **_list_shares(model, judged_run, sample, label_sums)},
    )
    cell_means = label_sums.cell_means()
    if model.is_plain:
        return _plain_answer(
            model,
            sample,
            corrected_sample=corrected_sample,
            label_sums=label_sums,
            labels=labels,
        )
    draws = _list_draws(judged_run, label_sums, shuffles)
    return CorrectedAnswer(
        sample=corrected_sample.among(draws, labels),
        # Within a list every cell holds as much of the first ranks as of the list on average.
        error_parts=model.error_parts(weights, cell_means),
    )


def _plain_answer(
    model: LabelModel,
    observed: Sample,
    *,
    corrected_sample: Sample,
    label_sums: LabelSums,
    labels: LabelEffects,
) -> CorrectedAnswer:
    """Move and stretch the null distribution of two groups with one J, as the answer is."""
    weights, cell_means = _pair_weights(model, observed), label_sums.cell_means()
    median = 0.0 if observed.null is None else observed.null.median
    # Both groups' parts under random labels, from their difference and their sum.
    neutral_means = (cell_means.sum() + median * weights) / 2
    first, second = sorted(label_sums.values.tolist(), reverse=True)
    # What all labelled entries hold together, which no label changes.
    total = float(cell_means.sum())
    scale = LabelScale(stretch=(first - second) / 2, move=(first + second) / 2 * total)
    null = observed.null
    if null is not None:
        low, high, median = scale.of(null.low), scale.of(null.high), scale.of(null.median)
        null = NullDistribution(low=low, high=high, p=null.p, median=median)
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
    """List what each label adds beyond a mean one of its query."""
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
        draw=entries,
    )


def _first_shares(judged_run: JudgedRun, estimand: Estimand, label_sums: LabelSums) -> Floats:
    """Return each labelled entry's part of its query's first ranks."""
    is_labelled = (label_sums.cell >= 0).astype(np.float64)
    first = probability_within(judged_run.ranking, estimand.cutoff)
    return share_of_query(judged_run.ranking, first * is_labelled)


def _list_shares(
    model: LabelModel, judged_run: JudgedRun, sample: Sample, label_sums: LabelSums
) -> dict[str, float]:
    """Return both groups' corrected shares of the lists, where the answer tells them."""
    if not set(EVEN) <= set(sample.parts):
        return {}
    is_labelled = label_sums.cell >= 0
    even = share_of_query(judged_run.ranking, is_labelled.astype(np.float64))
    evenly = replace(label_sums, coefficient=np.nan_to_num(even))
    cell_means = evenly.cell_means()
    shares = {}
    for name, group in zip(EVEN, (sample.a, sample.b), strict=True):
        weights = np.zeros(len(model.groups.names))
        weights[model.groups.names.index(group)] = 1.0
        shares[name] = float(model.cell_values(weights) @ cell_means)
    return shares


def _list_draws(judged_run: JudgedRun, label_sums: LabelSums, shuffles: Shuffles) -> Floats:
    """Return the corrected answer with the labels of each list in random order."""
    count = max(float(label_sums.is_counted.sum()), 1.0)
    draws = np.full(shuffles.count, np.nan)
    shuffled = shuffled_in_lists(judged_run, label_sums.cell, shuffles.seed)
    for draw, cell in zip(range(shuffles.count), shuffled, strict=False):
        draws[draw] = label_sums.per_query(cell).sum() / count
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
    counts = np.where(cells.code >= 0, values[cells.code], 0.0)
    labels = page_labels(judged_run, page, counts, model.groups, origins=inputs.origins)
    corrected_sample = replace(
        sample,
        numerator=label_sums.per_query(),
        is_bounded=False,
        parts={**sample.parts, "shares": float(counts.sum()) / max(len(counts), 1)},
    )
    cell_means = label_sums.cell_means()
    if model.is_plain:
        return _plain_answer(
            model,
            sample,
            corrected_sample=corrected_sample,
            label_sums=label_sums,
            labels=labels,
        )
    judgments = Judgments.from_collection(inputs.collection, cells)
    drawn = Shuffles(judgments=judgments, seed=shuffles.seed, count=shuffles.count)
    (band,) = share_bands([page], cells, drawn)
    return CorrectedAnswer(
        sample=corrected_sample.among(values @ band, labels),
        error_parts=model.error_parts(weights, cell_means - band.mean(axis=1)),
    )


def _group_estimand(sample: Sample) -> GroupEstimand:
    if not isinstance(sample.estimand, GroupEstimand):
        raise TypeError(f"{sample.estimand!r} is no question about groups")
    return sample.estimand


# ---- effects ------------------------------------------------------------------------------------


def widened_effect(
    effect: Effect, observed: ObservedAnswer, error_parts: Floats, model: LabelModel
) -> Effect:
    """Widen an effect by the error of rates, and keep the answer of the labels as they are."""
    neutral = effect.neutral
    gap = Gap(
        value=effect.value - neutral,
        low=effect.low - neutral,
        high=effect.high - neutral,
        error=effect.error,
        p=effect.p,
    )
    strength = model.confusions[0].strength
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
