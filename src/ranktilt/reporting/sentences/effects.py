"""An effect in words: its answer with its numbers, and why it decides nothing."""

from __future__ import annotations

import math

from ranktilt.auditing.effects import ALPHA, FEWEST, Change, Effect
from ranktilt.errors import counted
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.measures.printing import digits_apart, signed
from ranktilt.reporting.numbers import probability
from ranktilt.reporting.sentences.answers import answer_words
from ranktilt.reporting.sentences.variation import variation_words


def effect_words(effect: Effect, noun: str) -> str:
    """Say an answer in plain words, then its numbers, and the neutral value where it is not 0.

    The words begin with the favoured side; the numbers keep the sign that tables and files have.
    """
    estimand = effect.estimand
    if math.isnan(effect.value):
        return f"{effect.name} is undefined"
    favoured = effect.side(effect.favours) or effect.a
    words = answer_words(estimand, effect.seen_from(favoured), noun)
    name = f"{estimand.term} " if isinstance(estimand, RelativeDelta) else ""
    value = f"{name}{estimand.answer(effect.value)}"
    numbers = [
        " ".join(filter(None, (value, interval_words(effect)))),
        "" if words.endswith("is neutral") else neutral_words(effect),
        observed_words(effect),
        corrected_p(effect),
    ]
    return f"{words} ({', '.join(filter(None, numbers))})"


def neutral_words(effect: Effect) -> str:
    """Give the neutral value; empty where it is 0 or not known."""
    answer = effect.estimand.answer
    neutral = answer(effect.neutral)
    is_usual = neutral in (answer(0.0), answer(math.nan))
    return "" if is_usual else f"neutral value {neutral}"


def observed_words(effect: Effect) -> str:
    """Give the answer by the labels as they are; empty where it is not corrected."""
    if effect.observed is None:
        return ""
    return f"{effect.estimand.answer(effect.observed.value)} by the labels as they are"


def interval_words(effect: Effect) -> str:
    """Print an interval, with digits enough to tell it from level; empty where there is none."""
    estimand = effect.estimand
    if not effect.has_interval:
        return ""
    ends = [estimand.scale * end for end in (effect.low, effect.high)]
    digits = digits_apart(ends, [estimand.scale * effect.neutral], estimand.digits)
    low = estimand.amount(effect.low, digits=digits)
    high = estimand.amount(effect.high, digits=digits)
    return f"[{low}, {high}]"


def tilt_name(tilt: Effect) -> str:
    """Name what an effect is one of: Relative Δ, or the estimand."""
    return tilt.estimand.term if isinstance(tilt.estimand, RelativeDelta) else tilt.name


def tilt_numbers(tilt: Effect, *limits: float) -> str:
    """Print an effect with its unit and interval: ``+5.0 % [+1.0, +9.0]``.

    The interval has digits enough to tell its ends from the limits, which are in its own unit.
    """
    estimand = tilt.estimand
    if not tilt.has_interval:
        return estimand.answer(tilt.value)
    digits = digits_apart(
        [estimand.scale * end for end in (tilt.low, tilt.high)],
        [estimand.scale * limit for limit in limits],
        estimand.digits,
    )
    low, high = (estimand.amount(end, digits=digits) for end in (tilt.low, tilt.high))
    return f"{estimand.answer(tilt.value)} [{low}, {high}]"


def bounds(low: float, high: float, *limits: float) -> str:
    """Print an interval of percentages, with digits enough to tell its ends from the limits."""
    digits = digits_apart((low, high), limits)
    return f"[{signed(low, digits)}, {signed(high, digits)}]"


def corrected_p(effect: Effect) -> str:
    """Print the corrected p with its name; empty where there is none."""
    if math.isnan(effect.p_corrected):
        return ""
    return f"corrected p {probability(effect.p_corrected)}"


def across(p: float, neutral: str) -> str:
    """Say why nothing is shown although p is below .05; empty where it is not."""
    return f"p is below .05, but the interval includes {neutral}" if p < ALPHA else ""


def too_few(effect: Effect) -> str:
    """Say that there is too little for a verdict; empty where there is enough."""
    if effect.testable:
        return ""
    if effect.sample >= effect.queries:
        queries = counted(effect.queries, "query is", "queries are")
        return f"{queries} too few for a verdict ({FEWEST} needed)"
    ones = "one" if effect.sample == 1 else "ones"
    return (
        f"these queries and documents are worth {effect.sample:.3g} independent {ones}, "
        f"too few for a verdict ({FEWEST} needed)"
    )


def cannot_vary(effect: Effect) -> str:
    """Say what keeps an answer from being level, however close it is; empty where nothing does."""
    if effect.can_be_level or effect.variation is None:
        return ""
    return f"{variation_words(effect.variation)}, so it cannot be shown to be level"


def could_detect(effect: Effect) -> str:
    """Say which tilt these queries would find four times in five."""
    estimand = effect.estimand
    if not effect.detectable <= estimand.bounds[1] - estimand.neutral:
        return "these queries could not detect any tilt"
    is_percent = estimand.scale == 100 or estimand.suffix == " %"
    size = estimand.amount(effect.detectable, sign=False, digits=0 if is_percent else None)
    return (
        f"these queries would find a tilt of {size}{estimand.suffix} four times in five, a smaller "
        "one less often"
    )


def common_words(change: Change) -> str:
    """Say on how many queries a change was computed, of those that both results hold."""
    return f"on {counted(change.queries, 'common query', 'common queries')}"


def undefined(effect: Effect) -> str:
    """Say why an effect has no value."""
    is_of_relevance = isinstance(effect.estimand, RelativeDelta)
    if effect.queries == 0:
        lacks = "has relevant documents from" if is_of_relevance else "says anything about"
        return f"no query {lacks} both {effect.a} and {effect.b}"
    if is_of_relevance:
        return f"{effect.measure} is 0 for both {effect.a} and {effect.b}"
    return f"{effect.name} is undefined for both {effect.a} and {effect.b}"
