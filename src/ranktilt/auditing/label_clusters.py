"""What the label of each document adds to an answer, query by query: for a document has one label in all lists."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.groups import Groups
from ranktilt.auditing.judged_rankings import Aligned
from ranktilt.auditing.random_band import TopRanks, strata
from ranktilt.auditing.significance import Sample
from ranktilt.measures.base import GroupEstimand, Measure
from ranktilt.measures.ranking import Bools, Ints, Judged
from ranktilt.measures.relevance import label_weights
from ranktilt.statistics.two_way import Clusters, Labels, sums


def relevant_clusters(
    aligned: Aligned, measure: Measure, groups: tuple[int, int], sample: Sample, origins: Ints
) -> Clusters:
    """List what each relevant document of twins adds to ``M_a − M_b``, beside its share of ``(M_a + M_b) / 2``."""
    judgments, ranking, at = aligned.judgments, aligned.ranking, aligned.judgment
    group, grade = (np.where(at >= 0, numbers[at], -1) for numbers in (judgments.group, judgments.grade))
    judged = judgments.of_group(groups[0])
    every = [group == groups[0], group == groups[1]]
    chosen = [every[0] | every[1]] if measure.linear else every
    weight = sum((label_weights(measure, ranking, np.where(one, grade, 0.0), judged) for one in chosen), np.zeros(1))
    held = np.flatnonzero(sample.mask[ranking.query] & (weight > 0))
    origin = origins[aligned.row[held]]
    # No sum depends on how a tie is stored, or on which side is first.
    order = np.lexsort((weight[held], origin, ranking.query[held]))
    held, origin = held[order], origin[order]
    query, weight = ranking.query[held], weight[held]
    total = np.bincount(query, weights=weight, minlength=len(sample.mask))
    mean = (sample.one + sample.two) / 2
    return Clusters(query, origin, np.where(every[0][held], weight, -weight), weight * mean[query] / total[query])


def judged_labels(aligned: Aligned, measure: Measure, groups: tuple[int, int], sample: Sample, origins: Ints) -> Labels:
    """List what each relevant document of two groups adds to ``M_a − M_b`` beyond a mean one of its query.

    ``±(y − mean y)/ideal`` with y what it adds to `totals`, 0 for one that is not retrieved. Measures that are not sums
    over documents are taken as linear in the labels; a factor for all brings them to the scale of the means.
    """
    judgments = aligned.judgments
    counts = np.isin(judgments.group, groups) & sample.mask[judgments.query] & (judgments.grade >= measure.grade)
    held = np.flatnonzero(counts)
    query, group, n = judgments.query[held], judgments.group[held], len(judgments.queries)
    at = aligned.judgment
    listed = at[at >= 0]
    gains = np.where(at >= 0, np.where(counts, judgments.grade, 0.0)[at], 0.0) if len(counts) else np.zeros(len(at))
    both = Judged(query, judgments.grade[held], n)
    weight = label_weights(measure, aligned.ranking, gains, both)
    adds = sums(listed, weight[at >= 0], len(counts))[held]
    ideal, of_group = measure.ideal(both), [measure.ideal(judgments.of_group(number)) for number in groups]
    scale = np.where(group == groups[0], *(ideal[query] / each[query] for each in of_group))
    mean = sums(query, adds, n) / np.maximum(np.bincount(query, minlength=n), 1)
    whole, mine = float((scale * adds).sum()), float((sample.one + sample.two)[sample.mask].sum())
    scale *= mine / whole if whole > 0 else 1.0
    total = np.where(group == groups[0], scale, -scale) * (adds - mean[query])
    clusters = Clusters(query, origins[judgments.row[held]], total, scale * adds / 2)
    return Labels(clusters, judgments.first_of_equal[held])


def listed_labels(aligned: Aligned, of: GroupEstimand, first: Bools, second: Bools, origins: Ints) -> Labels | None:
    """List what the documents of two groups add to an answer about whole lists; None where the estimand cannot say."""
    effects = of.label_effects(aligned.ranking, first, second)
    if effects is None:
        return None
    held = np.flatnonzero(first | second)
    total, weight = (column[held] for column in effects)
    clusters = Clusters(aligned.ranking.query[held], origins[aligned.row[held]], total, weight)
    return Labels(clusters, held)


def page_labels(
    aligned: Aligned,
    page: TopRanks,
    signs: npt.NDArray[np.int8],
    groups: Groups,
    origins: Ints,
) -> Labels:
    """List what labels add to a difference of shares of the page, as `share_bands` draws them.

    Labels and shares are both taken beside their means: of a relevant document, those of its query's
    relevant ones; of any other, those of its stratum of the collection over all queries. What the
    documents of a stratum have less than their mean share by not being on a page is no query's.
    """
    judgments = aligned.judgments
    judged = np.flatnonzero((judgments.group >= 0) & page.known[judgments.query])
    query, n = judgments.query[judged], len(judgments.queries)
    counts = np.maximum(np.bincount(query, minlength=n), 1)
    on_page = page.judgment >= 0
    shares = sums(page.judgment[on_page], page.share[on_page], len(judgments.query))[judged]
    mean_share = (sums(query, shares, n) / counts)[query]
    judged_signs = signs[judgments.row[judged]].astype(np.float64)
    mean_sign = (sums(query, judged_signs, n) / counts)[query]

    other = np.flatnonzero(~on_page & (page.row >= 0) & page.known[page.ranking.query])
    row, held = page.row[other], page.share[other]
    is_labelled = groups.code[row] >= 0
    other, row, held = other[is_labelled], row[is_labelled], held[is_labelled]
    centred_signs = signs.astype(np.float64)
    by_document = sums(row, held, len(signs))
    apart = strata(groups, judgments)
    means = []
    for stratum in apart:
        size = max(len(stratum), 1)
        centred_signs[stratum] -= signs[stratum].sum(dtype=np.int64) / size
        means.append(np.full(len(stratum), by_document[stratum].sum() / size))
    rows = np.concatenate([judgments.row[judged], row, *apart])
    none = np.zeros(sum(map(len, apart)))
    clusters = Clusters(
        np.concatenate([query, page.ranking.query[other], np.full(len(none), -1)]),
        origins[rows],
        np.concatenate(
            [
                (judged_signs - mean_sign) * (shares - mean_share),
                centred_signs[row] * held,
                *(-centred_signs[stratum] * mean for stratum, mean in zip(apart, means, strict=True)),
            ]
        ),
        np.concatenate([shares, held, none]),
    )
    draw = np.concatenate([judgments.first_of_equal[judged], len(judgments.query) + rows[len(judged) :]])
    return Labels(clusters, draw)
