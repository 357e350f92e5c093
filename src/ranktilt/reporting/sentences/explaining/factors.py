"""Effects of factors in words: what moves each ranker, and what does not.

In an experiment, versions of one document differ in factors, such as length, each with a low and a
high level. A treatment is the change from low to high; the effect of a factor is what that does to
a text's rank, or to its citations. An idle factor never moves any version. An interaction is what
two factors do together beyond the sum of both. The factor ``source`` says whether a model wrote a
text. An estimand is what effects are computed for, such as ranks. A finding is a sentence with its
kind and size, by which findings are sorted. An effect is detectable from the size on that such an
experiment would find four times in five.
"""

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
from ranktilt.measures.printing import ends_apart, signed
from ranktilt.reporting.numbers import decimal
from ranktilt.reporting.sentences.explaining.treatments import is_named_by_level, treatment
from ranktilt.reporting.sentences.findings import (
    Finding,
    first_finding,
    sort_findings,
    variation_words,
)
from ranktilt.reporting.sentences.grammar import singular_or_plural

_SMALLEST_PRINTED = 0.05
"""Smallest number of ranks or points that is not printed as 0.0."""
_MOST_NAMED = 3
"""Most factors that a sentence names."""


@dataclass(frozen=True, kw_only=True)
class OutcomeWords:
    """Words for what factors do to an outcome: to ranks, or to citations."""

    gains: str
    """Verb of a treatment that lifts a text; ``{}`` stands for ``a text`` or ``it``."""
    costs: str
    """Verb of a treatment that lowers a text, likewise."""
    unchanged: str
    """Object of ``changes``, for a treatment that changes nothing: ``no rank``."""
    compared: str
    """Clause on what was done with and without each change."""
    move: str
    """Noun for a difference between two versions."""


_RANKS = OutcomeWords(
    gains="lifts {} by",
    costs="costs {}",
    unchanged="no rank",
    compared="the same documents were ranked",
    move="a move",
)
"""Words for effects on ranks."""
_CITATIONS = OutcomeWords(
    gains="makes answers cite {} more often, by",
    costs="makes answers cite {} less often, by",
    unchanged="no citation",
    compared="answers read the same documents",
    move="a difference",
)
"""Words for effects on citations."""


def _outcome_words(estimand: str) -> OutcomeWords:
    """Return the words for the outcome of an estimand."""
    return _CITATIONS if estimand in (CITED, CITED_FIRST) else _RANKS


def factor_findings(effects: FactorEffects) -> tuple[Finding, ...]:
    """Return what moves each ranker and what does not, the largest effect first."""
    return sort_findings(_finding(effects, ranker) for ranker in effects.rankers)


def factor_sentences(effects: FactorEffects) -> tuple[str, ...]:
    """Return the findings as sentences: what moves each ranker and what does not."""
    return tuple(finding.sentence for finding in factor_findings(effects))


def factor_headline(effects: FactorEffects) -> str:
    """Say what the largest effect does to a text, with the ranker.

    Of an experiment with texts by a model, it says what their source does, and the largest factor.
    """
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
        parts = [f"{_signed_effect(row)} of this go with {row.effect}" for row in largest]
        return "; ".join([_model_text_words(together), *parts])
    shown_effects = [row for row in mains if row.is_shown]
    sentence = _moving_clause(_moves(effects, shown_effects[:1]), first.run)
    count = len(_main_effects(effects))
    return f"{sentence}, the largest of {count} effects" if count > 1 else sentence


def meaning_sentence(effects: FactorEffects) -> str:
    """Say what the effects mean, to readers of nothing else; empty where nothing was compared."""
    rows, words = _main_effects(effects), _outcome_words(effects.primary)
    names = list(dict.fromkeys(row.effect for row in rows if row.is_shown))
    if names:
        differing = join_words(names[:_MOST_NAMED])
        return (
            f"These are causes: {words.compared} with and without each change. Sides whose texts "
            f"differ in {differing} look favoured or pushed down, whoever wrote them."
        )
    detectable = max((row.detectable for row in rows if row.detectable > 0), default=0.0)
    if detectable < _SMALLEST_PRINTED:
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
    """Return the effects of single factors on the primary estimand, the largest first.

    Those of one ranker, or of all rankers for None.
    """
    return by_size(row for row in effects.of(effects.primary, ranker) if not row.interaction)


def _is_shown(together: SourceEffect) -> bool:
    """Return whether the interval excludes 0."""
    return together.low > 0 or together.high < 0


def _finding(effects: FactorEffects, ranker: str) -> Finding:
    """Return what an experiment shows of a ranker as a finding; its size is in ranks or points."""
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
        sentence = (
            f"{ranker}: nothing is shown, because {variation_words(variation)}, so no factor could "
            "move a document"
        )
        return Finding(kind="inconclusive", sentence=sentence, run=ranker)
    is_all_idle = all(row.is_idle for row in rows)
    return Finding(kind="level" if is_all_idle else "inconclusive", sentence=sentence, run=ranker)


def _sentence(effects: FactorEffects, ranker: str) -> str:
    """Say which factors move ranks, and what a model's text gains."""
    rows = effects.of(effects.primary, ranker)
    mains = _main_effects(effects, ranker)
    together = effects.together(ranker)
    sentence = _effects_sentence(effects, mains, ranker)
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
    """Name treatments that are shown by a second estimand only, head-to-head; empty for none.

    Of citations, it is which version is cited first.
    """
    if effects.of_citations:
        return _first_citations(effects, ranker)
    known = {row.effect for row in mains if row.is_shown}
    rows = [
        row
        for row in by_size(effects.of(HEAD_TO_HEAD, ranker))
        if row.is_shown and not row.interaction and row.effect not in known
    ]
    parts = [
        f"{name} {_signed_effect(row)}"
        for name, row in zip(_treatments(effects, rows), rows, strict=True)
    ]
    return f"head-to-head shows more: {', '.join(parts)}" if parts else ""


def _first_citations(effects: FactorEffects, ranker: str) -> str:
    """Say which treatments are shown to change what is cited first."""
    rows = [
        row
        for row in by_size(effects.of(CITED_FIRST, ranker))
        if row.is_shown and not row.interaction
    ]
    if not rows:
        return "of what is cited first nothing is shown"
    treatments = _treatments(effects, rows)
    parts = [f"{name} {_signed_effect(row)}" for name, row in zip(treatments, rows, strict=True)]
    return f"cited first: {', '.join(parts)}"


def _signed_effect(row: FactorEffect | SourceEffect) -> str:
    """Print an effect with its sign and unit: ``+3.4 ranks [+2.7, +4.1]``."""
    unit = UNITS[row.estimand].unit
    return f"{signed(row.value)} {unit} [{signed(row.low)}, {signed(row.high)}]"


def _source_sentence(
    effects: FactorEffects, together: SourceEffect, mains: Sequence[FactorEffect]
) -> str:
    """Split what a text by a model gains among the factors in which such a text may differ.

    ``x lifts model text by 8.1 ranks [7.0, 9.2]: +6.0 ranks [+4.1, +7.9] go with length (shorter)``

    `together` is the effect of all these factors. Other factors follow in a clause of their own.
    """
    split = _split_words(effects, together, mains)
    others = [row for row in mains if row.effect not in together.factors]
    end = f"; {_effects_sentence(effects, others)}" if others else ""
    if together.low <= 0 <= together.high:
        return (
            f"{together.ranker} shows no effect of model text ({_signed_effect(together)}): "
            f"{split}{end}"
        )
    return f"{_model_text_words(together)}: {split}{end}"


def _split_words(
    effects: FactorEffects, together: SourceEffect, mains: Sequence[FactorEffect]
) -> str:
    """Print the effect of each factor in which a text by a model may differ, the source last."""
    levels = {factor.name: factor.high for factor in effects.factors}
    named_rows = []
    for row in mains:
        if row.effect in together.factors and row.effect != SOURCE:
            level = levels[row.effect]
            named_rows.append((row, row.effect if level == HIGH else f"{row.effect} ({level})"))
    named_rows += [(row, "source itself") for row in mains if row.effect == SOURCE]
    parts = []
    for index, (row, name) in enumerate(named_rows):
        go = "" if index else " go"
        parts.append(f"{_signed_effect(row)}{go} with {name}")
    return ", ".join(parts)


def _model_text_words(together: SourceEffect) -> str:
    """Say what a text by a model gains or loses: ``x lifts model text by 8.1 ranks [7.0, 9.2]``."""
    is_down, is_cited = together.value < 0, together.estimand == CITED
    verb = "pushes model text down by" if is_down else "lifts model text by"
    if is_cited:
        verb = f"cites model text {'less' if is_down else 'more'} often, by"
    return f"{together.ranker} {verb} {_size(together)}"


def _effects_sentence(
    effects: FactorEffects, mains: Sequence[FactorEffect], ranker: str = ""
) -> str:
    """Say what each treatment costs or gains a text, which show no effect, and which are idle.

    `ranker` is empty if the sentence has named the ranker already.
    """
    shown_effects = [row for row in mains if row.is_shown]
    idle = [row for row in mains if row.is_idle and not row.is_shown]
    not_shown = [row for row in mains if not row.is_shown and not row.is_idle]
    clauses = []
    if shown_effects:
        clauses.append(_moving_clause(_moves(effects, shown_effects), ranker))
    if not_shown:
        clauses.append(_not_shown_clause(effects, not_shown))
    if idle:
        names = join_words(_treatments(effects, idle))
        change = singular_or_plural(len(idle), "changes", "change")
        clauses.append(f"{names} {change} {_outcome_words(effects.primary).unchanged}")
    sentence = "; ".join(clauses)
    return sentence if shown_effects or not ranker else f"{ranker}: {sentence}"


def _moving_clause(moves: Sequence[str], ranker: str) -> str:
    """Join what treatments do; the ranker is named after the first, or not if it is empty."""
    first, *others = moves
    if not ranker:
        return join_words([first, *others])
    # A treatment begins the sentence with a capital, but for FACTOR=LEVEL, which the user named.
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
        words = _outcome_words(row.estimand)
        verb = (words.costs if row.value < 0 else words.gains).format(text)
        clauses.append(f"{treatment(factor)} {verb} {_size(row)}")
    return clauses


def _size(effect: FactorEffect | SourceEffect) -> str:
    """Print the size of an effect, whose direction the verb says: ``16.7 ranks [15.0, 18.4]``."""
    size_and_ends = (effect.value, effect.low, effect.high)
    if effect.value < 0:
        size_and_ends = (-effect.value, -effect.high, -effect.low)
    value, *ends = size_and_ends
    low, high = ends_apart((ends[0], ends[1]), 0.0, decimal)
    return f"{decimal(value)} {UNITS[effect.estimand].unit} [{low}, {high}]"


def _not_shown_clause(effects: FactorEffects, rows: Sequence[FactorEffect]) -> str:
    """Say that no effect of some factors is shown, and how large one would have to be."""
    detectable = max(row.detectable for row in rows)
    unit = UNITS[effects.primary].unit
    limit = f" (detectable: {detectable:.1f} {unit})" if detectable >= _SMALLEST_PRINTED else ""
    return f"no effect of {join_words(_treatments(effects, rows), 'or')} is shown{limit}"


def _interactions(rows: Sequence[FactorEffect]) -> Iterator[str]:
    """Yield the interactions that are shown."""
    for row in by_size(rows):
        if row.interaction and row.is_shown:
            yield f"{row.effect} {_signed_effect(row)}"


def derived_words(effects: FactorEffects) -> dict[str, Any]:
    """Return the headline and the sentences, which a file holds besides the fields."""
    return {"headline": factor_headline(effects), "sentences": factor_sentences(effects)}
