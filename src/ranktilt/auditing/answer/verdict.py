"""Verdicts: which side one run favours, by one rule.

The words of a verdict are in `reporting/sentences`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from ranktilt.auditing.effects import Effect
from ranktilt.measures.margin import Margin, half_width
from ranktilt.presenter import presenter

VerdictKind = Literal["favours", "level", "outside", "inconclusive"]
FindingKind = Literal["favours", "outside", "conflict", "inconclusive", "level", "described"]
"""Kind of a finding, in the order of findings; ``described`` says nothing about sides."""
_ORDER: tuple[FindingKind, ...] = get_args(FindingKind)
"""The kinds as a tuple, by which findings are sorted."""


@dataclass(frozen=True, kw_only=True)
class QuestionVerdict:
    """The verdict on one question about two sides."""

    effect: Effect
    """The answer."""
    verdict: str
    """``a``, ``b``, ``level`` or ``inconclusive``."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The verdict on one run and pair of groups, the same in every result that gives verdicts."""

    effect: Effect
    """The answer to the primary question."""
    kind: VerdictKind
    """What the verdict says.

    ``outside``: an answer about all groups together lies outside the random band, which favours
    nobody.
    """
    side: str | None
    """The favoured group; None unless `kind` is ``favours``."""
    margin: Margin
    """Half-width of what counts as level."""
    slight: bool
    """Whether a side is favoured, but the whole interval lies within the margin."""
    noun: str
    """The groups' noun: ``text`` or ``documents``."""
    questions: tuple[QuestionVerdict, ...] = ()
    """All questions about two sides, with the primary one; empty for an answer about all groups."""

    @property
    def run(self) -> str:
        """The run's name."""
        return self.effect.run

    @property
    def primary(self) -> str:
        """Notation of the primary question."""
        return self.effect.measure

    @property
    def a(self) -> str:
        """The first group."""
        return self.effect.a

    @property
    def b(self) -> str:
        """The second group."""
        return self.effect.b

    @property
    def agree(self) -> int:
        """Number of questions with the same verdict, the primary question included."""
        verdict = self.effect.verdict(self.margin)
        return sum(question.verdict == verdict for question in self.questions) or 1

    @property
    def measures(self) -> int:
        """Number of questions."""
        return len(self.questions) or 1

    @property
    def sentence(self) -> str:
        """The verdict in words, as reports print it."""
        return presenter().sentence(self)


def verdict_for(
    primary: str, effects: Sequence[Effect], margin: Margin, *, noun: str = "text"
) -> Verdict:
    """Return the verdict on one run and pair, by its answer to the question `primary`."""
    tested = [effect for effect in effects if not effect.estimand.descriptive]
    answer = next(effect for effect in tested if effect.measure == primary)
    if not answer.estimand.sided:
        return _verdict_beside_band(answer, margin, noun)
    # A question that was asked twice counts once, by its last answer.
    sided = {effect.measure: effect for effect in tested if effect.estimand.sided}
    verdict = sided[primary].verdict(margin)
    side = answer.side(verdict) or None
    kind: VerdictKind = "inconclusive"
    if side is not None:
        kind = "favours"
    elif verdict == "level":
        kind = "level"
    return Verdict(
        effect=answer,
        kind=kind,
        side=side,
        margin=margin,
        slight=answer.favours != "" and answer.extent(margin) == "within",
        noun=noun,
        questions=tuple(
            QuestionVerdict(effect=effect, verdict=effect.verdict(margin))
            for effect in sided.values()
        ),
    )


def _verdict_beside_band(answer: Effect, margin: Margin, noun: str) -> Verdict:
    """Return the verdict on all groups together: the position of the answer to the random band."""
    return Verdict(
        effect=answer,
        kind="outside" if answer.is_shown else "inconclusive",
        side=None,
        margin=margin,
        slight=False,
        noun=noun,
    )


def effect_row(effect: Effect, margin: Margin) -> dict[str, Any]:
    """Return an effect as it is listed in files: numbers as printed, with unit and verdict."""
    estimand, verdict = effect.estimand, effect.verdict(margin)
    side = effect.side(verdict)
    value, low, high, neutral = (
        estimand.scale * number
        for number in (effect.value, effect.low, effect.high, effect.neutral)
    )
    unit = estimand.suffix.strip()
    if estimand.neutral == 1:
        unit = unit or "ratio"
    return {
        "run": effect.run,
        "question": effect.measure,
        "a": effect.a,
        "b": effect.b,
        "value": value,
        "low": low,
        "high": high,
        "neutral": neutral,
        "unit": unit,
        "p": effect.p_corrected,
        "queries": effect.queries,
        "kind": "favours" if side else verdict,
        "side": side or None,
    }


def finding_order(kind: FindingKind, size: float) -> tuple[int, float]:
    """Return the sort key of findings: their kind, then the largest first."""
    return _ORDER.index(kind), 0.0 if math.isnan(size) else -size


def margins(effect: Effect, margin: Margin) -> float:
    """Return the distance of an effect from its neutral value, in margins.

    If the margin is in another unit, in standard errors.
    """
    distance = abs(effect.value - effect.neutral)
    half = half_width(effect.estimand, margin)
    if half > 0:
        return distance / half
    if effect.error > 0:
        return distance / effect.error
    return math.inf if distance > 0 else 0.0
