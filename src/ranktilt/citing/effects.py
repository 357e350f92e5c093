"""Every question of every pair of groups, with its interval and corrected p."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ranktilt.citing.infer import FEWEST_UNITS, Spread, spread
from ranktilt.citing.prepare import CitationInputs
from ranktilt.citing.questions import QuestionKey, answerable
from ranktilt.citing.result import CitationEffect
from ranktilt.citing.these_units import these_units
from ranktilt.measures.citations.base import CitationEstimate
from ranktilt.statistics.correction import correct


@dataclass(frozen=True, kw_only=True)
class Exchanges:
    """How labels are exchanged, and how p-values are corrected."""

    resamples: int
    seed: int
    correction: str


def citation_effects(
    inputs: CitationInputs, pairs: Sequence[tuple[str, str]], exchanges: Exchanges
) -> list[CitationEffect]:
    """Return the effects of all pairs, the primary question of every pair first."""
    effects = []
    for pair in pairs:
        rows = inputs.pair_rows(*pair)
        for question in answerable(rows, has_words=inputs.has_words):
            estimate = question.estimate(rows)
            around = spread(rows, estimate, resamples=exchanges.resamples, seed=exchanges.seed)
            effects.append(_effect(question.key, pair, estimate, around))
    first = effects[0].question
    primary = _corrected(
        [effect for effect in effects if effect.question == first], exchanges.correction
    )
    others = _corrected(
        [effect for effect in effects if effect.question != first], exchanges.correction
    )
    return [*(_with_these_units(effect, inputs, exchanges) for effect in primary), *others]


def _effect(
    question: QuestionKey, pair: tuple[str, str], estimate: CitationEstimate, around: Spread
) -> CitationEffect:
    return CitationEffect(
        question=question,
        a=pair[0],
        b=pair[1],
        value=estimate.value,
        value_a=estimate.value_a,
        value_b=estimate.value_b,
        scale=estimate.scale,
        neutral=estimate.neutral,
        low=around.low,
        high=around.high,
        error=around.error,
        p=around.p,
        p_corrected=np.nan,
        exchange_p=around.exchange_p,
        two_way_p=around.two_way_p,
        effective_units=around.effective_units,
        effective_questions=around.effective_questions,
        questions=around.questions,
        citations_a=int(estimate.citations_a),
        citations_b=int(estimate.citations_b),
        family_size=1,
    )


def _corrected(family: Sequence[CitationEffect], correction: str) -> list[CitationEffect]:
    """Correct the p-values of effects that are tested together."""
    ps = correct([effect.p for effect in family], correction).tolist()
    return [
        replace(effect, p_corrected=p, family_size=len(family))
        for effect, p in zip(family, ps, strict=True)
    ]


def _with_these_units(
    effect: CitationEffect, inputs: CitationInputs, exchanges: Exchanges
) -> CitationEffect:
    """Add what can be said of these units alone, where their kind stays open."""
    if effect.effective_units >= FEWEST_UNITS:
        return effect
    these = these_units(effect, inputs, resamples=exchanges.resamples, seed=exchanges.seed)
    return replace(effect, these_units=these)
