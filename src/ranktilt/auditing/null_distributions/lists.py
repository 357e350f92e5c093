"""Answers about whole lists under random labels, or with documents in random order.

An *entry* is one document in the list of one query; its *label* is the group of the document.

`shuffled_in_lists` shuffles labels within each list, for questions about two groups, such as
Share@k. `null_attention` shuffles the documents of each list, for questions about all groups
together, such as AWRF.
"""

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


def shuffled_in_lists(judged_run: JudgedRun, labels: Ints, seed: int) -> Iterator[Ints]:
    """Yield the labels of a run's entries, shuffled within each list, without end.

    An entry with −1 has no label and takes part in no shuffle. Every draw is written into the same
    array: use it before you ask for the next.
    """
    rng = np.random.default_rng([seed, _LABEL_SEED])
    labelled = np.flatnonzero(labels >= 0)
    drawn_labels = labels.copy()
    sizes = np.bincount(judged_run.ranking.query[labelled])
    starts = np.cumsum(sizes) - sizes
    # Lists with equally many labels are the rows of a matrix, shuffled together: several times as
    # fast as sorting random keys. A matrix holds the entries of these labels.
    matrices = [
        labelled[starts[sizes == size][:, None] + np.arange(size)]
        for size in np.unique(sizes[sizes > 1])
    ]
    shuffled = [labels[entries] for entries in matrices]
    while True:
        for entries, drawn in zip(matrices, shuffled, strict=True):
            drawn_labels[entries] = rng.permuted(drawn, axis=1, out=drawn)
        yield drawn_labels


def listed_labels(
    judged_run: JudgedRun, estimand: GroupEstimand, first: Bools, second: Bools, *, origins: Ints
) -> LabelEffects | None:
    """List what documents of two groups add to an answer; None if the estimand has no such list.

    `first` and `second` say which entries of the run are of the first and of the second group.
    `origins` has the number of each document's origin (the document that twins are versions of), by
    row of the collection.
    """
    effects = estimand.label_effects(judged_run.ranking, first, second)
    if effects is None:
        return None
    entries = np.flatnonzero(first | second)
    total, weight = (column[entries] for column in effects)
    query, origin = judged_run.ranking.query[entries], origins[judged_run.row[entries]]
    clusters = Clusters(query=query, origin=origin, total=total, weight=weight)
    return LabelEffects(clusters=clusters, draw_number=entries)  # a draw for each entry


def null_attention(
    estimand: AttentionEstimand, judged_run: JudgedRun, groups: Groups, *, seed: int, count: int
) -> Floats:
    """Answer a question about all groups with every list in random order, `count` times.

    A document has much the same label in all lists that it occurs in. If each list drew its labels
    by itself, a ranker that ranks the same few documents high everywhere would seem to favour their
    group, although it knows nothing of groups.
    """
    rng = np.random.default_rng([seed, _LIST_SEED])
    lists = judged_run.group_lists(groups)
    document = np.unique(judged_run.run.docs[judged_run.position], return_inverse=True)[1]
    document_count = document.max(initial=-1) + 1
    has_recurring_documents = document_count < len(document)
    null = np.full(count, np.nan)
    for draw in range(count):
        drawn = lists.relabelled(rng, document) if has_recurring_documents else lists.shuffled(rng)
        answers = attention_answers(estimand, judged_run, drawn)
        null[draw] = estimand.value(answers.total, answers.weight)
        report(f"random lists of {judged_run.run.name}", draw + 1, count)
    return null


def attention_answers(
    estimand: AttentionEstimand, judged_run: JudgedRun, lists: GroupLists
) -> TwinAnswers:
    """Answer a question about all groups together, query by query.

    A query for which the answer is undefined, or which the collection does not have, has weight 0.
    """
    values = np.where(judged_run.judgments.known_query, estimand.per_query(lists), np.nan)
    known = ~np.isnan(values)
    return TwinAnswers(np.where(known, values, 0.0), known.astype(np.float64))
