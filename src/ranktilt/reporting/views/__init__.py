"""Views: each makes the document of one result; those of experiments have their own folder."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ranktilt.errors import UserError, shorten
from ranktilt.reporting.document import Document

_VIEWS = {
    "Audit": "audit",
    "Bench": "experiments.bench",
    "CheckResult": "check",
    "CitationAudit": "cite",
    "CitationComparison": "cite_compare",
    "Comparison": "compare",
    "ContextExperiment": "context_experiment",
    "ExplainedGaps": "properties",
    "Explanation": "explain",
    "FactorEffects": "factors",
    "FileReport": "check_file",
    "Gate": "gate",
    "Installation": "doctor",
    "JudgeAudit": "judge",
    "JudgeDrift": "judge_drift",
    "LoadedAudit": "audit",
    "LoadedSourceAudits": "source_audits",
    "ManipulationChecks": "versions",
    "PairwiseAudit": "pairwise",
    "ReplayedLog": "replay_log",
    "RunRanks": "run_ranks",
    "SequentialAudit": "sequential",
    "SourceAudits": "source_audits",
    "TrainingStudy": "experiments.training_study",
}
"""The module of each result's view, by the result's class."""


def view(result: Any) -> Document:
    """Return the document of a result; a document is its own view."""
    if isinstance(result, Document):
        return result
    name = type(result).__name__
    if name not in _VIEWS:
        raise UserError(f"expected a result to print, such as an audit, got {shorten(result)}")
    document: Document = import_module(f"ranktilt.reporting.views.{_VIEWS[name]}").view(result)
    return document
