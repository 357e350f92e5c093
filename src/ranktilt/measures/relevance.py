"""Relevance measures of one ranking: the expected value over all orders of tied documents.

*Tied* documents have the same score. No order of them is drawn: each measure has a closed form of
this expected value in its own file, after McSherry & Najork, ECIR 2008. A measure is a sum over
documents (`Measure.totals`), divided by the sum of the best possible ranking (`Measure.ideal`).
"""

from __future__ import annotations

import numpy as np

from ranktilt.measures.base import Measure
from ranktilt.measures.ranking import Floats, Judged, Ranking


def values(measure: Measure, ranking: Ranking, gains: Floats, judged: Judged) -> Floats:
    """Compute a measure for one group: a value from 0 to 1 for each query.

    Values are expected values over all orders of tied documents.

    Parameters
    ----------
    measure : Measure
        The measure.
    ranking : Ranking
        The ranking of all documents.
    gains : ndarray of float64, shape (n_entries,)
        Grade of each entry's document. 0 for documents that are not relevant, or that belong to
        another group: these keep their ranks (Dai et al., KDD 2024, sec. 3.1).
    judged : Judged
        The relevant documents of the group.

    Returns
    -------
    ndarray of float64, shape (n_queries,)
        NaN for a query without a relevant document in the group; 0 for a query that has some, but
        retrieved none.
    """
    head, is_kept = ranking.head(measure.cutoff)
    total = measure.totals(head, _gains(measure, gains[is_kept]))
    ideal = measure.ideal(judged)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(ideal > 0, total / ideal, np.nan)


def _gains(measure: Measure, grades: Floats) -> Floats:
    """Return 1 for each relevant document if the measure is binary, else its grade."""
    return (grades >= measure.rel).astype(np.float64) if measure.binary else grades


def label_weights(measure: Measure, ranking: Ranking, gains: Floats, judged: Judged) -> Floats:
    """Return what each relevant document adds to ``M_a − M_b`` of twins if it is in group `a`.

    M_a and M_b are the measure for the two groups. A document of group `b` adds the negative
    weight. So with a label x = 1 for documents of `a` and −1 for those of `b`, the sum of x ·
    weight over a query is the expected ``M_a − M_b``.

    For linear measures this holds for any labels, so that random labels are cheap to compute. nDCG,
    P and R are linear in the labels. So is the difference of AP, although two documents of one
    group add to each other's precision. With labels x and y, both are in group `a` if ``(1 + x)(1 +
    y)/4`` is 1, and both in `b` if ``(1 − x)(1 − y)/4`` is 1; the difference of these two is ``(x +
    y)/2``. RR is not linear, so its weights hold for the given labels only.

    Parameters
    ----------
    measure : Measure
        The measure.
    ranking : Ranking
        The ranking of all documents.
    gains : ndarray of float64, shape (n_entries,)
        Grade of each entry's document, of either group (for RR: of one of them); 0 for others.
    judged : Judged
        The relevant documents of one group; their twins have the same grades.

    Returns
    -------
    ndarray of float64, shape (n_entries,)
        0 for documents that are not relevant.
    """
    head, is_kept = ranking.head(measure.cutoff)
    kept_gains = _gains(measure, gains[is_kept])
    block_weights = measure.label_weights(head, kept_gains)
    ideal = measure.ideal(judged)
    scale = np.divide(1.0, ideal, out=np.zeros(len(ideal)), where=ideal > 0)
    weights = np.zeros(len(gains))
    scaled_weights = block_weights * scale[head.block_query]
    weights[is_kept] = kept_gains * np.repeat(scaled_weights, head.sizes)
    return weights
