"""One plain sentence per ranker, by one rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from ranktilt.auditing.effects import ALPHA, FEW_QUERIES, Effect
from ranktilt.errors import counted
from ranktilt.measures.printing import digits_apart
from ranktilt.measures.printing import signed as signed


class Verdict(NamedTuple):
    """What an audit says about one run."""

    run: str
    kind: Literal["favours", "level", "outside", "inconclusive"]
    """``outside``: outside the random band, on a question about all groups at once, which favours nobody."""
    favours: str | None
    """The favoured group; None unless `kind` is ``favours``."""
    sentence: str
    agree: int
    """Measures with the same verdict, the primary one included."""
    measures: int


def judge(tilts: Sequence[Effect], level: float, *, noun: str = "text", informative: int | None = None) -> Verdict:
    """Give the verdict on one run and pair from its Relative Δ, the primary measure's first: see `Effect.verdict`.

    `informative`: queries in which either side is above 0 on the primary measure, where this is known.
    """
    first = tilts[0]
    kinds = [t.verdict(level) for t in tilts]
    agree = kinds.count(kinds[0])
    agreed = f"agrees on {agree} of {len(tilts)} measures" if len(tilts) > 1 else ""
    side = {"a": first.a, "b": first.b}.get(kinds[0])
    delta = f"Relative Δ {signed(first.value)} % on {first.measure}, 95 % interval {bounds(first.low, first.high)}"
    band = "" if first.twins else f", random band {bounds(first.band_low, first.band_high)}"
    if side is not None:
        text = f"{first.run} favours {side} {noun}: {delta}{band}, corrected p {probability(first.p_corrected)}"
        text = "; ".join(filter(None, (text, agreed)))
        return Verdict(first.run, "favours", side, text, agree, len(tilts))
    if kinds[0] == "level":
        middle = "" if first.twins else f" of the median of random labels ({signed(first.level)} %)"
        text = f"{first.run} is level between {first.a} and {first.b}: {delta}{band}, within ±{level:g} points{middle}"
        return Verdict(first.run, "level", None, "; ".join(filter(None, (text, agreed))), agree, len(tilts))
    text = "; ".join(filter(None, (_inconclusive(first, delta + band, informative), _elsewhere(tilts, kinds))))
    return Verdict(first.run, "inconclusive", None, text, agree, len(tilts))


def judge_card(estimates: Sequence[Effect], *, noun: str = "text", primary: str | None = None) -> Verdict:
    """Give the verdict on one run and pair that nothing is judged for, from its card.

    On the primary estimand; where none is named, on the twins head to head, or else on who fills the page.
    """
    asked = [e for e in estimates if not e.estimand.descriptive or repr(e.estimand) == primary]
    first = next((e for e in asked if repr(e.estimand) == (primary or "HeadToHead")), asked[0])
    if not first.estimand.sided:
        return _beside_band(first)
    side = first.side(first.favours)
    agree = sum(e.favours == first.favours for e in asked)
    amount = first.estimand.amount
    numbers = f"{first.estimand.answer(first.value)}, 95 % interval [{amount(first.low)}, {amount(first.high)}]"
    if primary and first.banded:
        numbers += f", random band [{amount(first.band_low)}, {amount(first.band_high)}]"
    text = f"{first.name} {numbers}, corrected p {probability(first.p_corrected)}"
    if side:
        text = "; ".join(
            filter(None, (f"{first.run} favours {side} {noun}: {text}", _others(agree - 1, len(asked) - 1)))
        )
        return Verdict(first.run, "favours", side, text, agree, len(asked))
    why = across(first.p_corrected, f"level ({amount(first.level)})")
    if not first.testable:
        told = counted(first.sample, "distinct query or document is", "distinct queries or documents are")
        why = f"{told} too few to test"
    text = "; ".join(filter(None, (text, why)))
    return Verdict(first.run, "inconclusive", None, f"{first.run}: inconclusive: {text}", agree, len(asked))


def _beside_band(e: Effect) -> Verdict:
    """Say of a question about all groups at once where its answer lies beside the random band."""
    of = e.estimand
    numbers = f"{of.answer(e.value)}, 95 % interval [{of.amount(e.low)}, {of.amount(e.high)}]"
    band = f"random band [{of.amount(e.band_low)}, {of.amount(e.band_high)}]"
    shown = e.place != "inside" and e.significant
    said = "indistinguishable from a random ranking"
    if e.place != "inside":
        said = of.outside[e.place == "above"] if shown else "not significantly different from random rankings"
    text = f"{e.run}: {said}: {e.name} {numbers}, {band}, corrected p {probability(e.p_corrected)}"
    return Verdict(e.run, "outside" if shown else "inconclusive", None, text, 1, 1)


def across(p: float, level: str) -> str:
    """Say why nothing is shown although p is below .05; empty where it is not."""
    return f"p is below .05, but the interval reaches across {level}" if p < ALPHA else ""


def too_few(tilt: Effect) -> str:
    """Say that there is too little to test; empty where there is enough."""
    if tilt.testable:
        return ""
    of = f"for a table of {tilt.tests} tests" if tilt.twins and tilt.tests > 1 else "to test"
    if tilt.sample < tilt.queries:
        told = counted(tilt.sample, "distinct query or document", "distinct queries or documents")
        return f"only {told} say{'s' if tilt.sample == 1 else ''} anything, too few {of}"
    return f"{counted(tilt.queries, 'query is', 'queries are')} too few {of}"


def _others(agree: int, others: int) -> str:
    """How many of the other questions have the same answer."""
    if not others:
        return ""
    which = "the other question" if others == 1 else f"the other {others} questions"
    if agree == others:
        return f"{which} {'agrees' if others == 1 else 'agree'}"
    if not agree:
        return f"{which} {'does' if others == 1 else 'do'} not show it"
    return f"{agree} of {which} {'agrees' if agree == 1 else 'agree'}"


def _elsewhere(tilts: Sequence[Effect], kinds: Sequence[str]) -> str:
    """What other measures find where the primary one finds nothing."""
    sides = {"a": f"{tilts[0].a} favoured", "b": f"{tilts[0].b} favoured", "level": "level"}
    found = {kind: [t.measure for t, k in zip(tilts, kinds, strict=True) if k == kind] for kind in sides}
    said = [f"{sides[kind]} on {', '.join(names)}" for kind, names in found.items() if names]
    return f"but {'; '.join(said)}" if said else ""


def _inconclusive(tilt: Effect, delta: str, informative: int | None) -> str:
    if tilt.queries == 0:
        return f"{tilt.run}: inconclusive: no query has a relevant document of both {tilt.a} and {tilt.b}"
    if tilt.value != tilt.value:
        return f"{tilt.run}: inconclusive: {tilt.measure} is 0 for both {tilt.a} and {tilt.b}"
    could = f"this query set could only detect a tilt of {tilt.detectable:.0f} % or more"
    if not tilt.twins:
        could = (
            f"this query set could only detect {tilt.detectable:.0f} points or more from the median of random labels"
        )
    if tilt.detectable > 200:
        could = "this query set could not detect any tilt"
    elif tilt.error == 0 and informative is not None and informative < min(tilt.queries, FEW_QUERIES):
        could = f"only {counted(informative, 'query', 'queries')} retrieved a relevant document of either side"
    elif tilt.error == 0:
        could = "every resample says the same"
        could += f": too few queries ({tilt.queries}) to test" if tilt.queries < FEW_QUERIES else ""
    could = too_few(tilt) or across(tilt.p_corrected, f"level ({signed(tilt.level)} %)") or could
    return f"{tilt.run}: inconclusive: {could}; {delta}, corrected p {probability(tilt.p_corrected)}"


def bounds(low: float, high: float, *limits: float) -> str:
    """Print an interval of percentages, with digits enough to tell its ends from the limits they are held against."""
    digits = digits_apart((low, high), limits)
    return f"[{signed(low, digits)}, {signed(high, digits)}]"


def probability(p: float) -> str:
    """Print a p-value with a relation sign."""
    if p != p:
        return "undefined"
    return "< .001" if p < 0.001 else f"= {p:.3f}".replace("0.", ".", 1)
