"""Break an audit down by groups of queries: the same questions on each group alone, and tests.

Each group is audited by itself, so that its values, its neutral value and its intervals are those
of an audit of these queries; whether groups differ is tested on the values per query of all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ranktilt.auditing.effects import Effect
from ranktilt.auditing.infer import Inferences, infer
from ranktilt.auditing.measure import measure
from ranktilt.auditing.prepare import AuditInputs, prepare
from ranktilt.auditing.query_groups.differences import (
    GroupedScores,
    grouped_scores,
    tested_differences,
)
from ranktilt.auditing.query_groups.grouping import QueryGroups
from ranktilt.auditing.query_groups.result import (
    GroupAnswer,
    GroupDifference,
    QueryBreakdown,
    QueryGroup,
    RestDifference,
    TiltVariance,
    key_of,
)
from ranktilt.auditing.significance import Sample, corrected
from ranktilt.errors import UserError
from ranktilt.statistics.correction import correct
from ranktilt.statistics.heterogeneity import split_half_share


@dataclass(frozen=True, kw_only=True, eq=False)
class _Tested:
    """A question with the scores behind it, and the tests of its groups."""

    sample: Sample
    grouped: GroupedScores
    difference: GroupDifference
    against_rest: tuple[RestDifference, ...]


def break_down(
    inputs: AuditInputs, inferences: Inferences, groups: QueryGroups
) -> QueryBreakdown:
    """Answer an audit's questions for each group of queries, and test whether the groups differ."""
    answers = _answers(inputs, groups)
    tested = [
        _tested(inputs, groups, sample, answers)
        for sample in (*inferences.tilt_samples, *inferences.card_samples)
        if not sample.estimand.descriptive
    ]
    options = inputs.options.inference
    against_rest = list[RestDifference]()
    for question in tested:
        ps = correct([rest.p for rest in question.against_rest], options.correction)
        against_rest += [
            replace(rest, p_corrected=float(p))
            for rest, p in zip(question.against_rest, ps, strict=True)
        ]
    counts = [int((groups.code == number).sum()) for number in range(len(groups.names))]
    return QueryBreakdown(
        column=groups.column,
        groups=tuple(
            QueryGroup(name=name, queries=count)
            for name, count in zip(groups.names, counts, strict=True)
        ),
        without_group=int((groups.code < 0).sum()),
        answers=tuple(answers),
        differences=tuple(
            _corrected_differences(
                [question.difference for question in tested],
                repr(inputs.primary),
                options.correction,
            )
        ),
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
        *corrected(tilts, correction, inputs.primary),
        *corrected(card, correction, inputs.primary),
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
    inputs: AuditInputs, groups: QueryGroups, sample: Sample, answers: Sequence[GroupAnswer]
) -> _Tested:
    """Test one question: all groups together, and each against all others."""
    key = (sample.run, _notation(sample), sample.a, sample.b)
    neutral = {
        groups.names.index(answer.group): answer.effect.neutral
        for answer in answers
        if key_of(answer.effect) == key
    }
    grouped = grouped_scores(sample, groups, inputs.judgments.queries, neutral)
    options = inputs.options.inference
    found = tested_differences(grouped, resamples=options.resamples, seed=options.seed)
    numbers = grouped.tested() if found is not None else []
    rest = list[RestDifference]()
    if found is not None and len(numbers) > 2:
        rest = list(_rest(key, groups, grouped, [test.p for test in found.against_rest]))
    return _Tested(
        sample=sample,
        grouped=grouped,
        difference=GroupDifference(
            run=sample.run,
            question=key[1],
            a=sample.a,
            b=sample.b,
            groups=tuple(groups.names[number] for number in numbers),
            p=np.nan if found is None else found.together.p,
            shuffle_p=np.nan if found is None else found.together.shuffle_p,
            welch_p=np.nan if found is None else found.together.welch_p,
            p_corrected=np.nan,
            family_size=1,
        ),
        against_rest=tuple(rest),
    )


def _rest(
    key: tuple[str, str, str, str],
    groups: QueryGroups,
    grouped: GroupedScores,
    ps: Sequence[float],
) -> Iterator[RestDifference]:
    """Yield each tested group against all others that are tested."""
    run, question, a, b = key
    tested = grouped.tested()
    for number, p in zip(tested, ps, strict=True):
        yield RestDifference(
            group=groups.names[number],
            run=run,
            question=question,
            a=a,
            b=b,
            value=grouped.distance_from_rest(number, tested),
            p=p,
            p_corrected=np.nan,
        )


def _corrected_differences(
    differences: Sequence[GroupDifference], primary: str, correction: str
) -> list[GroupDifference]:
    """Correct the tests of the primary question together, and those of all others."""
    rows = list(differences)
    for is_primary in (True, False):
        indices = [
            index
            for index, difference in enumerate(differences)
            if (difference.question == primary) == is_primary
        ]
        ps = [differences[index].p for index in indices]
        tests = max(sum(not np.isnan(p) for p in ps), 1)
        for index, p in zip(indices, correct(ps, correction), strict=True):
            rows[index] = replace(differences[index], p_corrected=float(p), family_size=tests)
    return rows


def _variances(inputs: AuditInputs, tested: Sequence[_Tested]) -> Iterator[TiltVariance]:
    """Yield how much of the variance over queries is more than noise, for the primary question."""
    options = inputs.options.inference
    for question in tested:
        difference, scores = question.difference, question.grouped.scores
        if difference.question != repr(inputs.primary) or question.sample.clusters is None:
            continue
        every = np.ones(len(scores.score), dtype=np.bool_)
        share = split_half_share(
            scores.select(every), resamples=options.resamples, seed=options.seed
        )
        yield TiltVariance(
            run=difference.run,
            question=difference.question,
            a=difference.a,
            b=difference.b,
            share=share.share,
            low=share.low,
            high=share.high,
            queries=share.queries,
        )


def _notation(sample: Sample) -> str:
    """Return the notation of a sample's question, as effects have it."""
    measure_name = getattr(sample.estimand, "measure", None)
    return measure_name if isinstance(measure_name, str) else repr(sample.estimand)
