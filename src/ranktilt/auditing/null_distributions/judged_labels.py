"""What each relevant document's label adds to ``M_a − M_b``, for groups that are no twins.

``M_a`` and ``M_b`` are the values of a measure over the documents of group a and of group b. A
document's label is its group.
"""

from __future__ import annotations

import numpy as np

from ranktilt.auditing.judged_run import JudgedRun
from ranktilt.auditing.null_distributions.base import LabelEffects
from ranktilt.auditing.significance import Sample
from ranktilt.measures.base import Measure
from ranktilt.measures.ranking import Bools, Floats, Ints, Judged
from ranktilt.measures.relevance import label_weights
from ranktilt.statistics.two_way import Clusters, sums


def judged_labels(
    judged_run: JudgedRun,
    measure: Measure,
    groups: tuple[int, int],
    sample: Sample,
    *,
    origins: Ints,
) -> LabelEffects:
    """List what each relevant document adds to ``M_a − M_b``, compared with its query's others.

    For a document of a it is ``(y − mean y of the other documents) / ideal``, for a document of b
    the negative. ``y`` is what the document adds to its group's total: 0 if it is not retrieved.
    ``ideal`` is the total of the group's best ranking.

    Measures that are not sums over documents (RR) are taken as linear in the labels; one factor for
    all documents brings them to the scale of the means.

    `groups` are the indexes of a and b, `sample` holds both groups' values of each query, and
    `origins` has the number of each document's origin, by row.
    """
    judgments = judged_run.judgments
    is_counted = np.isin(judgments.group, groups) & sample.mask[judgments.query]
    is_counted &= judgments.grade >= measure.gain_grade
    counted = np.flatnonzero(is_counted)
    query, is_first = judgments.query[counted], judgments.group[counted] == groups[0]
    query_count = len(judgments.queries)
    both = Judged(query=query, grade=judgments.grade[counted], n_queries=query_count)
    added = _added(judged_run, measure, is_counted, both)[counted]

    # `added` is a share of the ideal of both groups together; a group's value is divided by the
    # ideal of that group alone.
    ideal = measure.ideal(both)
    ideal_a, ideal_b = (measure.ideal(judgments.of_group(group)) for group in groups)
    scale = np.where(is_first, ideal[query] / ideal_a[query], ideal[query] / ideal_b[query])
    # For a measure that is a sum over documents, both sums are equal.
    scaled_sum = float((scale * added).sum())
    sample_sum = float((sample.numerator + sample.denominator)[sample.mask].sum())
    scale *= sample_sum / scaled_sum if scaled_sum > 0 else 1.0

    # A document's distance from the mean of the n − 1 others is n / (n − 1) times its distance from
    # the mean of all n.
    count = np.bincount(query, minlength=query_count)
    mean = sums(query, added, query_count) / np.maximum(count, 1)
    stretch = count / np.maximum(count - 1, 1)
    total = np.where(is_first, scale, -scale) * stretch[query] * (added - mean[query])
    clusters = Clusters(
        query=query,
        origin=origins[judgments.row[counted]],
        total=total,
        weight=scale * added / 2,
    )
    # Queries with equal judgments share their shuffles.
    return LabelEffects(clusters=clusters, draw_number=judgments.first_of_equal[counted])


def _added(judged_run: JudgedRun, measure: Measure, is_counted: Bools, both: Judged) -> Floats:
    """Return what each judgment adds to its query's value, as if both groups were one group.

    `is_counted` says which judgments are of the two groups and count, and `both` are these. A
    judgment adds 0 if it does not count, or its document is not retrieved.
    """
    judgments, judgment = judged_run.judgments, judged_run.judgment
    is_relevant = judgment >= 0
    gains = np.zeros(len(judgment))
    if len(is_counted):
        counted_grade = np.where(is_counted, judgments.grade, 0.0)
        gains = np.where(is_relevant, counted_grade[judgment], 0.0)
    weight = label_weights(measure, judged_run.ranking, gains, both)
    return sums(judgment[is_relevant], weight[is_relevant], len(is_counted))
