"""Where each kind of result is put in words; the modules are imported when one is shown."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ranktilt.data.notes.base import Note
from ranktilt.reporting.sentences.findings import Finding

_DERIVED = {
    "Audit": "verdicts:derived",
    "Bench": "mitigation.mitigate:derived",
    "CheckResult": "checking.check:derived",
    "CitationAudit": "citing.cite:derived",
    "CitationComparison": "citing.comparison:derived",
    "Comparison": "comparison.meaning:derived",
    "ContextExperiment": "citing.context_experiment:derived",
    "Controlled": "controls:derived",
    "Equivalence": "checking.check:derived_equivalence",
    "FactorEffects": "explaining.factors:derived",
    "FamilyPreference": "judging.judge:derived_preference",
    "FaultRow": "checking.faults:derived",
    "FileReport": "checking.file_report:derived",
    "Gate": "gate:derived",
    "GateRow": "gate:derived_row",
    "JudgeAudit": "judging.judge:derived",
    "JudgeDrift": "judging.drift:derived",
    "LimitCheck": "gate:derived_check",
    "PairwiseAudit": "pairwise:derived",
    "ProbeFigure": "explaining.probes:derived_part",
    "ProbeResult": "explaining.probes:derived",
    "ProbeTable": "explaining.probes:derived_part",
    "RunRanks": "comparison.run_ranks:derived",
    "SourceAudits": "source_audits:derived",
    "TrainingStudy": "training_study:derived",
    "UnmatchedCall": "notes.comparisons:derived_unmatched",
}
"""The function that puts a result, or a part of one, in words, by its class."""
_LEADING = {
    "Bench": "mitigation.mitigate:leading",
    "CitationAudit": "citing.cite:leading",
    "CitationComparison": "citing.comparison:leading",
    "Comparison": "comparison.compare:leading",
    "ContextExperiment": "citing.context_experiment:leading",
    "ExplainedGaps": "explaining.properties:leading",
    "FactorEffects": "explaining.factors:leading",
    "Gate": "gate:leading",
    "JudgeAudit": "judging.judge:leading",
    "JudgeDrift": "judging.drift:leading",
    "PairwiseAudit": "pairwise:leading",
    "RunRanks": "comparison.run_ranks:leading",
    "SequentialAudit": "sequential:leading",
    "TrainingStudy": "training_study:leading",
}
"""The finding that leads, by the class of the result."""
_SENTENCES = {
    "ChangeVerdict": "comparison.compare:change_verdict_sentence",
    "Mismatch": "notes.comparisons:mismatch_words",
    "PairVerdict": "pairwise:pair_verdict_sentence",
    "ProbeResult": "explaining.probes:probe_summary",
    "Verdict": "verdicts:verdict_sentence",
}
"""The sentence of a verdict, a mismatch, or a probe's finding, by its class."""


def derived(record: Any) -> dict[str, Any]:
    """Return the words that a file holds of a result, or of a part of it, besides the fields.

    Most parts have none.
    """
    if isinstance(record, Note):
        of_note: dict[str, Any] = _function("notes:derived")(record)
        return of_note
    name = type(record).__name__
    if name not in _DERIVED:
        return {}
    words: dict[str, Any] = _function(_DERIVED[name])(record)
    return words


def leading_finding(result: Any) -> Finding:
    """Return the finding of a result that leads."""
    name = type(result).__name__
    if name not in _LEADING:
        return Finding(kind="described", sentence="Nothing was compared.")
    finding: Finding = _function(_LEADING[name])(result)
    return finding


def sentence(record: Any) -> str:
    """Return a verdict, a note, or what a probe found in words."""
    if isinstance(record, Note):
        words_of_note: str = _function("notes:note_sentence")(record)
        return words_of_note
    words: str = _function(_SENTENCES[type(record).__name__])(record)
    return words


def _function(path: str) -> Any:
    """Import a function of this room by its module and name."""
    module, _, name = path.partition(":")
    return getattr(import_module(f"ranktilt.reporting.sentences.{module}"), name)
