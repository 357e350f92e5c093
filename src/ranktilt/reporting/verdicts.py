"""What the tables and figures of an audit share: who is favoured, in words, signs and tones."""

from __future__ import annotations

from collections.abc import Iterable

from ranktilt.auditing.effects import ALPHA, Effect
from ranktilt.auditing.groups import Pair
from ranktilt.errors import counted
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


def families(correction: str, effects: Iterable[Effect], primary: str) -> str:
    """Name what p are corrected over: the primary question's tests, and all others."""
    first, others = 0, 0
    for e in effects:
        if e.p == e.p and not e.estimand.descriptive:
            first, others = first + (e.measure == primary), others + (e.measure != primary)
    parts = [f"{counted(first, 'test', 'tests')} of {primary}"] if first else []
    if others:
        parts.append(f"over the other {others:,}" if first else counted(others, "test", "tests"))
    return f"{correction.capitalize()} over {', and '.join(parts)}"


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
