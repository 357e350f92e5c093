"""Effects of factors in words: what moves each ranker, and what does not."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ranktilt.errors import join_words
from ranktilt.explaining.factors.result import (
    CITED,
    CITED_FIRST,
    HEAD_TO_HEAD,
    SOURCE,
    UNITS,
    FactorEffect,
    FactorEffects,
    SourceEffect,
)
from ranktilt.generation.versions.design import HIGH
from ranktilt.measures.printing import rounded, signed
from ranktilt.reporting.sentences.explaining.treatments import is_named_by_level, treatment
from ranktilt.reporting.sentences.findings import Finding, first_finding, sort_findings
from ranktilt.reporting.sentences.variation import variation_words

_PRINTED_AS_NONE = 0.05
"""Ranks, or points, that are printed as none."""
_MOST_NAMED = 3
"""Most effects that a sentence names."""


@dataclass(frozen=True, kw_only=True)
class OutcomeWords:
    """How sentences speak of what factors do to an estimand."""

    gains: str
    """What a treatment does that lifts a text; ``{}`` is the text, or ``it``."""
    costs: str
    unchanged: str
    """What a treatment leaves alone that never changes anything."""
    compared: str
    """What was done with and without each change."""
    move: str
    """A difference that could be found."""


_RANKS = OutcomeWords(
    gains="lifts {} by",
    costs="costs {}",
    unchanged="no rank",
    compared="the same documents were ranked",
    move="a move",
)
_CITATIONS = OutcomeWords(
    gains="makes answers cite {} more often, by",
    costs="makes answers cite {} less often, by",
    unchanged="no citation",
    compared="answers read the same documents",
    move="a difference",
)


def _words(estimand: str) -> OutcomeWords:
    """Return the words of an estimand."""
    return _CITATIONS if estimand in (CITED, CITED_FIRST) else _RANKS


def factor_findings(effects: FactorEffects) -> tuple[Finding, ...]:
    """Return what moves each ranker and what does not, the largest effect first."""
    return sort_findings(_finding(effects, ranker) for ranker in effects.rankers)


def factor_sentences(effects: FactorEffects) -> tuple[str, ...]:
    """Say what moves each ranker, and what does not."""
    return tuple(finding.sentence for finding in factor_findings(effects))


def factor_headline(effects: FactorEffects) -> str:
    """Say what the largest effect does to a text, under the ranker that has it."""
    findings = factor_findings(effects)
    if not findings:
        return "nothing was compared"
    first = findings[0]
    if first.kind != "favours":
        return first.sentence
    together = effects.together(first.run)
    mains = _main_effects(effects, first.run)
    if together is not None and _is_shown(together):
        largest = [row for row in mains if row.is_shown and row.effect in together.factors][:1]
        parts = [f"{_number(row)} of this go with {row.effect}" for row in largest]
        return "; ".join([_model_text(together), *parts])
    movers = [row for row in mains if row.is_shown]
    sentence = _moving_clause(_moves(effects, movers[:1]), first.run)
    count = len(_main_effects(effects))
    return f"{sentence}, the largest of {count} effects" if count > 1 else sentence


def meaning_sentence(effects: FactorEffects) -> str:
    """Say what the effects mean to who reads nothing else; empty where nothing was compared."""
    rows, words = _main_effects(effects), _words(effects.primary)
    names = list(dict.fromkeys(row.effect for row in rows if row.is_shown))
    if names:
        differing = join_words(names[:_MOST_NAMED])
        return (
            f"These are causes: {words.compared} with and without each change. Sides whose texts "
            f"differ in {differing} look favoured or pushed down, whoever wrote them."
        )
    detectable = max((row.detectable for row in rows if row.detectable > 0), default=0.0)
    if detectable < _PRINTED_AS_NONE:
        return ""
    unit = UNITS[effects.primary].unit
    return (
        f"No change is shown to move a text. You would find {words.move} of {detectable:.1f} "
        f"{unit} four times in five, a smaller one less often."
    )


def leading_finding(effects: FactorEffects) -> Finding:
    """Return the finding that leads, in fewer words."""
    first = first_finding(factor_findings(effects))
    return replace(first, sentence=f"{factor_headline(effects).removesuffix('.')}.")


def _main_effects(effects: FactorEffects, ranker: str | None = None) -> list[FactorEffect]:
    """Return the effects of single factors on the first estimand, the largest first."""
    return by_size(row for row in effects.of(effects.primary, ranker) if not row.interaction)


def _is_shown(together: SourceEffect) -> bool:
    """Tell whether the interval excludes 0."""
    return together.low > 0 or together.high < 0


def _finding(effects: FactorEffects, ranker: str) -> Finding:
    """Return what an experiment says of one ranker."""
    rows = effects.of(effects.primary, ranker)
    together = effects.together(ranker)
    sizes = [abs(row.value) for row in rows if row.is_shown]
    if together is not None and _is_shown(together):
        sizes.append(abs(together.value))
    sentence = _sentence(effects, ranker)
    if sizes:
        return Finding(kind="favours", sentence=sentence, size=max(sizes), run=ranker)
    variation = effects.variations.get(ranker)
    if variation is not None and not variation.enough:
        nothing = (
            f"{ranker}: nothing is shown, because {variation_words(variation)}, so no factor could "
            "move a document"
        )
        return Finding(kind="inconclusive", sentence=nothing, run=ranker)
    is_still = all(row.is_idle for row in rows)
    return Finding(kind="level" if is_still else "inconclusive", sentence=sentence, run=ranker)


def _sentence(effects: FactorEffects, ranker: str) -> str:
    """Say which factors move ranks, and what a model's text gains."""
    rows = effects.of(effects.primary, ranker)
    mains = _main_effects(effects, ranker)
    together = effects.together(ranker)
    sentence = _movers(effects, mains, ranker)
    if together is not None:
        sentence = _source_sentence(effects, together, mains)
    clauses = [", ".join(_interactions(rows)), _beyond_ranks(effects, ranker, mains)]
    return "; ".join([sentence, *filter(None, clauses)])


def by_size(rows: Iterable[FactorEffect]) -> list[FactorEffect]:
    """Sort effects, the largest first; those that are undefined come last."""
    return sorted(rows, key=lambda row: 0.0 if math.isnan(row.value) else -abs(row.value))


def _treatments(effects: FactorEffects, rows: Iterable[FactorEffect]) -> list[str]:
    """Name the treatments of some effects."""
    factors = {factor.name: factor for factor in effects.factors}
    return [treatment(factors[row.effect]) for row in rows]


def _beyond_ranks(effects: FactorEffects, ranker: str, mains: Sequence[FactorEffect]) -> str:
    """Name treatments that are shown beyond ranks: which version comes first, or is cited first."""
    if effects.of_citations:
        return _first_citations(effects, ranker)
    known = {row.effect for row in mains if row.is_shown}
    rows = [
        row
        for row in by_size(effects.of(HEAD_TO_HEAD, ranker))
        if row.is_shown and not row.interaction and row.effect not in known
    ]
    parts = [
        f"{words} {_number(row)}"
        for words, row in zip(_treatments(effects, rows), rows, strict=True)
    ]
    return f"head-to-head shows more: {', '.join(parts)}" if parts else ""


def _first_citations(effects: FactorEffects, ranker: str) -> str:
    """Say which treatments are shown to change what is cited first."""
    rows = [
        row
        for row in by_size(effects.of(CITED_FIRST, ranker))
        if row.is_shown and not row.interaction
    ]
    treatments = _treatments(effects, rows)
    parts = [f"{words} {_number(row)}" for words, row in zip(treatments, rows, strict=True)]
    return (
        f"cited first: {', '.join(parts)}" if parts else "of what is cited first nothing is shown"
    )


def _number(row: FactorEffect | SourceEffect) -> str:
    """Print an effect with the unit of its estimand: ``+3.4 ranks [+2.7, +4.1]``."""
    unit = UNITS[row.estimand].unit
    return f"{signed(row.value)} {unit} [{signed(row.low)}, {signed(row.high)}]"


def _source_sentence(
    effects: FactorEffects, together: SourceEffect, mains: Sequence[FactorEffect]
) -> str:
    """Split the gap of model text.

    ``x lifts model text by 8.1 ranks [7.0, 9.2]: +6.0 ranks [+4.1, +7.9] go with length (shorter)``
    """
    levels = {factor.name: factor.high for factor in effects.factors}
    within = [row for row in mains if row.effect in together.factors and row.effect != SOURCE]
    names = []
    for row in within:
        level = levels[row.effect]
        names.append((row, row.effect if level == HIGH else f"{row.effect} ({level})"))
    names += [(row, "source itself") for row in mains if row.effect == SOURCE]
    shares = [f"{_number(row)} with {name}" for row, name in names]
    if shares:
        first, name = names[0]
        shares[0] = f"{_number(first)} go with {name}"
    others = [row for row in mains if row.effect not in together.factors]
    end = f"; {_movers(effects, others)}" if others else ""
    split = ", ".join(shares)
    if together.low <= 0 <= together.high:
        return (
            f"{together.ranker} shows no effect of model text ({_number(together)}): {split}{end}"
        )
    return f"{_model_text(together)}: {split}{end}"


def _model_text(together: SourceEffect) -> str:
    """Say what a text by a model gains or loses: ``x lifts model text by 8.1 ranks [4.1, 7.9]``."""
    is_down, is_cited = together.value < 0, together.estimand == CITED
    verb = "pushes model text down by" if is_down else "lifts model text by"
    if is_cited:
        verb = f"cites model text {'less' if is_down else 'more'} often, by"
    return f"{together.ranker} {verb} {_size(together)}"


def _movers(effects: FactorEffects, mains: Sequence[FactorEffect], ranker: str = "") -> str:
    """Say what each treatment costs or gains a text, which show no effect, and which are idle.

    Without a `ranker` the sentence has named it already.
    """
    clauses = []
    if moving := [row for row in mains if row.is_shown]:
        clauses.append(_moving_clause(_moves(effects, moving), ranker))
    idle = [row for row in mains if row.is_idle and not row.is_shown]
    not_shown = [row for row in mains if not row.is_shown and not row.is_idle]
    if not_shown:
        clauses.append(_not_shown(effects, not_shown))
    if idle:
        names = join_words(_treatments(effects, idle))
        verb = "changes" if len(idle) == 1 else "change"
        clauses.append(f"{names} {verb} {_words(effects.primary).unchanged}")
    sentence = "; ".join(clauses)
    return sentence if moving or not ranker else f"{ranker}: {sentence}"


def _moving_clause(moves: Sequence[str], ranker: str) -> str:
    """Join what treatments do, the first with its ranker."""
    first, *others = moves
    if not ranker:
        return join_words([first, *others])
    # A treatment in words begins the sentence; FACTOR=LEVEL stays as its user wrote it.
    if "=" not in first.partition(" ")[0]:
        first = first[:1].upper() + first[1:]
    return join_words([f"{first} under {ranker}", *others])


def _moves(effects: FactorEffects, rows: Sequence[FactorEffect]) -> list[str]:
    """Say what each treatment does: ``halving a text costs it 16.7 ranks [15.0, 18.4]``."""
    factors = {factor.name: factor for factor in effects.factors}
    clauses = []
    for row in rows:
        factor = factors[row.effect]
        text = "a text" if is_named_by_level(factor) else "it"
        words = _words(row.estimand)
        verb = (words.costs if row.value < 0 else words.gains).format(text)
        clauses.append(f"{treatment(factor)} {verb} {_size(row)}")
    return clauses


def _size(effect: FactorEffect | SourceEffect) -> str:
    """Print the size of an effect, whose direction the verb says."""
    ends = (effect.value, effect.low, effect.high)
    if effect.value < 0:
        ends = (-effect.value, -effect.high, -effect.low)
    value, low, high = (rounded(number).replace("-", "−") for number in ends)
    return f"{value} {UNITS[effect.estimand].unit} [{low}, {high}]"


def _not_shown(effects: FactorEffects, rows: Sequence[FactorEffect]) -> str:
    """Say that no effect is shown, and which ones could have been."""
    detectable = max(row.detectable for row in rows)
    unit = UNITS[effects.primary].unit
    limit = f" (detectable: {detectable:.1f} {unit})" if detectable >= _PRINTED_AS_NONE else ""
    return f"no effect of {join_words(_treatments(effects, rows), 'or')} is shown{limit}"


def _interactions(rows: Sequence[FactorEffect]) -> Iterator[str]:
    """Yield the interactions that are shown."""
    for row in by_size(rows):
        if row.interaction and row.is_shown:
            yield f"{row.effect} {_number(row)}"


def derived_words(effects: FactorEffects) -> dict[str, Any]:
    """Return what the file of effects of factors says in words."""
    return {"headline": factor_headline(effects), "sentences": factor_sentences(effects)}
