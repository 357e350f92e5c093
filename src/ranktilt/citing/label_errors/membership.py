"""Correct an audit of citations whose labels err by parts: shares, stages and funnel.

A page counts for a group what its label says in its part (`PairCorrection.with_membership`). All
numbers here are sums of what pages count, so they are computed as those of the labels are, with
memberships in their place. Their interval is that of these sums over other questions and units,
widened by the error of each part's rates. With one part, this is the correction of `label_errors`.

The test by exchanged labels deals the labels of all units out again, each counted as in its part.
If parts are cited unequally often, the mean of the exchanges is not neutral. So the test counts how
many are at least as far from their mean as the corrected answer is from neutral.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ranktilt.citing.funnel import stage_masks
from ranktilt.citing.inference.exchange import exchanged_p
from ranktilt.citing.inference.infer import Spread, plain_spread, spread
from ranktilt.citing.label_errors.correct import (
    PairCorrection,
    corrected_part,
    corrected_stage,
    rate_amounts,
)
from ranktilt.citing.questions import QUESTIONS, QuestionKey
from ranktilt.citing.stages import FunnelPart, StageShare
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
    """Return a corrected share in percent with its neutral value, and its interval and p."""
    estimate = QUESTIONS[question].estimate(correction.with_membership(rows))
    has_pool = not np.isnan(estimate.neutral)
    # What a row of group a adds to the share, less what it adds to that of the pool.
    parts = estimate.exchange.amount
    if has_pool:
        estimate = replace(estimate, exchange=_exchange(rows, parts, correction))
    around = spread(rows, estimate, resamples=resamples, seed=seed)
    gap = Gap(
        value=estimate.distance if has_pool else estimate.value,
        low=around.low - estimate.neutral if has_pool else around.low,
        high=around.high - estimate.neutral if has_pool else around.high,
        error=around.error,
        p=around.p,
    )
    gap = gap_with_rate_error(gap, correction.share_error(correction.totals(rows, 100 * parts)))
    centre = estimate.neutral if has_pool else 0.0
    low, high = np.clip([centre + gap.low, centre + gap.high], 0.0, 100.0).tolist()
    value = float(np.clip(estimate.value, 0.0, 100.0))
    estimate = replace(estimate, value=value, value_a=value, value_b=100 - value)
    return estimate, replace(around, low=low, high=high, error=gap.error, p=gap.p)


def rates_exchanged_p(
    question: QuestionKey,
    rows: CitationRows,
    correction: PairCorrection,
    *,
    resamples: int,
    seed: int,
) -> float:
    """Return the p of two corrected rates by exchanged labels.

    The statistic is Σ what a page counts for group a · (cited − rate of all pages).
    """
    estimate = QUESTIONS[question].estimate(rows)
    cited, in_pool = rate_amounts(question, rows)
    amounts = cited - in_pool * cited.sum() / in_pool.sum()
    tested = replace(estimate, exchange=_exchange(rows, amounts, correction))
    return exchanged_p(rows, tested, resamples=resamples, seed=seed)


def _exchange(rows: CitationRows, amounts: Floats, correction: PairCorrection) -> Exchange:
    """Return the exchange of a sum over what pages count for group a, whose neutral value is 0."""
    return Exchange(
        amount=amounts * correction.stretches(rows),
        distance=float((amounts * correction.page_counts(rows, 0)).sum()),
    )


def corrected_stages(
    stages: Sequence[StageShare], rows: CitationRows, correction: PairCorrection
) -> list[StageShare]:
    """Correct each group's share of the stages."""
    if correction.model.is_plain:
        return [corrected_stage(stage, correction) for stage in stages]
    masks = stage_masks(rows)
    return [_stage_by_parts(stage, rows, masks[stage.stage], correction) for stage in stages]


def _stage_by_parts(
    stage: StageShare, rows: CitationRows, mask: Bools, correction: PairCorrection
) -> StageShare:
    """Correct a group's share of one stage."""
    amount = rows.weight * mask
    share = weighted_share(correction.with_membership(rows), amount)
    if np.isnan(share.value):
        return stage
    value, is_first = 100 * share.value, stage.group == correction.a
    around = plain_spread(rows, value, 100 * share.influence, support=mask)
    low, high = around.low, around.high
    if stage.value in (0.0, 100.0):
        # All labels are alike, and do not scatter: the ends are those of the labels, stretched.
        stretch = float(correction.stretches(rows)[mask].max())
        reaches = [stage.low - stage.value, stage.high - stage.value]
        if not is_first:
            reaches = [-reaches[1], -reaches[0]]
        low, high = value + stretch * reaches[0], value + stretch * reaches[1]
    rate_error = correction.share_error(correction.totals(rows, 100 * amount / amount.sum()))
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
    """Correct the parts of a difference of shares."""
    if correction.model.is_plain or not funnel:
        return [corrected_part(part, correction) for part in funnel]
    support = rows.is_retrieved | rows.is_cited
    terms = {term.name: term for term in funnel_terms(correction.with_membership(rows))}
    cell_points = _cell_points(rows, correction)
    corrected = []
    for part in funnel:
        term = terms[part.name]
        around = plain_spread(rows, term.points, term.influence, support=support)
        gap = Gap(value=term.points, low=around.low, high=around.high, error=np.nan, p=around.p)
        gap = gap_with_rate_error(gap, correction.share_error(np.array(cell_points[part.name])))
        corrected.append(replace(part, value=gap.value, low=gap.low, high=gap.high, p=gap.p))
    return corrected


def _cell_points(rows: CitationRows, correction: PairCorrection) -> dict[str, list[float]]:
    """Return what the pages of each part and label add to each term of the funnel."""
    cells = correction.cells(rows)
    points = dict[str, list[float]]()
    for cell in range(2 * len(correction.model.parts)):
        of_cell = replace(rows, membership=(cells == cell).astype(np.float64))
        for term in funnel_terms(of_cell):
            points.setdefault(term.name, []).append(term.points)
    return points
