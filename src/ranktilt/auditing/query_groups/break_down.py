"""Break an audit down by groups of queries: the same questions on each group alone, and tests.

Each group is audited by itself, so that its values, its neutral value and its intervals are those
of an audit of these queries; whether groups differ is tested on the values per query of all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from ranktilt.auditing.effects import Effect
from ranktilt.auditing.infer import Inferences, infer
from ranktilt.auditing.measure import measure
from ranktilt.auditing.prepare import AuditInputs, prepare
from ranktilt.auditing.query_groups.differences import (
    GroupedScores,
    compare_groups,
    corrected_differences,
    corrected_rest,
    grouped_scores,
    repeat_variance,
    split_half_variance,
)
from ranktilt.auditing.query_groups.grouping import QueryGroups
from ranktilt.auditing.query_groups.result import (
    AnswerKey,
    GroupAnswer,
    GroupDifference,
    QueryBreakdown,
    RestDifference,
    TiltVariance,
    key_of,
    query_group_counts,
)
from ranktilt.auditing.repeats.average import answer_key, samples_by_answer
from ranktilt.auditing.significance import Sample, correct_p_values
from ranktilt.errors import UserError
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.measures.exposure.property_lift import PropertyEstimand

_SUMS = ("nDCG", "P", "R", "NDSR", "Share")
"""Questions whose answer a document adds to, whichever others are of its group."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Tested:
    """A question with the scores behind it, and the tests of its groups."""

    sample: Sample
    repeats: Sequence[Sample]
    """Samples of the repeats that `sample` averages; itself alone for a single run."""
    grouped: GroupedScores
    difference: GroupDifference
    against_rest: tuple[RestDifference, ...]


def break_down(inputs: AuditInputs, inferences: Inferences, groups: QueryGroups) -> QueryBreakdown:
    """Answer an audit's questions for each group of queries, and test whether the groups differ."""
    answers = _answers(inputs, groups)
    repeats_of = samples_by_answer(inferences.repeat_samples)
    tested = [
        _tested(inputs, groups, sample, repeats_of[answer_key(sample)], answers=answers)
        for sample in (*inferences.tilt_samples, *inferences.card_samples)
        if not sample.estimand.descriptive
    ]
    differences = corrected_differences(
        [question.difference for question in tested],
        repr(inputs.primary),
        inputs.options.inference.correction,
    )
    against_rest = chain.from_iterable(question.against_rest for question in tested)
    return QueryBreakdown(
        column=groups.column,
        groups=query_group_counts(groups.names, groups.code),
        without_group=int((groups.code < 0).sum()),
        answers=tuple(answers),
        differences=tuple(differences),
        against_rest=tuple(against_rest),
        variances=tuple(_variances(inputs, tested)),
    )


def _answers(inputs: AuditInputs, groups: QueryGroups) -> list[GroupAnswer]:
    """Audit each group of queries alone, and correct p for all groups together."""
    names, tilts, card = list[str](), list[Effect](), list[Effect]()
    names_of_card = list[str]()
    for number, name in enumerate(groups.names):
        inferences = _alone(inputs, groups.members(number))
        if inferences is None:
            continue
        tilts += inferences.tilts
        names += [name] * len(inferences.tilts)
        card += inferences.card
        names_of_card += [name] * len(inferences.card)
    correction = inputs.options.inference.correction
    effects = [
        *correct_p_values(tilts, correction, inputs.primary),
        *correct_p_values(card, correction, inputs.primary),
    ]
    return [
        GroupAnswer(group=name, effect=effect)
        for name, effect in zip([*names, *names_of_card], effects, strict=True)
    ]


def _alone(inputs: AuditInputs, queries: Sequence[str]) -> Inferences | None:
    """Audit some queries alone; None where they cannot answer, as without relevant documents."""
    pairs = inputs.options.pairs
    questions = [*inputs.measures, *inputs.questions]
    options = replace(
        inputs.options, primary=inputs.primary, pairs=pairs, card=False, by_query=None
    )
    part = inputs.collection.only_queries(queries)
    try:
        part_inputs = prepare(part, inputs.runs, questions, options)
        return infer(part_inputs, measure(part_inputs))
    except UserError:
        return None


def _tested(
    inputs: AuditInputs,
    groups: QueryGroups,
    sample: Sample,
    repeats: Sequence[Sample],
    *,
    answers: Sequence[GroupAnswer],
) -> _Tested:
    """Test one question: all groups together, and each against all others."""
    key = AnswerKey(run=sample.run, question=_notation(sample), a=sample.a, b=sample.b)
    alone = {
        groups.names.index(answer.group): answer.effect
        for answer in answers
        if key_of(answer.effect) == key
    }
    grouped = grouped_scores(sample, groups, inputs.judgments.queries, alone)
    options = inputs.options.inference
    difference, rest = compare_groups(
        key, groups.names, grouped, resamples=options.resamples, seed=options.seed
    )
    return _Tested(
        sample=sample,
        repeats=repeats,
        grouped=grouped,
        difference=difference,
        against_rest=corrected_rest(rest, options.correction),
    )


def _variances(inputs: AuditInputs, tested: Sequence[_Tested]) -> Iterator[TiltVariance]:
    """Yield how much of the variance over queries is more than noise, for the primary question."""
    options = inputs.options.inference
    for question in tested:
        if question.difference.question != repr(inputs.primary):
            continue
        if _adds_up(question.sample):
            yield split_half_variance(
                question.difference,
                question.grouped.scores,
                resamples=options.resamples,
                seed=options.seed,
            )
        if len(question.repeats) > 1:
            yield repeat_variance(
                question.difference,
                question.grouped,
                question.repeats,
                question.sample,
                resamples=options.resamples,
                seed=options.seed,
            )


def _adds_up(sample: Sample) -> bool:
    """Return whether documents add to an answer independently of each other, if nothing tilts.

    Of twins, exchanged labels say so. Without twins, halves of the documents behind a ratio of
    exposures, or behind AP and RR, agree even in random lists: what a document adds depends on the
    labels of the others.
    """
    estimand = sample.estimand
    if sample.clusters is None:
        return False
    if sample.twins or isinstance(estimand, PropertyEstimand):
        return True
    of = estimand.of if isinstance(estimand, RelativeDelta) else estimand
    return of is not None and of.name in _SUMS


def _notation(sample: Sample) -> str:
    """Return the notation of a sample's question, as effects have it."""
    estimand = sample.estimand
    return estimand.measure if isinstance(estimand, RelativeDelta) else repr(estimand)
