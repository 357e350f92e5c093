"""What the tables and figures of an audit share: who is favoured, in words, signs and tones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ranktilt.auditing.answer.verdict import Verdict
from ranktilt.auditing.effects import ALPHA, Effect
from ranktilt.auditing.groups import Pair
from ranktilt.reporting.tones import VERDICT_TONES, Tone

VERDICT_WORDS = {
    "favours": ("favours one side", "favour one side"),
    "outside": ("lies outside the random band", "lie outside the random band"),
    "conflict": ("answers in opposite ways", "answer in opposite ways"),
    "inconclusive": ("is inconclusive", "are inconclusive"),
    "level": ("is level", "are level"),
}
"""What is said of one verdict of each kind, and of several, in the order in which they are told."""
ONE_AT_A_TIME = "95 % intervals are one at a time, p is corrected."
"""An interval can exclude what its corrected p does not."""


def mark(tilt: Effect) -> str:
    """Mark what is significant after correction."""
    return "*" if tilt.p_corrected < ALPHA else ""


def verdict_tone(verdict: Verdict, first: str) -> Tone:
    """Return the tone of the favoured side, the first of a pair or the second, or else of the verdict."""
    return VERDICT_TONES[
        verdict.kind if verdict.side is None else "a" if verdict.side == first else "b"
    ]


def sides_legend(pairs: Sequence[Pair]) -> str:
    """Say which sign favours which group of the first pair."""
    more = " (and likewise for the other pairs)" if len(pairs) > 1 else ""
    return f"+ favours {pairs[0][0]}, − favours {pairs[0][1]}{more}"


def starred(spec: Mapping[str, Any]) -> str:
    """Say what a star means in an audit and in what is made of audits."""
    kind = "paired t tests" if spec.get("test") == "t" else "p is the inversion of the interval"
    return f"* corrected p < .05 ({str(spec['correction']).capitalize()}; {kind}). {ONE_AT_A_TIME}"


def sides_named(pair: Pair) -> dict[Tone, str]:
    """Say in words what each tone means for two groups."""
    return {
        "first": f"favours {pair[0]}",
        "second": f"favours {pair[1]}",
        "good": "level",
        "unsure": "inconclusive",
    }
