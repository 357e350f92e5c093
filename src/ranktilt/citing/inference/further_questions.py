"""The interval of an estimate for further questions about the same units, such as these domains.

An audit compares how often answers cite pages of two groups, a and b. A unit is pages that are
labelled together, such as those of a domain; with few units nothing can be said about all pages of
their kind. But it can be said how these units would be cited in further questions like those that
were asked. Then the error is over questions alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from ranktilt.citing.inference.infer import estimate_interval
from ranktilt.measures.citations.base import CitationEstimate, CitationRows

FEWEST_CITATIONS = 10
"""Citations of a group below which an interval over questions is given in the score form too."""
_FARTHEST = 8.0
"""How far from the value an end of the interval is searched, as a logarithm: e⁸ is about 3,000.

If even that ratio is inside, the interval has no end on this side.
"""
_NEAREST = 1e-6
"""If the search ends this close to `_FARTHEST`, the interval has no end on this side."""
_HALVINGS = 60
"""Halvings in the search for an end of an interval: enough for the precision of a float."""


@dataclass(frozen=True, kw_only=True)
class QuestionsInterval:
    """The 95 % interval of an estimate for further questions about the same units."""

    low: float
    """Lower end by the error over questions; NaN below two questions."""
    high: float
    """Upper end; NaN below two questions."""
    score_low: float
    """Lower end by a score test with Poisson rates, if a group has fewer than ten citations.

    NaN if both groups have ten citations.
    """
    score_high: float
    """Upper end by the score test; infinite if no ratio is too large."""


def interval_over_questions(rows: CitationRows, estimate: CitationEstimate) -> QuestionsInterval:
    """Return the interval for further questions about the same units: value ± t(Q − 1) errors.

    Q is the number of queries. If a group has fewer than ten citations, the error over questions
    depends on these few citations. So a ratio gets a second interval, by a score test whose error
    does not become small by chance.
    """
    by_question = rows.per_question(estimate.influence)
    has_pages = rows.per_question(estimate.support_a + estimate.support_b) > 0
    count = int(has_pages.sum())
    if count < 2 or not np.isfinite(estimate.distance):
        return QuestionsInterval(low=np.nan, high=np.nan, score_low=np.nan, score_high=np.nan)
    variance = (by_question**2).sum() * count / (count - 1) + estimate.uncited_variance
    error = float(np.sqrt(variance))
    low, high = estimate_interval(estimate, estimate.distance, error, freedom=count - 1)
    score_low, score_high = np.nan, np.nan
    is_few = min(estimate.citations_a, estimate.citations_b) < FEWEST_CITATIONS
    if is_few and estimate.scale == "log ratio":
        score_low, score_high = _score_interval(rows, estimate, count)
    return QuestionsInterval(low=low, high=high, score_low=score_low, score_high=score_high)


def _score_interval(
    rows: CitationRows, estimate: CitationEstimate, question_count: int
) -> tuple[float, float]:
    """Return the lowest and the highest ratio whose score lies within t(Q − 1) errors of 0.

    Q is the number of queries, `question_count`. Each end is searched by bisection between the
    estimate, which is inside, and a ratio far outside.
    """
    critical = float(special.stdtrit(question_count - 1, 0.975))
    start = estimate.distance
    ends = []
    for direction in (-1.0, 1.0):
        inside, outside = start, start + direction * _FARTHEST
        for _step in range(_HALVINGS):
            middle = (inside + outside) / 2
            ratio = float(np.exp(middle))
            is_inside = _errors_from_zero(rows, estimate, ratio, question_count) <= critical
            inside, outside = (middle, outside) if is_inside else (inside, middle)
        is_bounded = abs(inside - start) < _FARTHEST - _NEAREST
        ends.append(float(np.exp(inside if is_bounded else direction * np.inf)))
    low, high = ends
    # Without a citation of a, no ratio above 0 is too small; without one of b, none is too large.
    return low if estimate.citations_a else 0.0, high if estimate.citations_b else np.inf


def _errors_from_zero(
    rows: CitationRows, estimate: CitationEstimate, ratio: float, question_count: int
) -> float:
    """Return how many errors the score of a ratio lies from 0.

    The score of a ratio r is rate_a − r · rate_b, which is 0 on average if r is the true ratio. Its
    variance over questions is taken to be at least that of Poisson counts. Their rates are those
    that have the ratio r, and together give as many citations as were counted. `question_count` is
    the number of queries.
    """
    total_a, total_b = float(estimate.support_a.sum()), float(estimate.support_b.sum())
    cited_a, cited_b = estimate.value_a * total_a, estimate.value_b * total_b
    rate_b = (cited_a + cited_b) / (ratio * total_a + total_b)
    rate_a = ratio * rate_b
    cited = estimate.exchange.amount
    part_a = (cited * rows.is_a - rate_a * estimate.support_a) / total_a
    part_b = (cited * ~rows.is_a - rate_b * estimate.support_b) / total_b
    by_question = rows.per_question(part_a - ratio * part_b)
    variance = float((by_question**2).sum()) * question_count / (question_count - 1)
    poisson_variance = rate_a / total_a + ratio**2 * rate_b / total_b
    error = float(np.sqrt(max(variance, poisson_variance)))
    return abs(estimate.value_a - ratio * estimate.value_b) / error
