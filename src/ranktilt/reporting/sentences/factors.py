"""Effects of factors in words: what moves each ranker, and what does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ranktilt.errors import join_words
from ranktilt.explaining.factors.result import (
    HEAD_TO_HEAD,
    PRIMARY,
    SOURCE,
    FactorEffect,
    FactorEffects,
    SourceEffect,
)
from ranktilt.measures.printing import signed
from ranktilt.reporting.sentences.findings import Finding, first_of, ranked
from ranktilt.reporting.sentences.variation import variation_words

_SMALL = 0.05
"""Ranks that are printed as none."""


def factor_findings(effects: FactorEffects) -> tuple[Finding, ...]:
    """Return what moves each ranker and what does not, the largest effect first."""
    return ranked(_finding(effects, ranker) for ranker in effects.rankers)


def factor_sentences(effects: FactorEffects) -> tuple[str, ...]:
    """Say what moves each ranker, and what does not."""
    return tuple(finding.sentence for finding in factor_findings(effects))


def factor_headline(effects: FactorEffects) -> str:
    """Say what moves the ranker with the largest effect."""
    return next(iter(factor_sentences(effects)), "nothing was compared")


def leading(effects: FactorEffects) -> Finding:
    """Return the finding that leads."""
    return first_of(factor_findings(effects), nothing="nothing was compared.")


def _finding(effects: FactorEffects, ranker: str) -> Finding:
    rows = effects.of(PRIMARY, ranker)
    together = effects.together(ranker)
    sizes = [abs(row.value) for row in rows if row.shown]
    if together is not None and (together.low > 0 or together.high < 0):
        sizes.append(abs(together.value))
    sentence = _sentence(effects, ranker)
    if sizes:
        return Finding(kind="favours", sentence=sentence, size=max(sizes), run=ranker)
    variation = effects.variations.get(ranker)
    if variation is not None and not variation.enough:
        nothing = (
            f"{ranker}: nothing is shown: {variation_words(variation)}, so that no factor could move a "
            "document"
        )
        return Finding(kind="inconclusive", sentence=nothing, run=ranker)
    is_still = all(row.is_idle for row in rows)
    return Finding(kind="level" if is_still else "inconclusive", sentence=sentence, run=ranker)


def _sentence(effects: FactorEffects, ranker: str) -> str:
    rows = effects.of(PRIMARY, ranker)
    mains = sorted((row for row in rows if not row.interaction), key=lambda row: -abs(row.value))
    together = effects.together(ranker)
    sentence = f"{ranker}: {_movers(mains)}"
    if together is not None:
        sentence = _source_sentence(together, mains)
    clauses = [", ".join(_interactions(rows)), _beyond_ranks(effects, ranker, mains)]
    return "; ".join([sentence, *filter(None, clauses)])


def _beyond_ranks(effects: FactorEffects, ranker: str, mains: Sequence[FactorEffect]) -> str:
    """Name factors that surely move no ranks, but decide which version comes first."""
    known = {row.effect for row in mains if row.shown}
    effects_beyond = [
        f"{row.effect} {_number(row)} %"
        for row in effects.of(HEAD_TO_HEAD, ranker)
        if row.shown and not row.interaction and row.effect not in known
    ]
    return f"head-to-head shows more: {', '.join(effects_beyond)}" if effects_beyond else ""


def _number(row: FactorEffect | SourceEffect) -> str:
    return f"{signed(row.value)} [{signed(row.low)}, {signed(row.high)}]"


def _source_sentence(together: SourceEffect, mains: Sequence[FactorEffect]) -> str:
    """Split the gap of model text.

    ``of x's +8.1 ranks for model text, +6.0 [4.1, 7.9] go with length, …``
    """
    within = [row for row in mains if row.effect in together.factors and row.effect != SOURCE]
    names = [(row, row.effect) for row in within]
    names += [(row, "source itself") for row in mains if row.effect == SOURCE]
    shares = [f"{_number(row)} with {name}" for row, name in names]
    if shares:
        first, name = names[0]
        shares[0] = f"{_number(first)} go with {name}"
    others = [row for row in mains if row.effect not in together.factors]
    end = f"; beside it, {_movers(others)}" if others else ""
    split = ", ".join(shares)
    if together.low <= 0 <= together.high:
        return (
            f"{together.ranker} shows no effect of model text ({_number(together)} ranks): "
            f"{split}{end}"
        )
    return f"of {together.ranker}'s {signed(together.value)} ranks for model text, {split}{end}"


def _movers(mains: Sequence[FactorEffect]) -> str:
    """Name the factors that move a version, those that show no effect, and idle ones."""
    clauses = []
    if moving := [row for row in mains if row.shown]:
        first, *others = moving
        moves = [f"{row.effect} by {_number(row)}" for row in others]
        clauses.append(
            join_words([f"{first.effect} moves a text by {_number(first)} ranks", *moves])
        )
    idle = [row.effect for row in mains if row.is_idle]
    if not_shown := [row for row in mains if not row.shown and row.effect not in idle]:
        clauses.append(_not_shown(not_shown))
    if idle:
        verb = "changes" if len(idle) == 1 else "change"
        clauses.append(f"{join_words(idle)} {verb} no rank")
    return "; ".join(clauses)


def _not_shown(rows: Sequence[FactorEffect]) -> str:
    detectable = max(row.detectable for row in rows)
    limit = f" (detectable: {detectable:.1f} ranks)" if detectable >= _SMALL else ""
    return f"no effect of {join_words([row.effect for row in rows], 'or')} is shown{limit}"


def _interactions(rows: Sequence[FactorEffect]) -> Iterator[str]:
    for row in rows:
        if row.interaction and row.shown:
            yield f"{row.effect} {_number(row)}"


def derived(effects: FactorEffects) -> dict[str, Any]:
    """Return what the file of effects of factors says in words."""
    return {"headline": factor_headline(effects), "sentences": factor_sentences(effects)}
