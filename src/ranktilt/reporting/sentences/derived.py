"""Find the function that puts a result, or a part of one, in words.

A saved file holds the fields of a result, and besides them *derived* values: sentences and
properties that follow from the fields, for readers of the file who do not have RankTilt. A
*finding* is a sentence with its kind and size.

The tables name functions by ``module:function``, by the class of the record that they describe. A
module is imported when its words are needed, so that showing one kind of result does not load the
sentences of all. Some classes are parts of a result: ``Controlled`` is a tilt under one control of
an audit, and ``UnmatchedCall`` a call in a replayed log that fits no query. A ``Bench`` compares
ways to mitigate a tilt.
"""

from __future__ import annotations

from collections.abc import Mapping
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
"""Function for the derived values of a record in a saved file, by the record's class."""
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
"""Function for the finding that heads the report on a result, by the result's class."""
_SENTENCES = {
    "ChangeVerdict": "comparison.compare:change_verdict_sentence",
    "Mismatch": "notes.comparisons:mismatch_words",
    "PairVerdict": "pairwise:pair_verdict_sentence",
    "ProbeResult": "explaining.probes:probe_summary",
    "Verdict": "verdicts:verdict_sentence",
}
"""Function for the sentence of a verdict, a mismatch or a probe's result, by its class."""


def derived(record: Any) -> dict[str, Any]:
    """Return the derived values of a result, or of a part of it, by their keys in a saved file.

    They are not read back from the file. Most parts have none.
    """
    path = "notes:derived_words" if isinstance(record, Note) else _path(record, _DERIVED)
    if not path:
        return {}
    values: dict[str, Any] = _function(path)(record)
    return values


def leading_finding(result: Any) -> Finding:
    """Return the finding that heads the report on a result."""
    path = _path(result, _LEADING)
    if not path:
        # Results of other classes describe something, and compare nothing.
        return Finding(kind="described", sentence="Nothing was compared.")
    finding: Finding = _function(path)(result)
    return finding


def sentence(record: Any) -> str:
    """Return the sentence of a note, or of a record whose class is in the table of sentences."""
    is_note = isinstance(record, Note)
    path = "notes:note_sentence" if is_note else _SENTENCES[type(record).__name__]
    record_sentence: str = _function(path)(record)
    return record_sentence


def _path(record: Any, table: Mapping[str, str]) -> str:
    """Return the path of the function that a table has for a record; empty if it has none."""
    return table.get(type(record).__name__, "")


def _function(path: str) -> Any:
    """Import the function at ``module:function`` in `ranktilt.reporting.sentences`.

    Type checkers do not see the type of what is imported by name, so callers declare the type of
    what it returns.
    """
    module, _, name = path.partition(":")
    return getattr(import_module(f"ranktilt.reporting.sentences.{module}"), name)
