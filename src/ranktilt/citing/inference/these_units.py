"""What can be said about the units of an audit, such as these domains, if they are few.

An audit compares how often answers cite pages of two groups, a and b. A *unit* is pages that are
labelled together, such as those of a domain. The *effective* number of units is smaller than their
number if some hold many more pages than others. With fewer than ten effective units in a group, an
audit does not say whether all pages of its *kind*, such as AI pages, are favoured. It still says
how these units would be cited in further questions: with an interval over questions alone, and
without each of the two largest units, on which the value often depends.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from ranktilt.auditing.label_errors.model import LabelModel
from ranktilt.citing.effect import QUESTIONS, CitationEffect, TheseUnits, UnitShare
from ranktilt.citing.inference.exchange import exchanged_p
from ranktilt.citing.inference.further_questions import QuestionsInterval, interval_over_questions
from ranktilt.citing.inference.infer import effective_units_by_group
from ranktilt.citing.label_errors.correct import PairCorrection, corrected_rates, score_interval
from ranktilt.citing.prepare import CitationInputs
from ranktilt.measures.citations.base import CitationEstimate, CitationRows

_LARGEST_UNITS = 2
"""Number of large units without each of which the effect is computed again."""


def effect_on_these_units(
    effect: CitationEffect,
    inputs: CitationInputs,
    model: LabelModel | None = None,
    *,
    resamples: int,
    seed: int,
) -> TheseUnits:
    """Return the interval of an effect for further questions about the same units.

    The result also has the largest units of the group that has fewer, and the p of a test that
    exchanges labels only between units of about the same size: a group of few large units may be
    cited more just because large units are.

    Parameters
    ----------
    effect : CitationEffect
        The effect, over other questions and units.
    inputs : CitationInputs
        The pages of answers with their labels.
    model : LabelModel, optional
        How often labels are wrong; interval and values are corrected for it. The p is that of the
        labels as they are, and stays valid if errors do not depend on the unit.
    resamples, seed : int
        Exchanges of labels; random seed.
    """
    rows = inputs.pair_rows(effect.a, effect.b)
    estimate = QUESTIONS[effect.question].estimate(rows)
    units_a, units_b = effective_units_by_group(rows, estimate)
    is_a_thinner = units_a <= units_b
    support = estimate.support_a if is_a_thinner else estimate.support_b
    unit_totals = np.bincount(rows.cluster, weights=support)
    unit_names = inputs.unit_names(effect.a, effect.b)
    largest = []
    by_size = np.argsort(-unit_totals, kind="stable")
    for unit in by_size[unit_totals[by_size] > 0][:_LARGEST_UNITS].tolist():
        value_without = _value(effect, rows.select(rows.cluster != unit), model)
        share = float(unit_totals[unit] / unit_totals.sum())
        largest.append(UnitShare(name=unit_names[unit], share=share, value_without=value_without))
    interval = _interval_over_questions(effect, rows, estimate, model)
    p_within_sizes = exchanged_p(rows, estimate, resamples=resamples, seed=seed, within_sizes=True)
    return TheseUnits(
        low=interval.low,
        high=interval.high,
        score_low=interval.score_low,
        score_high=interval.score_high,
        thinner=effect.a if is_a_thinner else effect.b,
        largest=tuple(largest),
        exchange_p_within_sizes=p_within_sizes,
    )


def _value(effect: CitationEffect, rows: CitationRows, model: LabelModel | None) -> float:
    """Return the value of an effect's question for other rows, corrected if there is a model."""
    estimate = QUESTIONS[effect.question].estimate(rows)
    if model is None:
        return estimate.value
    correction = PairCorrection(model=model, a=effect.a)
    if estimate.scale == "share":
        corrected = QUESTIONS[effect.question].estimate(correction.with_membership(rows))
        return float(np.clip(corrected.value, 0.0, 100.0))
    return corrected_rates(effect.question, rows, correction).ratio


def _interval_over_questions(
    effect: CitationEffect,
    rows: CitationRows,
    estimate: CitationEstimate,
    model: LabelModel | None,
) -> QuestionsInterval:
    """Return the interval for further questions about the same units.

    With a model of wrong labels it is corrected. A share is then computed with memberships, which
    say how much of a page counts for a group, and a ratio with corrected rates. The second
    interval, for groups with fewer than ten citations, is left out.
    """
    if model is None:
        return interval_over_questions(rows, estimate)
    correction = PairCorrection(model=model, a=effect.a)
    if estimate.scale == "share":
        corrected = QUESTIONS[effect.question].estimate(correction.with_membership(rows))
        interval = interval_over_questions(rows, corrected)
        low, high = np.clip([interval.low, interval.high], 0.0, 100.0).tolist()
    else:
        rates = corrected_rates(effect.question, rows, correction)
        question_support = rows.per_question(estimate.support_a + estimate.support_b)
        freedom = max(int((question_support > 0).sum()) - 1, 1)
        critical = float(special.stdtrit(freedom, 0.975))
        low, high = score_interval(rates, rates.error_over_questions, critical)
    return QuestionsInterval(low=low, high=high, score_low=np.nan, score_high=np.nan)
