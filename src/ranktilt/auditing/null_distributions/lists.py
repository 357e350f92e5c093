"""Answers about whole lists under random labels, or with documents in random order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ranktilt.auditing.groups import Groups
from ranktilt.auditing.judged_run import JudgedRun
from ranktilt.auditing.null_distributions.base import LabelEffects
from ranktilt.measures.base import GroupEstimand
from ranktilt.measures.exposure.base import AttentionEstimand, GroupLists
from ranktilt.measures.ranking import Bools, Floats, Ints
from ranktilt.measures.twins.base import TwinAnswers
from ranktilt.progress import report
from ranktilt.statistics.two_way import Clusters

_LABEL_SEED = 2
"""Second part of the seed of labels; no other null distribution uses it."""
_LIST_SEED = 3
"""Second part of the seed of orders; no other null distribution uses it."""


def shuffled_in_lists(judged_run: JudgedRun, code: Ints, seed: int) -> Iterator[Ints]:
    """Shuffle the labels of a run's entries within each list, again and again.

    Entries without a label, −1, keep their place.
    """
    rng = np.random.default_rng([seed, _LABEL_SEED])
    labelled = np.flatnonzero(code >= 0)
    labels = code.copy()
    sizes = np.bincount(judged_run.ranking.query[labelled])
    starts = np.cumsum(sizes) - sizes
    # Lists of one length are the rows of a matrix, shuffled together: several times as fast as
    # sorting random keys.
    matrices = [
        labelled[starts[sizes == size][:, None] + np.arange(size)]
        for size in np.unique(sizes[sizes > 1])
    ]
    shuffled = [code[entries] for entries in matrices]
    while True:
        for entries, drawn in zip(matrices, shuffled, strict=True):
            labels[entries] = rng.permuted(drawn, axis=1, out=drawn)
        yield labels


def listed_labels(
    judged_run: JudgedRun, estimand: GroupEstimand, first: Bools, second: Bools, *, origins: Ints
) -> LabelEffects | None:
    """List what documents of two groups add to an answer; None if the estimand does not know."""
    effects = estimand.label_effects(judged_run.ranking, first, second)
    if effects is None:
        return None
    entries = np.flatnonzero(first | second)
    total, weight = (column[entries] for column in effects)
    query, origin = judged_run.ranking.query[entries], origins[judged_run.row[entries]]
    clusters = Clusters(query=query, origin=origin, total=total, weight=weight)
    return LabelEffects(clusters=clusters, draw=entries)


def null_attention(
    estimand: AttentionEstimand, judged_run: JudgedRun, groups: Groups, *, seed: int, count: int
) -> Floats:
    """Answer a question about all groups with every list in random order, `count` times.

    A document that is in several lists has one label, so that these lists err alike. If each were
    relabelled by itself, a ranker with favourites that knows nothing of groups would seem to favour
    a group.
    """
    rng = np.random.default_rng([seed, _LIST_SEED])
    lists = judged_run.group_lists(groups)
    document = np.unique(judged_run.run.docs[judged_run.position], return_inverse=True)[1]
    recurs = document.max(initial=-1) + 1 < len(document)
    null = np.full(count, np.nan)
    for draw in range(count):
        drawn = lists.relabelled(rng, document) if recurs else lists.shuffled(rng)
        answers = attention_answers(estimand, judged_run, drawn)
        null[draw] = estimand.value(answers.total, answers.weight)
        report(f"random lists of {judged_run.run.name}", draw + 1, count)
    return null


def attention_answers(
    estimand: AttentionEstimand, judged_run: JudgedRun, lists: GroupLists
) -> TwinAnswers:
    """Answer a question about all groups together, query by query."""
    values = np.where(judged_run.judgments.known_query, estimand.per_query(lists), np.nan)
    known = ~np.isnan(values)
    return TwinAnswers(np.where(known, values, 0.0), known.astype(np.float64))
