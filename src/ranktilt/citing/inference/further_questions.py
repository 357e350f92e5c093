"""The interval of an estimate for further questions about the same units, such as these domains.

With few units nothing can be said of their kind. Something can be said of these units themselves:
how they would be cited in further questions like the ones that were asked. The error is then that
over questions alone.
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
"""How far an end is searched, as the logarithm of its ratio to the value: some 3,000 times.

An interval that reaches further has no end on this side.
"""
_NEAREST = 1e-6
"""How close to `_FARTHEST` the search may end for the interval to count as without end."""
_HALVINGS = 60
"""Halvings of the interval in which an end is searched: beyond the precision of a float."""


@dataclass(frozen=True, kw_only=True)
class QuestionsAlone:
    """The 95 % interval of an estimate for further questions about the same units."""

    low: float
    """Lower end by the error over questions; NaN below two questions."""
    high: float
    """Upper end; NaN below two questions."""
    score_low: float
    """Lower end by the score of a Poisson rate, for a group with few citations; NaN from ten on."""
    score_high: float
    """Upper end by the score; infinite where no ratio is too large, NaN from ten citations on."""


def questions_alone(rows: CitationRows, estimate: CitationEstimate) -> QuestionsAlone:
    """Return the interval for further questions, with the units as they are: ± t(Q − 1) errors.

    Q is the number of queries. Where a group has fewer than ten citations, the error over questions
    rests on the few citations that happened to come, so a ratio gets a second interval by its
    score, which does not.
    """
    by_question = rows.per_question(estimate.influence)
    has_pages = rows.per_question(estimate.support_a + estimate.support_b) > 0
    count = int(has_pages.sum())
    if count < 2 or not np.isfinite(estimate.distance):
        return QuestionsAlone(low=np.nan, high=np.nan, score_low=np.nan, score_high=np.nan)
    error = float(np.sqrt((by_question**2).sum() * count / (count - 1)))
    low, high = estimate_interval(estimate, estimate.distance, error, freedom=count - 1)
    score_low, score_high = np.nan, np.nan
    is_few = min(estimate.citations_a, estimate.citations_b) < FEWEST_CITATIONS
    if is_few and estimate.scale == "log ratio":
        score_low, score_high = _score_interval(rows, estimate, count)
    return QuestionsAlone(low=low, high=high, score_low=score_low, score_high=score_high)


def _score_interval(
    rows: CitationRows, estimate: CitationEstimate, question_count: int
) -> tuple[float, float]:
    """Return the lowest and the highest ratio whose score lies within t(Q − 1) errors of 0.

    Each end is found by bisection between the estimate, which is inside, and a ratio far outside.
    """
    critical = float(special.stdtrit(question_count - 1, 0.975))
    start = estimate.distance
    ends = []
    for direction in (-1.0, 1.0):
        inside, outside = start, start + direction * _FARTHEST
        for _step in range(_HALVINGS):
            middle = (inside + outside) / 2
            is_inside = _score(rows, estimate, float(np.exp(middle)), question_count) <= critical
            inside, outside = (middle, outside) if is_inside else (inside, middle)
        is_bounded = abs(inside - start) < _FARTHEST - _NEAREST
        ends.append(float(np.exp(inside if is_bounded else direction * np.inf)))
    low, high = ends
    # Without a citation of a, no ratio above 0 is too small; without one of b, none is too large.
    return low if estimate.citations_a else 0.0, high if estimate.citations_b else np.inf


def _score(
    rows: CitationRows, estimate: CitationEstimate, ratio: float, question_count: int
) -> float:
    """Return how many errors the score of a ratio lies from 0.

    The score of a ratio r is rate_a − r · rate_b, which is 0 on average where r is true. Its
    variance over questions is at least that of Poisson counts, with the rates of a and b that have
    the ratio r and give as many citations together as were counted.
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
