"""Findings: each thing that a result says, in words, and how much it matters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ranktilt.auditing.answer.verdict import FindingKind, Verdict, finding_order
from ranktilt.reporting.tones import Tone


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that a result says, and how much it matters."""

    kind: FindingKind
    """What sort of statement it is."""
    sentence: str
    """The statement."""
    size: float = 0.0
    """Distance from level in margins; comparable between findings of one kind."""
    run: str = ""
    """Name of the ranker; empty where it is about none."""
    verdict: Verdict | None = None
    """The verdict on the run, where it is one."""
    tone: Tone = ""
    """The tone of its sentence."""

    @property
    def order(self) -> tuple[int, float]:
        """Its place among findings: by kind, the largest first."""
        return finding_order(self.kind, self.size)


def ranked(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Put findings in the order in which they come; those of equal weight stay in theirs."""
    return tuple(sorted(findings, key=lambda finding: finding.order))


def first_of(findings: Sequence[Finding], nothing: str = "Nothing was compared.") -> Finding:
    """Return the first finding as a headline; `nothing` is said where there is none."""
    if not findings:
        return Finding(kind="described", sentence=nothing)
    first = findings[0]
    sentence = f"{first.sentence.removesuffix('.')}."
    return Finding(kind=first.kind, size=first.size, sentence=sentence)
