"""Correct an audit of citations for labels that are wrong more often in some parts of the pages.

An audit compares two groups of pages, a and b, by labels that may be wrong. A *part* is pages whose
labels err equally often, such as the short ones. A page's *membership* says how much of it counts
for group a: it follows from the page's label and from how often labels of its part are wrong
(`PairCorrection`). Shares, stages and the terms of the funnel are sums over pages. So they are
computed as ever, with memberships in place of labels. Their interval is that of these sums over
other questions and units (a unit is pages that are labelled together, such as those of a domain),
widened by the error of each part's error rates. With one part, this is what `label_errors.correct`
does.

The permutation test exchanges the labels of all units, where each page counts as in its part. If
parts are cited unequally often, the mean over exchanges is not neutral. So the test counts the
exchanges that are at least as far from their mean as the corrected value is from neutral.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ranktilt.citing.effect import QUESTIONS, FunnelPart, QuestionKey, StageShare
from ranktilt.citing.funnel import stage_masks
from ranktilt.citing.inference.exchange import exchanged_p
from ranktilt.citing.inference.infer import Spread, estimate_spread, plain_spread
from ranktilt.citing.label_errors.correct import (
    PairCorrection,
    corrected_part,
    corrected_stage,
    rate_amounts,
)
from ranktilt.measures.citations.base import (
    Bools,
    CitationEstimate,
    CitationRows,
    Exchange,
    Floats,
    weighted_share,
)
from ranktilt.measures.citations.funnel import funnel_terms
from ranktilt.statistics.label_errors import Gap, gap_with_rate_error


def share_by_parts(
    question: QuestionKey,
    rows: CitationRows,
    correction: PairCorrection,
    *,
    resamples: int,
    seed: int,
) -> tuple[CitationEstimate, Spread]:
    """Return a corrected share in percent with its neutral value, and its interval and p.

    `resamples` is the number of exchanges of labels, and `seed` their random seed.
    """
    estimate = QUESTIONS[question].estimate(correction.with_membership(rows))
    has_pool = not np.isnan(estimate.neutral)
    # What a row of group a adds to its share of citations, minus what it adds to its pool share.
    amounts = estimate.exchange.amount
    if has_pool:
        estimate = replace(estimate, exchange=_exchange(rows, amounts, correction))
    spread = estimate_spread(rows, estimate, resamples=resamples, seed=seed)
    gap = Gap(
        value=estimate.distance if has_pool else estimate.value,
        low=spread.low - estimate.neutral if has_pool else spread.low,
        high=spread.high - estimate.neutral if has_pool else spread.high,
        error=spread.error,
        p=spread.p,
    )
    # In points, as the gap is.
    gap = gap_with_rate_error(
        gap, correction.error_of_sum(correction.part_totals(rows, 100 * amounts))
    )
    centre = estimate.neutral if has_pool else 0.0
    low, high = np.clip([centre + gap.low, centre + gap.high], 0.0, 100.0).tolist()
    value = float(np.clip(estimate.value, 0.0, 100.0))
    estimate = replace(estimate, value=value, value_a=value, value_b=100 - value)
    return estimate, replace(spread, low=low, high=high, error=gap.error, p=gap.p)


def rates_exchanged_p(
    question: QuestionKey,
    rows: CitationRows,
    correction: PairCorrection,
    *,
    resamples: int,
    seed: int,
) -> float:
    """Return the p of a test by exchanged labels that two corrected rates are equal.

    The statistic is Σ membership of group a · (cited − citation rate of all pages), over the pages
    that could have been cited. `resamples` is the number of exchanges of labels, and `seed` their
    random seed.
    """
    estimate = QUESTIONS[question].estimate(rows)
    cited, in_pool = rate_amounts(question, rows)
    amounts = cited - in_pool * cited.sum() / in_pool.sum()
    tested = replace(estimate, exchange=_exchange(rows, amounts, correction))
    return exchanged_p(rows, tested, resamples=resamples, seed=seed)


def _exchange(rows: CitationRows, amounts: Floats, correction: PairCorrection) -> Exchange:
    """Return the exchange whose statistic is Σ amount · membership of a, with neutral value 0."""
    return Exchange(
        amount=amounts * correction.inverse_strengths(rows),
        distance=float((amounts * correction.row_memberships(rows, 0)).sum()),
    )


def corrected_stages(
    stages: Sequence[StageShare], rows: CitationRows, correction: PairCorrection
) -> list[StageShare]:
    """Correct each group's share of the stages: of retrieved, consulted and cited pages."""
    if correction.model.is_plain:
        return [corrected_stage(stage, correction) for stage in stages]
    masks = stage_masks(rows)
    return [_stage_by_parts(stage, rows, masks[stage.stage], correction) for stage in stages]


def _stage_by_parts(
    stage: StageShare, rows: CitationRows, mask: Bools, correction: PairCorrection
) -> StageShare:
    """Correct a group's share of one stage; `mask` says which rows are in the stage."""
    amount = rows.weight * mask
    share = weighted_share(correction.with_membership(rows), amount)
    if np.isnan(share.value):
        return stage
    value, is_first = 100 * share.value, stage.group == correction.a
    spread = plain_spread(rows, value, 100 * share.influence, support=mask)
    low, high = spread.low, spread.high
    if stage.value in (0.0, 100.0):
        # All labels are the same, so that the share does not scatter. The ends are as far from it
        # as those by labels, times the largest 1/J. For group b, low and high change places.
        inverse_strength = float(correction.inverse_strengths(rows)[mask].max())
        to_low, to_high = stage.low - stage.value, stage.high - stage.value
        if not is_first:
            to_low, to_high = -to_high, -to_low
        low, high = value + inverse_strength * to_low, value + inverse_strength * to_high
    rate_error = correction.error_of_sum(correction.part_totals(rows, 100 * amount / amount.sum()))
    gap = gap_with_rate_error(
        Gap(value=value, low=low, high=high, error=np.nan, p=np.nan), rate_error
    )
    value, low, high = np.clip([gap.value, gap.low, gap.high], 0.0, 100.0).tolist()
    if is_first:
        return replace(stage, value=value, low=low, high=high)
    return replace(stage, value=100 - value, low=100 - high, high=100 - low)


def corrected_funnel(
    funnel: Sequence[FunnelPart], rows: CitationRows, correction: PairCorrection
) -> list[FunnelPart]:
    """Correct the parts into which the funnel divides a difference of shares."""
    if correction.model.is_plain or not funnel:
        return [corrected_part(part, correction) for part in funnel]
    support = rows.is_retrieved | rows.is_cited
    terms = {term.name: term for term in funnel_terms(correction.with_membership(rows))}
    points_by_cell = _points_by_cell(rows, correction)
    corrected = []
    for part in funnel:
        term = terms[part.name]
        spread = plain_spread(rows, term.points, term.influence, support=support)
        gap = Gap(value=term.points, low=spread.low, high=spread.high, error=np.nan, p=spread.p)
        gap = gap_with_rate_error(gap, correction.error_of_sum(np.array(points_by_cell[part.name])))
        corrected.append(replace(part, value=gap.value, low=gap.low, high=gap.high, p=gap.p))
    return corrected


def _points_by_cell(rows: CitationRows, correction: PairCorrection) -> dict[str, list[float]]:
    """Return the points that the pages of each part and label add to each term of the funnel."""
    cells = correction.cells(rows)  # a number for each combination of part and label
    points = dict[str, list[float]]()
    for cell in range(2 * len(correction.model.parts)):
        of_cell = replace(rows, membership=(cells == cell).astype(np.float64))
        for term in funnel_terms(of_cell):
            points.setdefault(term.name, []).append(term.points)
    return points
