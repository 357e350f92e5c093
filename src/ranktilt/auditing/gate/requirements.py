"""Requirements of a gate: answers of an audit that must pass, and measures of effectiveness.

A question is an estimand, written in its notation, such as ``Share@10``; the notation of a measure,
such as ``nDCG@10``, stands for its Relative Δ.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.result import Audit
from ranktilt.errors import UserError, unknown_name
from ranktilt.measures.base import Estimand, estimand

EffectKey = tuple[str, str, str, str]
"""Key of an answer: run, notation of the question, and both groups."""


def effect_key(effect: Effect) -> EffectKey:
    """Return the key that identifies an answer in an audit."""
    return effect.run, effect.measure, effect.a, effect.b


@dataclass(frozen=True, kw_only=True)
class Requirements:
    """The answers that must pass a gate."""

    effects: tuple[Effect, ...]
    """Answers of the audit, by run, then pair of groups, then question."""
    loss_measures: frozenset[str]
    """Notations of the measures on which a loss of effectiveness is judged."""

    @classmethod
    def from_names(
        cls,
        audit: Audit,
        *,
        measures: Iterable[str | Estimand] | None,
        runs: Iterable[str] | None,
        pairs: Iterable[Pair] | None,
    ) -> Requirements:
        """Look up the answers of an audit that must pass.

        `measures` (and other estimands), `runs` and `pairs` name them; None for the primary
        question, all runs and all pairs of groups.
        """
        questions = None
        if measures is not None:
            questions = [repr(estimand(measure)) for measure in measures]
        effects = _required_effects(audit, questions, runs, pairs)
        audited_measures = {repr(measure) for measure in audit.measures}
        loss_measures = frozenset(questions or ()) & audited_measures
        if not loss_measures and audited_measures:
            # A loss is judged on the measure that the audit prints first.
            loss_measures = frozenset([repr(audit.primary_measure)])
        return cls(effects=tuple(effects), loss_measures=loss_measures)


def _required_effects(
    audit: Audit,
    questions: Sequence[str] | None,
    runs: Iterable[str] | None,
    pairs: Iterable[Pair] | None,
) -> list[Effect]:
    """Return the answers of an audit that must pass, by run, then pair, then question."""
    answers = _answers(audit)
    if questions is None:
        questions = [repr(audit.primary)]
    runs = list(audit.runs if runs is None else runs)
    pairs_to_gate = audit.pairs if pairs is None else pairs
    pairs = [(audit.group_named(a), audit.group_named(b)) for a, b in pairs_to_gate]
    # The groups of a pair may be named in either order.
    known_pairs = [*audit.pairs, *(pair[::-1] for pair in audit.pairs)]
    known_questions = dict.fromkeys(question for _run, question, _a, _b in answers)
    _refuse_unknown("run", runs, audit.runs)
    _refuse_unknown("measure", questions, known_questions)
    _refuse_unknown("pair of groups", map(",".join, pairs), list(map(",".join, known_pairs)))
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
    """Return the answers that can be judged, each with its groups in both orders.

    A directed estimand, such as a mean of ratios, is not symmetric, and is there in its own order
    only.
    """
    effects = [effect for effect in (*audit.card, *audit.tilts) if not effect.estimand.descriptive]
    if not effects:
        raise UserError("nothing to gate: this audit compares no groups; audit with --by COLUMN")
    answers = {effect_key(effect): effect for effect in effects}
    for effect in list(answers.values()):
        if not effect.estimand.directed:
            swapped = effect.swapped()
            answers[effect_key(swapped)] = swapped
    return answers


def _refuse_unknown(noun: str, names: Iterable[str], known: Collection[str]) -> None:
    """Refuse names that the audit does not have."""
    for name in names:
        if name not in known:
            raise unknown_name(noun, name, known)
