"""Break an audit down by groups of queries: the same questions on each group alone, and tests.

There are two sorts of groups here: groups of queries, such as topics, and the groups of documents
that an audit compares. Each group of queries is audited by itself, so that its values, its neutral
value (which favours no documents) and its intervals are those of an audit of these queries alone.
Whether groups differ is tested on the values per query of the whole audit. A *tilt* is an answer
that favours a group of documents. A *sample* holds the values per query behind one answer.
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
    correct_differences,
    correct_rest,
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
from ranktilt.auditing.repeats.average import sample_key, samples_by_answer
from ranktilt.auditing.significance import Sample, correct_p_values
from ranktilt.errors import UserError
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.measures.exposure.property_lift import PropertyEstimand

_SUMS = ("nDCG", "P", "R", "NDSR", "Share")
"""Names of questions whose answer is a sum over documents.

What a document adds does not depend on the labels of the other documents.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class _GroupTests:
    """The tests of one question: whether groups of queries differ."""

    sample: Sample
    """Values per query behind the answer on all queries."""
    repeats: Sequence[Sample]
    """Samples of the repeats that `sample` averages; itself alone for a single run."""
    grouped: GroupedScores
    """Scores of the queries, with their groups."""
    difference: GroupDifference
    """Test of all groups together."""
    against_rest: tuple[RestDifference, ...]
    """Test of each group against all other queries."""


def break_down(inputs: AuditInputs, inferences: Inferences, groups: QueryGroups) -> QueryBreakdown:
    """Answer an audit's questions for each group of queries, and test whether the groups differ."""
    answers = _answers(inputs, groups)
    repeats_by_answer = samples_by_answer(inferences.repeat_samples)
    tests = [
        _test_groups(inputs, groups, sample, repeats_by_answer[sample_key(sample)], answers=answers)
        for sample in (*inferences.tilt_samples, *inferences.card_samples)
        if not sample.estimand.descriptive
    ]
    differences = correct_differences(
        [question.difference for question in tests],
        repr(inputs.primary),
        inputs.options.inference.correction,
    )
    against_rest = chain.from_iterable(question.against_rest for question in tests)
    return QueryBreakdown(
        column=groups.column,
        groups=query_group_counts(groups.names, groups.code),
        without_group=int((groups.code < 0).sum()),
        answers=tuple(answers),
        differences=tuple(differences),
        against_rest=tuple(against_rest),
        variances=tuple(_variances(inputs, tests)),
    )


def _answers(inputs: AuditInputs, groups: QueryGroups) -> list[GroupAnswer]:
    """Audit each group of queries alone, and correct the p of all groups together.

    Returns the tilts of all groups, then the other answers.
    """
    tilts: list[Effect] = []
    card: list[Effect] = []
    # The name of the group of each effect.
    tilt_groups: list[str] = []
    card_groups: list[str] = []
    for index, name in enumerate(groups.names):
        inferences = _infer_alone(inputs, groups.members(index))
        if inferences is None:
            continue
        tilts += inferences.tilts
        tilt_groups += [name] * len(inferences.tilts)
        card += inferences.card
        card_groups += [name] * len(inferences.card)
    correction = inputs.options.inference.correction
    effects = [
        *correct_p_values(tilts, correction, inputs.primary),
        *correct_p_values(card, correction, inputs.primary),
    ]
    return [
        GroupAnswer(group=name, effect=effect)
        for name, effect in zip([*tilt_groups, *card_groups], effects, strict=True)
    ]


def _infer_alone(inputs: AuditInputs, queries: Sequence[str]) -> Inferences | None:
    """Answer an audit's questions on some of its queries alone.

    Returns None if these queries cannot answer, for example without relevant documents.
    """
    questions = [*inputs.measures, *inputs.card_questions]
    options = replace(inputs.options, primary=inputs.primary, card=False, by_query=None)
    collection = inputs.collection.only_queries(queries)
    try:
        group_inputs = prepare(collection, inputs.runs, questions, options)
        return infer(group_inputs, measure(group_inputs))
    except UserError:
        return None


def _test_groups(
    inputs: AuditInputs,
    groups: QueryGroups,
    sample: Sample,
    repeats: Sequence[Sample],
    *,
    answers: Sequence[GroupAnswer],
) -> _GroupTests:
    """Test one question: all groups together, and each against all others.

    `answers` are those of each group alone, to all questions.
    """
    key = AnswerKey(run=sample.run, question=_notation(sample), a=sample.a, b=sample.b)
    effects_alone = {
        groups.names.index(answer.group): answer.effect
        for answer in answers
        if key_of(answer.effect) == key
    }
    grouped = grouped_scores(sample, groups, inputs.judgments.queries, effects_alone)
    options = inputs.options.inference
    difference, rest = compare_groups(
        key, groups.names, grouped, resamples=options.resamples, seed=options.seed
    )
    return _GroupTests(
        sample=sample,
        repeats=repeats,
        grouped=grouped,
        difference=difference,
        against_rest=correct_rest(rest, options.correction),
    )


def _variances(inputs: AuditInputs, tests: Sequence[_GroupTests]) -> Iterator[TiltVariance]:
    """Yield how much of the variance over queries is more than noise, for the primary question.

    The noise is that of documents, if they add to an answer independently of each other, and that
    of the run's repeats, if there are several.
    """
    options = inputs.options.inference
    for question in tests:
        if question.difference.question != repr(inputs.primary):
            continue
        if _has_independent_documents(question.sample):
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


def _has_independent_documents(sample: Sample) -> bool:
    """Return whether, if no group is favoured, documents add to an answer independently.

    They do for twins, which exchange their labels independently. Without twins, they do if the
    answer is a sum over documents. For a ratio of exposures, and for AP and RR, they do not: what a
    document adds depends on the labels of the other documents, so that two halves of the documents
    agree even in random lists.
    """
    estimand = sample.estimand
    if sample.clusters is None:
        return False
    if sample.twins or isinstance(estimand, PropertyEstimand):
        return True
    question = estimand.of if isinstance(estimand, RelativeDelta) else estimand
    return question is not None and question.name in _SUMS


def _notation(sample: Sample) -> str:
    """Return the notation of a sample's question, which for Relative Δ is that of the measure."""
    estimand = sample.estimand
    return estimand.measure if isinstance(estimand, RelativeDelta) else repr(estimand)
