"""What can be said of the units at hand, such as these domains, where their kind stays open."""

from __future__ import annotations

import numpy as np

from ranktilt.citing.infer import effective_units_of_sides, exchanged_p, questions_alone
from ranktilt.citing.prepare import CitationInputs
from ranktilt.citing.questions import QUESTIONS
from ranktilt.citing.result import CitationEffect, TheseUnits, UnitShare

_SHOWN = 2
"""Units without which the ratio is given: a ratio that rests on two domains is often of these."""


def these_units(
    effect: CitationEffect, inputs: CitationInputs, *, resamples: int, seed: int
) -> TheseUnits:
    """Return the interval of an effect for further questions about the same units.

    With it come the largest units of the side that has fewer, the effect without each, and the p
    of labels that are exchanged between units of one size: a kind of few large units may only be
    cited as large ones are.
    """
    question = QUESTIONS[effect.question]
    rows = inputs.pair_rows(effect.a, effect.b)
    estimate = question.estimate(rows)
    of_a, of_b = effective_units_of_sides(rows, estimate)
    support = estimate.support_a if of_a <= of_b else estimate.support_b
    totals = np.bincount(rows.cluster, weights=support)
    names = inputs.unit_names(effect.a, effect.b)
    largest = []
    by_size = np.argsort(-totals, kind="stable")
    for number in by_size[totals[by_size] > 0][:_SHOWN].tolist():
        without = question.estimate(rows.select(rows.cluster != number))
        share = float(totals[number] / totals.sum())
        largest.append(UnitShare(name=names[number], share=share, value_without=without.value))
    alone = questions_alone(rows, estimate)
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
