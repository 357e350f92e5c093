"""Sentences about probes: a summary, and the findings of figures and tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ranktilt.data.notes.base import Note
from ranktilt.errors import counted
from ranktilt.explaining.base import EffectSize, ProbeFigure, ProbeResult, ProbeTable
from ranktilt.reporting.sentences.notes import note_sentences


def probe_summary(result: ProbeResult) -> str:
    """Say what a probe found: its findings, or else how far twins differ."""
    if result.findings:
        return findings_words(result.findings)
    effects = (effect_sentence(result.reference, effect) for effect in result.effects)
    return f"{'; '.join(effects)}." if result.effects else ""


def findings_words(findings: Iterable[Note]) -> str:
    """Join findings to one sentence; those that are sentences already stand one after the other."""
    words = note_sentences(findings)
    if all(text.endswith(".") for text in words):
        return " ".join(words)
    return f"{'; '.join(words)}."


def effect_sentence(reference: str, effect: EffectSize) -> str:
    """Say how far a source differs from its twins, without a full stop."""
    if not effect.pairs:
        return f"{effect.source} cannot be compared with {reference}, as no twins have a value"
    means = (
        f"{effect.source_mean:.2f} {effect.quantity} against "
        f"{effect.reference_mean:.2f} for {reference}"
    )
    if np.isnan(effect.g):
        return f"{effect.source}: {means}"
    interval = f"g = {effect.g:+.2f} [{effect.low:+.2f}, {effect.high:+.2f}]".replace("-", "−")
    pairs = counted(effect.pairs, "pair", "pairs")
    still = "" if effect.is_shown else "; no difference is shown"
    return f"{effect.source}: {means}, {interval} over {pairs}{still}"


def derived_words(result: ProbeResult) -> dict[str, Any]:
    """Return the summary of a probe's result, which a file holds besides its fields."""
    return {"summary": probe_summary(result)}


def derived_part_words(part: ProbeFigure | ProbeTable) -> dict[str, Any]:
    """Return the findings of a figure or a table in words, which a file holds besides its data."""
    return {"says": findings_words(part.findings)}
