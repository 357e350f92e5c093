"""Verdicts in words, signs and tones: whom a run favours, or why that is not decided.

A *question* is a measure that compares two groups of documents (an *estimand*), such as Relative Δ,
and an *effect* is its answer for one run, with an interval and a p. The *verdict* is what the
answer to the *primary* question shows: the run favours a *side* (one of the two groups), is *level*
(the whole interval lies within a *margin* of the neutral value) or *inconclusive*. It is *slight*
if a side is favoured, but within the margin. Verdicts on the other questions say how many of them
agree.

A question about all groups at once has no side; its answer is compared with the *random band*, the
middle 95 % of what random rankings give.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
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
from ranktilt.measures.printing import digits_apart
from ranktilt.reporting.sentences.effects import (
    cannot_vary_words,
    corrected_p_words,
    detectable_words,
    effect_words,
    low_p_words,
    too_few_words,
    undefined_words,
)
from ranktilt.reporting.sentences.findings import command_rows, next_commands
from ranktilt.reporting.sentences.grammar import singular_or_plural
from ranktilt.reporting.tones import VERDICT_TONES, Tone

VERDICT_WORDS = {
    "favours": ("favours one side", "favour one side"),
    "outside": ("lies outside the random band", "lie outside the random band"),
    "conflict": ("gives conflicting answers", "give conflicting answers"),
    "inconclusive": ("is inconclusive", "are inconclusive"),
    "level": ("is level", "are level"),
}
"""Verbs for one run and for several, by the kind of their verdict, in the order of sentences."""
INTERVAL_CAUTION = "p is corrected for several tests, the 95 % intervals are not."
"""Explains why an interval can exclude the neutral value although the corrected p is above .05."""
_MOST_NAMED = 2
"""Most questions with the same answer that a sentence names; of more it gives the number."""


def verdict_sentence(verdict: Verdict) -> str:
    """Say whom a run favours, in one sentence with its numbers."""
    if not verdict.effect.estimand.sided:
        return _band_sentence(verdict)
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
    if verdict.measures == 1:  # there are no further questions that could agree
        return sentence
    questions = "measures" if isinstance(effect.estimand, RelativeDelta) else "questions"
    other_answers = _other_answers(verdict)
    in_brackets = f" ({other_answers})" if other_answers else ""
    agreement = agreement_words(verdict.agree, verdict.measures, questions)
    return f"{sentence}; {agreement}{in_brackets}"


def agreement_words(agree: int, total: int, questions: str) -> str:
    """Say how many of the questions give one answer: ``both measures give this answer``.

    `questions` is their noun in the plural; there are at least two in `total`.
    """
    if agree < total:
        give = singular_or_plural(agree, "gives", "give")
        return f"{agree} of {total} {questions} {give} this answer"
    count = "both" if total == 2 else f"all {total}"
    return f"{count} {questions} give this answer"


def _other_answers(verdict: Verdict) -> str:
    """Say what questions answer that disagree with the primary one; empty if all agree."""
    verbs = {
        "a": (f"favours {verdict.a}", f"favour {verdict.a}"),
        "b": (f"favours {verdict.b}", f"favour {verdict.b}"),
        "level": ("is level", "are level"),
        "inconclusive": ("is inconclusive", "are inconclusive"),
    }
    primary_kind = verdict.effect.verdict(verdict.margin)
    clauses = []
    for kind, (singular_verb, plural_verb) in verbs.items():
        names = _question_names(verdict, kind)
        if not names or kind == primary_kind:
            continue
        subject = join_words(names) if len(names) <= _MOST_NAMED else str(len(names))
        clauses.append(f"{subject} {singular_or_plural(len(names), singular_verb, plural_verb)}")
    return "; ".join(clauses)


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
        sentence += undefined_words(effect)
    else:
        # The first reason that holds is given; the last one always does.
        reason = (
            too_few_words(effect)
            or cannot_vary_words(effect)
            or low_p_words(effect.p_corrected, _neutral_value(effect))
            or _power_words(verdict)
        )
        sentence += f"{reason}; {effect_words(effect, verdict.noun)}"
    secondary = _secondary_answers(verdict)
    return f"{sentence}; but {secondary}" if secondary else sentence


def _neutral_value(effect: Effect) -> str:
    """Name the neutral value, with its number."""
    return f"the neutral value ({effect.estimand.answer(effect.neutral)})"


def _power_words(verdict: Verdict) -> str:
    """Say which tilt these queries would find, or that all resamples of the queries are alike."""
    if verdict.effect.error == 0:
        return "every resample gives the same answer"
    return detectable_words(verdict.effect)


def _secondary_answers(verdict: Verdict) -> str:
    """Say what secondary questions decide where the primary one is inconclusive."""
    answers = {
        "a": f"{verdict.a} is favoured",
        "b": f"{verdict.b} is favoured",
        "level": "it is level",
    }
    clauses = []
    for kind, answer in answers.items():
        names = _question_names(verdict, kind)
        if names:
            clauses.append(f"{answer} on {', '.join(names)}")
    return "; ".join(clauses)


def _band_sentence(verdict: Verdict) -> str:
    """Say where the answer to a question about all groups lies, compared with the random band."""
    effect, estimand = verdict.effect, verdict.effect.estimand
    scaled = [estimand.scale * number for number in (effect.value, effect.low, effect.high)]
    band_ends = [estimand.scale * end for end in (effect.null_low, effect.null_high)]
    amount = partial(estimand.amount, digits=digits_apart(scaled, band_ends, estimand.digits))
    interval = ""
    if effect.has_interval:
        interval = f"95 % interval [{amount(effect.low)}, {amount(effect.high)}]"
    band = f"random band [{amount(effect.null_low)}, {amount(effect.null_high)}]"
    p_words = corrected_p_words(effect)
    numbers = filter(None, (f"{amount(effect.value)}{estimand.suffix}", interval, band, p_words))
    if few := too_few_words(effect):
        finding = f"inconclusive: {few}"
    elif effect.null_position == "inside":
        finding = "indistinguishable from a random ranking"
    elif effect.is_shown:
        meaning_below, meaning_above = estimand.outside
        finding = meaning_above if effect.null_position == "above" else meaning_below
    else:
        finding = "not significantly different from random rankings"
    return f"{effect.run}: {finding}: {effect.name} {', '.join(numbers)}"


def conflict_sentence(conflict: Conflict) -> str:
    """Say which answers for one run and pair of groups point to which side."""
    clauses = []
    for side, effects in ((conflict.a, conflict.for_a), (conflict.b, conflict.for_b)):
        names = [effect.name for effect in effects]
        point = singular_or_plural(len(names), "points", "point")
        clauses.append(f"{' and '.join(names)} {point} to {side}")
    return (
        f"{conflict.run} gives conflicting answers: {'; '.join(clauses)}. Decide which question "
        "matters before you draw a conclusion."
    )


def significance_star(tilt: Effect) -> str:
    """Return a star for an effect that is significant after correction, else nothing."""
    return "*" if tilt.p_corrected < ALPHA else ""


def verdict_tone(verdict: Verdict, first: str) -> Tone:
    """Return the tone, which gives the colour, of the favoured side, or else of the verdict.

    `first` is the group that has the tone of the first side.
    """
    if verdict.side is None:
        return VERDICT_TONES[verdict.kind]
    return VERDICT_TONES["a" if verdict.side == first else "b"]


def sides_legend(pairs: Sequence[Pair]) -> str:
    """Say which sign favours which group of the first pair."""
    more = " (and likewise for the other pairs)" if len(pairs) > 1 else ""
    return f"+ favours {pairs[0][0]}, − favours {pairs[0][1]}{more}"


def star_legend(spec: Mapping[str, Any]) -> str:
    """Say what a star means in audits, and in results made of audits.

    `spec` are the settings of the result: the ``test``, and the ``correction`` for several tests.
    """
    test = "paired t tests" if spec.get("test") == "t" else "p by inverting the interval"
    correction = str(spec["correction"]).capitalize()
    return f"* corrected p < .05 ({correction}; {test}). {INTERVAL_CAUTION}"


def tone_legend(pair: Pair) -> dict[Tone, str]:
    """Say in words what each tone means for two groups."""
    return {
        "first": f"favours {pair[0]}",
        "second": f"favours {pair[1]}",
        "good": "level",
        "unsure": "inconclusive",
    }


def verdict_row(verdict: Verdict, sentence: str = "") -> dict[str, Any]:
    """Return a verdict as files list it, with its sentence or the one that is given."""
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


def derived_words(audit: Audit) -> dict[str, Any]:
    """Return what an audit's file holds besides the fields, for readers without RankTilt.

    These are verdicts, next steps, all answers in one list, and standings: with three groups or
    more, how many of the others each group is favoured over.
    """
    # The card also has Relative Δ, which is among the tilts.
    answers = [effect for effect in audit.card if not isinstance(effect.estimand, RelativeDelta)]
    verdicts = audit.verdicts() if audit.pairs else []
    standings = chain.from_iterable(display.standings for display in group_displays(audit))
    return {
        "verdicts": [verdict_row(verdict) for verdict in verdicts],
        "standings": list(standings),
        "next_steps": command_rows(next_commands(next_steps(audit))),
        "effects": [effect_row(effect, audit.margin) for effect in (*audit.tilts, *answers)],
    }
