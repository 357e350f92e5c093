"""Verdicts in words, signs and tones: whom a run favours, or why that is not decided."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from ranktilt.auditing.answer.group_standings import group_displays
from ranktilt.auditing.answer.next_steps import next_steps
from ranktilt.auditing.answer.verdict import Verdict, effect_row
from ranktilt.auditing.effects import ALPHA, Conflict, Effect
from ranktilt.auditing.groups import Pair
from ranktilt.auditing.result import Audit
from ranktilt.errors import join_words
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.measures.margin import margin_words
from ranktilt.reporting.sentences.effects import (
    across,
    cannot_vary,
    corrected_p,
    could_detect,
    effect_words,
    too_few,
    undefined,
)
from ranktilt.reporting.sentences.next_steps import step_row
from ranktilt.reporting.tones import VERDICT_TONES, Tone

VERDICT_WORDS = {
    "favours": ("favours one side", "favour one side"),
    "outside": ("lies outside the random band", "lie outside the random band"),
    "conflict": ("gives conflicting answers", "give conflicting answers"),
    "inconclusive": ("is inconclusive", "are inconclusive"),
    "level": ("is level", "are level"),
}
"""Words about one verdict of each kind, and about several, in the order of sentences."""
ONE_AT_A_TIME = "p is corrected for several tests, the 95 % intervals are not."
"""An interval can exclude what its corrected p does not."""
_MOST_NAMED = 2
"""Questions of one kind that a sentence names; of more it gives the number."""


def verdict_sentence(verdict: Verdict) -> str:
    """Say whom a run favours, in one sentence with its numbers."""
    if not verdict.effect.estimand.sided:
        return _sentence_beside_band(verdict)
    if verdict.kind == "inconclusive":
        return _inconclusive_sentence(verdict)
    effect = verdict.effect
    within = f"within {margin_words(verdict.margin)}"
    numbers = effect_words(effect, verdict.noun)
    if verdict.kind == "level":
        sentence = f"{effect.run} is level between {effect.a} and {effect.b}, {within}: {numbers}"
    else:
        slightly = f" slightly, {within}" if verdict.slight else ""
        sentence = f"{effect.run} favours {verdict.side} {verdict.noun}{slightly}: {numbers}"
    if verdict.measures == 1:
        return sentence
    questions = "measures" if isinstance(effect.estimand, RelativeDelta) else "questions"
    others = _dissenting_answers(verdict)
    dissent = f" ({others})" if others else ""
    return f"{sentence}; {agreement(verdict.agree, verdict.measures, questions)}{dissent}"


def agreement(agree: int, total: int, questions: str) -> str:
    """Say how many of the questions give one answer: ``both measures give this answer``."""
    if agree < total:
        return f"{agree} of {total} {questions} {'gives' if agree == 1 else 'give'} this answer"
    count = "both" if total == 2 else f"all {total}"
    return f"{count} {questions} give this answer"


def _dissenting_answers(verdict: Verdict) -> str:
    """Say what the questions answer that do not agree with the primary one; empty if all do."""
    words = {
        "a": (f"favours {verdict.a}", f"favour {verdict.a}"),
        "b": (f"favours {verdict.b}", f"favour {verdict.b}"),
        "level": ("is level", "are level"),
        "inconclusive": ("is inconclusive", "are inconclusive"),
    }
    primary = verdict.effect.verdict(verdict.margin)
    findings = []
    for kind, (singular, plural) in words.items():
        names = _question_names(verdict, kind)
        if not names or kind == primary:
            continue
        subject = join_words(names) if len(names) <= _MOST_NAMED else str(len(names))
        findings.append(f"{subject} {singular if len(names) == 1 else plural}")
    return "; ".join(findings)


def _question_names(verdict: Verdict, kind: str) -> list[str]:
    """Return the names of the questions with one kind of verdict."""
    return [
        question.effect.measure
        if isinstance(question.effect.estimand, RelativeDelta)
        else question.effect.name
        for question in verdict.questions
        if question.verdict == kind
    ]


def _inconclusive_sentence(verdict: Verdict) -> str:
    """Say that a ranker is inconclusive, and why."""
    effect = verdict.effect
    sentence = f"{effect.run} is inconclusive: "
    if effect.queries == 0 or math.isnan(effect.value):
        sentence += undefined(effect)
    else:
        reason = (
            too_few(effect)
            or cannot_vary(effect)
            or across(effect.p_corrected, _neutral_words(effect))
            or _power(verdict)
        )
        sentence += f"{reason}; {effect_words(effect, verdict.noun)}"
    secondary = _secondary_findings(verdict)
    return f"{sentence}; but {secondary}" if secondary else sentence


def _neutral_words(effect: Effect) -> str:
    """Name the neutral value."""
    return f"the neutral value ({effect.estimand.answer(effect.neutral)})"


def _power(verdict: Verdict) -> str:
    """Say what these queries could have shown; nothing could where no resample differs."""
    if verdict.effect.error == 0:
        return "every resample gives the same answer"
    return could_detect(verdict.effect)


def _secondary_findings(verdict: Verdict) -> str:
    """Say what secondary questions find where the primary one finds nothing."""
    words = {
        "a": f"{verdict.a} is favoured",
        "b": f"{verdict.b} is favoured",
        "level": "it is level",
    }
    findings = []
    for kind, finding in words.items():
        names = _question_names(verdict, kind)
        if names:
            findings.append(f"{finding} on {', '.join(names)}")
    return "; ".join(findings)


def _sentence_beside_band(verdict: Verdict) -> str:
    """Say where the answer to a question about all groups lies, compared with the random band."""
    effect, estimand = verdict.effect, verdict.effect.estimand
    amount = estimand.amount
    interval = ""
    if effect.has_interval:
        interval = f"95 % interval [{amount(effect.low)}, {amount(effect.high)}]"
    band = f"random band [{amount(effect.null_low)}, {amount(effect.null_high)}]"
    numbers = filter(None, (estimand.answer(effect.value), interval, band, corrected_p(effect)))
    if few := too_few(effect):
        finding = f"inconclusive: {few}"
    elif effect.null_position == "inside":
        finding = "indistinguishable from a random ranking"
    elif effect.is_shown:
        finding = estimand.outside[effect.null_position == "above"]
    else:
        finding = "not significantly different from random rankings"
    return f"{effect.run}: {finding}: {effect.name} {', '.join(numbers)}"


def conflict_sentence(conflict: Conflict) -> str:
    """Say which answers for one run and pair point to which side."""
    points = []
    for side, effects in ((conflict.a, conflict.for_a), (conflict.b, conflict.for_b)):
        names = [effect.name for effect in effects]
        verb = "points" if len(names) == 1 else "point"
        points.append(f"{' and '.join(names)} {verb} to {side}")
    return (
        f"{conflict.run} gives conflicting answers: {'; '.join(points)}. Decide which question "
        "matters before you draw a conclusion."
    )


def mark(tilt: Effect) -> str:
    """Return a star where an effect is significant after correction."""
    return "*" if tilt.p_corrected < ALPHA else ""


def verdict_tone(verdict: Verdict, first: str) -> Tone:
    """Return the tone of the favoured side, or else of the verdict."""
    if verdict.side is None:
        return VERDICT_TONES[verdict.kind]
    return VERDICT_TONES["a" if verdict.side == first else "b"]


def sides_legend(pairs: Sequence[Pair]) -> str:
    """Say which sign favours which group of the first pair."""
    more = " (and likewise for the other pairs)" if len(pairs) > 1 else ""
    return f"+ favours {pairs[0][0]}, − favours {pairs[0][1]}{more}"


def starred(spec: Mapping[str, Any]) -> str:
    """Say what a star means in audits, and in results made of audits."""
    kind = "paired t tests" if spec.get("test") == "t" else "p by inverting the interval"
    return f"* corrected p < .05 ({str(spec['correction']).capitalize()}; {kind}). {ONE_AT_A_TIME}"


def sides_named(pair: Pair) -> dict[Tone, str]:
    """Say in words what each tone means for two groups."""
    return {
        "first": f"favours {pair[0]}",
        "second": f"favours {pair[1]}",
        "good": "level",
        "unsure": "inconclusive",
    }


def verdict_row(verdict: Verdict, sentence: str = "") -> dict[str, Any]:
    """Return a verdict as files list it."""
    return {
        "run": verdict.run,
        "kind": verdict.kind,
        "side": verdict.side,
        "sentence": sentence or verdict_sentence(verdict),
        "primary": verdict.primary,
        "margin": verdict.margin,
        "slight": verdict.slight,
        "agree": verdict.agree,
        "measures": verdict.measures,
        "a": verdict.a,
        "b": verdict.b,
    }


def derived(audit: Audit) -> dict[str, Any]:
    """Return what the file holds besides the fields: verdicts, standings, next steps, effects."""
    answers = [e for e in audit.card if not isinstance(e.estimand, RelativeDelta)]
    verdicts = audit.verdicts() if audit.pairs else []
    standings = chain.from_iterable(display.standings for display in group_displays(audit))
    return {
        "verdicts": [verdict_row(verdict) for verdict in verdicts],
        "standings": list(standings),
        "next_steps": [step_row(step) for step in next_steps(audit)],
        "effects": [effect_row(effect, audit.margin) for effect in (*audit.tilts, *answers)],
    }
