"""Infer from an audit's measurements: a value, an interval and a corrected p for each question.

A *tilt* is Relative Δ of one run, between the two groups of a pair, on one measure. The *card* has
the answers to all other questions, such as head-to-head of twins. *Twins* are two versions of one
document, one in each group.

A *sample* holds the values per query behind one answer, and an *effect* is the answer with its
interval and p. Every answer takes the same way: `measure` gave its values, `_tilt_samples` or
`_card_samples` makes a sample of them, and `significance.effects` makes effects of all samples of a
table together, because their p are corrected together.

If groups are not twins, one may have more relevant documents than the other, and an answer of 0
need not be neutral. So samples also get the answers that random labels would give.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import itemgetter

from ranktilt.auditing.card import Card, CardKey
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.judged_run import JudgedRun
from ranktilt.auditing.label_errors.correct import JudgedSample, correct_labels
from ranktilt.auditing.list_variation import ListVariation
from ranktilt.auditing.measure import Measurements
from ranktilt.auditing.null_distributions.base import NullDistribution, Shuffles, shuffle_count
from ranktilt.auditing.null_distributions.judged_documents import (
    ShuffledRun,
    exchange_p,
    judged_labels,
    null_deltas,
    relevant_clusters,
)
from ranktilt.auditing.numerical_noise import NumericalNoise, numerical_noise
from ranktilt.auditing.prepare import SHARE, AuditInputs, ComparedPair
from ranktilt.auditing.repeats.average import average_repeats
from ranktilt.auditing.repeats.components import (
    RepeatComponents,
    effectiveness_components,
    repeat_components,
)
from ranktilt.auditing.significance import Sample, effects
from ranktilt.errors import UserError, join_words
from ranktilt.measures.base import Estimand, GroupEstimand
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.measures.margin import read_margin
from ranktilt.measures.ranking import Floats

CARD_ROWS = 6
"""Number of questions of a whole card, with Relative Δ.

More questions need more random labels (`shuffle_count`). The number is that of a whole card also
where fewer questions are asked, so that an answer does not depend on which others are asked.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Inferences:
    """Effects inferred from measurements, and the samples behind them.

    The result of an audit keeps some of the samples, because `ranktilt.compare` tests them again.
    """

    tilts: tuple[Effect, ...]
    """Relative Δ of every run, pair and measure."""
    card: tuple[Effect, ...]
    """Answers to the other questions."""
    noise: tuple[NumericalNoise, ...]
    """How far each tilt on the primary measure moves if scores are rounded differently."""
    repeats: tuple[RepeatComponents, ...]
    """Share of queries and of repeats in the uncertainty of each answer, for runs with repeats.

    A repeat is one of several runs of the same ranker.
    """
    tilt_samples: tuple[Sample, ...]
    """Values per query behind `tilts`."""
    group_samples: tuple[Sample, ...]
    """Values per query behind the answers of `card` that are about groups or primary."""
    card_samples: tuple[Sample, ...]
    """Values per query behind all answers of `card`."""
    repeat_samples: tuple[Sample, ...]
    """Values per query in each repeat, behind all answers, before they are averaged."""


def infer(inputs: AuditInputs, measurements: Measurements) -> Inferences:
    """Return the effects of every run and pair with intervals and corrected tests.

    Raises
    ------
    UserError
        If nothing answers the primary question.
    """
    options, variations = inputs.options.inference, measurements.variations
    tilts_of_repeats = _tilt_samples(inputs, measurements)
    tilt_samples = average_repeats(tilts_of_repeats)
    tilts = _with_variation(effects(tilt_samples, options, primary=inputs.primary), variations)
    answers = _card_answers(inputs, measurements, tilts)
    card = _with_variation(answers.effects, variations)
    if inputs.pairs and inputs.primary is not None:
        _check_answered(inputs.primary, [*tilts, *card])
    repeat_samples = (*tilts_of_repeats, *answers.repeat_samples)
    components = _repeat_components(
        inputs,
        measurements,
        samples=repeat_samples,
        averaged=[*tilt_samples, *answers.samples],
        effects=[*tilts, *card],
    )
    group_samples = tuple(
        sample
        for sample in answers.samples
        if isinstance(sample.estimand, GroupEstimand) or sample.estimand == inputs.primary
    )
    return Inferences(
        tilts=tuple(tilts),
        card=tuple(card),
        noise=tuple(_numerical_noise(inputs, measurements, tilts)),
        repeats=tuple(components),
        tilt_samples=tuple(tilt_samples),
        group_samples=group_samples,
        card_samples=answers.samples,
        repeat_samples=repeat_samples,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _CardAnswers:
    """Answers to the questions of the card, and the samples behind them."""

    effects: tuple[Effect, ...] = ()
    """The answers."""
    samples: tuple[Sample, ...] = ()
    """Values per query behind the answers, averaged over repeats."""
    repeat_samples: tuple[Sample, ...] = ()
    """Values per query in each repeat."""


def _card_answers(
    inputs: AuditInputs, measurements: Measurements, tilts: Sequence[Effect]
) -> _CardAnswers:
    """Answer the questions of the card; correct the answers if error rates of labels are known."""
    if not inputs.card_questions:
        return _CardAnswers()
    options = inputs.options.inference
    judged_samples = _card_samples(inputs, measurements)
    if inputs.label_model is not None:
        shuffles = _card(inputs).shuffles
        corrected = correct_labels(inputs, inputs.label_model, judged_samples, shuffles)
        return _CardAnswers(
            effects=corrected.effects,
            samples=corrected.samples,
            repeat_samples=corrected.repeat_samples,
        )
    samples_of_repeats = [judged.sample for judged in judged_samples]
    samples = average_repeats(samples_of_repeats)
    # A whole card begins with the tilt that is printed first, and corrects its p with the rest.
    first = first_tilts(inputs, tilts) if inputs.options.card else []
    return _CardAnswers(
        effects=effects(samples, options, first_effects=first, primary=inputs.primary),
        samples=tuple(samples),
        repeat_samples=tuple(samples_of_repeats),
    )


def _tilt_samples(inputs: AuditInputs, measurements: Measurements) -> list[Sample]:
    """Return the values per query of each Relative Δ, by run, then pair, then measure."""
    # The keys of both are the index of the run and the index of the pair.
    samples_by_pair: dict[tuple[int, int], list[Sample]] = {}
    runs_to_shuffle: dict[tuple[int, int], ShuffledRun] = {}
    for run_index, judged_run in enumerate(inputs.judged_runs):
        # Random labels must be drawn on the same order of tied documents as the values were.
        ordered = judged_run if inputs.options.ties == "expected" else judged_run.untied()
        for pair_index, pair in enumerate(inputs.pairs_with_judgments if inputs.measures else ()):
            samples = _samples_of_pair(inputs, judged_run, pair, measurements.values[run_index])
            if pair.are_twins:
                samples = _compare_twins(inputs, ordered, pair, samples)
            else:
                runs_to_shuffle[run_index, pair_index] = ShuffledRun(
                    judged_run=ordered, groups=pair.numbers
                )
            samples_by_pair[run_index, pair_index] = samples
    if runs_to_shuffle:
        samples_by_pair |= _compare_with_shuffles(inputs, samples_by_pair, runs_to_shuffle)
    return list(chain.from_iterable(samples_by_pair.values()))


def _samples_of_pair(
    inputs: AuditInputs, judged_run: JudgedRun, pair: ComparedPair, values: Floats
) -> list[Sample]:
    """Return the values per query of both groups, a sample for each measure.

    `values` are the run's, of shape (n_measures, 1 + n_groups, n_queries); the first column is for
    all documents.
    """
    a, b = pair.numbers
    return [
        Sample(
            run=judged_run.run.name,
            estimand=RelativeDelta(of=measure),
            a=pair.names[0],
            b=pair.names[1],
            numerator=values[index, a + 1],
            denominator=values[index, b + 1],
            distinct=judged_run.distinct,
        )
        for index, measure in enumerate(inputs.measures)
    ]


def _compare_twins(
    inputs: AuditInputs, judged_run: JudgedRun, pair: ComparedPair, samples: Sequence[Sample]
) -> list[Sample]:
    """Add to samples of twins what each document adds, and their p under exchanged labels.

    If the groups of twins did not matter, both labels of any twins could be exchanged. The p says
    how often such exchanges give an answer as far from 0.
    """
    compared = []
    for measure, sample in zip(inputs.measures, samples, strict=True):
        clusters = relevant_clusters(
            judged_run, measure, pair.numbers, sample, origins=inputs.origins
        )
        clustered = replace(sample, clusters=clusters)
        p = exchange_p(
            judged_run,
            measure,
            pair.numbers,
            clustered,
            origins=inputs.origins,
            options=inputs.options.inference,
        )
        compared.append(replace(clustered, null=NullDistribution.without_band(p)))
    return compared


def _compare_with_shuffles(
    inputs: AuditInputs,
    samples_by_pair: Mapping[tuple[int, int], list[Sample]],
    runs_to_shuffle: Mapping[tuple[int, int], ShuffledRun],
) -> dict[tuple[int, int], list[Sample]]:
    """Compare samples of groups that are no twins with the answers that random labels give.

    The random labels are the same for all samples. Returns the samples of the keys of
    `runs_to_shuffle`, with these answers: their null distributions.
    """
    question_count = max(len(inputs.measures), CARD_ROWS if inputs.card_questions else 0)
    tests = len(inputs.runs) * question_count * max(len(inputs.pairs), 1)
    shuffles = Shuffles(
        judgments=inputs.judgments, seed=inputs.options.inference.seed, count=shuffle_count(tests)
    )
    nulls = null_deltas(list(runs_to_shuffle.values()), inputs.measures, shuffles)
    compared = {}
    for (key, task), nulls_of_pair in zip(runs_to_shuffle.items(), nulls, strict=True):
        samples = []
        for measure, sample, null in zip(
            inputs.measures, samples_by_pair[key], nulls_of_pair, strict=True
        ):
            labels = judged_labels(
                task.judged_run, measure, task.groups, sample, origins=inputs.origins
            )
            samples.append(sample.with_random_labels(null, labels))
        compared[key] = samples
    return compared


def _card_samples(inputs: AuditInputs, measurements: Measurements) -> list[JudgedSample]:
    """Answer the questions of the card, in the order of runs, then pairs, then questions."""
    card = _card(inputs)
    answers: list[tuple[CardKey, Sample]] = []
    for run_index, judged_run in enumerate(inputs.judged_runs):
        answers += card.answer_twins(run_index, judged_run, measurements.twin_lists[run_index])
    answers += card.answer_groups(inputs.judged_runs)
    return [
        JudgedSample(sample=sample, judged_run=inputs.judged_runs[key.run_index])
        for key, sample in sorted(answers, key=itemgetter(0))  # by the keys alone
    ]


def _card(inputs: AuditInputs) -> Card:
    """Return the card, with as many shuffles of labels as its number of tests needs."""
    questions, options = inputs.card_questions, inputs.options.inference
    # Groups without twins are asked fewer questions: Relative Δ and those about groups.
    group_question_count = 1 + sum(isinstance(question, GroupEstimand) for question in questions)
    question_count = 0
    for pair in inputs.pairs:
        has_twins = len(pair.twins.rows) > 0
        question_count += max(CARD_ROWS, len(questions)) if has_twins else group_question_count
    tests = len(inputs.runs) * question_count
    return Card(
        groups=inputs.groups,
        twins={pair.names: pair.twins for pair in inputs.pairs},
        questions=questions,
        inference=options,
        shuffles=Shuffles(
            judgments=inputs.judgments, seed=options.seed, count=shuffle_count(tests)
        ),
        shows_random_band=inputs.groups.by != "source",
        origins=inputs.origins,
    )


def first_tilts(inputs: AuditInputs, tilts: Sequence[Effect]) -> list[Effect]:
    """Return the tilts on the measure that is printed first."""
    if not inputs.measures:
        return []
    name = repr(inputs.primary_measure)
    return [tilt for tilt in tilts if tilt.measure == name]


def _with_variation(
    effects: Sequence[Effect], variations: Mapping[str, Sequence[ListVariation]]
) -> list[Effect]:
    """Add to each effect how many of its lists could have come out differently.

    `variations` has the run's name as key, and a value for each of the run's repeats.
    """
    with_variation = []
    for effect in effects:
        first, *other_repeats = variations[effect.run]
        variation = first.for_estimand(effect.estimand)
        for repeat in other_repeats:
            variation += repeat.for_estimand(effect.estimand)
        with_variation.append(replace(effect, variation=variation))
    return with_variation


def _repeat_components(
    inputs: AuditInputs,
    measurements: Measurements,
    *,
    samples: Sequence[Sample],
    averaged: Sequence[Sample],
    effects: Sequence[Effect],
) -> Iterator[RepeatComponents]:
    """Yield the components of uncertainty, for runs with repeats.

    They are computed for the effectiveness on each measure, and for each of the `effects`.
    `samples` are of single repeats, `averaged` of the means of each run's repeats.
    """
    if not inputs.has_repeats:
        return
    names = [judged_run.run.name for judged_run in inputs.judged_runs]
    for run in inputs.runs:
        indices = [index for index, name in enumerate(names) if name == run.name]
        for measure_index, measure in enumerate(inputs.measures):
            all_documents = 0  # index of the first column of groups
            values = measurements.values[indices, measure_index, all_documents]
            components = effectiveness_components(run.name, measure, values)
            if run.repeats and components is not None:
                yield components
    margin = read_margin(inputs.options.margin)
    yield from repeat_components(samples, averaged, effects, margin)


def _numerical_noise(
    inputs: AuditInputs, measurements: Measurements, tilts: Sequence[Effect]
) -> list[NumericalNoise]:
    """Return how far Relative Δ moves within the resolution of each run's scores."""
    if not inputs.measures:
        return []
    measure = inputs.primary_measure
    index = inputs.measures.index(measure)
    first = first_tilts(inputs, tilts)
    noise: list[NumericalNoise] = []
    # Where an engine's answers are random, repeats tell more than the digits of its scores.
    repeated = {run.name for run in inputs.runs if run.repeats}
    for judged_run, values in zip(inputs.judged_runs, measurements.values, strict=True):
        if judged_run.run.name in repeated:
            continue
        noise += numerical_noise(
            judged_run,
            measure,
            inputs.groups,
            tilts=[tilt for tilt in first if tilt.run == judged_run.run.name],
            counted=values[index],
            seed=inputs.options.inference.seed,
        )
    return noise


def _check_answered(primary: Estimand, effects: Sequence[Effect]) -> None:
    """Refuse a primary question that no effect answers, and name those that can be asked."""
    if any(effect.measure == repr(primary) for effect in effects):
        return
    measures = [effect.measure for effect in effects if not effect.estimand.descriptive]
    answerable = join_words(list(dict.fromkeys([*measures, SHARE])), "or")
    raise UserError(f"{primary!r} cannot be answered: there are no twins; {answerable} can")
