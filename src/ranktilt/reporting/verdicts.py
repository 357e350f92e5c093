"""What the tables and figures of an audit share: who is favoured, in words, signs and tones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ranktilt.auditing.effects import ALPHA, Effect
from ranktilt.auditing.groups import Pair
from ranktilt.reporting.figures.drawing import known_size
from ranktilt.reporting.tones import VERDICT_TONES, Tone

VERDICT_WORDS = {
    "favours": ("favours one side", "favour one side"),
    "level": ("is level", "are level"),
    "outside": ("lies outside the random band", "lie outside the random band"),
    "inconclusive": ("is inconclusive", "are inconclusive"),
}
"""What is said of one verdict of each kind, and of several."""


def mark(tilt: Effect) -> str:
    """Mark what is significant after correction."""
    return "*" if tilt.p_corrected < ALPHA else ""


def tone_of(tilt: Effect, level: float) -> Tone:
    """Return the colour of the side that a comparison favours; none where no side is."""
    kind = tilt.verdict(level)
    return VERDICT_TONES[kind] if kind in ("a", "b") else ""


def sides_legend(pairs: Sequence[Pair]) -> str:
    """Say which sign favours which group of the first pair."""
    more = " (and likewise for the other pairs)" if len(pairs) > 1 else ""
    return f"+ favours {pairs[0][0]}, − favours {pairs[0][1]}{more}"


def starred(spec: Mapping[str, Any]) -> str:
    """Say what a star means in an audit and in what is made of audits."""
    tests = "paired t tests" if spec.get("test") == "t" else "permutation tests"
    return f"* corrected p < .05 ({str(spec['correction']).capitalize()}; {tests})."


def could_detect(tilt: Effect) -> list[str]:
    """Say which tilts could have been seen, as verdicts do; nothing where the queries do not spread at all."""
    if not known_size(tilt.detectable):
        return []
    some = f"could detect {tilt.detectable:.0f} % or more"
    return ["could not detect any tilt" if tilt.detectable > 200 else some]


def sides_named(pair: Pair) -> dict[Tone, str]:
    """Say in words what each tone means for two groups."""
    return {
        "first": f"favours {pair[0]}",
        "second": f"favours {pair[1]}",
        "good": "level",
        "unsure": "inconclusive",
    }
