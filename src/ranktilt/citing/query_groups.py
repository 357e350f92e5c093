"""Citations by group of queries: every question on each group alone, and whether groups differ.

An audit compares how often answers cite pages of two groups, a and b. Here queries are divided into
groups too, such as topics, and "group" means a group of queries unless pages are named. To compare
groups, each query gets a score: its *influence*, which is how far it pulls the value over all
queries to one side. So groups can be compared even if one has no citation of a or b. If a or b has
few *units* (pages that are labelled together, such as those of a domain), the comparison is about
further questions with the same units.
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
from ranktilt.citing.effect import CitationEffect, Question, QuestionKey, answerable_questions
from ranktilt.citing.effects import Exchanges, citation_effects, corrected_effects
from ranktilt.citing.inference.infer import FEWEST_UNITS, effective_units_by_group
from ranktilt.citing.prepare import CitationInputs
from ranktilt.citing.result import CitationAudit, CitationBreakdown, CitationGroupAnswer
from ranktilt.data.answers import Answers
from ranktilt.data.collection import Collection
from ranktilt.measures.citations.base import CitationEstimate, CitationRows
from ranktilt.statistics.group_differences import QueryScores
from ranktilt.statistics.two_way import sums


def answer_query_groups(text: str | None, answers: Answers, labels: object) -> QueryGroups | None:
    """Group the queries of the answers by a file, or by a column of the collection's queries.

    `text` is what the user wrote, a file or a column, and None for no groups. `labels` is what the
    pages were labelled by; only a collection has queries with columns.
    """
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
    """Add every effect by group of queries to an audit, if there are groups.

    `inputs` are the pages of all answers, `exchanges` says how tests are made, and `model` says how
    often labels are wrong; None if they are taken as they are.
    """
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
    """Answer every question for each group of queries alone, and test whether the groups differ.

    Parameters
    ----------
    inputs : CitationInputs
        The pages of all answers.
    pairs : sequence of (str, str)
        Groups of pages to compare.
    exchanges : Exchanges
        Resamples, seed and correction of p.
    groups : QueryGroups
        The groups of queries.
    primary : str
        Key of the primary question; its tests are corrected apart from those of all others.
    model : LabelModel, optional
        How often labels are wrong.
    """
    differences, against_rest = list[GroupDifference](), list[RestDifference]()
    variances = list[TiltVariance]()
    for pair in pairs:
        rows = inputs.pair_rows(*pair)
        queries = inputs.query_names(*pair)
        for question in answerable_questions(rows, has_words=inputs.has_words):
            # In an audit of rankers the key also names a run; answers have none.
            key = AnswerKey(run="", question=question.key, a=pair[0], b=pair[1])
            grouped = _grouped_scores(rows, question, groups, queries)
            difference, rest = compare_groups(
                key, groups.names, grouped, resamples=exchanges.resamples, seed=exchanges.seed
            )
            differences.append(difference)
            against_rest += correct_rest(rest, exchanges.correction)
            if question.key == primary:
                # How far single queries differ beyond noise.
                scores = _query_scores(rows, question.estimate(rows), has_units=True)
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
        answers=tuple(
            _group_effects(inputs, pairs, exchanges, groups, primary=primary, model=model)
        ),
        differences=tuple(correct_differences(differences, primary, exchanges.correction)),
        against_rest=tuple(against_rest),
        variances=tuple(variances),
    )


def _group_effects(
    inputs: CitationInputs,
    pairs: Sequence[tuple[str, str]],
    exchanges: Exchanges,
    groups: QueryGroups,
    *,
    primary: QuestionKey,
    model: LabelModel | None,
) -> Iterator[CitationGroupAnswer]:
    """Audit each group of queries alone, and correct p over all groups.

    The p of the primary question are corrected together, and the p of all other questions together.
    The parameters are those of `citation_breakdown`.
    """
    group_of_effect, effects = list[str](), list[CitationEffect]()
    for index, name in enumerate(groups.names):
        is_member = pl.col("query").is_in(groups.members(index))
        group_inputs = replace(inputs, rows=inputs.rows.filter(is_member))
        labels = set(group_inputs.rows["label"].unique())
        group_pairs = [pair for pair in pairs if labels.issuperset(pair)]
        if group_pairs:
            of_group = citation_effects(group_inputs, group_pairs, exchanges, model)
            effects += of_group
            group_of_effect += [name] * len(of_group)
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
    for name, effect in zip(group_of_effect, corrected, strict=True):
        yield CitationGroupAnswer(group=name, effect=effect)


def _grouped_scores(
    rows: CitationRows, question: Question, groups: QueryGroups, queries: Sequence[str]
) -> GroupedScores:
    """Return the scores of queries with their groups, for a test of whether groups differ.

    `queries` are the names of the queries in the order of their numbers in `rows`. Queries without
    a page that counts for the question are in no group.
    """
    estimate = question.estimate(rows)
    support = rows.per_question(estimate.support_a + estimate.support_b)
    units = min(effective_units_by_group(rows, estimate))
    group = np.where(support > 0, groups.codes_of(queries), -1)
    scores = _query_scores(rows, estimate, has_units=units >= FEWEST_UNITS)
    counts = np.bincount(group[group >= 0])
    tested: list[int] = np.flatnonzero(counts >= FEWEST).tolist()
    # Where the value over all queries is undefined, so is the influence of each query on it.
    if not np.isfinite(scores.score).all():
        tested = []
    # Without weights no size of a difference is given: the influence on a logarithm of a ratio has
    # no unit that a reader could use.
    no_weight = np.full(len(support), np.nan)
    no_shift = np.zeros(len(support))
    return GroupedScores(
        scores=scores, weight=no_weight, group=group, shift=no_shift, tested=tested
    )


def _query_scores(
    rows: CitationRows, estimate: CitationEstimate, *, has_units: bool
) -> QueryScores:
    """Return the influence of each query and, with `has_units`, of each unit within a query."""
    score = rows.per_question(estimate.influence)
    if not has_units:
        return QueryScores.from_scores(score)
    # A cell is a combination of query and unit; its first row says which.
    _, first_row = np.unique(rows.cell, return_index=True)
    return QueryScores(
        score=score,
        query=rows.question[first_row],
        origin=rows.cluster[first_row],
        residual=sums(rows.cell, estimate.influence),
        weight=sums(rows.cell, estimate.support_a + estimate.support_b),
    )
