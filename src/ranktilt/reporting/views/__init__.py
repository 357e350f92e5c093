"""Views: each makes the document of one kind of result, for renderers to print.

Start with `view`, which finds a result's module in `_VIEWS`. Results with several documents or many
tables have folders: `audit`, `check`, `cite`, `compare`, `experiments`, `explain`, `judge`. What
they share is `readings` (charts of effects), beside a folder's own tables and figures.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ranktilt.errors import UserError, shorten
from ranktilt.reporting.document import Document

_VIEWS = {
    "Audit": "audit.audit",
    "Bench": "experiments.bench",
    "CheckResult": "check.check",
    "CitationAudit": "cite.cite",
    "CitationComparison": "cite.comparison",
    "Comparison": "compare.compare",
    "ContextExperiment": "cite.context_experiment",
    "ExplainedGaps": "explain.properties",
    "Explanation": "explain.explain",
    "FactorEffects": "explain.factors",
    "FileReport": "check.file_report",
    "Gate": "gate",
    "Installation": "doctor",
    "JudgeAudit": "judge.judge",
    "JudgeDrift": "judge.drift",
    "LoadedAudit": "audit.audit",
    "LoadedSourceAudits": "audit.source_audits",
    "ManipulationChecks": "explain.versions",
    "PairwiseAudit": "pairwise",
    "ReplayedLog": "replay_log",
    "RunRanks": "compare.run_ranks",
    "SequentialAudit": "audit.sequential",
    "SourceAudits": "audit.source_audits",
    "TrainingStudy": "experiments.training_study",
}
"""The module of each result's view, by the result's class."""


def view(result: Any) -> Document:
    """Return the document of a result; a document is returned as it is."""
    if isinstance(result, Document):
        return result
    name = type(result).__name__
    if name not in _VIEWS:
        raise UserError(f"expected a result to print, such as an audit, got {shorten(result)}")
    document: Document = import_module(f"ranktilt.reporting.views.{_VIEWS[name]}").view(result)
    return document
