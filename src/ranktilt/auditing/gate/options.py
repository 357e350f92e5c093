"""What a gate asks for: its limits, and the answers of an audit that must pass.

The *baseline* is an earlier audit to compare with. A *question* is an estimand, written in its
notation, such as ``Share@10``; the notation of a measure, such as ``nDCG@10``, stands for its
Relative Δ. A *tilt* is the answer to a question about two groups, and its *growth* how much farther
from neutral it is than in the baseline.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ranktilt.auditing.comparison.common_queries import MAX_LEFT_OUT, check_left_out
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.gate.result import LARGEST_DELTA
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.options import check_resamples
from ranktilt.auditing.result import Audit
from ranktilt.errors import UserError, unknown_name
from ranktilt.field_checks import is_number, printed, require_seed
from ranktilt.measures.base import Estimand, estimand
from ranktilt.measures.margin import DEFAULT_MARGIN, Margin

EffectKey = tuple[str, str, str, str]
"""Key of an answer: run, notation of the question, and both groups."""
POLICIES = ("fail", "pass")
"""What an inconclusive outcome can do to a build."""
_LARGEST_LOSS = 100
"""Largest possible loss of effectiveness, in points."""


# ---- limits -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class GateOptions:
    """Limits of a gate, and options of its bootstrap; those of `gate`."""

    max_tilt: Margin | None
    """Largest tilt that passes, in points or with its unit; None for the default."""
    min_effect: float | None
    """Largest growth of a tilt since the baseline that passes, in points; None for the default."""
    max_loss: float | None
    """Largest loss of effectiveness since the baseline, in points; None if it is not checked."""
    max_left_out: float | None
    """Largest percentage of queries in one of audit and baseline only; None for the default."""
    inconclusive: str
    """What an inconclusive outcome does to a build, one of `POLICIES`."""
    resamples: int
    """Number of bootstrap resamples."""
    seed: int
    """Random seed."""
    has_baseline: bool
    """Whether there is an earlier audit to compare with."""

    @property
    def tilt_limit(self) -> Margin | None:
        """Largest tilt that passes; None where only growth or loss since a baseline is checked."""
        if self.max_tilt is None and not self.has_baseline:
            return DEFAULT_MARGIN
        return self.max_tilt

    @property
    def growth_limit(self) -> float:
        """Largest growth of a tilt since the baseline that passes, in points."""
        return 0.0 if self.min_effect is None else self.min_effect

    @property
    def most_left_out(self) -> float:
        """Largest percentage of all queries that only one of audit and baseline may hold."""
        return MAX_LEFT_OUT if self.max_left_out is None else self.max_left_out

    @property
    def spec(self) -> dict[str, Any]:
        """Options that a gate's report holds.

        `max_left_out` is not among them: if it is exceeded, there is no report.
        """
        return {
            "max_tilt": self.tilt_limit,
            "baseline": self.has_baseline,
            "min_effect": self.growth_limit,
            "max_loss": self.max_loss,
            "inconclusive": self.inconclusive,
            "resamples": self.resamples,
            "seed": self.seed,
        }

    def check(self) -> None:
        """Raise `UserError` for limits that are out of range or need a baseline."""
        self._check_limits()
        check_policy(self.inconclusive)
        check_resamples(self.resamples)
        require_seed(self.seed)
        check_left_out(self.most_left_out)

    def _check_limits(self) -> None:
        """Refuse limits that are out of range, or that need a baseline where there is none."""
        if not is_number(self.growth_limit) or self.growth_limit < 0:
            raise UserError(
                "--min-effect: expected a number of points of at least 0, got "
                f"{printed(self.min_effect)}"
            )
        if isinstance(self.max_tilt, float | int) and self.max_tilt >= LARGEST_DELTA:
            raise UserError(
                f"--max-tilt: expected less than {LARGEST_DELTA:g}, the largest possible Relative "
                f"Δ; got {self.max_tilt:g}"
            )
        # A limit as large as the largest loss would check nothing.
        loss = self.max_loss
        if loss is not None and (not is_number(loss) or not 0 <= loss < _LARGEST_LOSS):
            raise UserError(
                f"--max-loss: expected a number of points from 0 to {_LARGEST_LOSS}, got "
                f"{printed(loss)}"
            )
        uses_baseline = {
            "--min-effect": self.min_effect is not None,
            "--max-left-out": self.max_left_out is not None,
            "--max-loss": self.max_loss is not None,
        }
        for option, is_named in uses_baseline.items():
            if is_named and not self.has_baseline:
                raise UserError(f"{option} needs a baseline: --baseline OLD.json")


def check_policy(inconclusive: str) -> None:
    """Refuse an unknown policy for inconclusive outcomes."""
    if inconclusive not in POLICIES:
        raise unknown_name("policy for inconclusive", inconclusive, POLICIES)


# ---- answers that must pass ---------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Requirements:
    """The answers that must pass a gate."""

    effects: tuple[Effect, ...]
    """Answers of the audit, by run, then pair of groups, then question."""
    loss_measures: frozenset[str]
    """Notations of the measures on which a loss of effectiveness is checked."""

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
            # A loss is checked on the measure that the audit prints first.
            loss_measures = frozenset([repr(audit.primary_measure)])
        return cls(effects=tuple(effects), loss_measures=loss_measures)


def effect_key(effect: Effect) -> EffectKey:
    """Return the key that identifies an answer in an audit."""
    return effect.run, effect.measure, effect.a, effect.b


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
    """Return the answers that can be checked, each with its groups in both orders.

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
