"""Every question of every pair of groups, with its interval and corrected p."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ranktilt.auditing.label_errors.model import LabelModel
from ranktilt.citing.effect import CitationEffect
from ranktilt.citing.inference.infer import FEWEST_UNITS, Spread, spread
from ranktilt.citing.inference.these_units import these_units
from ranktilt.citing.label_errors.correct import (
    UNCORRECTED,
    PairCorrection,
    corrected_rates,
    corrected_share,
    observed_citations,
    rate_spread,
)
from ranktilt.citing.label_errors.membership import rates_exchanged_p, share_by_parts
from ranktilt.citing.prepare import CitationInputs
from ranktilt.citing.questions import QuestionKey, answerable
from ranktilt.measures.citations.base import CitationEstimate, CitationRows
from ranktilt.statistics.correction import correct


@dataclass(frozen=True, kw_only=True)
class Exchanges:
    """How labels of units are exchanged for a test, and how p-values are corrected."""

    resamples: int
    """Number of exchanges."""
    seed: int
    """Where they start."""
    correction: str
    """How p-values are corrected for many tests: ``holm`` or ``bonferroni``."""


def citation_effects(
    inputs: CitationInputs,
    pairs: Sequence[tuple[str, str]],
    exchanges: Exchanges,
    model: LabelModel | None = None,
) -> list[CitationEffect]:
    """Return the effects of all pairs, the primary question of every pair first.

    The primary question's p-values are corrected together, and those of all others together.

    Parameters
    ----------
    inputs : CitationInputs
        The pages of answers with their labels.
    pairs : sequence of (str, str)
        Groups to compare: a, and the group b that it is compared with.
    exchanges : Exchanges
        How labels are exchanged, and p-values corrected.
    model : LabelModel, optional
        How often labels are wrong. With it, effects are corrected for wrong labels, and questions
        that cannot be corrected are left out.
    """
    effects = []
    for pair in pairs:
        rows = inputs.pair_rows(*pair)
        for question in answerable(rows, has_words=inputs.has_words):
            if model is not None and question.key in UNCORRECTED:
                continue
            estimate = question.estimate(rows)
            around = spread(rows, estimate, resamples=exchanges.resamples, seed=exchanges.seed)
            effect = _effect(question.key, pair, estimate, around)
            if model is not None:
                correction = PairCorrection(model=model, a=effect.a)
                effect = _corrected_for_labels(
                    effect, rows, estimate, around, correction=correction, exchanges=exchanges
                )
            effects.append(effect)
    primary_key = effects[0].question
    primary = [effect for effect in effects if effect.question == primary_key]
    others = [effect for effect in effects if effect.question != primary_key]
    primary_effects = corrected_effects(primary, exchanges.correction)
    return [
        *(_with_these_units(effect, inputs, exchanges, model) for effect in primary_effects),
        *corrected_effects(others, exchanges.correction),
    ]


def _effect(
    question: QuestionKey, pair: tuple[str, str], estimate: CitationEstimate, around: Spread
) -> CitationEffect:
    """Put an estimate and its spread into an effect; its p is not corrected yet."""
    group_a, group_b = pair
    return CitationEffect(
        question=question,
        a=group_a,
        b=group_b,
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


def _corrected_for_labels(
    effect: CitationEffect,
    rows: CitationRows,
    estimate: CitationEstimate,
    around: Spread,
    *,
    correction: PairCorrection,
    exchanges: Exchanges,
) -> CitationEffect:
    """Correct an effect for wrong labels; `observed` is the effect by the labels as they are."""
    is_plain = correction.model.is_plain
    question, resamples, seed = effect.question, exchanges.resamples, exchanges.seed
    if estimate.scale == "share" and is_plain:
        estimate, around = corrected_share(estimate, around, correction)
    elif estimate.scale == "share":
        estimate, around = share_by_parts(
            question, rows, correction, resamples=resamples, seed=seed
        )
    else:
        if not is_plain:
            # Labels whose errors differ by parts may show a preference where there is none.
            p = rates_exchanged_p(question, rows, correction, resamples=resamples, seed=seed)
            around = replace(around, exchange_p=p)
        rates = corrected_rates(effect.question, rows, correction)
        around = rate_spread(rates, around)
        value_a, value_b = np.clip(rates.rates, 0.0, 1.0).tolist()
        estimate = replace(estimate, value=rates.ratio, value_a=value_a, value_b=value_b)
    corrected = _effect(effect.question, (effect.a, effect.b), estimate, around)
    return replace(corrected, observed=observed_citations(effect))


def corrected_effects(family: Sequence[CitationEffect], correction: str) -> list[CitationEffect]:
    """Correct the p-values of effects that are tested together."""
    ps = correct([effect.p for effect in family], correction).tolist()
    return [
        replace(effect, p_corrected=p, family_size=len(family))
        for effect, p in zip(family, ps, strict=True)
    ]


def _with_these_units(
    effect: CitationEffect,
    inputs: CitationInputs,
    exchanges: Exchanges,
    model: LabelModel | None,
) -> CitationEffect:
    """Add what can be said of these units alone, where they are too few to speak of their kind."""
    if effect.effective_units >= FEWEST_UNITS:
        return effect
    these = these_units(effect, inputs, model, resamples=exchanges.resamples, seed=exchanges.seed)
    return replace(effect, these_units=these)
