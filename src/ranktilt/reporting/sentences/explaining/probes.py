"""Sentences about probes: a summary, the findings of figures and tables, and what they mean.

A probe measures a property of texts, and compares a source with the reference over twins, versions
of one text by both. Its findings are notes, or else an effect size: Hedges' g with an interval.

Two probes have a meaning of their own. An *attribution* says which properties of texts go with a
gap, the mean difference of a ranker's scores between twins, in standard deviations of a query's
scores. *Theorem 4.1* of Dai et al. (KDD 2024) says under which conditions rewrites are easier to
predict for a retriever's language model than their originals, that is, have fewer nats per token.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from ranktilt.data.notes.base import Note
from ranktilt.data.notes.probes import GapAttributed, TheoremChecked
from ranktilt.errors import counted, join_words
from ranktilt.explaining.base import EffectSize, ProbeFigure, ProbeResult, ProbeTable
from ranktilt.measures.printing import ends_apart
from ranktilt.reporting.numbers import always_signed
from ranktilt.reporting.sentences.grammar import singular_or_plural
from ranktilt.reporting.sentences.notes import note_sentences

if TYPE_CHECKING:
    from ranktilt.explaining.explanation import Explanation

EVERYWHERE = "divergence, share of positions"
"""The condition of the theorem whose value is a share of positions; all others are in nats."""
CONCLUSION = "conclusion"
"""The row of the theorem's conclusion, which holds below 0; conditions hold above."""
CONDITION_WORDS: Mapping[str, str] = {
    "semantic superiority": "semantic superiority",
    "conditional redundancy": "conditional redundancy",
    EVERYWHERE: "divergence everywhere",
    "divergence, mean margin": "divergence on average",
    CONCLUSION: "conclusion",
}
"""Label in a figure of each condition of the theorem, by its name, and of the conclusion."""


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
    low, high = ends_apart((effect.low, effect.high), 0.0, always_signed)
    interval = f"g = {always_signed(effect.g)} [{low}, {high}]"
    pairs = counted(effect.pairs, "pair", "pairs")
    caution = "" if effect.is_shown else "; no difference is shown"
    return f"{effect.source}: {means}, {interval} over {pairs}{caution}"


def derived_words(result: ProbeResult) -> dict[str, Any]:
    """Return the summary of a probe's result, which a file holds besides its fields."""
    return {"summary": probe_summary(result)}


def derived_part_words(part: ProbeFigure | ProbeTable) -> dict[str, Any]:
    """Return the findings of a figure or a table in words, which a file holds besides its data."""
    return {"says": findings_words(part.findings)}


def attributed_gaps(explanation: Explanation) -> tuple[GapAttributed, ...]:
    """Return the gaps of an explanation, the clearest first."""
    return tuple(sorted(explanation.attributed, key=_clearness, reverse=True))


def _clearness(gap: GapAttributed) -> float:
    """Return how many half-widths of its interval a gap is from 0; 0 without an interval."""
    half_width = (gap.high - gap.low) / 2
    if math.isnan(half_width) or not gap.gap:
        return 0.0
    return math.inf if half_width == 0 else abs(gap.gap) / half_width


def attribution_meaning(gaps: Sequence[GapAttributed]) -> str:
    """Say which properties of texts go with the gaps, and that this is no cause."""
    shown_gaps = [gap for gap in gaps if gap.is_shown]
    if not shown_gaps:
        return "No gap between the sides is shown, so there is nothing to explain."
    # Twins that a run retrieved are selected by their scores, which would bias an attribution.
    examined_gaps = [gap for gap in shown_gaps if not gap.is_of_retrieved]
    if not examined_gaps:
        return (
            "A gap is shown, but only among twins selected by score. Name the ranker (-r) instead "
            "of its run to see which property goes with the gap."
        )
    properties = list(dict.fromkeys(chain.from_iterable(gap.with_gap for gap in examined_gaps)))
    if not properties:
        return "A gap is shown, but none of the properties examined is shown to go with it."
    these = singular_or_plural(len(properties), "it", "these")
    return (
        f"Look at {join_words(properties)} first, as the gap goes with {these}. Only texts "
        "edited on purpose would show whether that is the cause."
    )


def theorem_findings(notes: Sequence[object]) -> tuple[TheoremChecked, ...]:
    """Return the findings about the theorem among the findings of probes."""
    return tuple(note for note in notes if isinstance(note, TheoremChecked))


def sources_sentence(findings: Sequence[TheoremChecked]) -> str:
    """Say of several sources whose texts are easier to predict, and where the theorem applies."""
    sources: dict[str, list[str]] = {}
    for finding in findings:
        sources.setdefault(finding.conclusion, []).append(finding.source)
    phrases = [
        f"{join_words(sources[conclusion])} texts {comparative}"
        for conclusion, comparative in (("yes", "easier"), ("no", "harder"))
        if conclusion in sources
    ]
    clauses = []
    if phrases:
        clauses.append(f"finds {join_words(phrases)} to predict than their originals")
    if "undecided" in sources:
        names = join_words(sources["undecided"])
        originals = "" if phrases else " to predict than their originals"
        clauses.append(f"is not shown to find {names} texts easier or harder{originals}")
    applies = sum(map(_theorem_applies, findings))
    return (
        f"The retriever's model {join_words(clauses)}; theorem 4.1 applies to {applies} of "
        f"{len(findings)} sources."
    )


def _theorem_applies(finding: TheoremChecked) -> bool:
    """Return whether every condition was checked and holds."""
    return finding.is_complete and not finding.failed and not finding.undecided


def theorem_meaning(findings: Sequence[TheoremChecked]) -> str:
    """Say whether the theorem predicts a tilt, and that only an audit shows one."""
    failing = [finding for finding in findings if finding.failed]
    audit_hint = "Only an audit shows whom your ranker favours."
    if all(map(_theorem_applies, findings)):
        return (
            "The conditions hold under which rewrites are easier to predict for a retriever's "
            f"model. A ranker that responds to that may favour them. {audit_hint}"
        )
    if failing:
        sources = ""
        if len(findings) > 1:
            sources = f" for {len(failing)} of {counted(len(findings), 'source', 'sources')}"
        return (
            f"The theorem makes no prediction{sources}, as its conditions do not hold. {audit_hint}"
        )
    return f"Whether the theorem applies here stays open. {audit_hint}"
