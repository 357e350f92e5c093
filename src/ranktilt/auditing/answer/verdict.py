"""One plain sentence per ranker, by one rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from ranktilt.auditing.effects import ALPHA, FEWEST, Effect
from ranktilt.errors import counted
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.measures.margin import Margin, margin_words
from ranktilt.measures.printing import digits_apart
from ranktilt.measures.printing import signed as signed


class Verdict(NamedTuple):
    """What is said of one run and pair of groups; the same in every result that gives verdicts."""

    run: str
    kind: Literal["favours", "level", "outside", "inconclusive"]
    """``outside``: outside the random band, on a question about all groups at once, which favours nobody."""
    side: str | None
    """The favoured group; None unless `kind` is ``favours``."""
    sentence: str
    primary: str
    """The question that was answered."""
    margin: Margin
    """Half-width of what counts as level."""
    slight: bool
    """Whether a side is favoured, but the whole interval lies within the margin."""
    agree: int
    """Questions with the same verdict, the primary one included."""
    measures: int
    a: str
    b: str
    """The groups that are compared."""


def judge(
    primary: str, effects: Sequence[Effect], margin: Margin, *, noun: str = "text"
) -> Verdict:
    """Give the verdict on one run and pair by its answer to the question of notation `primary`; others are beside."""
    tested = [e for e in effects if not e.estimand.descriptive]
    first = next(e for e in tested if e.measure == primary)
    if not first.estimand.sided:
        return _beside_band(first, margin)
    kinds = {e.measure: e.verdict(margin) for e in tested if e.estimand.sided}
    kind = kinds[primary]
    agree = sum(other == kind for other in kinds.values())
    side, slight = (
        first.side(kind) or None,
        first.favours != "" and first.extent(margin) == "within",
    )
    asked = "measures" if isinstance(first.estimand, RelativeDelta) else "questions"
    beside = f"agrees on {agree} of {len(kinds)} {asked}" if len(kinds) > 1 else ""
    if side is not None:
        least = f" slightly, within {margin_words(margin)}" if slight else ""
        text = f"{first.run} favours {side} {noun}{least}: {finding(first, noun)}"
        word: Literal["favours", "level", "inconclusive"] = "favours"
    elif kind == "level":
        word, text = (
            "level",
            f"{first.run} is level between {first.a} and {first.b}, within {margin_words(margin)}: ",
        )
        text += finding(first, noun)
    else:
        word, beside = "inconclusive", _elsewhere(first, tested, kinds)
        text = _inconclusive(first, noun)
    sentence = "; ".join(filter(None, (text, beside)))
    return Verdict(
        first.run,
        word,
        side,
        sentence,
        primary,
        margin,
        slight,
        agree,
        len(kinds),
        first.a,
        first.b,
    )


def finding(e: Effect, noun: str) -> str:
    """Say an answer in plain words, then its number with interval and p, and what is level where that is not 0."""
    of = e.estimand
    if e.value != e.value:
        return f"{e.name} is undefined"
    name = f"{of.term} " if isinstance(of, RelativeDelta) else ""
    level = of.answer(e.level)
    words = of.finding(e, noun)
    is_said = level in (of.answer(0.0), of.answer(np.nan)) or words.endswith("is level")
    middle = "" if is_said else f"where {level} is level"
    value = " ".join(filter(None, (f"{name}{of.answer(e.value)}", _interval(e))))
    return f"{words} ({', '.join(filter(None, (value, middle, corrected_p(e))))})"


def _interval(e: Effect) -> str:
    """Print an effect's interval in brackets, with digits enough to tell it from level; empty where it has none."""
    of = e.estimand
    if not e.has_interval:
        return ""
    digits = digits_apart(
        [of.scale * end for end in (e.low, e.high)], [of.scale * e.level], of.digits
    )
    return f"[{of.amount(e.low, digits=digits)}, {of.amount(e.high, digits=digits)}]"


def corrected_p(e: Effect) -> str:
    """Print the corrected p with its name; empty where there is none."""
    return "" if np.isnan(e.p_corrected) else f"corrected p {probability(e.p_corrected)}"


def _beside_band(e: Effect, margin: Margin) -> Verdict:
    """Say of a question about all groups at once where its answer lies beside the random band."""
    of = e.estimand
    interval = f"95 % interval [{of.amount(e.low)}, {of.amount(e.high)}]" if e.has_interval else ""
    band = f"random band [{of.amount(e.band_low)}, {of.amount(e.band_high)}]"
    numbers = ", ".join(filter(None, (of.answer(e.value), interval, band, corrected_p(e))))
    few = too_few(e)
    word = "indistinguishable from a random ranking"
    if e.place != "inside":
        word = (
            of.outside[e.place == "above"]
            if e.shown
            else "not significantly different from random rankings"
        )
    text = f"{e.run}: {f'inconclusive: {few}' if few else word}: {e.name} {numbers}"
    kind: Literal["outside", "inconclusive"] = "outside" if e.shown else "inconclusive"
    return Verdict(e.run, kind, None, text, repr(of), margin, False, 1, 1, e.a, e.b)


def across(p: float, level: str) -> str:
    """Say why nothing is shown although p is below .05; empty where it is not."""
    return f"p is below .05, but the interval reaches across {level}" if p < ALPHA else ""


def too_few(effect: Effect) -> str:
    """Say that there is too little for a verdict; empty where there is enough."""
    if effect.testable:
        return ""
    if effect.sample >= effect.queries:
        queries = counted(effect.queries, "query is", "queries are")
        return f"{queries} too few for a verdict; it takes {FEWEST}"
    ones = "one" if effect.sample == 1 else "ones"
    return (
        f"these queries and documents count as {effect.sample:.3g} independent {ones}, "
        f"too few for a verdict; it takes {FEWEST}"
    )


def cannot_vary(e: Effect) -> str:
    """Say what keeps an answer from being level, however close it is; empty where nothing does."""
    if e.can_be_level or e.variation is None:
        return ""
    return f"{e.variation.words}, so that level cannot be shown"


def _elsewhere(first: Effect, others: Sequence[Effect], kinds: Mapping[str, str]) -> str:
    """What secondary questions find where the primary one finds nothing."""
    sides = {"a": f"{first.a} favoured", "b": f"{first.b} favoured", "level": "level"}
    names = {
        e.measure: e.measure if isinstance(e.estimand, RelativeDelta) else e.name for e in others
    }
    told = {kind: [names[of] for of, other in kinds.items() if other == kind] for kind in sides}
    parts = [f"{sides[kind]} on {', '.join(on)}" for kind, on in told.items() if on]
    return f"but {'; '.join(parts)}" if parts else ""


def could_detect(e: Effect) -> str:
    """Say what these queries could show: ``a tilt of 24 % or more``."""
    of, most = e.estimand, e.estimand.bounds[1] - e.estimand.level
    if not e.detectable <= most:
        return "this query set could not detect any tilt"
    size = of.amount(
        e.detectable, sign=False, digits=0 if of.scale == 100 or of.suffix == " %" else None
    )
    return f"this query set could only detect a tilt of {size}{of.suffix} or more"


def undefined(e: Effect) -> str:
    measured = isinstance(e.estimand, RelativeDelta)
    if e.queries == 0:
        return f"no query {'has a relevant document' if measured else 'says anything'} of both {e.a} and {e.b}"
    return (
        f"{e.measure} is 0 for both {e.a} and {e.b}"
        if measured
        else f"{e.name} is undefined for both {e.a} and {e.b}"
    )


def _inconclusive(e: Effect, noun: str) -> str:
    front = f"{e.run}: inconclusive"
    if e.queries == 0 or e.value != e.value:
        return f"{front}: {undefined(e)}"
    why = could_detect(e)
    if e.error == 0:
        why = "every resample says the same"
    why = (
        too_few(e)
        or cannot_vary(e)
        or across(e.p_corrected, f"level ({e.estimand.answer(e.level)})")
        or why
    )
    return f"{front}: {why}; {finding(e, noun)}"


def bounds(low: float, high: float, *limits: float) -> str:
    """Print an interval of percentages, with digits enough to tell its ends from the limits they are held against."""
    digits = digits_apart((low, high), limits)
    return f"[{signed(low, digits)}, {signed(high, digits)}]"


def probability(p: float) -> str:
    """Print a p-value with a relation sign."""
    if p != p:
        return "undefined"
    return "< .001" if p < 0.001 else f"= {p:.3f}".replace("0.", ".", 1)


def effect_row(e: Effect, margin: Margin) -> dict[str, Any]:
    """Return an effect as results list it for other programs: numbers as printed, with their unit and verdict."""
    of, kind = e.estimand, e.verdict(margin)
    numbers = {name: of.scale * getattr(e, name) for name in ("value", "low", "high", "level")}
    unit = of.suffix.strip() or "ratio" if of.level == 1 else of.suffix.strip()
    front = {"run": e.run, "question": e.measure, "a": e.a, "b": e.b, **numbers, "unit": unit}
    word = "favours" if e.side(kind) else kind
    return {
        **front,
        "p": e.p_corrected,
        "queries": e.queries,
        "kind": word,
        "side": e.side(kind) or None,
    }
