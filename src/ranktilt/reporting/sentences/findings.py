"""Findings: each statement of a result in words, and what it needs to be sorted and coloured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ranktilt.auditing.answer.verdict import FindingKind, Verdict, finding_order
from ranktilt.reporting.tones import Tone


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A statement of a result, such as whom a run favours, and how much it matters."""

    kind: FindingKind
    """Kind of the statement: ``favours``, ``level``, ``described`` and so on."""
    sentence: str
    """The statement."""
    size: float = 0.0
    """Size by which findings of one kind are sorted, mostly the distance from neutral in margins.
    """
    run: str = ""
    """Name of the ranker, judge or kind of pairs that it is about; empty for none."""
    verdict: Verdict | None = None
    """Verdict that the sentence says; None if it says something else."""
    tone: Tone = ""
    """Tone of the sentence, which gives its colour; empty for the tone of its kind."""

    @property
    def order(self) -> tuple[int, float]:
        """Sort key among findings: by kind, and the largest first."""
        return finding_order(self.kind, self.size)


def sort_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort findings by kind and size; equal ones stay in the order that they have."""
    return tuple(sorted(findings, key=lambda finding: finding.order))


def first_finding(findings: Sequence[Finding], nothing: str = "Nothing was compared.") -> Finding:
    """Return the first finding, with a full stop, as a headline.

    Without findings the headline is the sentence `nothing`.
    """
    if not findings:
        return Finding(kind="described", sentence=nothing)
    first = findings[0]
    sentence = f"{first.sentence.removesuffix('.')}."
    return Finding(kind=first.kind, size=first.size, sentence=sentence)
