"""Requirements of a gate: answers of an audit that must pass, and measures of effectiveness."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.result import Audit
from ranktilt.errors import UserError, unknown
from ranktilt.measures.base import Estimand, estimand

EffectKey = tuple[str, str, str, str]
"""Run, measure, and both groups."""


def effect_key(effect: Effect) -> EffectKey:
    """Return the key that identifies an answer in an audit."""
    return effect.run, effect.measure, effect.a, effect.b


@dataclass(frozen=True, kw_only=True)
class Requirements:
    """The answers that must pass a gate."""

    effects: tuple[Effect, ...]
    """Answers of the audit: by run, pair and question."""
    loss_measures: frozenset[str]
    """Notations of the measures on which a loss is judged."""

    @classmethod
    def from_names(
        cls,
        audit: Audit,
        *,
        measures: Iterable[str | Estimand] | None,
        runs: Iterable[str] | None,
        pairs: Iterable[Pair] | None,
    ) -> Requirements:
        """Look up the answers that the caller names; see `gate`."""
        questions = None
        if measures is not None:
            questions = [repr(estimand(measure)) for measure in measures]
        effects = _required_effects(audit, questions, runs, pairs)
        known = {repr(measure) for measure in audit.measures}
        loss_measures = frozenset(questions or ()) & known
        if not loss_measures and known:
            # A loss is judged on the measure that the audit prints first.
            loss_measures = frozenset([repr(audit.primary_measure)])
        return cls(effects=tuple(effects), loss_measures=loss_measures)


def _required_effects(
    audit: Audit,
    questions: Sequence[str] | None,
    runs: Iterable[str] | None,
    pairs: Iterable[Pair] | None,
) -> list[Effect]:
    """Return the answers of an audit that must pass: by run, pair and question."""
    answers = _answers(audit)
    if questions is None:
        questions = [repr(audit.primary)]
    runs = list(audit.runs if runs is None else runs)
    # Asia|Europe is Europe|Asia
    pairs_to_gate = audit.pairs if pairs is None else pairs
    pairs = [(audit.group_named(a), audit.group_named(b)) for a, b in pairs_to_gate]
    both_ways = [*audit.pairs, *(pair[::-1] for pair in audit.pairs)]
    _refuse_unknown("run", runs, audit.runs)
    _refuse_unknown("measure", questions, dict.fromkeys(measure for _, measure, *_ in answers))
    _refuse_unknown("pair of groups", map(",".join, pairs), list(map(",".join, both_ways)))
    effects: dict[EffectKey, Effect] = {}
    for run, (a, b), question in itertools.product(runs, [*pairs, (ALL, ALL)], questions):
        key = run, question, a, b
        if key in answers:
            effects[key] = answers[key]
    if not effects:
        raise UserError(
            "nothing to gate: the audit has no answer for these runs and pairs, in this order"
        )
    return list(effects.values())


def _answers(audit: Audit) -> dict[EffectKey, Effect]:
    """Return the answers that can be judged, seen from either side."""
    effects = [effect for effect in (*audit.card, *audit.tilts) if not effect.estimand.descriptive]
    if not effects:
        raise UserError("nothing to gate: this audit compares no groups; audit with --by COLUMN")
    answers = {effect_key(effect): effect for effect in effects}
    for effect in list(answers.values()):
        if not effect.estimand.directed:
            turned = effect.swapped()
            answers[effect_key(turned)] = turned
    return answers


def _refuse_unknown(noun: str, names: Iterable[str], known: Collection[str]) -> None:
    """Refuse names that the audit does not have."""
    for name in names:
        if name not in known:
            raise unknown(noun, name, known)
