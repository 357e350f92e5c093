"""Sentences about probes: a summary, and the findings of figures and tables.

A probe measures a property of texts, and compares a source with the reference over twins, versions
of one text by both. Its findings are notes, or else an effect size: Hedges' g with an interval.
"""

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
    """Join findings to one sentence, or leave them as several if each ends with a full stop."""
    sentences = note_sentences(findings)
    if all(text.endswith(".") for text in sentences):
        return " ".join(sentences)
    return f"{'; '.join(sentences)}."


def effect_sentence(reference: str, effect: EffectSize) -> str:
    """Say how far a source differs from its twins of the reference, without a full stop."""
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
    caution = "" if effect.is_shown else "; no difference is shown"
    return f"{effect.source}: {means}, {interval} over {pairs}{caution}"


def derived_words(result: ProbeResult) -> dict[str, Any]:
    """Return the summary of a probe's result, which a file holds besides its fields."""
    return {"summary": probe_summary(result)}


def derived_part_words(part: ProbeFigure | ProbeTable) -> dict[str, Any]:
    """Return the findings of a figure or a table in words, which a file holds besides its data."""
    return {"says": findings_words(part.findings)}
