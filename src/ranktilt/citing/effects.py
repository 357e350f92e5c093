"""Every question of every pair of groups, with its interval and corrected p.

Answers of an engine cite pages of several groups. A *pair* is two groups to compare, a and b, and a
*question* a way to compare them, such as by their citation rates. The *primary* question is the
first that the answers allow; it decides the verdict. A *unit* is pages that are labelled together,
such as those of a domain. An *estimate* is the value of a question; its *spread* says how far it
would differ for other queries and other units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ranktilt.auditing.label_errors.model import LabelModel
from ranktilt.citing.effect import CitationEffect, QuestionKey, answerable_questions
from ranktilt.citing.inference.infer import FEWEST_UNITS, Spread, estimate_spread
from ranktilt.citing.inference.these_units import effect_on_these_units
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
from ranktilt.measures.citations.base import CitationEstimate, CitationRows
from ranktilt.statistics.correction import correct


@dataclass(frozen=True, kw_only=True)
class Exchanges:
    """How labels of units are exchanged for a test, and how p-values are corrected."""

    resamples: int
    """Number of exchanges."""
    seed: int
    """Random seed of the exchanges."""
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
        for question in answerable_questions(rows, has_words=inputs.has_words):
            if model is not None and question.key in UNCORRECTED:
                continue
            estimate = question.estimate(rows)
            spread = estimate_spread(
                rows, estimate, resamples=exchanges.resamples, seed=exchanges.seed
            )
            effect = _effect(question.key, pair, estimate, spread)
            if model is not None:
                correction = PairCorrection(model=model, a=effect.a)
                effect = _corrected_for_labels(
                    effect, rows, estimate, spread, correction=correction, exchanges=exchanges
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
    question: QuestionKey, pair: tuple[str, str], estimate: CitationEstimate, spread: Spread
) -> CitationEffect:
    """Join an estimate and its spread into an effect, whose p is not corrected yet."""
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
        low=spread.low,
        high=spread.high,
        error=spread.error,
        p=spread.p,
        p_corrected=np.nan,
        exchange_p=spread.exchange_p,
        two_way_p=spread.two_way_p,
        effective_units=spread.effective_units,
        effective_questions=spread.effective_questions,
        questions=spread.questions,
        citations_a=int(estimate.citations_a),
        citations_b=int(estimate.citations_b),
        family_size=1,
    )


def _corrected_for_labels(
    effect: CitationEffect,
    rows: CitationRows,
    estimate: CitationEstimate,
    spread: Spread,
    *,
    correction: PairCorrection,
    exchanges: Exchanges,
) -> CitationEffect:
    """Correct an effect for wrong labels, and keep its values by the labels as they are.

    `estimate` and `spread` are those by the labels as they are. `rows` are the pages of both
    groups.
    """
    is_plain = correction.model.is_plain
    question, resamples, seed = effect.question, exchanges.resamples, exchanges.seed
    if estimate.scale == "share" and is_plain:
        estimate, spread = corrected_share(estimate, spread, correction)
    elif estimate.scale == "share":
        estimate, spread = share_by_parts(
            question, rows, correction, resamples=resamples, seed=seed
        )
    else:
        if not is_plain:
            # If labels of some pages are wrong more often, and these are cited more, labels may
            # show a preference where there is none. So the p of exchanged labels is corrected too.
            p = rates_exchanged_p(question, rows, correction, resamples=resamples, seed=seed)
            spread = replace(spread, exchange_p=p)
        rates = corrected_rates(effect.question, rows, correction)
        spread = rate_spread(rates, spread)
        value_a, value_b = np.clip(rates.rates, 0.0, 1.0).tolist()
        estimate = replace(estimate, value=rates.ratio, value_a=value_a, value_b=value_b)
    corrected = _effect(effect.question, (effect.a, effect.b), estimate, spread)
    return replace(corrected, observed=observed_citations(effect))


def corrected_effects(family: Sequence[CitationEffect], correction: str) -> list[CitationEffect]:
    """Correct the p-values of effects that are tested together, by ``holm`` or ``bonferroni``."""
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
    """Add the effect on these units alone, if they are too few for a verdict about their kind."""
    if effect.effective_units >= FEWEST_UNITS:
        return effect
    these = effect_on_these_units(
        effect, inputs, model, resamples=exchanges.resamples, seed=exchanges.seed
    )
    return replace(effect, these_units=these)
