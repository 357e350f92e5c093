"""Effects made by hand: one row with this interval and p."""

from typing import Any

from ranktilt.auditing.effects import Effect
from ranktilt.measures.base import estimand, measure
from ranktilt.measures.contrast import RelativeDelta

ASKED = {
    "page": "NDSR@20", "twins": "HeadToHead", "relevant twins": "HeadToHead(pairs=relevant)",
    "other twins": "HeadToHead(pairs=other)", "rank gap": "RankGap", "score gap": "ScoreGap",
    "relative delta": "RelativeDelta(nDCG@3)",
}  # fmt: skip
"""The card's questions, by what stands for them in files."""


def tilt(low: float = 10.0, high: float = 30.0, p: float = 0.001, **fields: Any) -> Effect:
    """A Relative Δ with this interval and corrected p; of twins unless a band is given."""
    made: dict[str, Any] = {
        "run": "bm25", "estimand": RelativeDelta(of=measure(fields.pop("measure", "nDCG@3"))), "a": "human",
        "b": "llm", "value": (low + high) / 2, "low": low, "high": high, "error": 5.0, "p": p, "p_corrected": p,
        "queries": 50, "twins": "band_low" not in fields,
        "parts": {"mean_a": fields.pop("mean_a", 0.3), "mean_b": fields.pop("mean_b", 0.25)},
    }  # fmt: skip
    return Effect(**{**made, **_level(fields), **fields})


def answer(low: float, high: float, kind: str = "page", **fields: Any) -> Effect:
    """An answer of the card with its value in the middle of its interval; of twins unless a band is given."""
    given: dict[str, Any] = {
        "run": "r", "estimand": estimand(ASKED[kind]), "a": "human", "b": "llm", "value": (low + high) / 2,
        "low": low, "high": high, "error": (high - low) / 4, "p": 0.001, "p_corrected": 0.01, "queries": 40,
        "twins": "band_low" not in fields, **_level(fields), **fields,
    }  # fmt: skip
    return Effect(**given)


def _level(fields: dict[str, Any]) -> dict[str, Any]:
    """The median of random labels that lie evenly in their band."""
    return {"band_level": (fields["band_low"] + fields["band_high"]) / 2} if "band_low" in fields else {}
