"""Verdicts: which of two groups one run favours.

An *effect* is the answer of one run to one question about two groups, and `Effect.verdict` is the
rule that decides it. The *primary question* was chosen before the data were seen; its answer gives
the verdict. A `Verdict` here adds how many other questions agree. A *side* is one of the two
groups. The *neutral value* of an answer favours neither, and the *margin* says how far from it an
answer still counts as level. The words of a verdict are in `reporting/sentences`.
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
"""What a verdict says.

``outside``: an answer about all groups together lies outside the random band, the range that random
groups would give; this favours no group.
"""
FindingKind = Literal["favours", "outside", "conflict", "inconclusive", "level", "described"]
"""Kind of a finding, in the order in which findings are listed.

``conflict``: two questions favour different groups. ``described``: it says nothing about groups.
"""
_FINDING_ORDER: tuple[FindingKind, ...] = get_args(FindingKind)
"""The kinds of findings as a tuple, by which findings are sorted."""


@dataclass(frozen=True, kw_only=True)
class QuestionVerdict:
    """The verdict on one question about two groups."""

    effect: Effect
    """The answer."""
    verdict: str
    """``a`` or ``b`` if that group is favoured, ``level`` or ``inconclusive``."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The verdict on one run and pair of groups, the same in every result that gives verdicts."""

    effect: Effect
    """The answer to the primary question."""
    kind: VerdictKind
    """What the verdict says."""
    side: str | None
    """Name of the favoured group; None unless `kind` is ``favours``."""
    margin: Margin
    """Largest distance from the neutral value that counts as level."""
    slight: bool
    """Whether a group is favoured, but the whole interval lies within the margin."""
    noun: str
    """Noun for the documents in sentences: ``text`` or ``documents``."""
    questions: tuple[QuestionVerdict, ...] = ()
    """Verdicts on all questions about the two groups, with that on the primary question.

    Empty if the primary question is about all groups together.
    """

    @property
    def run(self) -> str:
        """Name of the run."""
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
        """Number of questions, the primary question included."""
        return len(self.questions) or 1

    @property
    def sentence(self) -> str:
        """The verdict in words, as reports print it."""
        return presenter().sentence(self)


def verdict_for(
    primary: str, effects: Sequence[Effect], margin: Margin, *, noun: str = "text"
) -> Verdict:
    """Return the verdict on one run and pair of groups.

    Parameters
    ----------
    primary : str
        Notation of the primary question, which decides the verdict.
    effects : sequence of Effect
        The run's answers to all questions about the pair.
    margin : float or str
        Largest distance from the neutral value that counts as level.
    noun : str, optional
        Noun for the documents in sentences.
    """
    tested = [effect for effect in effects if not effect.estimand.descriptive]
    answer = next(effect for effect in tested if effect.measure == primary)
    if not answer.estimand.sided:
        return _verdict_on_all_groups(answer, margin, noun)
    # A question that was asked twice counts once, by its last answer.
    answers = {effect.measure: effect for effect in tested if effect.estimand.sided}
    verdict = answers[primary].verdict(margin)
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
            for effect in answers.values()
        ),
    )


def _verdict_on_all_groups(answer: Effect, margin: Margin, noun: str) -> Verdict:
    """Return the verdict on all groups together: whether the answer is outside the random band."""
    return Verdict(
        effect=answer,
        kind="outside" if answer.is_shown else "inconclusive",
        side=None,
        margin=margin,
        slight=False,
        noun=noun,
    )


def effect_row(effect: Effect, margin: Margin) -> dict[str, Any]:
    """Return an effect as a row of a file's table: numbers in the printed unit, and the verdict."""
    estimand, verdict = effect.estimand, effect.verdict(margin)
    side = effect.side(verdict)
    value, low, high, neutral = (
        estimand.scale * number
        for number in (effect.value, effect.low, effect.high, effect.neutral)
    )
    unit = estimand.suffix.strip()
    is_ratio = estimand.neutral == 1
    if is_ratio and not unit:
        unit = "ratio"
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
    """Return the sort key of a finding: by kind, and within a kind the largest first."""
    return _FINDING_ORDER.index(kind), 0.0 if math.isnan(size) else -size


def margins(effect: Effect, margin: Margin) -> float:
    """Return how many margins an effect is away from its neutral value: the size of a finding.

    If the margin is in another unit than the effect, the size is in standard errors instead.
    """
    distance = abs(effect.value - effect.neutral)
    half = half_width(effect.estimand, margin)
    if half > 0:
        return distance / half
    if effect.error > 0:
        return distance / effect.error
    return math.inf if distance > 0 else 0.0
