"""``M_a − M_b`` of twins: what each relevant document adds, and p under exchanged labels.

``M_a`` and ``M_b`` are the values of a measure over the documents of group a and of group b. Twins
are two versions of one document, a version of each group; this document is their origin.
"""

from __future__ import annotations

import numpy as np

from ranktilt.auditing.judged_run import JudgedRun
from ranktilt.auditing.null_distributions.judged_documents import positions_in
from ranktilt.auditing.significance import InferenceOptions, Sample
from ranktilt.measures.base import Measure
from ranktilt.measures.permuted_labels import RelevantBlocks, RelevantDocuments
from ranktilt.measures.ranking import Floats, Ints
from ranktilt.measures.relevance import label_weights
from ranktilt.statistics.permutation import exchanged_sums, shuffle_p
from ranktilt.statistics.two_way import Clusters

_LABELS_AT_ONCE = 1 << 20
"""Most labels to exchange at a time, so that memory does not grow with the number of draws."""
_SEED = 7
"""Second part of the seed; no other null distribution uses it."""


def relevant_clusters(
    judged_run: JudgedRun,
    measure: Measure,
    groups: tuple[int, int],
    sample: Sample,
    *,
    origins: Ints,
) -> Clusters:
    """List what each retrieved relevant document of twins adds to ``M_a − M_b``.

    Its weight is its share of ``(M_a + M_b) / 2``. `groups` are the indexes of a and b, `sample`
    holds both groups' values of each query, and `origins` has the number of each document's origin,
    by row.
    """
    judgments, ranking, judgment = judged_run.judgments, judged_run.ranking, judged_run.judgment
    is_relevant = judgment >= 0
    group = np.where(is_relevant, judgments.group[judgment], -1)
    grade = np.where(is_relevant, judgments.grade[judgment], -1)
    # Twins have the same grades, so that both groups have the ideal of the first.
    judged = judgments.of_group(groups[0])
    is_first, is_second = group == groups[0], group == groups[1]
    # A linear measure gives a document the same weight whichever group it is of. In RR the weight
    # depends on which documents of its own group are ranked above, so each group is read alone.
    sides = [is_first | is_second] if measure.linear else [is_first, is_second]
    weight = np.zeros(len(judgment))
    for is_side in sides:
        weight = weight + label_weights(measure, ranking, np.where(is_side, grade, 0.0), judged)
    entries = np.flatnonzero(sample.mask[ranking.query] & (weight > 0))
    origin = origins[judged_run.row[entries]]
    # Floats are added in this order, whatever the order of tied documents in the file and whichever
    # group is named first: otherwise the last digits of the error would change.
    order = np.lexsort((weight[entries], origin, ranking.query[entries]))
    entries, origin = entries[order], origin[order]
    query, weight = ranking.query[entries], weight[entries]
    total = np.bincount(query, weights=weight, minlength=len(sample.mask))
    mean = (sample.numerator + sample.denominator) / 2
    signed = np.where(is_first[entries], weight, -weight)
    share = weight * mean[query] / total[query]
    return Clusters(query=query, origin=origin, total=signed, weight=share)


def exchange_p(
    judged_run: JudgedRun,
    measure: Measure,
    groups: tuple[int, int],
    sample: Sample,
    *,
    origins: Ints,
    options: InferenceOptions,
) -> float:
    """Return the p of ``M_a − M_b`` among its values under labels exchanged within origins.

    An origin's two labels are exchanged in all queries alike, or in none. For linear measures,
    which are sums over documents, the exchange leaves ``M_a + M_b`` as it is, so this is also the p
    of Relative Δ. `sample` and `origins` are those of `relevant_clusters`.
    """
    seed = [options.seed, _SEED]
    if measure.linear and sample.clusters is not None:
        totals = sample.clusters.origin_totals
        exchanged = exchanged_sums(totals, draws=options.resamples, seed=seed)
        return shuffle_p(float(totals.sum()), exchanged)
    # Other measures are computed anew from the ranking in each draw.
    judgments = judged_run.judgments
    ranking, keep = judged_run.ranking.head(measure.cutoff)
    entry_judgment = judged_run.judgment[keep]
    is_counted = (entry_judgment >= 0) & np.isin(judgments.group[entry_judgment], groups)
    is_counted &= sample.mask[ranking.query]
    # A document that is not retrieved adds 0 whatever its label.
    retrieved = np.unique(entry_judgment[is_counted])
    query = np.unique(judgments.query[retrieved], return_inverse=True)[1]
    pool = RelevantDocuments(query=query, grade=judgments.grade[retrieved])
    pool_position = positions_in(retrieved, len(judgments.query))
    blocks = RelevantBlocks.from_ranking(pool, [measure], ranking, pool_position[entry_judgment])
    is_first = (judgments.group[retrieved] == groups[0])[:, None]
    origin = np.unique(origins[judgments.row[retrieved]], return_inverse=True)[1]
    origin_count = int(origin.max(initial=-1)) + 1
    rng = np.random.default_rng(seed)
    null: list[Floats] = []
    step = max(_LABELS_AT_ONCE // max(len(retrieved), 1), 1)
    for start in range(0, options.resamples, step):
        draws = min(step, options.resamples - start)
        is_exchanged = rng.integers(0, 2, size=(origin_count, draws), dtype=np.int8)[origin] == 1
        is_first_in_draw = is_first != is_exchanged
        null.append(_difference(blocks, is_first_in_draw.astype(np.float64)))
    drawn = np.concatenate(null)
    observed = float(_difference(blocks, is_first.astype(np.float64))[0])
    # A draw and the one that exchanges all other origins are equally likely and of opposite sign.
    return shuffle_p(observed, np.concatenate([drawn, -drawn]))


def _difference(blocks: RelevantBlocks, is_first: Floats) -> Floats:
    """Sum ``M_a − M_b`` over the queries, draw by draw.

    `is_first` is 1 where a draw puts a document in a, and 0 where it puts it in b. Its shape is
    (n_documents, draws).
    """
    # `totals` returns a list with an array for each measure; here there is a single measure.
    [total_a], [total_b] = blocks.totals(is_first), blocks.totals(1.0 - is_first)
    difference: Floats = (total_a - total_b).sum(axis=0)
    return difference
