"""Find the function that puts a result, or a part of one, in words.

The tables name functions by ``module:function``, and a module is imported when its words are asked
for, so that showing one kind of result does not load the sentences of all.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ranktilt.data.notes.base import Note
from ranktilt.reporting.sentences.findings import Finding

_DERIVED = {
    "Audit": "verdicts:derived_words",
    "Bench": "mitigation.mitigate:derived_words",
    "CheckResult": "checking.check:derived_words",
    "CitationAudit": "citing.cite:derived_words",
    "CitationComparison": "citing.comparison:derived_words",
    "Comparison": "comparison.meaning:derived_words",
    "ContextExperiment": "citing.context_experiment:derived_words",
    "Controlled": "controls:derived_words",
    "Equivalence": "checking.check:derived_equivalence_words",
    "FactorEffects": "explaining.factors:derived_words",
    "FamilyPreference": "judging.judge:derived_preference_words",
    "FaultRow": "checking.faults:derived_words",
    "FileReport": "checking.file_report:derived_words",
    "Gate": "gate:derived_words",
    "GateRow": "gate:derived_row_words",
    "JudgeAudit": "judging.judge:derived_words",
    "JudgeDrift": "judging.drift:derived_words",
    "LimitCheck": "gate:derived_check_words",
    "PairwiseAudit": "pairwise:derived_words",
    "ProbeFigure": "explaining.probes:derived_part_words",
    "ProbeResult": "explaining.probes:derived_words",
    "ProbeTable": "explaining.probes:derived_part_words",
    "RunRanks": "comparison.run_ranks:derived_words",
    "SourceAudits": "source_audits:derived_words",
    "TrainingStudy": "training_study:derived_words",
    "UnmatchedCall": "notes.comparisons:derived_unmatched_words",
}
"""Function for the words that a file holds, by the class of a result or of its part."""
_LEADING = {
    "Bench": "mitigation.mitigate:leading_finding",
    "CitationAudit": "citing.cite:leading_finding",
    "CitationComparison": "citing.comparison:leading_finding",
    "Comparison": "comparison.compare:leading_finding",
    "ContextExperiment": "citing.context_experiment:leading_finding",
    "ExplainedGaps": "explaining.properties:leading_finding",
    "FactorEffects": "explaining.factors:leading_finding",
    "Gate": "gate:leading_finding",
    "JudgeAudit": "judging.judge:leading_finding",
    "JudgeDrift": "judging.drift:leading_finding",
    "PairwiseAudit": "pairwise:leading_finding",
    "RunRanks": "comparison.run_ranks:leading_finding",
    "SequentialAudit": "sequential:leading_finding",
    "TrainingStudy": "training_study:leading_finding",
}
"""Function for the finding that a result is headed by, by the class of the result."""
_SENTENCES = {
    "ChangeVerdict": "comparison.compare:change_verdict_sentence",
    "Mismatch": "notes.comparisons:mismatch_words",
    "PairVerdict": "pairwise:pair_verdict_sentence",
    "ProbeResult": "explaining.probes:probe_summary",
    "Verdict": "verdicts:verdict_sentence",
}
"""Function for the sentence of a verdict, a mismatch or a probe's finding, by its class."""


def derived(record: Any) -> dict[str, Any]:
    """Return the words that a file holds of a result, or of a part of it, besides the fields.

    They follow from the fields, and are not read back. Most parts have none.
    """
    if isinstance(record, Note):
        note_words: dict[str, Any] = _function("notes:derived_words")(record)
        return note_words
    name = type(record).__name__
    if name not in _DERIVED:
        return {}
    words: dict[str, Any] = _function(_DERIVED[name])(record)
    return words


def leading_finding(result: Any) -> Finding:
    """Return the finding that a result is headed by."""
    name = type(result).__name__
    if name not in _LEADING:
        return Finding(kind="described", sentence="Nothing was compared.")
    finding: Finding = _function(_LEADING[name])(result)
    return finding


def sentence(record: Any) -> str:
    """Return a verdict, a note, or what a probe found in words."""
    if isinstance(record, Note):
        note_sentence: str = _function("notes:note_sentence")(record)
        return note_sentence
    words: str = _function(_SENTENCES[type(record).__name__])(record)
    return words


def _function(path: str) -> Any:
    """Import a function of this room by its module and name."""
    module, _, name = path.partition(":")
    return getattr(import_module(f"ranktilt.reporting.sentences.{module}"), name)
