"""An effect in words: its answer with its numbers, and why it decides nothing.

An effect is the answer of one run to one question about two groups, such as Relative Δ; the
question is its estimand. A tilt is an effect that says whom the run favours. An answer is neutral
where it favours neither group, and level where it is shown to be as near to neutral as the margin.
Its p is corrected for all questions that are asked together. It is detectable from the size on that
such queries would find four times in five.

Functions whose name ends in ``_words`` return a part of a sentence.
"""

from __future__ import annotations

import math

from ranktilt.auditing.effects import ALPHA, FEWEST, Change, Effect
from ranktilt.errors import counted
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.measures.printing import digits_apart, signed
from ranktilt.reporting.numbers import probability
from ranktilt.reporting.sentences.answers import answer_words
from ranktilt.reporting.sentences.findings import variation_words


def effect_words(effect: Effect, noun: str) -> str:
    """Say an answer in plain words, then its numbers, and the neutral value where it is not 0.

    The words begin with the favoured side; the numbers keep the sign that tables and files have.
    `noun` is what groups are of: ``text`` or ``documents``.
    """
    estimand = effect.estimand
    if math.isnan(effect.value):
        return f"{effect.name} is undefined"
    favoured = effect.side(effect.favours) or effect.a
    words = answer_words(estimand, effect.seen_from(favoured), noun)
    name = f"{estimand.term} " if isinstance(estimand, RelativeDelta) else ""
    value = f"{name}{estimand.answer(effect.value)}"
    says_neutral_value = words.endswith("is neutral")  # as "where 50 % is neutral"
    numbers = [
        " ".join(filter(None, (value, interval_words(effect)))),
        "" if says_neutral_value else neutral_words(effect),
        observed_words(effect),
        corrected_p_words(effect),
    ]
    return f"{words} ({', '.join(filter(None, numbers))})"


def neutral_words(effect: Effect) -> str:
    """Give the neutral value; empty where it is 0 or not known."""
    answer = effect.estimand.answer
    neutral = answer(effect.neutral)
    is_usual = neutral in (answer(0.0), answer(math.nan))
    return "" if is_usual else f"neutral value {neutral}"


def observed_words(effect: Effect) -> str:
    """Give the answer by the labels as they are, where the answer is corrected for wrong labels.

    Empty where it is not corrected.
    """
    if effect.observed is None:
        return ""
    return f"{effect.estimand.answer(effect.observed.value)} by the labels as they are"


def interval_words(effect: Effect) -> str:
    """Print an interval, with digits enough to tell its ends from the neutral value.

    Rounded to a decimal, an interval that ends just above 0 would seem to include 0. Empty where
    there is no interval.
    """
    estimand = effect.estimand
    if not effect.has_interval:
        return ""
    ends = [estimand.scale * end for end in (effect.low, effect.high)]
    digits = digits_apart(ends, [estimand.scale * effect.neutral], estimand.digits)
    low = estimand.amount(effect.low, digits=digits)
    high = estimand.amount(effect.high, digits=digits)
    return f"[{low}, {high}]"


def tilt_name(tilt: Effect) -> str:
    """Name the quantity of a tilt: ``Relative Δ``, or the estimand with its cutoff."""
    return tilt.estimand.term if isinstance(tilt.estimand, RelativeDelta) else tilt.name


def tilt_numbers(tilt: Effect, *limits: float) -> str:
    """Print an effect with its unit and interval: ``+5.0 % [+1.0, +9.0]``.

    The interval has digits enough to tell its ends from the neutral value and the limits, in the
    unit of `tilt.value`.
    """
    estimand = tilt.estimand
    if not tilt.has_interval:
        return estimand.answer(tilt.value)
    digits = digits_apart(
        [estimand.scale * end for end in (tilt.low, tilt.high)],
        [estimand.scale * limit for limit in (tilt.neutral, *limits)],
        estimand.digits,
    )
    low, high = (estimand.amount(end, digits=digits) for end in (tilt.low, tilt.high))
    return f"{estimand.answer(tilt.value)} [{low}, {high}]"


def signed_interval(low: float, high: float, *limits: float) -> str:
    """Print an interval with signs, and digits enough to tell its ends from 0 and the limits.

    Such as ``[+1.0, +9.0]``; all numbers are in one unit, percent or points.
    """
    digits = digits_apart((low, high), (0.0, *limits))
    return f"[{signed(low, digits)}, {signed(high, digits)}]"


def corrected_p_words(effect: Effect) -> str:
    """Print the corrected p with its name; empty where there is none."""
    if math.isnan(effect.p_corrected):
        return ""
    return f"corrected p {probability(effect.p_corrected)}"


def low_p_words(p: float, neutral: str) -> str:
    """Say why a corrected p below .05 shows nothing, if the interval includes `neutral`.

    Empty where p is not below .05.
    """
    return f"p is below .05, but the interval includes {neutral}" if p < ALPHA else ""


def too_few_words(effect: Effect) -> str:
    """Say that there is too little for a verdict; empty where there is enough."""
    if effect.testable:
        return ""
    # `sample` is the effective number: how many independent queries or documents the data are
    # worth. It is smaller than the number of queries if these return the same documents.
    if effect.sample >= effect.queries:
        queries = counted(effect.queries, "query is", "queries are")
        return f"{queries} too few for a verdict ({FEWEST} needed)"
    number = f"{effect.sample:.3g}"
    ones = "one" if number == "1" else "ones"
    return (
        f"these queries and documents are worth {number} independent {ones}, "
        f"too few for a verdict ({FEWEST} needed)"
    )


def cannot_vary_words(effect: Effect) -> str:
    """Say why an answer cannot be called level, however close to neutral it is.

    If most lists could not have come out otherwise, as where all documents have the same score, the
    answer is near neutral whatever the ranker favours. Empty where they could.
    """
    if effect.can_be_level or effect.variation is None:
        return ""
    return f"{variation_words(effect.variation)}, so it cannot be shown to be level"


def detectable_words(effect: Effect) -> str:
    """Say which tilt these queries would find four times in five, that is, with 80 % power."""
    size = detectable_size(effect)
    if not size:
        return "these queries could not detect any tilt"
    return f"these queries would find a tilt of {size} four times in five, a smaller one less often"


def detectable_size(effect: Effect) -> str:
    """Print the smallest tilt that these queries would find four times in five: ``12 points``.

    Empty if it is not known, or larger than any tilt can be.
    """
    estimand = effect.estimand
    largest_tilt = estimand.bounds[1] - estimand.neutral
    if not effect.detectable <= largest_tilt:  # too large, or NaN
        return ""
    # A size in percent or points is not known so precisely that decimals would mean something.
    is_percent = estimand.scale == 100 or estimand.suffix == " %"
    size = estimand.amount(effect.detectable, sign=False, digits=0 if is_percent else None)
    return f"{size}{estimand.suffix}"


def common_words(change: Change) -> str:
    """Say on how many queries a change was computed, of those that both results hold."""
    return f"on {counted(change.queries, 'common query', 'common queries')}"


def undefined_words(effect: Effect) -> str:
    """Say why an effect has no value."""
    is_of_relevance = isinstance(effect.estimand, RelativeDelta)
    if effect.queries == 0:
        lacks = "has relevant documents from" if is_of_relevance else "says anything about"
        return f"no query {lacks} both {effect.a} and {effect.b}"
    if is_of_relevance:
        return f"{effect.measure} is 0 for both {effect.a} and {effect.b}"
    return f"{effect.name} is undefined for both {effect.a} and {effect.b}"
