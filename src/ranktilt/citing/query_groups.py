"""Citations by group of queries: every question on each group alone, and whether groups differ.

What a query adds to an estimate is its influence on the estimate's scale, so that a group without a
citation of one side can be compared too. Where too few units, such as domains, carry a side to
speak of its kind, groups are compared for further questions about these units.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from ranktilt.auditing.effects import FEWEST
from ranktilt.auditing.label_errors.model import LabelModel
from ranktilt.auditing.query_groups.differences import (
    GroupedScores,
    compare_groups,
    correct_differences,
    correct_rest,
    split_half_variance,
)
from ranktilt.auditing.query_groups.grouping import (
    QueryGroups,
    collection_query_groups,
    read_query_groups,
)
from ranktilt.auditing.query_groups.result import (
    AnswerKey,
    GroupDifference,
    RestDifference,
    TiltVariance,
    query_group_counts,
)
from ranktilt.citing.effect import CitationEffect
from ranktilt.citing.effects import Exchanges, citation_effects, corrected_effects
from ranktilt.citing.inference.infer import FEWEST_UNITS, effective_units_by_group
from ranktilt.citing.prepare import CitationInputs
from ranktilt.citing.query_breakdown import CitationBreakdown, CitationGroupAnswer
from ranktilt.citing.questions import Question, QuestionKey, answerable
from ranktilt.citing.result import CitationAudit
from ranktilt.data.answers import Answers
from ranktilt.data.collection import Collection
from ranktilt.measures.citations.base import CitationEstimate, CitationRows
from ranktilt.statistics.group_differences import QueryScores
from ranktilt.statistics.two_way import sums


def answer_query_groups(text: str | None, answers: Answers, labels: object) -> QueryGroups | None:
    """Group the queries of the answers by a file, or by a column of the collection's queries."""
    if text is None:
        return None
    if isinstance(labels, Collection):
        return collection_query_groups(text, labels, answers.queries)
    return read_query_groups(text, answers.queries)


def with_query_groups(
    audit: CitationAudit,
    inputs: CitationInputs,
    groups: QueryGroups | None,
    *,
    exchanges: Exchanges,
    model: LabelModel | None,
) -> CitationAudit:
    """Add every answer by groups of queries, where there are some."""
    if groups is None:
        return audit
    pairs = [(effect.a, effect.b) for effect in audit.primary]
    question = audit.primary[0].question
    breakdown = citation_breakdown(inputs, pairs, exchanges, groups, primary=question, model=model)
    return replace(audit, by_query=breakdown, spec={**audit.spec, "by_query": groups.text})


def citation_breakdown(
    inputs: CitationInputs,
    pairs: Sequence[tuple[str, str]],
    exchanges: Exchanges,
    groups: QueryGroups,
    *,
    primary: QuestionKey,
    model: LabelModel | None = None,
) -> CitationBreakdown:
    """Ask every question of each group of queries alone, and test whether the groups differ."""
    differences, against_rest = list[GroupDifference](), list[RestDifference]()
    variances = list[TiltVariance]()
    for pair in pairs:
        rows = inputs.pair_rows(*pair)
        queries = inputs.query_names(*pair)
        for question in answerable(rows, has_words=inputs.has_words):
            key = AnswerKey(run="", question=question.key, a=pair[0], b=pair[1])
            grouped = _grouped(rows, question, groups, queries)
            difference, rest = compare_groups(
                key, groups.names, grouped, resamples=exchanges.resamples, seed=exchanges.seed
            )
            differences.append(difference)
            against_rest += correct_rest(rest, exchanges.correction)
            if question.key == primary:
                scores = _scores(rows, question.estimate(rows), has_units=True)
                variance = split_half_variance(
                    difference,
                    scores,
                    resamples=exchanges.resamples,
                    seed=exchanges.seed,
                    by="units",
                )
                variances.append(variance)
    return CitationBreakdown(
        column=groups.column,
        groups=query_group_counts(groups.names, groups.code),
        without_group=int((groups.code < 0).sum()),
        answers=tuple(_answers(inputs, pairs, exchanges, groups, primary=primary, model=model)),
        differences=tuple(correct_differences(differences, primary, exchanges.correction)),
        against_rest=tuple(against_rest),
        variances=tuple(variances),
    )


def _answers(
    inputs: CitationInputs,
    pairs: Sequence[tuple[str, str]],
    exchanges: Exchanges,
    groups: QueryGroups,
    *,
    primary: QuestionKey,
    model: LabelModel | None,
) -> Iterator[CitationGroupAnswer]:
    """Audit each group of queries alone, and correct p for all groups together."""
    names, effects = list[str](), list[CitationEffect]()
    for number, name in enumerate(groups.names):
        is_member = pl.col("query").is_in(groups.members(number))
        part = replace(inputs, rows=inputs.rows.filter(is_member))
        labels = set(part.rows["label"].unique())
        group_pairs = [pair for pair in pairs if labels.issuperset(pair)]
        if group_pairs:
            of_group = citation_effects(part, group_pairs, exchanges, model)
            effects += of_group
            names += [name] * len(of_group)
    corrected = list(effects)
    for is_primary in (True, False):
        indices = [
            index
            for index, effect in enumerate(effects)
            if (effect.question == primary) == is_primary
        ]
        family = corrected_effects([effects[index] for index in indices], exchanges.correction)
        for index, effect in zip(indices, family, strict=True):
            corrected[index] = effect
    for name, effect in zip(names, corrected, strict=True):
        yield CitationGroupAnswer(group=name, effect=effect)


def _grouped(
    rows: CitationRows, question: Question, groups: QueryGroups, queries: Sequence[str]
) -> GroupedScores:
    """Return what queries add to an estimate, of those that carry weight, with their groups."""
    estimate = question.estimate(rows)
    support = rows.per_question(estimate.support_a + estimate.support_b)
    units = min(effective_units_by_group(rows, estimate))
    group = np.where(support > 0, groups.codes_of(queries), -1)
    scores = _scores(rows, estimate, has_units=units >= FEWEST_UNITS)
    counts = np.bincount(group[group >= 0])
    tested: list[int] = np.flatnonzero(counts >= FEWEST).tolist()
    if not np.isfinite(scores.score).all():
        tested = []
    # A ratio of ratios is no difference: what a group adds to a logarithm has no unit of its own.
    unknown = np.full(len(support), np.nan)
    no_shift = np.zeros(len(unknown))
    return GroupedScores(scores=scores, weight=unknown, group=group, shift=no_shift, tested=tested)


def _scores(rows: CitationRows, estimate: CitationEstimate, *, has_units: bool) -> QueryScores:
    """Return what each query adds to an estimate, and what each of its units adds to that."""
    score = rows.per_question(estimate.influence)
    if not has_units:
        return QueryScores.from_scores(score)
    first = np.unique(rows.cell, return_index=True)[1]
    return QueryScores(
        score=score,
        query=rows.question[first],
        origin=rows.cluster[first],
        residual=sums(rows.cell, estimate.influence),
        weight=sums(rows.cell, estimate.support_a + estimate.support_b),
    )
