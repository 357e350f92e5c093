"""What can be said of the units at hand, such as these domains, where their kind stays open."""

from __future__ import annotations

import numpy as np
from scipy import special

from ranktilt.auditing.label_errors.model import LabelModel
from ranktilt.citing.infer import (
    QuestionsAlone,
    effective_units_of_sides,
    exchanged_p,
    questions_alone,
)
from ranktilt.citing.label_errors import PairCorrection, corrected_rates, score_interval
from ranktilt.citing.prepare import CitationInputs
from ranktilt.citing.questions import QUESTIONS
from ranktilt.citing.result import CitationEffect, TheseUnits, UnitShare
from ranktilt.measures.citations.base import CitationEstimate, CitationRows

_SHOWN = 2
"""Units without which the ratio is given: a ratio that rests on two domains is often of these."""


def these_units(
    effect: CitationEffect,
    inputs: CitationInputs,
    model: LabelModel | None = None,
    *,
    resamples: int,
    seed: int,
) -> TheseUnits:
    """Return the interval of an effect for further questions about the same units.

    With it come the largest units of the side that has fewer, the effect without each, and the p
    of labels that are exchanged between units of one size: a kind of few large units may only be
    cited as large ones are. Effects are corrected by the error rates of a `model`; the p is that of
    the labels as they are, which errors that no unit decides leave valid.
    """
    rows = inputs.pair_rows(effect.a, effect.b)
    estimate = QUESTIONS[effect.question].estimate(rows)
    of_a, of_b = effective_units_of_sides(rows, estimate)
    support = estimate.support_a if of_a <= of_b else estimate.support_b
    totals = np.bincount(rows.cluster, weights=support)
    names = inputs.unit_names(effect.a, effect.b)
    largest = []
    by_size = np.argsort(-totals, kind="stable")
    for number in by_size[totals[by_size] > 0][:_SHOWN].tolist():
        without = _value(effect, rows.select(rows.cluster != number), model)
        share = float(totals[number] / totals.sum())
        largest.append(UnitShare(name=names[number], share=share, value_without=without))
    alone = _alone(effect, rows, estimate, model)
    p_within_sizes = exchanged_p(rows, estimate, resamples=resamples, seed=seed, within_sizes=True)
    return TheseUnits(
        low=alone.low,
        high=alone.high,
        score_low=alone.score_low,
        score_high=alone.score_high,
        thinner=effect.a if of_a <= of_b else effect.b,
        largest=tuple(largest),
        exchange_p_within_sizes=p_within_sizes,
    )


def _value(effect: CitationEffect, rows: CitationRows, model: LabelModel | None) -> float:
    """Return the value of an effect's question among other rows."""
    estimate = QUESTIONS[effect.question].estimate(rows)
    if model is None:
        return estimate.value
    correction = PairCorrection(model=model, a=effect.a)
    if estimate.scale == "share":
        shares = np.array([estimate.value_a, estimate.value_b])
        return float(np.clip((correction.counts @ shares)[0], 0.0, 100.0))
    return corrected_rates(effect.question, rows, correction).ratio


def _alone(
    effect: CitationEffect,
    rows: CitationRows,
    estimate: CitationEstimate,
    model: LabelModel | None,
) -> QuestionsAlone:
    """Return the interval for further questions about the same units, corrected by a model."""
    alone = questions_alone(rows, estimate)
    if model is None:
        return alone
    correction = PairCorrection(model=model, a=effect.a)
    if estimate.scale == "share":
        ends = np.array([[alone.low, alone.high], [100 - alone.low, 100 - alone.high]])
        low, high = np.clip((correction.counts @ ends)[0], 0.0, 100.0).tolist()
    else:
        rates = corrected_rates(effect.question, rows, correction)
        supports = rows.per_question(estimate.support_a + estimate.support_b)
        critical = float(special.stdtrit(max(int((supports > 0).sum()) - 1, 1), 0.975))
        low, high = score_interval(rates, rates.error_over_questions, critical)
    return QuestionsAlone(low=low, high=high, score_low=np.nan, score_high=np.nan)
